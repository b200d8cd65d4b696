"""Tables, plots, page and comparison of evaluation runs, from records made by hand or by a seeded generator."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from evaluation_records import (
    BUDGET,
    ODD_TEXTS,
    odd_records,
    record,
    records,
    run_info,
    write_data,
    write_run,
)
from fim_server.cli import evaluate
from fim_server.errors import MissingLibrary, RecordError
from fim_server.evaluation.records import MODES, Data, Record, RunInfo
from fim_server.evaluation.reporting import compare, page, report
from fim_server.evaluation.reporting.commands import eval_extra
from fim_server.evaluation.reporting.content import Report
from fim_server.evaluation.reporting.figures import plots
from fim_server.evaluation.reporting.figures.plot import Plot
from fim_server.evaluation.reporting.figures.style import COLOURS
from fim_server.evaluation.reporting.files import REPORT_PAGE, REPORT_SUMMARY
from fim_server.evaluation.reporting.joined import join
from fim_server.evaluation.reporting.measured import HOLE_EDGES, bucket_name, measured, read_measured
from fim_server.evaluation.reporting.tables import costs, endings, goals, paper, slices, success, tokens
from fim_server.evaluation.reporting.tables import text as cells
from fim_server.evaluation.reporting.tables.failures import failures
from fim_server.evaluation.reporting.tables.passes import passes
from fim_server.evaluation.reporting.tables.sections import sections
from fim_server.evaluation.reporting.tables.table import Table, markdown

LONG = os.environ.get("FIM_SERVER_LONG") == "1"


def rows_of(table: Table | None) -> list[dict[str, str]]:
    """A table's rows by column."""
    assert table is not None
    assert all(len(row) == len(table.header) for row in table.rows), table.title
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


# --- columns ------------------------------------------------------------------------------------------------------


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


# --- tables -------------------------------------------------------------------------------------------------------


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


# --- plots --------------------------------------------------------------------------------------------------------


def plain_valid_within(mode: str, found: Sequence[Record], budget: int) -> float:
    """One budget at a time, as the docstring of ``valid_within`` says it."""
    valid = 0
    for one in found:
        points = {n for first, last in one.complete_at or () for n in range(max(first, 1), last + 1)}
        ended = one.stop_reason == "end_token" and budget >= max(one.tokens or 0, 1)
        if mode == "unconstrained":
            valid += bool(one.parses) if ended and one.parses else not ended and budget in points
            valid += bool(ended and not one.parses and budget in points)
        else:
            valid += bool(ended and one.parses) or any(n <= budget for n in points)
    return valid / len(found)


def test_validity_is_its_plain_twin() -> None:
    random_ = random.Random(1)
    found = []
    for number in range(150):
        tokens = random_.randrange(0, 30)
        cuts = sorted(random_.sample(range(tokens + 1), min(tokens + 1, random_.choice((0, 2, 4)))))
        runs = tuple(zip(cuts[::2], cuts[1::2], strict=False))
        stop = random_.choice(("end_token", "budget"))
        found.append(
            record(str(number), "x", random_.random() < 0.5, tokens=tokens, complete_at=runs, stop_reason=stop)
        )
    for mode in MODES:
        shares = plots.valid_within(mode, found, 40)
        assert shares.tolist() == pytest.approx([plain_valid_within(mode, found, n) for n in range(41)])
    assert not plots.valid_within("checked", [], 3).any()


@pytest.fixture(scope="module")
def drawn() -> list[Plot]:
    found = records(120, sets=("stack-boundary", "human-eval-infilling"))
    return plots.plots(measured([run_info()], found))


def test_plots_are_all_there_and_the_same_again(drawn: list[Plot]) -> None:
    assert [plot.key for plot in drawn] == ["success", "validity", "latency", "context-cost", "win-and-loss"]
    again = plots.plots(measured([run_info()], records(120, sets=("stack-boundary", "human-eval-infilling"))))
    assert [plot.file() for plot in again] == [plot.file() for plot in drawn]


