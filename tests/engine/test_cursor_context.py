"""Answers of a session on its cursor and on failing contexts: `inside`, `broken_at`, `open_constructs`."""

import ast
import io
import random
import tokenize
from itertools import islice
from pathlib import Path

import pytest

from fim_server import Language, LanguageError
from support.engine.corpus import Source, python, sources


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("", None),
        ("x = ", None),
        ("x", None),
        ("x = 1 # one", "comment"),
        ("#", "comment"),
        ("    # in a line of its own", "comment"),
        ("x = ( # in brackets", "comment"),
        ("x # one\n", None),
        ("x # one\r\n", None),
        ("x = 'a", "string"),
        ("x = 'a # no comment", "string"),
        ("x = '", "string"),
        ("x = ''", None),
        ("x = 'a'", None),
        ("x = 'a' ", None),
        ("x = 'a\\", "string"),
        ("x = 'a\\'", "string"),
        ('"""', "string"),
        ('"""A text\nof two lines', "string"),
        ('"""A text"', "string"),
        ('"""A text"""', None),
        ('"""A text"""\n', None),
        ("x = r'", "string"),
        ("x = b'", "string"),
        ("x = r", None),
        ("x = rb", None),
        ("x = f'", "string"),
        ("x = f'''", "string"),
        ("x = f'a", "string"),
        ("x = f'a{", None),
        ("x = f'a{{", "string"),
        ("x = f'a{x", None),
        ("x = f'a{x!", None),
        ("x = f'a{x:", "string"),
        ("x = f'a{x:>1", "string"),
        ("x = f'a{x:>{", None),
        ("x = f'a{x:>{w}", "string"),
        ("x = f'a{x}", "string"),
        ("x = f'a{'b", "string"),
        ("x = f'a{'b'", None),
        ("x = f'a{x}'", None),
        ("x = f''", None),
        ("x = t'a", "string"),
        ("x = f'a{(", None),
        ("x = f'''a{(\n# c", "comment"),
    ],
)
def test_inside(left: str, expected: str | None) -> None:
    assert python().open(left, "").inside == expected
    assert python().open(left, "\n").inside == expected
    # R is broken, and still the cursor is where it is.
    assert python().open(left, "\ny = = 1\n").inside == expected


def test_inside_with_the_rest_of_the_line() -> None:
    assert python().open("x = 'a", "b'\n").inside == "string"
    assert python().open("x = 'a'", "'b'\n").inside is None
    assert python().open("x = 1 # a", "b\n").inside == "comment"


def test_inside_where_the_left_context_does_not_parse() -> None:
    assert python().open("x = = 'a", "").inside is None


def test_inside_in_other_versions_and_languages() -> None:
    assert Language.load("python", "3.11").open("x = f'a{x", "").inside == "string"
    json = Language.load("json")
    assert json.open('{"a', '": 1}').inside == "string"
    assert json.open('{"a"', ": 1}").inside is None
    assert json.open('{"a": ', "}").inside is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = = 1\n", 4),
        ("x = 1\nif x\n    y\n", 10),
        ("x = )\n", 4),
        ("def f(:\n    pass\n", 6),
        ("é = é é\n", 6),
        ("if x:\ny\n", 6),
        ("if x:\n    y\n  z\n", 14),
        ("x = 'a\n", 6),
        ("a b\n", 2),
        ("x = 1 $ 2\n", 6),
        ("class\n", 5),
    ],
)
def test_where_the_left_context_breaks(text: str, expected: int) -> None:
    session = python().open(text, "")
    assert session.guarantee == "none"
    assert session.broken_at == ("left", expected)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "\nx = = 1\ny\n", 5),
        ("x = ", "\nif x\n    y\n", 5),
        ("x = ", "\ny = foo(\nz\n", 8),
        ("x = ", "\ny = (1]\n", 7),
        ("x = ", "\ny = 'a\nz\n", 5),
        ("x = ", "\ny $ z\n", 3),
        ("é = '", "é'\né é\n", 5),
        ('x = """', 'a b c"""\nz = = 1\n', 13),
        ("x = 1 # a", " b c\nz = = 1\n", 9),
        ("if x:\n    ", "y\n    z\n      a\n", 14),
        ("x = ", "\nif x:\ny\n", 7),
        ("x = ", "\ny = f'{x}'\nx = = 1\nz = \"p{}\".foo(1)\n", 16),
        ("x = ", "\ny = f'{x z}'\nx = 1\n", 5),
        ("def f():\n    x = ", '\n    y z\n    """A text"""\n', 7),
    ],
)
def test_where_the_right_context_breaks(left: str, right: str, expected: int) -> None:
    session = python().open(left, right)
    assert session.guarantee == "none"
    assert session.broken_at == ("right", expected)


