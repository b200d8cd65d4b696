"""Holes: every construction keeps its promises, on real files and on nasty ones."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import random
import subprocess
import sysconfig
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from fim_server.datasets import holes as shared
from fim_server.datasets.holes import BLOCK_LINES, LONGEST_FILE, Cut, Refused
from fim_server.datasets.python.constructions import CONSTRUCTIONS, cuts
from fim_server.datasets.python.fields import replacement_fields
from fim_server.datasets.python.text import PythonText
from support.engine import judge

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
STDLIB = Path(sysconfig.get_paths()["stdlib"])
REAL_FILES = 200 if LONG else 12
LARGEST = 200_000 if LONG else 40_000

NASTY = {
    "one name": "x",
    "no last line end": "def f():\n    return 1",
    "comments": "# one\n\n# two\n",
    "tabs": "if x:\n\ty = 1\n\tif y:\n\t\tz(y, 2)\n\tw = 3\n",
    "wide characters": (
        "größe = 'ß😀'; maß = f(größe, 'é', k='😀')  # ü\nif größe:\n    print(f'{größe}é{maß!r}', 'ñ')\n"
    ),
    "form feed": "x = 1\n\f\ndef f(a, b):\n    \f\n    return f(b, a)\n",
    "continued lines": "x = 1 + \\\n    2\nassert f(a, \\\n  b), \\\n  'no'\n",
    "brackets": "x = [\n    1,\n  2,\n]\nf(\n    (a), (lambda p, q: p)(1, 2), lambda r, s: r,\n  *b, k=(c), **d,\n)\n",
    "one-line suites": "if a: b\nelse: c; d\nclass A: pass\n",
    "clauses": (
        "try:\n  a\nexcept B:\n  c\nelse:\n  d\nfinally:\n  e\nwhile f:\n  g\nelse:\n  h\n"
        "if i:\n  j\nelif k:\n  l\nelif m:\n  n\nelse:\n  elif_x = 1\n"
        "match o:\n  case 1 | -2:\n    p\n  case _:\n    q\nwith r as s, t:\n  u\n"
    ),
    "decorators": (
        "class A:\n    'doc'\n    @a.b(1, 2)\n    @ c\n    async def f(self):\n        'doc'\n        await g()\n"
    ),
    "strings": "def f():\n    '''doc\n  string'''\n    x = r'''\n'''; y = '\\x00' 'a' \"\"\"b\n\"\"\"\n    return x\n",
    "f-strings": (
        "x = f'{a}{b!r:>{c}} {{d}} \\N{BULLET} {e = } {f==g} {h != i!s}{ {1: 2}[1] }'\n"
        "y = rf'\\N{j}\\{k}' 'not {l}' f\"{m['n']}\" f'''{\n  o}{p:%H:%M {q}}'''\n"
        "z = f'{(lambda: r)()}{(s:=1)}{t:=5}{u[1:2]}' + F'{v}' + fR'{w}' + f'{x if\"}\"else y}'\n"
    ),
    "arguments": (
        "f()\nf(a)\n(f)(a, b)\nf(x for x in y)\nf(a, (b), [c, d], *e, k=1, **g)\nf(a)(b, c)[0](d, e)\nf(g(h, i), j)\n"
    ),
    "shared names": "@a(b)\nclass C(D, metaclass=E):\n    pass\n",
}
"""Texts that CPython 3.11 takes, with what tends to be counted wrong."""


@cache
def real_texts() -> list[str]:
    paths = sorted(path for path in STDLIB.rglob("*.py") if not {"test", "tests", "site-packages"} & set(path.parts))
    random.Random(6).shuffle(paths)
    texts = []
    for path in paths:
        content = path.read_bytes()
        if 500 < len(content) < LARGEST:
            texts.append(content.decode().replace("\r\n", "\n"))
        if len(texts) == REAL_FILES:
            return texts
    return texts


def all_texts() -> list[str]:
    return [*NASTY.values(), *real_texts()]


def holes(construction: str, text: str, seed: int = 0, count: int = 10) -> list[Cut]:
    return list(cuts(construction, PythonText(text), seed, hashlib.sha256(text.encode()).hexdigest(), count))


def parts(text: str, cut: Cut) -> tuple[str, str, str]:
    return text[: cut.start], text[cut.start : cut.end], text[cut.end :]


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_holes_are_in_the_file_and_never_twice_the_same(construction: str) -> None:
    found = 0
    for text in all_texts():
        cut = holes(construction, text)
        found += len(cut)
        assert all(0 <= hole.start < hole.end <= len(text) for hole in cut)
        assert len({(hole.start, hole.end) for hole in cut}) == len(cut) <= 10
    assert found >= 2 * REAL_FILES


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_fewer_holes_are_the_first_of_more(construction: str) -> None:
    for text in all_texts():
        assert holes(construction, text, count=3) == holes(construction, text, count=10)[:3]


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_seeds_and_contents_change_the_holes(construction: str) -> None:
    text = real_texts()[0]
    file = PythonText(text)
    drawn = [
        tuple(cuts(construction, file, seed, digest, 10))
        for seed, digest in [(0, "aa"), (0, "aa"), (1, "aa"), (0, "ab")]
    ]
    if construction != "f-string" or drawn[0]:
        assert drawn[0] == drawn[1]
        assert len(set(drawn)) == 3


# --- the paper's ---------------------------------------------------------------------------------------------------


def symbols_and_blocks(text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Start, end and block of each token with text, by tokenize alone. A block is named by the lines it begins on."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    block: tuple[int, ...] = ()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.INDENT:
            block = (*block, token.start[0])
        elif token.type == tokenize.DEDENT:
            block = block[:-1]
        elif token.string and token.type not in (tokenize.COMMENT, tokenize.NL):
            yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1], block


def test_boundary_holes_are_between_symbols_of_one_block() -> None:
    for text in all_texts():
        symbols = [(start, min(end, len(text)), block) for start, end, block in symbols_and_blocks(text)]
        for hole in holes("stack-boundary", text):
            # A hole that begins between two adjacent symbols may be either's.
            first = {block for start, end, block in symbols if start <= hole.start <= end}
            second = {block for start, _, block in symbols if start == hole.end}
            assert first & second, (text[:200], hole)


def test_boundary_draws_every_pair_and_every_part_and_nothing_else() -> None:
    text = "ab = c\n"
    ab, equals, c, end = range(3), range(3, 5), range(5, 7), 6
    expected = {(start, stop) for start in ab for stop in (3, 5, 6)}
    expected |= {(start, stop) for start in equals for stop in (5, 6)}
    expected |= {(start, end) for start in c if start < end}
    drawn = {(hole.start, hole.end) for seed in range(40) for hole in holes("stack-boundary", text, seed, count=99)}
    assert drawn == expected


def test_boundary_leaves_other_blocks_alone() -> None:
    # The two "y" are equally deep, but not in one block; a hole from one to the other would begin with y.
    text = "if a:\n    y\nif b:\n    z\n"
    drawn = {parts(text, hole)[1] for seed in range(40) for hole in holes("stack-boundary", text, seed, count=99)}
    assert "if a:\n    y\n" in drawn
    assert "y" in drawn
    assert not [middle for middle in drawn if middle.startswith("y\n")]


def test_boundary_has_nothing_in_a_file_without_two_symbols_of_one_block() -> None:
    for text in ("", "\n", "# comment\n", "x"):
        assert holes("stack-boundary", text) == []


def test_randspan_keeps_its_bounds() -> None:
    for text in all_texts():
        for hole in holes("stack-randspan", text, count=50):
            assert hole.start <= 0.9 * len(text)
            assert 1 <= hole.end - hole.start <= min(100, 0.2 * len(text), len(text) - hole.start)


def test_randspan_draws_exactly_the_allowed_spans() -> None:
    text = "a = 12345\n"
    expected = {(start, start + length) for start in range(10) for length in (1, 2) if start + length <= 10}
    drawn = {(hole.start, hole.end) for seed in range(40) for hole in holes("stack-randspan", text, seed, count=99)}
    assert drawn == expected
    assert holes("stack-randspan", "x=1\n") == []  # a fifth of four characters is none


def test_holes_of_a_seed_are_these() -> None:
    """Whoever changes them counts `shared.VERSION` up: samples' ids promise the same holes."""
    text = NASTY["brackets"] + NASTY["decorators"] + NASTY["f-strings"]
    found = {name: [(hole.start, hole.end) for hole in holes(name, text, seed=3, count=2)] for name in CONSTRUCTIONS}
    assert shared.VERSION == 1
    assert found == GOLDEN