def test_plots_are_whole_and_their_own(drawn: list[Plot]) -> None:
    identifiers: list[str] = []
    for plot in drawn:
        root = ET.fromstring(plot.file())
        assert root.tag.endswith("svg")
        assert "<metadata" not in plot.svg
        assert not re.search(r"\b20\d\d-\d\d-\d\d", plot.svg), "a date"
        assert not re.search(r"#0[1-9a-c]0[1-9a-c]0[1-9a-c]\b", plot.svg), "a colour that is no variable"
        own = [value for element in root.iter() for name, value in element.attrib.items() if name == "id"]
        identifiers += own
        for target in re.findall(r'(?:href="|url\()([^")]*)', plot.svg):
            assert target.startswith("#"), target
            assert target[1:] in own, target
        assert f'<title id="{plot.key}-title">{plot.title}</title>' in plot.svg
    assert len(identifiers) == len(set(identifiers))
    for name, *_ in list(COLOURS.values())[:6]:
        assert any(f"var({name}," in plot.svg for plot in drawn), name


# --- page ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page refers to, and what is on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.identifiers: list[str] = []
        self.scripts: list[str] = []
        self.tags: Counter[str] = Counter()
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        for name, value in attributes:
            if name == "id":
                self.identifiers.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster", "background", "style"):
                found = re.findall(r"url\(([^)]*)\)", value or "") if name == "style" else [value or ""]
                self.references += found
            assert not name.startswith("on"), f"a handler in the page: {name}"

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside == "style":
            assert "url(" not in data
            assert "@import" not in data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def page_of(found: Sequence[Record], tmp_path: Path, info: RunInfo | None = None) -> str:
    """The text of the report on some records."""
    report.write_report(measured([info or run_info()], found), tmp_path)
    return (tmp_path / REPORT_PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [lambda: records(60), odd_records], ids=["plain", "odd"])
def test_page_is_self_contained(make: Any, tmp_path: Path) -> None:
    text = page_of(make(), tmp_path)
    parsed = Page(text)
    assert all(reference.startswith("#") for reference in parsed.references), parsed.references
    assert set(parsed.references) - {"#main"} <= {f"#{name}" for name in parsed.identifiers}
    assert len(parsed.identifiers) == len(set(parsed.identifiers))
    assert parsed.tags["script"] == 2
    assert parsed.tags["html"] == parsed.tags["body"] == 1
    assert not set(parsed.tags) & {"link", "img", "iframe", "object", "embed", "b"}
    assert "default-src 'none'" in text
    left = re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    assert not re.search(r"https?://", left), "an address"


def test_page_holds_all_samples(tmp_path: Path) -> None:
    found = [*records(30), *odd_records()]
    data = measured([run_info()], found)
    text = page_of(found, tmp_path)
    content = page.unpacked(Page(text).scripts[0])
    assert len(content["samples"]) == data.count
    place = {name: index for index, name in enumerate(content["fields"])}
    result = {name: index for index, name in enumerate(content["result_fields"])}
    by_key = {(one.set, one.sample, one.mode): one for one in found}
    for sample in content["samples"]:
        key = content["sets"][sample[place["set"]]], sample[place["id"]]
        for mode, values in zip(content["variants"], sample[place["results"]], strict=True):
            one = by_key.get((*key, mode))
            if one is None:
                assert values is None
                continue
            assert values[result["text"]] == (None if one.text is None else one.text[: page.MOST_CHARACTERS])
            assert values[result["cut"]] == max(0, len(one.text or "") - page.MOST_CHARACTERS)
            assert bool(values[result["parses"]]) == bool(one.parses)
            assert values[result["error"]] == one.error
            assert sample[place["left"]] == one.left_tail
            assert sample[place["reference"]] == one.reference[: page.MOST_CHARACTERS]


