"""What ends a text in the middle of a line: the recipe that counts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.suggestions.lines import draw_lines, open_folder
from benchmarks.suggestions.rests import ENDS, GROUPS, OUTCOMES, holes, main, outcome, table

SOURCE = """import os


def joined(parts, sep):
    found = sep.join(part.strip() for part in parts)
    if len(found) == 0:
        return os.sep
    return found + sep
"""


def test_holes_are_parts_of_lines_and_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    sources = open_folder(str(tmp_path))
    draw_lines(sources, 5, 1)
    found = list(holes(sources, 1))
    assert len(found) >= 6
    assert {bool(hole.middle) for hole in found} == {True, False}
    for hole in found:
        assert hole.split.left + hole.middle + hole.split.right == SOURCE
        assert "\n" not in hole.middle
        assert hole.split.right.partition("\n")[0].strip()
        assert hole.middle == hole.middle.strip()


@pytest.mark.parametrize(
    ("text", "middle", "expected"),
    [
        ("a.b ", "a.b", "right"),
        ("a.c", "a.b", "first lexeme right"),
        ("ab", "a.b", "wrong"),
        ("", "a.b", "nothing"),
        (None, "", "nothing"),
        ("a", "", "wrong"),
    ],
)
def test_outcomes(text: str | None, middle: str, expected: str) -> None:
    assert outcome(text, middle) == expected


def test_the_table_counts_outcomes_of_each_kind() -> None:
    found = [(GROUPS[1], ["wrong", "wrong", "right"]), (GROUPS[1], ["right", "right", "right"])]
    assert table(found).splitlines()[2:] == [
        f"| {GROUPS[1]} | {ENDS[0]} | 2 | 1 | 0 | 1 | 0 |",
        f"| {GROUPS[1]} | {ENDS[1]} | 2 | 1 | 0 | 1 | 0 |",
        f"| {GROUPS[1]} | {ENDS[2]} | 2 | 2 | 0 | 0 | 0 |",
    ]


def test_the_outcomes_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert main([str(tmp_path), "--lines", "3", "--model", "embedded"]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert all(name in head for name in OUTCOMES)
    assert len(rows) >= len(ENDS)
    for row in rows:
        _, _, _, count, *outcomes, _ = (cell.strip() for cell in row.split("|"))
        assert int(count) == sum(map(int, outcomes))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        ([".", "--prompt-tokens", "0"], "argument --prompt-tokens: '0' is not a number above 0"),
        ([".", "--prompt-tokens", "3"], "argument --prompt-tokens: '3' is less than "),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "benchmarks.suggestions.rests", *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert told in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
