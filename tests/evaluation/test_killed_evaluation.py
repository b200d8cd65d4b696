"""An evaluation that is killed and goes on has the results of one that was not: 2 kills, 100 in the long form."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.evaluation.killed_evaluation import NotTheSame, compare, killed_and_compared

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))


def test_an_evaluation_that_is_killed_has_the_results_of_one_that_is_not() -> None:
    kills = 100 if LONG else 2
    found = killed_and_compared(kills, SEED)
    print(f"{found.kills} killed, {found.torn} in a line, {found.runs} runs")
    assert found.kills == kills


Spoil = Callable[[list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda results: results.pop(),
        lambda results: results.append(results[0]),
        lambda results: results.reverse(),
        lambda results: results[1].update(text="other"),
    ],
    ids=["one is missing", "one is there twice", "another order", "another text"],
)
def test_other_results_are_seen(spoil: Spoil, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    results: list[dict[str, Any]] = [{"sample": str(number), "text": "a", "total_ms": 1.0} for number in range(3)]
    (whole / "run.json").write_text('{"seed": 1, "started": "now"}', encoding="utf-8")
    write(whole, results)
    shutil.copytree(whole, killed)
    (killed / "run.json").write_text('{"seed": 1, "started": "then"}', encoding="utf-8")
    write(killed, [{**result, "total_ms": 2.0} for result in results])
    compare(whole, killed)
    spoil(results)
    write(killed, results)
    with pytest.raises(NotTheSame, match="result"):
        compare(whole, killed)


def write(run: Path, results: list[dict[str, Any]]) -> None:
    lines = [json.dumps(result) + "\n" for result in results]
    (run / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
