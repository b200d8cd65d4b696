"""Lines that define a name: the table `[definitions]` of a language."""

from __future__ import annotations

import pytest

from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.language.definition.defining import NOTHING_DEFINED, Defining


@pytest.mark.parametrize(
    ("language", "line", "name"),
    [
        ("python", "    async def f(x):", ("def", "", "f")),
        ("python", "class A(B):", ("class", "", "A")),
        ("python", "define = 1", None),
        ("python", "def _(): pass", None),
        ("go", "func (s *S) Pop() int {", ("func", "(s *S) ", "Pop")),
        ("go", "func init() {", None),
        ("rust", "    pub(crate) unsafe fn stop() {", ("fn", "", "stop")),
        ("java", "public static final class A {", ("class", "", "A")),
        ("json", '  "a b": 1', ('"', "a b", "")),
        ("json", '  "a b"', None),
    ],
)
def test_lines_define_names(language: str, line: str, name: tuple[str, ...] | None) -> None:
    assert Language.load(language).spelling.defining.defined(line) == name


def test_without_a_table_nothing_is_defined() -> None:
    assert Defining.from_spec({"name": "a"}) == NOTHING_DEFINED
    assert NOTHING_DEFINED.defined("def f():") is None
    assert not NOTHING_DEFINED.is_mark("@a")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("def", "definitions: expected a table"),
        ({"words": "def"}, "definitions.words: expected a list of texts"),
        ({"marks": [""]}, "definitions.marks: expected a list of texts"),
        ({"key": [":"]}, "definitions.key: expected a text"),
        ({"word": ["def"]}, "definitions.word: unknown key"),
    ],
)
def test_a_wrong_table_is_named(table: object, problem: str) -> None:
    with pytest.raises(LanguageError, match=problem):
        Defining.from_spec({"name": "a", "definitions": table})


def test_long_lines_take_little() -> None:
    defining = Language.load("java").spelling.defining
    assert defining.defined("public " * 1_000_000) is None
    assert Language.load("json").spelling.defining.defined('"' + "a" * 1_000_000) is None