GOLDEN = {
    "stack-boundary": [(98, 331), (83, 293)],
    "stack-randspan": [(193, 265), (289, 345)],
    "line": [(27, 71), (165, 170)],
    "line-rest": [(146, 156), (33, 71)],
    "expression": [(116, 119), (4, 19)],
    "block": [(179, 188), (115, 188)],
    "mid-indentation": [(129, 133), (128, 133)],
    "f-string": [(275, 276), (241, 247)],
    "call-arguments": [(52, 53), (123, 124)],
}


# --- by Python's structure -----------------------------------------------------------------------------------------


def test_lines_are_whole_lines_of_code() -> None:
    for text in all_texts():
        for hole in holes("line", text):
            left, middle, right = parts(text, hole)
            assert not left.rpartition("\n")[2].strip()
            assert right[:1] in ("", "\n")
            assert middle == middle.lstrip(" \t\f")
            assert middle[0] not in "#\n"
            assert "\n" not in middle


def test_rests_of_lines_begin_inside_a_line_of_code() -> None:
    within = 0
    for text in all_texts():
        for hole in holes("line-rest", text):
            left, middle, right = parts(text, hole)
            assert left.rpartition("\n")[2].strip()
            assert right[:1] in ("", "\n")
            assert middle.strip()
            assert "\n" not in middle
            within += left[-1].isalnum() and middle[0].isalnum()
    assert within > REAL_FILES  # cuts are of characters, not of words