def test_failures_come_first() -> None:
    lost = [record("lost", mode, mode != "constrained") for mode in MODES]
    data = measured([run_info()], [*records(199), *lost])
    order = report.failures_first(data)
    assert sorted(order) == list(range(200))
    verdicts = [tuple(bool(data.modes[mode].success[place]) for mode in reversed(MODES)) for place in order]
    assert verdicts == sorted(verdicts)
    assert not verdicts[0][0]


def test_a_large_page_loses_context_then_samples() -> None:
    data = measured([run_info()], records(300))
    whole, said = page.packed(data, range(300))
    assert said == ""
    smaller, said = page.packed(data, range(300), most_bytes=int(0.7 * len(whole)))
    assert "cut to" in said
    assert len(smaller) <= 0.7 * len(whole)
    assert len(page.unpacked(smaller)["samples"]) == 300
    order = report.failures_first(data)
    few, said = page.packed(data, order, most_bytes=len(whole) // 10)
    content = page.unpacked(few)
    assert 0 < len(content["samples"]) < 300
    assert content["left_out"] == 300 - len(content["samples"])
    assert f"{content['left_out']} samples are left out" in said
    assert [sample[0] for sample in content["samples"]] == [data.keys[p][1] for p in order[: len(content["samples"])]]


@pytest.mark.parametrize("noisy", [False, True])
def test_twelve_thousand_records_fit(tmp_path: Path, noisy: bool) -> None:
    """With contexts that hardly shrink, too. The long form makes the whole report, tables and plots included."""
    random_ = random.Random(0)
    found = records(4_000)
    if noisy:
        contexts = [random_.randbytes(1_000).hex() for _ in range(4_000)]
        found = [
            replace(one, left_tail=contexts[n // 3], right_head=contexts[n // 3][::-1]) for n, one in enumerate(found)
        ]
    assert len(found) == 12_000
    if LONG:
        text = page_of(found, tmp_path)
    else:
        data = measured([run_info()], found)
        text = page.html(Report("Large", ""), list(data.modes), page.packed(data, range(4_000))[0])
    assert len(text) < 15_000_000
    assert len(page.unpacked(Page(text).scripts[0])["samples"]) == 4_000


def test_notes_are_marked_up_and_escaped() -> None:
    assert page.inline("*only* `ast.parse` <b> & 2 * 3 * 4") == (
        "<em>only</em> <code>ast.parse</code> &lt;b&gt; &amp; 2 * 3 * 4"
    )
    assert page.slug("The paper's tables") == "the-paper-s-tables"


def test_parts_ship_with_the_package() -> None:
    folder = resources.files("fim_server.evaluation.reporting") / "templates"
    assert {"report.html", "report.css", "report.js"} <= {entry.name for entry in folder.iterdir()}


# --- report -------------------------------------------------------------------------------------------------------


def run(add: Any, *arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add(parser)
    namespace = parser.parse_args([str(argument) for argument in arguments])
    found: int = namespace.run(namespace)
    return found


def run_report(*arguments: str | Path) -> int:
    return run(evaluate.add_report, *arguments)


def run_compare(*arguments: str | Path) -> int:
    return run(evaluate.add_compare, *arguments)


def test_report_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", records(60), run_info(data=(Data("samples.jsonl", "0" * 64, 60),)))
    assert run_report(folder, "--out", tmp_path / "out") == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("report.html", "summary.md", "success.svg", "validity.svg", "latency.svg", "context-cost.svg"),
        "win-and-loss.svg",
    }
    assert str(tmp_path / "out" / "report.html") in capsys.readouterr().out
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    for said in ("# Fill-in-the-middle evaluation: embedded", "Table I", "Table II", "![Success by mode](success.svg)"):
        assert said in text
    assert "Not finished" not in text
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert run_report(folder, "--out", tmp_path / "again") == 0
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}


def test_report_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", records(30))
    assert run_report(folder, "--out", tmp_path / "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    data = read_measured([folder])
    success = found["figures"]["all"]["modes"]["constrained"]["success"]
    assert success["value"] == pytest.approx(data.modes["constrained"].success.mean())
    pairs = {(one["first"], one["second"]): one for one in found["figures"]["all"]["differences"]}
    assert pairs["constrained", "checked"]["pairs"] == 30
    assert {table["key"] for table in found["tables"]} >= {"table-1", "table-2", "differences", "won", "below"}
    assert any("Not finished: 30 of 100" in notice for notice in found["notices"])


def without(one: Record) -> Record:
    """A record that could not be measured: null wherever it may be."""
    kept = {field.name: getattr(one, field.name) for field in fields(one) if field.default is MISSING}
    return Record(**kept, error="out of memory")


ODD_RUNS: dict[str, list[Record]] = {
    "empty": [],
    "one record": [record("a", "constrained")],
    "one mode": [one for one in records(20) if one.mode == "unconstrained"],
    "checked alone": [one for one in records(20) if one.mode == "checked"],
    "all failed": [replace(one, text=None, parses=False, won=None, complete_at=()) for one in records(20)],
    "nothing measured": [without(one) for one in records(20)],
    "no times": [replace(one, open_ms=None, model_ms=None, engine_ms=None, total_ms=None) for one in records(20)],
    "no tokens": [replace(one, tokens=0, text="", complete_at=None) for one in records(20)],
    "modes missing here and there": [one for number, one in enumerate(records(40)) if number % 5],
    "odd texts": odd_records(),
    "an unknown mode": [record("a", "constrained"), record("a", "guessed")],
    "all alike": [record(str(number), mode) for number in range(5) for mode in MODES],
    "times of nought": [replace(one, open_ms=0.0, engine_ms=0.0, total_ms=0.0) for one in records(10)],
}


@pytest.mark.parametrize("name", ODD_RUNS)
def test_odd_runs_have_a_report(name: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    folder = write_run(tmp_path / "run", ODD_RUNS[name])
    assert run_report(folder, "--out", tmp_path / "out") == 0
    assert not [str(warning.message) for warning in recwarn]
    text = (tmp_path / "out" / REPORT_PAGE).read_text(encoding="utf-8")
    Page(text)
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), re.IGNORECASE)
    data = read_measured([folder])
    for _, some in sections(data) if data.count else []:
        for table in some:
            rows_of(table)
    if name == "modes missing here and there":
        assert "Left out, for want of a record" in text


def test_markdown_of_odd_texts_stays_a_table(tmp_path: Path) -> None:
    page_of(odd_records(), tmp_path)
    text = (tmp_path / REPORT_SUMMARY).read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u2028\u2029\u202e]", text)
    columns = 0
    for line in text.splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line))
        if line.startswith("|---"):
            assert columns == bars, "the rule under a header"
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert bars == columns, line
        else:
            columns = bars


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="not a run") as caught:
        run_report(tmp_path, "--out", tmp_path / "out")
    assert "\n" not in str(caught.value)
    folder = write_run(tmp_path / "run", records(3))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordError, match="file"):
        run_report(folder, "--out", tmp_path / "file")