def test_contexts_that_do_not_meet_or_are_whole() -> None:
    assert Language.load("json").open("{", "]").broken_at == ("between", 0)
    assert python().open("x = (", ")\n").broken_at is None


def test_a_broken_line_is_found() -> None:
    """A line of its own that no program has, put anywhere into real files, on either side of the cursor."""
    rng = random.Random(1)
    for source in islice(sources(rng, 6_000), 12):
        lines = source.text.splitlines(keepends=True)
        starts = [
            at
            for at, line in enumerate(lines)
            if line[:1].isalpha() and python().open("".join(lines[:at]), "").check("").complete
        ]
        if len(starts) < 3:
            continue
        for _ in range(4):
            broken, cursor = rng.sample(starts, 2)
            changed = [*lines[:broken], "a b $\n", *lines[broken:]]
            cursor += cursor > broken
            left, right = "".join(changed[:cursor]), "".join(changed[cursor:])
            found = python().open(left, right).broken_at
            assert found is not None
            side, at = found
            assert side == ("left" if broken < cursor else "right")
            offset = at if side == "left" else len(left) + at
            assert "".join(changed)[:offset].count("\n") == broken, (source.path, broken, cursor)


# ---------------------------------------------------------------- open constructs


def constructs(left: str, language: Language | None = None) -> list[tuple[str, str]]:
    """Names with the text from where each begins to the cursor."""
    opened = (language or python()).open(left, "").open_constructs()
    return [(construct.name, left[construct.offset :]) for construct in opened]


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("", []),
        ("x", []),
        ("x = ", [("assignment", "x = ")]),
        ("x = f(a, [1, ", [("list", "[1, "), ("call", "f(a, [1, "), ("assignment", "x = f(a, [1, ")]),
        ("x = f(a, [1", [("list", "[1"), ("call", "f(a, [1"), ("assignment", "x = f(a, [1")]),
        ("x = f(", [("call", "f("), ("assignment", "x = f(")]),
        ("x = f(a)", []),
        ("x = f(a)\n", []),
        ("é = 'é'\né(", [("call", "é(")]),
        ("if x: y\n", []),
        ("if x:\n", [("if", "if x:\n")]),
        (
            "if x:\n    y\nelse:\n    z(",
            [("call", "z("), ("else", "else:\n    z("), ("if", "if x:\n    y\nelse:\n    z(")],
        ),
        ("def f(a, b=[", [("list", "["), ("(", "(a, b=["), ("def", "def f(a, b=[")]),
        ("x = 1\nx = 1\nx = (", [("(", "("), ("assignment", "x = (")]),
        (
            "class A:\n    # c\n\n    def f(x):\n        y",
            [("def", "def f(x):\n        y"), ("class", "class A:\n    # c\n\n    def f(x):\n        y")],
        ),
        ("@a\n@b(c", [("call", "b(c"), ("decorator", "@b(c")]),
        (
            "{1: [x for x in y[",
            [
                ("subscript", "y["),
                ("comprehension", "for x in y["),
                ("list", "[x for x in y["),
                ("dict or set", "{1: [x for x in y["),
            ],
        ),
        ("print(f'a{x[", [("subscript", "x["), ("{", "{x["), ("formatted string", "f'a{x["), ("call", "print(f'a{x[")]),
        ("f'{x:{y", [("{", "{y"), ("{", "{x:{y"), ("formatted string", "f'{x:{y")]),
        ("f'{x}", [("formatted string", "f'{x}")]),
        ("try:\n    x\nexcept (", [("(", "("), ("except", "except ("), ("try", "try:\n    x\nexcept (")]),
        ("match x:\n    case [", [("[", "["), ("case", "case ["), ("match", "match x:\n    case [")]),
        (
            "async def f():\n    return await g(",
            [("call", "g("), ("return", "return await g("), ("def", "def f():\n    return await g(")],
        ),
        ("f(\n  # c\n  g(1, # c\n  ", [("call", "g(1, # c\n  "), ("call", "f(\n  # c\n  g(1, # c\n  ")]),
        ("x = = (", []),
    ],
)
def test_open_constructs(left: str, expected: list[tuple[str, str]]) -> None:
    assert constructs(left) == expected


