"""What drafts save: the table, and a run on a project of two files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.suggestions.drafts import KINDS, Written, main, table
from support.editors.small_projects import write_shop
from support.models.tiny_models import write_tiny_model


def test_texts_are_told_against_those_without_drafts() -> None:
    plain, same = Written("a", True, 9, 0, 0, 8, 90.0, 100.0), Written("a", True, 4, 7, 5, 8, 50.0, 60.0)
    other = Written("b", False, 5, 6, 4, 8, 60.0, 70.0)
    rows = table([dict(zip(KINDS, pair, strict=True)) for pair in ((plain, same), (plain, other))]).split("\n")[2:]
    assert rows == [
        "| without drafts | 16 | 18 | 0 | 0 | 90.0 | 100.0 | 2 | 0 |",
        "| with drafts | 16 | 9 | 13 | 9 | 55.0 | 65.0 | 1 | 1 |",
    ]


def test_holes_are_filled_with_and_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = write_shop(tmp_path)
    model = write_tiny_model(tmp_path / "model", 32, window=1024)
    assert main([str(project), "--holes", "4", "--model", str(model), "--prompt-tokens", "96"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.strip().split("\n")[-2:]]
    assert [row[0].removeprefix("| ") for row in rows] == list(KINDS)
    passes, fewer = (int(row[2]) for row in rows)
    assert fewer < passes
    assert passes - fewer == int(rows[1][4]) > 0
    assert rows[1][-1] == "0 |"
