"""The measurement of languages that only an editor's data describes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.engine import described
from fim_server.language.editor_data import EditorData

PAIRS = [["(", ")"], ["[", "]"], ["{", "}"], ['"', '"']]
CONFIGURATION = {"comments": {"lineComment": "//"}, "brackets": PAIRS[:3], "autoClosingPairs": PAIRS}
TEXT = 'def a(b) {\n  f("(", [1, 2]) // (\n}\n\n' * 4


def test_a_language_is_measured_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "made.json"
    configuration.write_text(json.dumps(CONFIGURATION))
    for name, text in (("a", TEXT), ("b", TEXT + "("), ("c", "short")):
        (tmp_path / f"{name}.made").write_text(text)
    assert described.main([str(configuration), str(tmp_path), "--suffix", ".made", "--holes", "5"]) == 0
    assert capsys.readouterr().out.startswith("made: 1 of 2 files taken in ")
    configuration.write_text("[]")
    assert described.main([str(configuration), str(tmp_path), "--suffix", ".made"]) == 2


def test_holes_are_ends_of_lines_and_missing_brackets_are_caught() -> None:
    draw = random.Random(1)
    for _ in range(50):
        left, middle, right = described.hole(TEXT, draw)
        assert left + middle + right == TEXT
        assert middle.strip()
        assert right.startswith("\n")
    data = EditorData.read("made", CONFIGURATION)
    assert described.refused(data, [TEXT], 10, draw) == (0, 10)
    assert described.caught(data, ["f()\n", "// ((\n"], draw) == 1