def test_open_constructs_of_json() -> None:
    json = Language.load("json")
    text = '{"a": [1, {"b": '
    assert constructs(text, json) == [("object", '{"b": '), ("array", '[1, {"b": '), ("object", text)]
    assert constructs('{"a": 1}', json) == []


def test_constructs_of_a_language_are_checked(tmp_path: Path) -> None:
    grammar = tmp_path / "a.lark"
    grammar.write_text('start: "(" start? ")"\n')
    spec = tmp_path / "a.toml"
    for more, expected in (
        ('[constructs]\nstart = "pair"\n', [("(", "("), ("pair", "(")]),
        ('[constructs]\n"start (" = "pair"\n', [("pair", "(")]),
        ("", [("(", "(")]),
    ):
        spec.write_text('name = "a"\nsuffixes = []\nstart = "start"\nbrackets = [["(", ")"]]\n' + more)
        assert constructs("(", Language.from_files(grammar, spec)) == expected
    for more in ('[constructs]\nstop = "pair"\n', '[constructs]\n"start x" = "pair"\n', "constructs = 1\n"):
        spec.write_text('name = "a"\nsuffixes = []\nstart = "start"\n' + more)
        with pytest.raises(LanguageError):
            Language.from_files(grammar, spec)
    spec.write_text('name = "a"\nsuffixes = []\nstart = "start"\nstrings = ["STRING"]\n')
    with pytest.raises(LanguageError, match="STRING"):
        Language.from_files(grammar, spec)


BRACKETED = {"call": "(", "(": "(", "subscript": "[", "[": "[", "list": "[", "dict or set": "{", "{": "{"}


def open_brackets(text: str) -> list[str] | None:
    """The brackets that a text leaves open, innermost first; None where it cannot be tokenised so far."""
    found = list[str]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string in ("(", "[", "{"):
                found.append(token.string)
            elif token.string in (")", "]", "}"):
                found.pop()
            elif token.type == tokenize.ERRORTOKEN and token.string in "'\"":
                return None
    except tokenize.TokenError as error:
        return found[::-1] if "multi-line statement" in str(error) else None
    except IndentationError:
        return None
    return found[::-1]


def enclosing(source: Source, line: int) -> list[tuple[str, int]]:
    """Functions and classes whose bodies hold a line (1-based), innermost first, with the lines that they begin in."""
    found = []
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "def"
            if node.body[0].lineno <= line <= (node.end_lineno or 0) and node.body[0].lineno > node.lineno:
                found.append((kind, node.lineno))
    return sorted(found, key=lambda one: -one[1])


def test_open_constructs_of_real_files() -> None:
    """Brackets are those that tokenising finds, functions and classes those of CPython's syntax tree."""
    rng = random.Random(1)
    told = 0
    for source in islice(sources(rng, 8_000), 30):
        for start, _ in rng.sample(source.tokens, min(len(source.tokens), 12)):
            left = source.text[:start]
            session = python().open(left, "")
            found = session.open_constructs()
            offsets = [construct.offset for construct in found]
            assert offsets == sorted(offsets, reverse=True)
            brackets = open_brackets(left)
            if brackets is None or session.inside is not None:
                continue
            own = [BRACKETED[construct.name] for construct in found if construct.name in BRACKETED]
            assert own == brackets, (source.path, left[-200:])
            line = left.count("\n") + 1
            scopes = [
                (construct.name, left.count("\n", 0, construct.offset) + 1)
                for construct in found
                if construct.name in ("def", "class")
            ]
            whole = enclosing(source, line)
            # A line that begins at the cursor may still end blocks.
            if left.rpartition("\n")[2].strip() and not brackets:
                assert [scope for scope in scopes if scope[1] < line] == whole, (source.path, left[-200:])
            told += len(found)
    assert told > 200
