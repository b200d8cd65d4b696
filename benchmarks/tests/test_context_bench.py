"""What it is worth to show the model other files: the table, and a run on a project of two files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.suggestions.context import Filled, main, table
from support.editors.small_projects import write_shop
from support.models.tiny_models import write_tiny_model


def test_changes_are_told_against_the_first_share() -> None:
    found = [
        [Filled(True, False, 100), Filled(True, True, 110)],
        [Filled(True, False, 100), Filled(False, False, 110)],
        [Filled(False, False, 100), Filled(True, True, 110)],
    ]
    rows = table(found, [0, 0.25]).split("\n")[2:]
    assert rows == [
        "| 0 % | 100 | 66.7 % | 0.0 % | 0, 0 | 0, 0 |",
        "| 25 % | 110 | 66.7 % | 66.7 % | 1, 1 | 2, 0 |",
    ]


def test_holes_are_filled_with_and_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = write_shop(tmp_path)
    model = write_tiny_model(tmp_path / "model", 32, window=1024)
    assert main([str(project), "--holes", "6", "--shares", "0", "0.4", "--model", str(model)]) == 0
    out = capsys.readouterr().out
    counts = re.match(r"6 holes, (\d) with something to show\n", out)
    assert counts is not None, out
    assert int(counts[1]) >= 2  # where enough is written above them
    assert "| 40 % |" in out
    assert main([str(project), "--holes", "1", "--shares", "0", "--model", str(model), "--without-memory"]) == 0
