"""A completion's diff, applied by the book: it gives the file with the completion, in colour and without."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fim_server.cli.diff import diff_lines, keep_line_ends, promise
from fim_server.cli.excerpt import excerpt_lines
from fim_server.decoding.results import Completion, StopReason
from fim_server.language import Language
from fim_server.language.plain import PlainText
from fim_server.text.document import Split

PYTHON = Language.load("python")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("left", "text", "right"),
    [
        ("a\nb", "X", "c\nd\n"),
        ("a\n", "X\nY\n", "b\n"),
        ("", "X", ""),
        ("a", "\nX", ""),
        ("", "X\n", "a"),
        ("a\n" * 20, "X", "\n" + "b\n" * 20),
        ("a\n\n", "X\n\n", "\nb"),
    ],
)
def test_a_diff_applies(left: str, text: str, right: str) -> None:
    lines = list(diff_of(left, text, right, colour=False))
    assert patched(left + right, lines) == left + text + right
    assert [plain(line) for line in diff_of(left, text, right, colour=True)] == lines


@pytest.mark.parametrize(
    ("name", "guarantee", "holds"),
    [
        ("json", "exact", "the whole file parses as json"),
        ("json", "partial", "the file parses as json"),
        ("toml", "balanced", "brackets, strings and comments of the whole file close as in toml"),
        ("toml", "partial", "brackets, strings and comments close as in toml"),
        ("xml", "balanced", "tags, strings and comments of the whole file close as in xml"),
    ],
)
def test_the_guarantee_is_in_words(name: str, guarantee: str, holds: str) -> None:
    said = promise(Completion("x", guarantee, StopReason.END_TOKEN, None), Language.load(name))
    assert said.startswith(f"guarantee {guarantee}: ")
    assert said.endswith(holds)
    assert ("parses" in said) == (name == "json")


def test_the_inserted_characters_stand_out() -> None:
    lines = list(diff_of("ab", "X\nY", "cd\n", colour=True))
    assert lines[-2:] == [
        "\x1b[32m+\x1b[0m\x1b[32mab\x1b[0m\x1b[1;92mX\x1b[0m",
        "\x1b[32m+\x1b[0m\x1b[1;92mY\x1b[0m\x1b[32mcd\x1b[0m",
    ]


@pytest.mark.parametrize(
    ("left", "text", "right", "lines"),
    [
        ("a\nb(", "X", ")\nd\n", ["1 | a", "2 | b(X)", "  |   ^", "3 | d"]),
        (
            "a:",
            "\n    X\n\n    Y",
            "\nb",
            ["1 | a:", "2 |     X", "  |     ^", "3 |", "4 |     Y", "  |     ^", "5 | b"],
        ),
        ("\ta ", " X", "", ["1 | \ta  X", "  | \t   ^"]),
        ("a\n", "", "b\n", ["1 | a", "2 | b"]),
        (
            "a\n" * 12,
            "X",
            "\n" * 12,
            [*(f"{n:2} | a" for n in range(5, 13)), "13 | X", "   | ^", *(f"{n} |" for n in range(14, 22))],
        ),
    ],
)
def test_an_excerpt_points_at_what_was_inserted(left: str, text: str, right: str, lines: list[str]) -> None:
    head, excerpt = excerpt_of(left, text, right, colour=False)
    assert head[0].startswith("guarantee exact: ")
    assert re.fullmatch(r"tiny: \d+ tokens in \d+ ms", head[1])
    assert head[2:] == ["", "f.py"]
    assert excerpt == lines
    _, coloured = excerpt_of(left, text, right, colour=True)
    assert [plain(line) for line in coloured] == [line for line in lines if not re.match(r" +\|", line)]
    assert all("\x1b[1;30;102m" in line for line in coloured if "X" in line or "Y" in line)


def excerpt_of(left: str, text: str, right: str, colour: bool) -> tuple[list[str], list[str]]:
    completion = Completion(text, "exact", StopReason.END_TOKEN, None)
    lines = list(excerpt_lines("f.py", Split(left, right), completion, PYTHON, "tiny", colour))
    return [plain(line) for line in lines[:4]], lines[4:]


def diff_of(left: str, text: str, right: str, colour: bool) -> Any:
    completion = Completion(text, "exact", StopReason.END_TOKEN, None)
    return diff_lines("f.py", Split(left, right), completion, PYTHON, colour)


def patched(text: str, diff: list[str]) -> str:
    """Apply a diff of one hunk by the book."""
    old = keep_line_ends(text)
    _, _, _, hunk, *lines = diff
    match = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", hunk)
    assert match is not None
    count = int(match[2] or 1)
    start = int(match[1]) - (count > 0)
    new: list[str] = []
    last = ""
    for line in lines:
        if line.startswith("\\"):
            if last in " +":
                new[-1] = new[-1].removesuffix("\n")
            continue
        last = line[0]
        if last in " +":
            new.append(line[1:] + "\n")
    return "".join([*old[:start], *new, *old[start + count :]])


def test_without_a_grammar_none_judges() -> None:
    said = promise(Completion("x", "none", StopReason.END_TOKEN, None), PlainText("foo"))
    assert said == "guarantee none: no grammar of foo judges the text"