def test_mid_indentation_is_inside_blanks_before_a_statement() -> None:
    for text in all_texts():
        spans = [(start, end) for start, end, _ in symbols_and_blocks(text)]
        begin = {after[0] for before, after in pairwise(spans) if text[slice(*before)] == "\n"}
        for hole in holes("mid-indentation", text):
            left, middle, right = parts(text, hole)
            assert hole.end - len(middle.lstrip(" \t")) in begin
            indentation = left.rpartition("\n")[2]
            assert indentation
            assert not indentation.strip(" \t")
            assert middle[0] in " \t"
            assert right[:1] in ("", "\n")


def test_expressions_are_expressions() -> None:
    kinds = set()
    for text in all_texts():
        for hole in holes("expression", text):
            _, middle, _ = parts(text, hole)
            ast.parse(f"({middle}\n)", mode="eval")
            kinds.add(hole.kind)
    assert {"call", "name", "constant", "attribute", "bin-op", "if-exp", "lambda"} <= kinds


def test_blocks_can_be_replaced_by_pass() -> None:
    kinds = set()
    for text in all_texts():
        for hole in holes("block", text, count=30):
            left, middle, right = parts(text, hole)
            assert parses(f"{left}pass{right}"), (hole, middle)
            assert middle.count("\n") < BLOCK_LINES
            kinds.add(hole.kind)
    every = {"function", "class", "if", "else", "for", "while", "with", "try", "except", "finally", "case"}
    assert kinds == every
    text = NASTY["decorators"]
    assert {parts(text, hole)[1][:6] for hole in holes("block", text)} == {"@a.b(1", "await "}
    text = NASTY["clauses"]
    assert "elif_x = 1" in {parts(text, hole)[1] for hole in holes("block", text, count=30)}


def test_arguments_reach_to_the_closing_parenthesis() -> None:
    for text in all_texts():
        for hole in holes("call-arguments", text, count=30):
            left, middle, right = parts(text, hole)
            assert right[0] == ")"
            # Nothing, or one more argument, can be there in its place.
            assert parses(f"{left}{'' if hole.kind == 'all' else '**_'}{right}"), (hole, left[-50:], middle)
            assert (left[-1] == "(") == (hole.kind == "all") or "(" in text
    text = NASTY["arguments"]
    found = {(hole.kind, parts(text, hole)[1]) for hole in holes("call-arguments", text, count=60)}
    assert {("all", "x for x in y"), ("rest", "b"), ("rest", "(b), [c, d], *e, k=1, **g"), ("rest", "**g")} <= found
    assert {("all", "g(h, i), j"), ("rest", "j"), ("rest", "i")} <= found
    assert not {middle for _, middle in found} & {"d], *e, k=1, **g", "i), j"}


def test_fields_of_f_strings_are_found() -> None:
    """The set has as many expressions as the syntax tree, whatever they hold."""
    found = 0
    for text in all_texts():
        expected = sum(
            isinstance(part, ast.FormattedValue)
            for node in outermost_f_strings(ast.parse(text))
            for part in node.values
        )
        file = PythonText(text)
        spans = [span for symbol in file.symbols if symbol.is_string for span in replacement_fields(text, *symbol[:2])]
        assert len(spans) == expected, text[:100]
        assert len(set(spans)) == expected
        for start, end in spans:
            ast.parse(f"({text[start:end]}\n)", mode="eval")
            assert text[start:end] == text[start:end].strip()
        found += expected
    assert found > 20


