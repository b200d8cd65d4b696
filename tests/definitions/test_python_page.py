"""docs/python.md: its examples are what it says, by the newest CPython, the running interpreter, and the engine."""

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server import Language
from support.engine import judge
from support.engine.corpus import python, reference

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
BRACKETS = 200
BLOCKS = 99
COLUMN = 10_000
RIGHT_COLUMN = 2_000


def examples(heading: str) -> list[str]:
    """The texts in the first column of a section's table."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [code.replace("⏎", "\n") + "\n" for code in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]


def accepts(text: str) -> bool:
    return python().open(text, "").check("").complete


def compiles(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<example>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.fixture(scope="module")
def newest() -> Iterator[judge.Judge]:
    if reason := judge.unavailable():
        pytest.skip(reason)
    with judge.Judge() as started:
        yield started


@pytest.fixture(scope="module")
def deep() -> Iterator[judge.Judge]:
    """A judge with stack enough for CPython's own limits: WebAssembly's 3.15 gives up at fewer brackets."""
    if reason := judge.unavailable():
        pytest.skip(reason)
    with judge.Judge("3.14") as started:
        yield started


REFUSED_BY_LOOKUP = [*examples("What CPython's parser refuses that no grammar carries"), "9" * 4301 + "\n"]
REFUSED_BY_COMPILER = examples("What the compiler refuses, not the parser")


def test_the_tables_are_read() -> None:
    assert "'\\N{NO SUCH NAME}'\n" in REFUSED_BY_LOOKUP
    assert len(REFUSED_BY_LOOKUP) == 4
    assert len(REFUSED_BY_COMPILER) == 32


@pytest.mark.parametrize("text", REFUSED_BY_LOOKUP, ids=lambda text: text[:40])
def test_refused_by_a_look_up(text: str, newest: judge.Judge) -> None:
    assert accepts(text)
    assert not newest.verdict(text)


@pytest.mark.parametrize("text", REFUSED_BY_COMPILER)
def test_refused_by_the_compiler_alone(text: str) -> None:
    assert accepts(text)
    assert not compiles(text)


def test_the_newest_parser_takes_what_the_compiler_refuses(newest: judge.Judge) -> None:
    assert [text for text in REFUSED_BY_COMPILER if not newest.verdict(text)] == []


def test_neighbours_of_the_look_ups(newest: judge.Judge) -> None:
    for text in (
        "'\\N{BULLET}'\n",
        "9" * 4300 + "\n",
        "0x" + "9" * 5000 + "\n",
        "from __future__ import annotations\n",
        "a\nfrom __future__ import nothing\n",
    ):
        assert accepts(text)
        assert newest.verdict(text)
    for text in ("a\0\n", "# \0\n", "'\0'\n"):
        assert not accepts(text)
        assert not newest.verdict(text)
        assert not reference(text)


def test_a_joined_line_at_the_end_of_the_file(newest: judge.Judge) -> None:
    for end, by_311 in (("\\\r\n", True), ("\\\n", False)):
        assert not accepts("x = 1" + end)
        assert not newest.verdict("x = 1" + end)
        if sys.version_info[:2] == (3, 11):
            assert reference("x = 1" + end) == by_311


def brackets(count: int) -> str:
    return "(" * count + "1" + ")" * count + "\n"


def blocks(count: int) -> str:
    return "".join(" " * depth + "if x:\n" for depth in range(count)) + " " * count + "pass\n"


def test_limits_that_are_cpythons(deep: judge.Judge) -> None:
    for made, limit in ((brackets, BRACKETS), (blocks, BLOCKS)):
        for text in (made(limit), made(limit + 1)):
            assert accepts(text) == deep.verdict(text) == reference(text) == (text == made(limit))
    for count in (BRACKETS, BRACKETS + 1):
        text = "\n" + brackets(count)
        for cut in (0, 1, 100, 250):
            assert python().open(text[:cut], text[cut:]).check("").complete == (count == BRACKETS)


def test_limits_that_are_not(deep: judge.Judge) -> None:
    assert python().open("", blocks(BLOCKS + 1)).check("").complete
    for column in (COLUMN, COLUMN + 1):
        for text in (f"if x:\n{' ' * column}pass\n", f"{' ' * column}\n", f"{' ' * column}# c\n"):
            assert deep.verdict(text)
            assert accepts(text) == (column == COLUMN)
    for column in (RIGHT_COLUMN, RIGHT_COLUMN + 1):
        verdict = python().open("", f"if x:\n{' ' * column}pass\n").check("")
        assert verdict.complete == (column == RIGHT_COLUMN)
    for count in (149, 150):
        nested = "f'{" * count + "1" + "}'" * count + "\n"
        assert accepts(nested)
        assert deep.verdict(nested) == (count == 149)
    assert accepts("-" * 6000 + "1\n")
    assert deep.verdict("-" * 6000 + "1\n") is None


def test_identifiers_are_not_narrowed(newest: judge.Judge) -> None:
    text = "\u1c8a = 1\n"
    assert newest.verdict(text)
    assert Language.load("python", "3.11").open(text, "").check("").complete
    assert reference(text) == (sys.version_info >= (3, 14))
