"""Definitions from an editor's own data of a language, chosen by a file."""

from __future__ import annotations

from typing import Any

import pytest

from fim_server.errors import LanguageError
from fim_server.language import editor_data
from fim_server.language.editor_data import MOST_DEFINITIONS, MOST_PAIRS, EditorData, count_quotes, language_of
from fim_server.recovery.recovery import Recovery

BRACKETS = [["{", "}"], ["[", "]"], ["(", ")"]]


def configuration(quotes: str = "\"'", line: str | None = "#", block: list[str] | None = None) -> dict[str, Any]:
    comments = {"lineComment": line} | ({} if block is None else {"blockComment": block})
    closing = [*BRACKETS, *({"open": quote, "close": quote, "notIn": ["string"]} for quote in quotes)]
    return {"comments": comments, "brackets": [*BRACKETS, ["<", ">"]], "autoClosingPairs": closing}


STRINGS = EditorData.read("groovy", configuration(line="//", block=["/*", "*/"]))
CHARACTERS = EditorData.read(
    "ocaml", configuration('"', None, ["(*", "*)"]) | {"surroundingPairs": [["'", "'"], ['"', '"']]}
)
NAMES = EditorData.read("haskell", configuration("\"'`", "--", ["{-", "-}"]))
SIGNS = EditorData.read("clojure", configuration('"', ";"))


def test_the_data_has_comments_brackets_and_quotes() -> None:
    assert EditorData("groovy", ("//",), (("/*", "*/"),), ("()", "[]", "{}"), "\"'", "\"'") == STRINGS
    assert (CHARACTERS.quotes, CHARACTERS.closed) == ("\"'", '"')
    newer = configuration() | {"comments": {"lineComment": {"comment": "#", "noIndent": True}}}
    assert EditorData.read("x", newer).line_comments == ("#",)


@pytest.mark.parametrize(
    ("data", "file", "taken", "refused"),
    [
        (STRINGS, "f('a', \"b (\")\n", ["g('http://x', ')')", 'x = """a "(" b"""', "/* ( */"], ["g('a'", 'x = "', ")"]),
        (STRINGS, "f(1)\n", ["g('http://x')", "say 'it is ('"], ["f("]),
        (
            CHARACTERS,
            "let f (x : 'a) = '('\n",
            ["let g (x : 'b) = ')'", "(* a (* b *) ( *)"],
            ["let (", "(* a (* b *)"],
        ),
        (CHARACTERS, "let x = 1\n", ["type 'a t = ('a, exn) r", "let c = '('"], ["type 'a t = ('a"]),
        (NAMES, "f x' = (g' x')\n", ["h name' (a' == b')", "c = '('", "a `div` b"], ["h (name'"]),
        (SIGNS, "(f 'a)\n", ['(g \'b "two\nlines")', "'(a b)", "; ("], ["(g 'b", "'(a b"]),
    ],
)
def test_a_file_chooses_the_use_of_its_quotes(
    data: EditorData, file: str, taken: list[str], refused: list[str]
) -> None:
    language = language_of(data, file)
    assert language is not None
    assert (language.name, language.guarantee) == (data.name, "balanced")
    for texts, is_taken in ((taken, True), (refused, False)):
        for text in texts:
            assert language.open(file, file).check(f"{text}\n").complete is is_taken, text


def test_a_file_that_no_use_of_a_quote_fits_has_no_language() -> None:
    assert language_of(STRINGS, "f('a', (\n") is None
    assert language_of(SIGNS, '(f "a)\n') is None
    assert len(list(NAMES.languages("a' 'b' `c"))) == MOST_DEFINITIONS


def test_files_are_judged_whole_or_not_at_all() -> None:
    file = "def a() {\n  f(1)\n}\n"
    language = language_of(STRINGS, file)
    assert language is not None
    recovery = Recovery(language.open)
    assert recovery.open("def a() {\n  f(", "\n}\n").guarantee == "balanced"
    for left, right in (("def b() {\n}}\n" + file, file), ("def b() {\n  f(\n}\n" + file, "x = 1\n" + file)):
        assert recovery.open(left, right).guarantee == "none"


def test_strings_of_a_line_are_counted() -> None:
    text = "f('a') // don't\n/* ' */ \"'\" g('b', 'c')\ntype 'd\nx' = '\\''\n"
    assert count_quotes(STRINGS, text, "'") == (4, 1)
    assert count_quotes(STRINGS, "'a'b 'c", "'") == (0, 2)
    assert count_quotes(STRINGS, "'a\\'b\\'\n'c' 'd\\'", "'") == (1, 5)
    for unending in ("/*" * 200_000, '"\\"' * 200_000, "\\'" * 200_000, "'" * 400_001, "\n'" * 200_000):
        assert sum(count_quotes(STRINGS, unending, "'")) <= 200_001


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, "an object expected"),
        ({"brackets": [["<", ">"]]}, "brackets: none of () [] {}"),
        ({"comments": "#"}, "comments: an object expected"),
        ({"comments": {"lineComment": ""}}, "comments.lineComment: a text expected"),
        ({"comments": {"lineComment": 5}}, "comments.lineComment: a text expected"),
        ({"comments": {"lineComment": "rem"}}, "code may begin with 'rem' as well"),
        ({"comments": {"lineComment": '"'}}, "code may begin with '\"' as well"),
        ({"comments": {"blockComment": ["/*"]}}, "comments.blockComment: two texts expected"),
        ({"brackets": {}}, "brackets: none of () [] {}"),
        ({"brackets": {"(": ")"}}, "brackets: a list expected"),
        ({"brackets": [["(", ""]]}, "brackets: a text expected"),
        ({"brackets": [["(", ")"]] * 10_000}, f"entries of brackets: 10000 is over the limit of {MOST_PAIRS}"),
        ({"brackets": [["(" * 1_000_000, ")"]]}, "characters of a text of brackets: 1000000 is over the limit of 40"),
        ({"autoClosingPairs": [{"open": "("}]}, "autoClosingPairs: a text expected"),
        ({"surroundingPairs": ["(", ")"]}, "surroundingPairs: two texts expected"),
    ],
)
def test_wrong_data_is_an_error_in_one_line(wrong: Any, message: str) -> None:
    data = configuration() | wrong if isinstance(wrong, dict) else wrong
    with pytest.raises(LanguageError, match=r"^language x: ") as raised:
        EditorData.read("x", data)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_data_that_contradicts_itself_is_an_error() -> None:
    data = EditorData.read("x", configuration(line="{", block=["{", "}"]))
    with pytest.raises(LanguageError, match=r"^language x: "):
        language_of(data, "f(1)\n")


def test_files_of_text_have_no_data() -> None:
    for name in editor_data.known().unfit:
        with pytest.raises(LanguageError, match="text rather than code"):
            EditorData.read(name, configuration())
