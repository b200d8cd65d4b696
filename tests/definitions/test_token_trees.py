"""Languages of token trees: texts that each takes and refuses, their data, and a plain reader of a small one."""

from __future__ import annotations

import json
import random
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from fim_server.cli.program import main
from fim_server.errors import LanguageError
from fim_server.language.definition import compile as definitions
from fim_server.language.definition.token_trees.grammar import written
from fim_server.language.definition.variants import Variants

TEXTS = tomllib.loads(Path(__file__).with_name("token_tree_texts.toml").read_text(encoding="utf-8"))
NAMES = [name for name in Language.names() if definitions.read_builtin(name).guarantee == "balanced"]


def taken_by(name: str) -> list[str]:
    """The tables of texts that a language has: its own, and those of the first variant of its definition."""
    return [one for one in dict.fromkeys((*definitions.siblings(name)[:1], name)) if one in TEXTS]


CASES = [
    (name, text, key == "accepted")
    for name in NAMES
    for table in taken_by(name)
    for key in ("accepted", "refused")
    for text in TEXTS[table][key]
]


@cache
def loaded(name: str) -> Language:
    return Language.load(name)


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_text(name: str, text: str, expected: bool) -> None:
    assert loaded(name).open("", "").check(text).complete == expected


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_cuts_of_a_text(name: str, text: str, expected: bool) -> None:
    for at in range(len(text) + 1):
        session = loaded(name).open(text[:at], text[at:])
        assert session.check("").complete == expected, text[at:]
        assert session.guarantee == ("none" if not session.start().is_viable() else "balanced")
        if expected:
            assert all(loaded(name).open(text[:at], text[end:]).check(text[at:end]).complete for end in {at, len(text)})


@pytest.mark.parametrize("name", NAMES)
def test_every_language_has_texts(name: str) -> None:
    """Each kind of comment, string and bracket is in a text that is taken; its opening alone is refused."""
    text = definitions.builtin_files(name)[1].read_text(encoding="utf-8")
    spec = tomllib.loads(Variants.of(text).select(text, definitions.builtin_variant(name)))
    table = spec.get("token_trees", {})
    accepted = [text for one in taken_by(name) for text in TEXTS[one]["accepted"]]
    openings = [row if isinstance(row, str) else row["open"] for row in table.get("line_comments", [])]
    openings += [row["open"] for key in ("block_comments", "strings") for row in table.get(key, [])]
    openings += [hole["open"] for row in table.get("strings", []) for hole in row.get("holes", [])]
    openings += [one for pair in spec["brackets"] for one in pair]
    assert [one for one in openings if not any(one in text for text in accepted)] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_a_language_leaves_open_is_closed(name: str) -> None:
    for table in taken_by(name):
        for text in TEXTS[table]["accepted"]:
            for at in range(0, len(text), 3):
                state = loaded(name).open(text[:at], "").start()
                ending = state.shortest_completion()
                assert loaded(name).open("", "").check(text[:at] + ending).complete, text[:at]


