"""``./dev bench memory``: what is counted as right, and a run on two small packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import run as main
from benchmarks.index.command import Asked, Report, Several, judged
from benchmarks.index.cursors import Cursor
from fim_server._core import ProjectMemory
from fim_server.memory.continuations import ranked
from fim_server.memory.weights import fitted_weights
from support.bench_corpus import TYPED_SOURCE as SOURCE


@pytest.mark.parametrize(
    ("truth", "first", "whole"),
    [("ne(two)", True, True), ("ne(three)", True, False), ("nly", False, False), ("", False, False)],
)
def test_what_was_typed_is_right(truth: str, first: bool, whole: bool) -> None:
    memory = ProjectMemory()
    memory.update("a.py", "x = one(two)\n", "")
    cursor = Cursor("b.py", "", "x = o", "", "", truth)
    offer = ranked(memory.continuations(cursor.key, cursor.left, cursor.right), fitted_weights())[0]
    assert offer.text == "ne(two)"
    held = judged(cursor, offer)
    assert (held.first_right, held.whole_right, held.empty) == (first, whole, False)


def test_the_surest_are_offered() -> None:
    asked = [Asked(4, number / 10, 0.05, number == 9, number > 4, number > 6) for number in range(10)]
    report = Report({}, cursors=10, asked=asked)
    shares = dict(report.by_share())
    assert [one.first for one in shares[0.3]] == [0.8, 0.7, 0.6]
    assert sum(one.whole_right for one in shares[0.5]) == 2
    assert [low for (low, _), _ in report.by_length()] == [3]
    assert dict(report.calibration())[0.8]["first_right"] == 1.0


def test_several_lines_are_right_as_far_as_all_before_are() -> None:
    several = Several()
    cursor = Cursor("a.py", "", "", "", "", "one\ntwo  \nthree")
    for text in ("one", "one\ntwo", "one\ntwo\nfour\nthree", "other\ntwo", "one\ntwo\nthree\nfour"):
        several.count(cursor, text)
    assert several == Several(offers=4, right=1, lines=8, right_lines=1 + 1 + 0 + 2)


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("one", "two"):
        (tmp_path / package).mkdir()
        for number in range(2):
            (tmp_path / package / f"{number}.py").write_text(SOURCE, encoding="utf-8")
    command = ["memory", "--path", str(tmp_path / "one"), str(tmp_path / "two"), "--cursors", "20"]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["files"], report["characters"], report["cursors"]) == (4, 4 * len(SOURCE), 40)
    assert set(report["times"]) == {"update", "continuations", "confidence", "predict"}
    assert 0 < report["found"] <= 40
    assert report["several_cursors"] == 40
    offers = [one["offers"] for one in report["several"]]
    assert offers == sorted(offers, reverse=True)
    assert main(command) == 0
    assert "lexemes matched" in capsys.readouterr().out
    assert main(["memory", "--path", str(tmp_path / "nothing")]) == 2
