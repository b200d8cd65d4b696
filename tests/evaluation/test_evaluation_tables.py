"""Columns and tables of evaluation runs, from records made by hand or by a seeded generator."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from fim_server.errors import RecordError
from fim_server.evaluation.records import MODES, Record
from fim_server.evaluation.reporting import report
from fim_server.evaluation.reporting.measured import HOLE_EDGES, bucket_name, measured, read_measured
from fim_server.evaluation.reporting.tables import costs, endings, goals, paper, slices, success, tokens
from fim_server.evaluation.reporting.tables import text as cells
from fim_server.evaluation.reporting.tables.failures import failures
from fim_server.evaluation.reporting.tables.passes import passes
from fim_server.evaluation.reporting.tables.table import Table, markdown
from support.evaluation.evaluation_records import record, records, run_info, write_data, write_run
from support.evaluation.evaluation_reports import rows_of


def test_modes_are_paired_on_what_both_have() -> None:
    found = [record("a", "constrained"), record("a", "checked"), record("b", "constrained"), record("c", "checked")]
    data = measured([run_info()], found)
    kept, missing = data.pairs(("constrained", "checked"))
    assert [data.keys[place][1] for place in kept.nonzero()[0]] == ["a"]
    assert missing == 2
    assert list(data.modes) == ["checked", "constrained"]
    assert "2 of constrained beside checked" in success.differences(data).note
    first = rows_of(success.differences(data))[0]
    assert (first["modes"], first["pairs"]) == ("constrained − checked", "1")


def test_the_last_of_two_records_counts() -> None:
    data = measured([run_info()], [record("a", "checked", False), record("a", "checked", True)])
    assert (data.count, data.repeated) == (1, 1)
    assert data.modes["checked"].success.tolist() == [True]
    assert any("twice" in notice for notice in report.notices(data))


def test_what_could_not_be_measured_is_a_failure() -> None:
    error = record("a", "constrained", text=None, parses=None, exact_match=None, edit_similarity=None, error="broken")
    data = measured([run_info()], [error, record("b", "constrained", total_ms=None)])
    columns = data.modes["constrained"]
    assert columns.success.tolist() == [False, True]
    assert columns.edit.tolist() == [0.0, 0.5]
    assert np.isnan(columns.numbers(lambda one: one.total_ms)).tolist() == [False, True]
    assert any("1 constrained" in notice for notice in report.notices(data))


def test_buckets_are_a_partition() -> None:
    data = measured(
        [run_info()], [record(str(n), "constrained", hole_characters=n) for n in (0, 1, 10, 11, 320, 321, 9999)]
    )
    buckets = data.buckets(lambda one: one.hole_characters, HOLE_EDGES)
    assert [(name, int(mask.sum())) for name, mask in buckets] == [
        ("0", 1),
        ("1–10", 2),
        ("11–20", 1),
        ("161–320", 1),
        ("321 and more", 2),
    ]
    assert sum(mask for _, mask in buckets).tolist() == [1] * 7  # type: ignore[union-attr]
    assert bucket_name(1, (2, 3)) == "2"


def test_files_are_the_clusters_where_the_data_are_there(tmp_path: Path) -> None:
    found = records(40)
    data_file = write_data(tmp_path / "data.jsonl", found, per_file=10)
    folder = write_run(tmp_path / "run", found, run_info(data=(data_file,)))
    data = read_measured([folder])
    assert data.clusters is not None
    assert Counter(Counter(data.clusters.tolist()).values()) == {10: 4}
    assert "whole files (4 of them; so few" in data.cluster_reason
    assert "whole files" in success.differences(data).note
    (tmp_path / "data.jsonl").write_text("{}\n")
    changed = read_measured([folder])
    assert changed.clusters is None
    assert "no longer the file" in changed.cluster_reason
    (tmp_path / "data.jsonl").unlink()
    assert "not where it was" in read_measured([folder]).cluster_reason
    assert read_measured([folder]).count == 40


def test_shards_and_runs_are_read_as_one(tmp_path: Path) -> None:
    found = records(30)
    whole = read_measured([write_run(tmp_path / "whole", found)])
    shards = read_measured([write_run(tmp_path / "shards", found, shards=3)])
    assert Counter(whole.keys) == Counter(shards.keys)
    halves = [write_run(tmp_path / name, found[start::2]) for name, start in (("one", 0), ("two", 1))]
    assert read_measured(halves).count == 30
    with pytest.raises(RecordError, match="eval compare"):
        read_measured([tmp_path / "whole", tmp_path / "shards"])
    with pytest.raises(RecordError, match="not a run"):
        read_measured([tmp_path])


def crossed() -> list[Record]:
    """13 samples: 6 parse with both, 3 with constrained alone, 1 with the other alone, 3 with neither."""
    found = []
    verdicts = [(True, True)] * 6 + [(True, False)] * 3 + [(False, True)] + [(False, False)] * 3
    for number, (ours, theirs) in enumerate(verdicts):
        found.append(record(f"s{number}", "constrained", ours))
        found.append(record(f"s{number}", "unconstrained", theirs))
        found.append(record(f"s{number}", "checked", theirs or number == 6))
    return found


def test_tables_one_and_two_by_hand() -> None:
    data = measured([run_info()], crossed())
    (one,) = rows_of(paper.table_one(data))
    assert one["samples"] == "13"
    assert one["both parse"] == "6 (46.2 %)"
    assert one["only constrained"] == "3 (23.1 %)"
    assert one["only unconstrained"] == "1 (7.7 %)"
    assert one["neither"] == "3 (23.1 %)"
    assert (one["constrained"], one["unconstrained"]) == ("9 (69.2 %)", "7 (53.8 %)")
    (two,) = rows_of(paper.table_two(data))
    assert (two["both parse"], two["only constrained"], two["only checked"]) == (
        "7 (53.8 %)",
        "2 (15.4 %)",
        "1 (7.7 %)",
    )
    failed = rows_of(paper.constrained_failures(data))
    assert [row["samples"] for row in failed] == ["4", "0", "0"]
    assert failed[0]["unconstrained parses"] == "1 (25.0 %)"


def test_cross_tables_are_their_plain_twins() -> None:
    found = records(200, seed=3)
    data = measured([run_info()], found)
    by_key = {(one.set, one.sample, one.mode): one for one in found}
    for row in rows_of(paper.table_one(data)):
        samples = {(one.set, one.sample) for one in found if row["set"] in ("all", one.set)}
        cells: Counter[tuple[bool, bool]] = Counter()
        for key in samples:
            verdicts = [by_key[*key, mode] for mode in ("constrained", "unconstrained")]
            cells[tuple(one.text is not None and one.parses is True for one in verdicts)] += 1  # type: ignore[index]
        expected = [cells[True, True], cells[True, False], cells[False, True], cells[False, False]]
        names = ("both parse", "only constrained", "only unconstrained", "neither")
        assert [int(row[name].split()[0].replace(",", "")) for name in names] == expected


def test_slices_below_are_named() -> None:
    data = measured([run_info()], crossed())
    few, many = slices.never_below(data)
    assert not few.rows
    assert len(many.rows) == len(slices.compared_slices(data))
    worse = [
        record("w1", "constrained", False, hole_characters=500),
        record("w1", "checked", True, hole_characters=500),
        record("w1", "unconstrained", True, hole_characters=500, exact_match=True),
    ]
    data = measured([run_info()], [*crossed(), *worse])
    few, _ = slices.never_below(data)
    named = {(row["cut"], row["slice"]): row["below"] for row in rows_of(few)}
    assert named["hole, characters", "321 and more"] == "success, exact match"
    assert named["all", "all"] == "exact match"
    assert ("hole, characters", "1–10") not in named
    claims = {check.claim: check for check in goals.checks(data)}
    assert claims["constrained success never below checked, on any slice"].holds is False
    assert "hole, characters: 321 and more" in claims["constrained success never below checked, on any slice"].found
    assert claims["exact match not below unconstrained (all)"].holds is False


def test_goals() -> None:
    good = [record(str(n), mode) for n in range(1_000) for mode in MODES]
    claims = {check.claim: check.holds for check in goals.checks(measured([run_info()], good))}
    assert claims["constrained success at least 99.90 % (stack-boundary)"] is True
    assert claims["engine's share of the constrained time below 5.0 %"] is False  # 1.5 of 22 ms
    assert claims["exact match not below unconstrained (all)"] is True
    for bad, holds in ((1, True), (2, False)):
        some = [record(str(n), "constrained", n >= bad) for n in range(1_000)]
        (check, *_) = goals.checks(measured([run_info()], some))
        assert check.holds is holds


def test_what_won_and_landing() -> None:
    found = [
        record("a", "constrained", won="end_token"),
        record("b", "constrained", won="landed", stop_reason="budget", landing=3),
        record("c", "constrained", won="landed", stop_reason="budget", landing=7),
        record("d", "constrained", won="point", stop_reason="budget", landing=5),
        record("e", "constrained", won=None, text=None, parses=False, stop_reason="dead_end"),
    ]
    data = measured([run_info()], found)
    won = {row["offered text"]: row["constrained"] for row in rows_of(endings.what_won(data))}
    assert won == {"end_token": "1 (20.0 %)", "point": "1 (20.0 %)", "landed": "2 (40.0 %)", "no text": "1 (20.0 %)"}
    assert list(won) == ["end_token", "point", "landed", "no text"]
    (landing,) = rows_of(endings.landing(data))
    assert landing["samples landed"] == "3 (60.0 %)"
    assert (landing["steps p50"], landing["max"]) == ("5.00", "7.00")
    assert (landing["landed won"], landing["point won"]) == ("2 (66.7 %)", "1 (33.3 %)")
    reasons = {row["reason"]: row["constrained"] for row in rows_of(failures(data))}
    assert reasons == {"no text: stopped by dead_end": "1", "in all": "1"}


def test_costs_by_hand() -> None:
    found = [
        record(
            "a", "constrained", open_ms=1.0, engine_wait_ms=1.0, engine_ms=4.0, model_ms=18.0, total_ms=20.0, tokens=4
        ),
        record(
            "b", "constrained", open_ms=3.0, engine_wait_ms=0.0, engine_ms=2.0, model_ms=57.0, total_ms=60.0, tokens=1
        ),
    ]
    data = measured([run_info()], found)
    assert costs.engine_share(data.modes["constrained"]) == pytest.approx(5 / 80)
    (row,) = rows_of(costs.cost(data))
    assert (row["engine waited for"], row["engine's work"]) == ("6.2 %", "11.8 %")  # 10 of 85 ms
    assert (row["total, ms a sample"], row["engine a token p50, µs"], row["p95"]) == ("40.0", "1,000", "2,000")
    hours = costs.hours_a_sample(data)
    assert hours == {"constrained": pytest.approx(40 / 3_600_000)}
    (row,) = rows_of(costs.throughput(data))
    assert row == {"mode": "constrained", "samples an hour": "90,000", "95,390 samples": "1.06 h"}
    both = measured([run_info()], [record("a", mode, total_ms=10.0, open_ms=2.0, engine_ms=1.0) for mode in MODES])
    assert costs.hours_a_sample(both)["all modes"] == pytest.approx((10 + 1 + 10 - 2) / 3_600_000)


def test_fits_find_the_line() -> None:
    found = []
    for number in range(1, 40):
        size = 100 * number
        one = record(str(number), "constrained", left_characters=size - 10, right_characters=10, engine_ms=0.5)
        found.append(replace(one, open_ms=2 + size / 1_000, tokens=10))
    rows = {row["cost"]: row for row in rows_of(costs.fits(measured([run_info()], found)))}
    assert rows["opening, ms"]["line, at 0"] == "2.00"
    assert rows["opening, ms"]["a 1,000 characters"] == "1.00"
    assert rows["engine a token, µs"]["line, at 0"] == "50.0"


def naive_overlap(text: str, right: str) -> int:
    text, right = text.strip(), right.strip()
    return max((n for n in range(1, min(len(text), len(right)) + 1) if text[-n:] == right[:n]), default=0)


def test_reference_overlap_is_its_plain_twin() -> None:
    random_ = random.Random(0)
    some = 0
    for _ in range(3_000):
        text, right = ("".join(random_.choices("ab \n", k=random_.randrange(9))) for _ in range(2))
        found = tokens.reference_overlap(record("a", "checked", reference=text, right_head=right))
        assert found == naive_overlap(text, right), (text, right)
        some += found > 0
    assert some > 300


def test_passes() -> None:
    found = []
    for number, (one, two) in enumerate([(True, True), (True, False), (False, False), (False, True)]):
        failure = [None if passed else "wrong" for passed in (one, two)]
        found.append(record(str(number), "constrained", kind="single-line", passed=one, failure=failure[0]))
        found.append(record(str(number), "unconstrained", kind="single-line", passed=two, failure=failure[1]))
    found.append(record("4", "constrained", kind="single-line", passed=False, failure="timeout"))
    found.append(record("untested", "constrained"))
    first, second = passes(measured([run_info()], found))
    rows = {row["mode"]: row for row in rows_of(first)}
    assert rows["constrained"]["pass@1"].startswith("40.0 %")
    assert rows["constrained"]["samples"] == "5"
    assert rows["unconstrained"]["pass@1"].startswith("50.0 %")
    assert (rows["constrained"]["only one"], rows["constrained"]["p"]) == ("1 : 1", "1.0000")
    verdicts = {row["verdict of the test"]: row["constrained"] for row in rows_of(second)}
    assert verdicts == {"passed": "2 (40.0 %)", "wrong": "2 (40.0 %)", "timeout": "1 (20.0 %)"}
    assert passes(measured([run_info()], [record("a", "constrained")])) == []


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100.0 %"),
        (0.9999, "99.99 %"),
        (0.99999, "99.9990 %"),
        (0.0, "0.0 %"),
        (0.00001, "0.0010 %"),
        (0.5, "50.0 %"),
    ],
)
def test_percent_never_rounds_to_all_or_nothing(share: float, text: str) -> None:
    assert cells.percent(share) == text


def test_numbers() -> None:
    assert [cells.number(value) for value in (0, 0.001234, 1.5, 12345.6, math.nan)] == [
        "0",
        "0.00123",
        "1.50",
        "12,346",
        "–",
    ]
    assert cells.probability(0.00001) == "< 0.0001"


def test_markdown_of_a_table() -> None:
    table = Table("k", "T", ("a|b", "n"), (("x|y\nz", "1"),), 1, "Note.")
    assert markdown(table).splitlines() == [
        "**T**",
        "",
        "| a\\|b | n |",
        "|---|---:|",
        "| x\\|y z | 1 |",
        "",
        "Note.",
    ]
    assert "| none |  |" in markdown(replace(table, rows=()))