def outermost_f_strings(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            yield node
        else:
            yield from outermost_f_strings(node)


def test_f_string_holes_are_the_ends_of_fields() -> None:
    text = NASTY["f-strings"]
    found = holes("f-string", text, count=200)
    whole = {parts(text, hole)[1] for hole in found if hole.kind == "field"}
    assert whole == {
        "a", "b", "e", "f==g", "h != i", "{1: 2}[1]", "j", "k", "m['n']", "o", "p", "(lambda: r)()", "(s:=1)", "t",
        "u[1:2]", "v", "w", 'x if"}"else y',
    }  # fmt: skip
    for hole in found:
        _, middle, right = parts(text, hole)
        assert middle
        assert right.lstrip(" ")[0] in "}!:="


@pytest.mark.parametrize(
    "text",
    [
        "f'{a!r",
        "f'{",
        "f'",
        "f",
        "f'{a",
        "f'{a:{",
        "f'\\N{",
        "f'{\"",
        "f'''{a}''",
        "'{a}'",
        "f'{}'",
        "f'{a b}'",
        "f'{[}'",
    ],
)
def test_other_strings_have_no_fields(text: str) -> None:
    assert replacement_fields(text, 0, len(text)) == []


# --- the text ------------------------------------------------------------------------------------------------------


def test_symbols_have_their_text_at_their_offsets() -> None:
    for text in all_texts():
        symbols = PythonText(text).symbols
        assert all(one.end <= other.start for one, other in pairwise(symbols))
        expected = [(start, min(end, len(text))) for start, end, _ in symbols_and_blocks(text)]
        if not hasattr(tokenize, "FSTRING_START"):
            assert [(symbol.start, symbol.end) for symbol in symbols] == expected
        covered = {at for symbol in symbols for at in range(symbol.start, symbol.end)}
        names = [
            at for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) for at in [span_start(text, node)]
        ]
        assert set(names) <= covered


def span_start(text: str, node: ast.Name) -> int:
    """In the slow and plain way: the offset in bytes, decoded."""
    lines = text.encode().split(b"\n")
    return len((b"\n".join([*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]])).decode())


@pytest.mark.parametrize("text", ["x = (", "x = 1\x00", "print 'x'", "  x", "(" * 5000, "x" * (LONGEST_FILE + 1)])
def test_invalid_files_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        PythonText(text)


CUT_IN_NODE = """
import fs from "node:fs";
const request = JSON.parse(fs.readFileSync(0));
const { loadPyodide } = await import(`./node_modules/pyodide-${request.version}/pyodide.mjs`);
const python = await loadPyodide();
for (const [name, source] of Object.entries(request.modules)) {
  const path = `/home/pyodide/fim_server/${name}`;
  python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  python.FS.writeFile(path, source);
}
python.globals.set("request", JSON.stringify(request.texts));
process.stdout.write(python.runPython(`
import hashlib, json, sys
from fim_server.datasets.python.constructions import CONSTRUCTIONS, cuts
from fim_server.datasets.python.text import PythonText
found = []
for text in json.loads(request):
    file, digest = PythonText(text), hashlib.sha256(text.encode()).hexdigest()
    found.append({name: [list(cut) for cut in cuts(name, file, 0, digest, 10)] for name in CONSTRUCTIONS})
json.dumps([sys.version_info[:2], found])
`));
"""


@pytest.mark.skipif(judge.unavailable() is not None, reason=judge.unavailable() or "")
def test_another_python_cuts_the_same_holes() -> None:
    package = Path(shared.__file__).parents[1]
    own = (f"datasets/python/{name}.py" for name in ("constructions", "fields", "text"))
    names = ("datasets/holes.py", "text/lined_text.py", *own)
    modules = {f"{folder}/__init__.py": "" for folder in ("datasets", "datasets/python", "text")}
    modules |= {name: (package / name).read_text(encoding="utf-8") for name in names}
    texts = [*NASTY.values(), *real_texts()[: REAL_FILES // 3]]
    answer = subprocess.run(
        ["node", f"--stack-size={judge.STACK_KIB}", "--input-type=module", "-e", CUT_IN_NODE],
        cwd=judge.ORACLE,
        input=json.dumps({"modules": modules, "texts": texts, "version": judge.NEWEST}).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    version, theirs = json.loads(answer.stdout)
    assert ".".join(map(str, version)) == judge.NEWEST
    for text, found in zip(texts, theirs, strict=True):
        assert found == {name: [list(cut) for cut in holes(name, text)] for name in CONSTRUCTIONS}, text[:200]
