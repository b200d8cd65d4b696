"""``./dev bench engine``: every figure is there, and none is judged."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.__main__ import run
from benchmarks.engine import command as engine
from benchmarks.engine.positions import Position
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER
from support.bench_command import complaint, printed

TINY = ["--positions", "1", "--files", "1", "--vocabulary", str(EMBEDDED_TOKENIZER)]


def test_a_row_sums_up() -> None:
    summary = engine.row("open", "ms", [float(number) for number in range(200, 0, -1)])
    assert (summary.n, summary.p50, summary.p99, summary.max) == (200, 100.0, 198.0, 200.0)
    nothing = engine.row("open", "ms", [])
    assert (nothing.n, nothing.p50, nothing.p99, nothing.max) == (0, None, None, None)


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """A tiny run's JSON."""
    status, output, _ = printed("engine", "--json", "--cpu-time", *TINY)
    assert status == 0
    parsed: dict[str, Any] = json.loads(output)
    return parsed


@pytest.fixture
def report(answer: dict[str, Any]) -> engine.Report:
    return engine.Report(**answer | {"rows": [engine.Row(**row) for row in answer["rows"]]})


def expected_rows() -> Iterator[tuple[str, str]]:
    """Yield the name and position of every row."""
    labels = ("embedded 16k", "given 16k")
    yield "load the language, uncached", ""
    yield "load the language, cached", ""
    yield "memory of the language", ""
    for label in labels:
        yield f"prepare the vocabulary, {label}", ""
        yield f"memory of the vocabulary, {label}", ""
    for size in ("1k", "10k", "100k"):
        for position in ("", *Position):
            yield f"open, {size} characters", position
    for size in ("1k", "10k", "100k"):
        yield f"open, per character at {size}", ""
    yield "open, growth 10k to 100k: x of size^x", ""
    for size in ("1k", "10k", "100k"):
        yield f"keystroke, {size} characters", ""
    for label in labels:
        yield f"check one token, {label}", ""
        for position in ("", *Position):
            yield f"full mask at the cursor, {label}", position
        yield f"full mask, replay, {label}", ""
    yield "memory of a session, 10k characters", ""
    yield "peak memory of this run", ""


def test_every_row_is_there(report: engine.Report) -> None:
    assert [(row.what, row.position) for row in report.rows] == list(expected_rows())
    assert len(Position) == 14
    for row in report.rows:
        if row.unit != "MB":  # not every system tells
            assert row.n > 0
            assert row.p50 is not None
        if row.p50 is not None and row.p99 is not None and row.max is not None:
            assert row.p50 <= row.p99 <= row.max


def test_goals_and_budgets_stand_beside_the_figures(report: engine.Report) -> None:
    limits = {row.what: (row.goal, row.budget) for row in reversed(report.rows)}
    assert limits["open, 10k characters"] == ("50 ms", "10 ms")
    assert limits["check one token, embedded 16k"] == ("50 µs", "5 µs")
    assert limits["full mask, replay, given 16k"][1].startswith("p50 5 µs")
    assert limits["memory of a session, 10k characters"] == ("", "2 MB")


def test_the_engine_is_right_meanwhile(answer: dict[str, Any]) -> None:
    assert answer["exact_sessions"] == answer["sessions"] > 0
    assert answer["refused_tokens"] == 0
    assert answer["replayed_tokens"] > 0


def test_the_setting_is_told(answer: dict[str, Any]) -> None:
    assert set(answer["setting"]) == {
        "machine",
        "files",
        "contexts with f-strings",
        "holes",
        "time",
        "large vocabulary",
    }
    assert "seed 0" in answer["setting"]["files"]
    assert "processor time" in answer["setting"]["time"]


def test_the_table_is_aligned(
    report: engine.Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "measure", lambda arguments, progress: report)
    assert run(["engine"]) == 0
    settings, table, counts = capsys.readouterr().out.split("\n\n")
    assert settings.startswith("machine: ")
    header, *lines = table.splitlines()
    assert header.split() == ["what", "position", "n", "p50", "p99", "max", "goal", "budget"]
    assert len(lines) == len(report.rows)
    column = header.index("position")
    for line, row in zip(lines, report.rows, strict=True):
        assert line[:column].rstrip() == row.what
        assert line[column:].startswith(row.position)
    assert counts == (
        f"sessions with guarantee exact: {report.sessions} of {report.sessions}\n"
        f"tokens of the true text refused: 0 of {report.replayed_tokens}\n"
    )


def test_refusals_end_a_replay_and_are_counted(answer: dict[str, Any]) -> None:
    class Stubborn:
        def allows(self, token: int) -> bool:
            return token != 3

        def commit(self, token: int) -> None:
            assert token != 3

    matcher: Any = Stubborn()
    assert len(list(engine.check_along(matcher, [1, 2, 3, 4], time.perf_counter))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vocabulary", "/nowhere/tokenizer.json"], "No such file"),
        (["--vocabulary", __file__], "test_engine_bench.py"),
        (["--positions", "0"], "not a number above 0"),
        (["--files", "-3"], "not a number above 0"),
        (["--seed", "x"], "invalid int value"),
        (["more"], "unrecognized arguments"),
        (["--only", "sum"], "--only, --sizes, --long and --all are options of --families"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str) -> None:
    found = complaint("engine", "--json", *arguments)
    assert found.count("\n") == 1
    assert message in found


def test_rows_are_plain_data(report: engine.Report) -> None:
    assert json.loads(json.dumps(report.as_json()))["rows"] == [dataclasses.asdict(row) for row in report.rows]