def test_nothing_says_that_such_a_language_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["languages", "--json"]) == 0
    listed = {row["name"]: row["guarantee"] for row in json.loads(capsys.readouterr().out)}
    assert {name for name, guarantee in listed.items() if guarantee == "balanced"} == set(NAMES) >= {"c", "cpp"}
    assert main(["languages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("\t")[0] for line in lines if "\tbalanced, " in line} == set(NAMES)
    session = loaded("c").open("f(", ")")
    assert session.guarantee == loaded("c").guarantee == "balanced"
    moved, floored = session.moved("f((a), "), session.floored("brackets")
    assert moved is not None
    assert (moved.guarantee, floored.guarantee, floored.floor) == ("balanced", "balanced", "brackets")
    assert loaded("c").open("f(]", "").guarantee == "none"


def test_headers_are_of_the_language_that_takes_more() -> None:
    assert Language.name_for_path("a/b.h") == "cpp"
    assert Language.name_for_editor("c", "b.h") == "cpp"
    assert Language.name_for_editor("c", "b.c") == "c"


def test_names_of_files_and_of_editors() -> None:
    assert [Language.name_for_path(path) for path in ("a/Dockerfile", "b.dockerfile", ".bashrc", "a.sh")] == [
        *["dockerfile"] * 2,
        *["shellscript"] * 2,
    ]
    with pytest.raises(LanguageError):
        Language.name_for_path("ADockerfile")
    ids = {"terraform": "hcl", "sh": "shellscript", "cs": "csharp", "xsl": "xml", "cpp": "cpp"}
    assert {editor_id: Language.name_for_editor(editor_id) for editor_id in ids} == ids


# --- a small language ----------------------------------------------------------------------------------------------

SMALL = """
name = "small"
suffixes = [".small"]
guarantee = "balanced"
brackets = [["(", ")"], ["{", "}"]]

[token_trees]
line_comments = ["%"]
block_comments = [{ open = "/*", close = "*/", nested = 2 }]
strings = [{ open = "'", escape = '\\' }, { open = '"', lines = true, holes = [{ open = "${", close = "}" }] }]
"""


def plainly(text: str) -> bool:
    """Return whether the small language takes a text: a reader that keeps a stack."""
    at, stack = 0, [""]
    while at < len(text):
        if stack[-1] == '"':
            if text.startswith("${", at):
                stack.append("}")
                at += 1
            elif text[at] == '"':
                stack.pop()
        elif text[at] == "%":
            at = (text + "\n").index("\n", at) - 1
        elif text.startswith("/*", at):
            end = comment_end(text, at)
            if end is None:
                return False
            at = end - 1
        elif text[at] == "'":
            end = string_end(text, at + 1)
            if end is None:
                return False
            at = end - 1
        elif text[at] == '"':
            stack.append('"')
        elif text[at] in "({":
            stack.append({"(": ")", "{": "}"}[text[at]])
        elif text[at] in ")}" and stack.pop() != text[at]:
            return False
        at += 1
    return stack == [""]


def comment_end(text: str, at: int) -> int | None:
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            depth += 1
            if depth > 2:
                return None
            at += 2
        elif text.startswith("*/", at):
            depth -= 1
            at += 2
            if depth == 0:
                return at
        else:
            at += 1
    return None


def string_end(text: str, at: int) -> int | None:
    while at < len(text) and text[at] != "\n":
        if text[at] == "'":
            return at + 1
        if text[at] == "\\":
            at += 1
            if text[at : at + 1] == "\n":
                return None
        at += 1
    return None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Language:
    path = tmp_path_factory.mktemp("small") / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return Language.from_files(None, path)


def test_a_small_language_as_a_plain_reader_reads_it(small: Language) -> None:
    rng = random.Random(47)
    pieces = [*"(){}'\"%\\\n a/*$", "${", "/*", "*/", "()", '"${', '}"', "''"]
    counts = {True: 0, False: 0}
    for _ in range(4000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(10)))
        expected = plainly(text)
        counts[expected] += 1
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        assert small.open("", "").check(text).complete == expected, text
        assert small.open(text[:start], text[end:]).check(text[start:end]).complete == expected, (text, start, end)
    assert min(counts.values()) > 400


# --- data that is wrong --------------------------------------------------------------------------------------------

MANY = {
    "open": '"',
    "plain": [f"{letter}z" for letter in "bcdefghijk"],
    "holes": [{"open": f"a{letter}", "close": ")"} for letter in "bcdefghijklmnop"],
}
"""A string with delimiters that begin each other in many ways."""
LONG = {"open": '"', "plain": [chr(ord("a") + number) * 30 + "z" for number in range(10)]}


def hole(opening: str, closing: str, count: int = 1) -> dict[str, Any]:
    """A string between two kinds of quotes, with code in it."""
    return {"open": "`", "close": "'", "holes": [{"open": opening, "close": closing}] * count}


WRONG = [
    ({"token_trees": []}, "token_trees: expected a table"),
    ({"brackets": [["("]]}, "brackets: expected pairs of texts"),
    ({"token_trees": {"string": []}}, "token_trees.string: unknown key"),
    ({"token_trees": {"strings": [{"open": '"', "close_": "a"}]}}, r"token_trees.strings\[0\].close_: unknown key"),
    ({"token_trees": {"strings": [{"close": '"'}]}}, r"token_trees.strings\[0\].open: expected a text that is not"),
    ({"token_trees": {"strings": [{"open": ""}]}}, r"token_trees.strings\[0\].open: expected a text that is not empty"),
    ({"token_trees": {"strings": [{"open": '"', "lines": 1}]}}, r"strings\[0\].lines: expected true or false"),
    ({"token_trees": {"strings": [{"open": '"', "more": 9}]}}, r"strings\[0\].more: expected a number from 0 to 8"),
    ({"token_trees": {"strings": {}}}, "token_trees.strings: expected a list"),
    ({"token_trees": {"strings": ["x"] * 65}}, "entries of token_trees.strings: 65 is over the limit of 64"),
    ({"token_trees": {"word": "a" * 2001}}, "characters of token_trees.word: 2001 is over the limit of 2000"),
    ({"token_trees": {"opaque": {"A": "a" * 2001}}}, "of a pattern of token_trees.opaque: 2001 is over the limit"),
    ({"token_trees": {"strings": [{"open": "a" * 41}]}}, r"strings\[0\].open: 41 is over the limit of 40"),
    ({"token_trees": {"strings": [{"open": "a", "plain": ["b" * 41]}]}}, r"strings\[0\].plain: 41 is over the limit"),
    ({"token_trees": {"strings": [MANY]}}, "a pattern of its delimiters is over the limit of 50000 characters"),
    ({"token_trees": {"strings": [LONG]}}, "characters of its delimiters: 312 is over the limit of 200"),
    ({"token_trees": {"block_comments": [{"open": "/*", "close": "*/", "nested": 0}]}}, "nested: expected a number"),
    ({"token_trees": {"opaque": {"a b": "a"}}}, "'a b' is no name of a lexeme"),
    ({"token_trees": {"opaque": {"WORD": "a"}}}, "two lexemes are named WORD"),
    ({"token_trees": {"lines": {"WORD": "a"}}}, "two lexemes are named WORD"),
    ({"token_trees": {"lexemes": {"BLANK": "a"}}}, "two lexemes are named BLANK"),
    ({"token_trees": {"opaque": {"A": "a"}, "lexemes": {"A": "b"}}}, "two lexemes are named A"),
    ({"token_trees": {"opaque": {"FIRST_A": "a"}, "lines": {"A": "b"}}}, "two lexemes are named FIRST_A"),
    ({"brackets": [["(", "("]]}, "brackets: '\\(' opens and closes one"),
    ({"brackets": [["(", ")"], [")", "]"]]}, "brackets: '\\)' opens and closes one"),
    ({"token_trees": {"strings": [hole("${", "}")]}}, r"strings\[0\].holes: '}' is no closing bracket of brackets"),
    ({"token_trees": {"strings": [hole("`", ")")]}}, r"strings\[0\].holes: '`' begins or ends the string"),
    ({"token_trees": {"strings": [hole("'", ")")]}}, r"strings\[0\].holes: \"'\" begins or ends the string"),
    ({"token_trees": {"strings": [hole("$(", ")", 2)]}}, r"strings\[0\].holes: '\$\(' begins or ends the string, or"),
    ({"token_trees": {"here_documents": [{"open": "<<"}]}}, r"here_documents\[0\].words: expected at least one word"),
    ({"token_trees": {"trees": [""]}}, "token_trees.trees: expected a list of texts"),
    ({"token_trees": {"strings": [{"open": '"', "escape": '"'}]}}, "token_trees: '\"' is an escape and a delimiter"),
    ({"token_trees": {"strings": [{"open": '"', "pattern": "a", "more": 1}]}}, "either the whole or its parts"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG)
def test_wrong_data_is_reported_in_a_line(changed: dict[str, Any], message: str) -> None:
    spec = {"name": "small", "brackets": [["(", ")"]], "token_trees": {}, **changed}
    with pytest.raises(LanguageError, match=message) as raised:
        written(spec)
    assert str(raised.value).startswith("language small: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('guarantee = "balanced"', "", "guarantee: token trees are balanced"),
        ('"balanced"', '"sound"', "guarantee: exact or balanced expected"),
        ('["(", ")"]', '["(", "/*"]', "LEXEME|lexeme|literal|_OPEN|Rules"),
        ("[token_trees]", "[other]", "no table .token_trees."),
        ('line_comments = ["%"]', 'word = "("', "."),
    ],
)
def test_a_wrong_file_is_reported_in_a_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(LanguageError, match=message) as raised:
        Language.from_files(None, path)
    assert "\n" not in str(raised.value)


def test_a_grammar_beside_token_trees_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "small.lark").write_text('start: "a"\n', encoding="utf-8")
    with pytest.raises(LanguageError, match=r"small\.lark would not be read"):
        Language.from_files(tmp_path / "small.lark", tmp_path / "small.toml")


def test_fields_of_the_file_count_and_lists_are_joined(tmp_path: Path) -> None:
    spec = tomllib.loads(SMALL) | {"placeholder": "a", "modes": [{"name": "mine", "lexemes": ["A"]}]}
    grammar, fields = written(spec)
    assert fields["placeholder"] == "a"
    assert [mode["name"] for mode in fields["modes"]] == ["text 0", "mine"]
    assert "token_trees" not in fields
    assert fields["closers"] == ")}'\""
    assert "tree: " in grammar
