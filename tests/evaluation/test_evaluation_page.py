"""The page of a report: it needs nothing from elsewhere, holds all samples and is not too large."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from fim_server.evaluation.records import MODES
from fim_server.evaluation.reporting import page, report
from fim_server.evaluation.reporting.content import Report
from fim_server.evaluation.reporting.measured import measured
from support.evaluation.evaluation_records import odd_records, record, records, run_info
from support.evaluation.evaluation_reports import Page, page_of

LONG = os.environ.get("FIM_SERVER_LONG") == "1"


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
            assert sample[place["place"]] == (f"{one.path}:{one.line}" if one.path else "")
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
