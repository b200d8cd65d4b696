"""``./dev bench compare``: ratios of medians, their spread, and what is said of runs that do not match."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare
from benchmarks.__main__ import run
from benchmarks.compare import CompareOptions, Figure, Row, figures_of
from fim_server.errors import BenchError
from support.bench_command import complaint

ENGINE = {"position": "", "n": 8, "p99": 9.0, "max": 9.5, "goal": "", "budget": ""}


def engine_report(seed: int = 0, **medians: float | None) -> dict[str, Any]:
    """A report of `bench engine` with some rows, in ms."""
    rows = [ENGINE | {"what": what, "unit": "ms", "p50": value} for what, value in medians.items()]
    return {"setting": {"machine": f"one, load {seed}.0", "files": f"seed {seed}"}, "rows": rows}


def written(folder: Path, name: str, reports: Sequence[dict[str, Any]]) -> list[str]:
    paths = [folder / f"{name}{number}.json" for number in range(len(reports))]
    for path, report in zip(paths, reports, strict=True):
        path.write_text(json.dumps(report), encoding="utf-8")
    return [str(path) for path in paths]


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Five runs of each side, as the command takes them: `open` is slower in all pairs, `mask` is not."""
    opened, masks = (10.0, 20.0, 30.0, 5.0, 40.0), (1.0, 2.5, 2.0, 1.5, 2.25)
    before = [engine_report(open=value, mask=2.0, gone=1.0) for value in opened]
    after = [engine_report(open=1.5 * value, mask=mask) for value, mask in zip(opened, masks, strict=True)]
    return ["--before", *written(tmp_path, "before", before), "--after", *written(tmp_path, "after", after)]


def test_rows_are_ratios_of_medians_with_the_spread_of_pairs(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "--json", *runs]) == 0
    answer = json.loads(capsys.readouterr().out)
    opened, mask = answer["rows"]
    assert (opened["what"], opened["before"], opened["after"], opened["ratio"]) == ("open", 20, 30, 1.5)
    assert (opened["least"], opened["most"], opened["verdict"]) == (1.5, 1.5, "slower")
    assert (mask["ratio"], mask["least"], mask["most"], mask["verdict"]) == (1, 0.5, 1.25, "")
    assert answer["missing"] == ["gone"]
    assert answer["settings"] == []
    assert answer["geometric_mean"] == pytest.approx(1.5**0.5)


def test_the_table_says_the_same(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *runs]) == 0
    head, table, ends = capsys.readouterr().out.split("\n\n")
    assert head == "runs: 5 before, 5 after; p50 of rows that have several figures"
    header, opened, mask = table.splitlines()
    assert header.split() == ["row", "before", "after", "ratio", "least", "most"]
    assert opened.split() == ["open", "20.0", "30.0", "ms", "1.500", "1.500", "1.500", "slower"]
    assert mask.split() == ["mask", "2.00", "2.00", "ms", "1.000", "0.500", "1.250"]
    assert "slower in every pair: 1 of 2 rows" in ends
    assert "not in every run: gone" in ends