def test_a_missing_library_is_named() -> None:
    with pytest.raises(MissingLibrary, match=r"needs seaborn.*fim-server\[eval\]"), eval_extra():
        raise ModuleNotFoundError("No module named 'seaborn'", name="seaborn")
    with pytest.raises(ModuleNotFoundError), eval_extra():
        raise ModuleNotFoundError("No module named 'fim_server.gone'", name="fim_server.gone")


def test_options_load_neither_torch_nor_matplotlib() -> None:
    script = (
        "import argparse, sys\n"
        "from fim_server.cli import evaluate\n"
        "evaluate.add_steps(argparse.ArgumentParser())\n"
        "assert not {'torch', 'matplotlib', 'scipy', 'jinja2'} & set(sys.modules), 'loaded too early'\n"
        "import fim_server.evaluation.reporting.figures.plots, fim_server.evaluation.reporting.page\n"
        "assert 'torch' not in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_notices_of_prompts_that_differ() -> None:
    found = [record("a", "constrained"), record("a", "checked", prompt_hash="1" * 16)]
    assert any("different prompts" in notice for notice in report.notices(measured([run_info()], found)))


# --- comparison ---------------------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """12 samples in both, B winning two and losing one; one only in A, two only in B, one with another hole."""
    ours = [record(f"s{n}", "constrained", n not in (0, 1)) for n in range(12)]
    theirs = [record(f"s{n}", "constrained", n != 5, edit_similarity=0.75) for n in range(12)]
    ours += [record("only-a", "constrained"), record("moved", "constrained", reference="x = 2")]
    theirs += [record("only-b", "constrained"), record("only-b2", "constrained"), record("moved", "constrained")]
    ours += [record("s0", "checked")]
    first = write_run(tmp_path / "a", ours, run_info(machine={"cores": 2}))
    second = write_run(tmp_path / "b", theirs, run_info(budget=100, machine={"cores": 4}, started="later"))
    return first, second


def test_comparison_by_hand(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_compare(*two_runs, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["only_a"], found["only_b"], found["other_hole"]) == (12, 1, 2, 1)
    assert found["settings"] == [
        {"setting": "budget", "a": "200", "b": "100"},
        {"setting": "machine.cores", "a": "2", "b": "4"},
    ]
    assert list(found["modes"]) == ["constrained"]
    mode = found["modes"]["constrained"]
    assert mode["pairs"] == 12
    assert [one["sample"] for one in mode["won"]] == ["s0", "s1"]
    assert [one["sample"] for one in mode["lost"]] == ["s5"]
    assert mode["success"]["difference"] == pytest.approx(1 / 12)
    assert mode["success"]["low"] < 0 < mode["success"]["high"]
    assert mode["edit"]["difference"] == pytest.approx(0.25)
    assert mode["mcnemar_p"] == 1.0


def test_comparison_in_words_and_on_a_page(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_compare(*two_runs) == 0
    text = capsys.readouterr().out
    assert "| budget | 200 | 100 |" in text
    assert "2 : 1" in text
    assert "![" not in text  # there are no files to show
    out = two_runs[0].parent / "out"
    assert run_compare(*two_runs, "--out", out) == 0
    assert {"compare.html", "compare.md", "compare.json", "success.svg"} <= {path.name for path in out.iterdir()}
    parsed = Page((out / "compare.html").read_text(encoding="utf-8"))
    assert all(reference.startswith("#") for reference in parsed.references)
    content = page.unpacked(parsed.scripts[0])
    assert content["variants"] == ["A constrained", "B constrained"]
    assert [sample[0] for sample in content["samples"]][:3] == ["s5", "s0", "s1"]  # lost, then won
    assert json.loads((out / "compare.json").read_text())["samples"] == 12


def test_a_run_equals_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records(40))
    joined = join(folder, folder)
    found = compare.as_json(joined, compare.report_on(joined))
    assert found["settings"] == []
    for mode in found["modes"].values():
        assert mode["won"] == mode["lost"] == []
        assert (mode["success"]["difference"], mode["success"]["low"], mode["success"]["high"]) == (0, 0, 0)


def test_runs_without_common_samples_cannot_be_compared(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [record("a", "constrained")])
    two = write_run(tmp_path / "two", [record("b", "constrained")])
    other = write_run(tmp_path / "other", [record("a", "checked")])
    for second in (two, other, write_run(tmp_path / "empty", [])):
        with pytest.raises(RecordError, match="no sample in common"):
            join(one, second)


def test_odd_runs_can_be_compared(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "odd", odd_records())
    assert run_compare(folder, folder, "--out", tmp_path / "out") == 0
    text = (tmp_path / "out" / "compare.html").read_text(encoding="utf-8")
    assert Page(text).tags["script"] == 2
    assert len(ODD_TEXTS) < join(folder, folder).data.count
    assert BUDGET == 200