def test_other_figures_and_rows_can_be_chosen(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--json", "--figure", "p99", "--only", "as", *runs]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(row["what"], row["before"]) for row in answer["rows"]] == [("mask", 9)]


def test_few_pairs_are_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Row.of("open", "ms", [1] * 4, [2] * 4).verdict == ""
    assert Row.of("open", "ms", [2] * 5, [1] * 5).verdict == "faster"
    assert Row.of("memory", "MB", [1] * 5, [2] * 5).verdict == "more"
    assert Row.of("open", "ms", [1] * 5, [2] * 4 + [1]).verdict == ""
    nothing = Row.of("refused", "", [0] * 5, [0, 1, 0, 0, 0])
    assert (nothing.ratio, nothing.least, nothing.verdict) == (None, None, "")
    one, two = written(tmp_path, "run", [engine_report(open=1.0), engine_report(open=2.0)])
    assert run(["compare", "--before", one, "--after", two]) == 0
    assert capsys.readouterr().out.endswith("too few runs to call a row slower or faster: 5 of each side are needed\n")


def test_different_work_is_told() -> None:
    differing = compare.differences([engine_report(0)["setting"], engine_report(1)["setting"]])
    assert differing == ["files: seed 0 / seed 1"]  # and nothing of the machine's load


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"rows": [ENGINE | {"what": "open", "unit": "ms", "p50": None}]}, {}),
        (
            {
                "rows": [{"language": "json", "system": "one", "what": "mask", "right": False, "p50": 2.0}],
                "facts": [
                    {"language": "json", "system": "one", "what": "prepare", "value": 3, "unit": "s"},
                    {"language": "json", "system": "two", "what": "not measured", "value": None, "unit": ""},
                ],
            },
            {"json, one, mask, without R": Figure(2, "µs"), "json, one, prepare": Figure(3, "s")},
        ),
        (
            {
                "times": [{"scenario": "reads", "what": "every answer", "p50": 4.0}],
                "parts": [{"scenario": "every answer", "what": "own", "p50": 5.0}],
            },
            {"reads, every answer": Figure(4, "ms"), "every answer, own": Figure(5, "ms")},
        ),
        (
            {
                "rows": [
                    {
                        "runtime": "torch",
                        "precision": "fp32",
                        "threads": 1,
                        "prefill_ms": 6.0,
                        "decode_ms": 7.0,
                        "keystroke_ms": None,
                        "load_ms": 8.0,
                        "megabytes": 9.0,
                    }
                ]
            },
            {
                "torch, fp32, 1 threads, prefill": Figure(6, "ms"),
                "torch, fp32, 1 threads, decode": Figure(7, "ms"),
                "torch, fp32, 1 threads, load": Figure(8, "ms"),
                "torch, fp32, 1 threads, megabytes": Figure(9, "MB"),
            },
        ),
        (
            {
                "openings": [
                    {"size": 1000, "cursor": "inside", "seconds": seconds, "peak": peak}
                    for seconds, peak in ((0.1, None), (0.2, 2e6), (0.4, 4e6))
                ]
            },
            {
                "open, 1,000 characters, inside": Figure(200, "ms"),
                "peak, 1,000 characters, inside": Figure(3, "MB"),
            },
        ),
        (
            {"shares": {"server": [{"name": "offered", "value": 0.5}, {"name": "none", "value": None}]}},
            {"offered, server": Figure(50, "%")},
        ),
    ],
    ids=["engine", "masks", "server", "runtimes", "scaling", "suggestions"],
)
def test_every_benchmarks_figures_are_read(report: dict[str, Any], expected: dict[str, Figure]) -> None:
    assert figures_of(report, "p50") == expected


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        pytest.param("[" * 100_000, "not JSON", id="nested deeply"),
        ("[]", "not printed by"),
        ('{"setting": {}}', "no figures"),
    ],
)
def test_what_is_no_report_is_refused(content: str | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(BenchError, match=rf"report\.json: .*{complaint}|report\.json: {complaint}"):
        compare.compare(CompareOptions([str(path)], [str(path)], "p50", None, json=False))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no endless file")
def test_an_endless_report_is_refused() -> None:
    with pytest.raises(BenchError, match="/dev/zero: larger than"):
        compare.read("/dev/zero")


def test_runs_that_do_not_match_are_refused(tmp_path: Path) -> None:
    one, two = written(tmp_path, "run", [engine_report(open=1.0), engine_report(mask=1.0)])
    with pytest.raises(BenchError, match="2 runs before and 1 after"):
        compare.compare(CompareOptions([one, two], [one], "p50", None, json=False))
    with pytest.raises(BenchError, match="no row in common"):
        compare.compare(CompareOptions([one], [two], "p50", None, json=False))
    with pytest.raises(BenchError, match="no row in common with 'x'"):
        compare.compare(CompareOptions([one], [one], "p50", "x", json=False))


def test_bad_input_is_one_line() -> None:
    found = complaint("compare", "--before", "/nowhere.json", "--after", "/no.json")
    assert found == "fim-server: /nowhere.json: No such file or directory\n"
