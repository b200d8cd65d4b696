"""The comparison of two runs: what there is to say about them, and the files that say it.

For each mode that both runs have, differences are B - A.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fim_server.evaluation.reporting import page
from fim_server.evaluation.reporting.content import Card, Check, Report
from fim_server.evaluation.reporting.figures import plots
from fim_server.evaluation.reporting.files import COMPARE_NUMBERS, COMPARE_PAGE, COMPARE_SUMMARY, write_files
from fim_server.evaluation.reporting.joined import Joined, changed_first, changed_mask, settings
from fim_server.evaluation.reporting.numbers import finite
from fim_server.evaluation.reporting.report import by_the_engine, distinct
from fim_server.evaluation.reporting.statistics import CONFIDENCE, RESAMPLES, mcnemar, paired_difference
from fim_server.evaluation.reporting.summary import summary
from fim_server.evaluation.reporting.tables.costs import cost, latencies
from fim_server.evaluation.reporting.tables.endings import stop_reasons, what_won
from fim_server.evaluation.reporting.tables.failures import failure_reason, failures
from fim_server.evaluation.reporting.tables.pairs import said_left_out, verdict_cells
from fim_server.evaluation.reporting.tables.slices import slices as parts_of
from fim_server.evaluation.reporting.tables.success import overview
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.table import as_json as table_as_json
from fim_server.evaluation.reporting.tables.text import difference, of, percent, probability, shortened
from fim_server.evaluation.reporting.tables.tokens import refusals

MOST_LISTED = 200
"""Samples in a table of those won or lost; the JSON object has all."""


def report_on(joined: Joined) -> Report:
    """Comparison of two runs."""
    data = joined.data
    cards, checks = [], []
    for mode in joined.modes:
        kept, _ = data.pairs((f"A {mode}", f"B {mode}"))
        one, two = (data.modes[f"{name} {mode}"].success[kept] for name in ("A", "B"))
        count = int(kept.sum())
        test = mcnemar(two, one)
        if not count:
            continue
        a, b = int(one.sum()), int(two.sum())
        said = f"B won {test.only_first:,} and lost {test.only_second:,} samples, p {probability(test.p)}"
        cards.append(
            Card(
                f"{mode}: programs that parse, A → B",
                f"{percent(a / count)} → {percent(b / count)}",
                said,
                mode == "constrained",
            )
        )
        found = f"{a:,} and {b:,} of {count:,}; {said}"
        checks.append(Check(f"success of B not below A's ({mode})", b >= a, found))
    models = distinct(info.model for info in joined.infos)
    notices = by_the_engine(joined.infos)
    if joined.only_a or joined.only_b:
        notices.append(f"Left out: {joined.only_a:,} samples that only A has, {joined.only_b:,} that only B has.")
    if joined.different:
        notices.append(f"Left out: {joined.different:,} samples whose hole is another in A than in B.")
    if joined.prompts:
        notices.append(f"The prompts of {joined.prompts:,} samples differ between A and B.")
    return Report(
        title=f"Two evaluations compared: {shortened(models)}",
        lead=f"{data.count:,} samples that both runs have, in {', '.join(joined.modes)}. Differences are B − A.",
        facts=[
            ("A, begun", shortened(joined.infos[0].started)),
            ("B, begun", shortened(joined.infos[1].started)),
        ],
        notices=notices,
        cards=cards,
        checks=checks,
        plots=plots.plots(data, (plots.success, plots.validity, plots.latency)),
        sections=_sections(joined),
    )


def _sections(joined: Joined) -> list[tuple[str, list[Table]]]:
    data = joined.data
    rows = tuple((name, shortened(a), shortened(b)) for name, a, b in settings(joined.infos))
    asked = Table("settings", "Settings that differ", ("setting", "A", "B"), rows, 3, brief=True)
    return [
        ("Settings", [asked]),
        ("Success", [overview(data), differences(joined)]),
        ("Slices", [slices(joined)]),
        ("Samples that changed", [changed(joined, "lost"), changed(joined, "won")]),
        ("How texts ended", [what_won(data), stop_reasons(data), refusals(data)]),
        ("Cost", [cost(data), latencies(data)]),
        ("Failures", [failures(data)]),
    ]


def differences(joined: Joined) -> Table:
    """B - A by set and mode, with intervals and tests."""
    data = joined.data
    rows = []
    left_out: dict[str, int] = {}
    for place, (name, mask) in enumerate(data.groups()):
        for mode in joined.modes:
            kept, missing = data.pairs((f"A {mode}", f"B {mode}"), mask)
            if not place:
                left_out[mode] = missing
            one, two = data.modes[f"A {mode}"], data.modes[f"B {mode}"]
            files = data.clusters_of(kept)
            rows.append(
                (
                    name,
                    mode,
                    f"{int(kept.sum()):,}",
                    *verdict_cells(two.success[kept], one.success[kept], files),
                    *verdict_cells(two.exact[kept], one.exact[kept], files),
                    difference(paired_difference(two.edit[kept], one.edit[kept], files)),
                )
            )
    header = ("set", "mode", "pairs", "success", "won : lost", "p", "exact match", "won : lost", "p", "edit similarity")
    note = (
        f"B − A in percentage points, with {100 * CONFIDENCE:.0f} % percentile intervals of {RESAMPLES:,} paired "
        f"bootstrap resamples. {data.cluster_reason} *p*: McNemar's exact test. " + said_left_out(left_out)
    )
    return Table("differences", "B − A", header, tuple(rows), 2, note, brief=True)


def slices(joined: Joined) -> Table:
    """Success of A and B on every slice."""
    data = joined.data
    rows = []
    for cut, parts in parts_of(data).items():
        for name, mask in parts:
            for mode in joined.modes:
                kept, _ = data.pairs((f"A {mode}", f"B {mode}"), mask)
                one, two = (data.modes[f"{side} {mode}"].success[kept] for side in ("A", "B"))
                count, test = int(kept.sum()), mcnemar(two, one)
                cells = (of(int(one.sum()), count), of(int(two.sum()), count))
                won = f"{test.only_first:,} : {test.only_second:,}"
                rows.append((cut, name, mode, f"{count:,}", *cells, won, probability(test.p)))
    header = ("cut", "slice", "mode", "pairs", "A", "B", "won : lost", "p")
    note = "Small slices differ by chance, and of many tests some come out small."
    return Table("slices", "Success by slice", header, tuple(rows), 3, note, long=True)


def changed(joined: Joined, which: str) -> Table:
    """The samples that B won or lost, and why the other failed."""
    side = "A" if which == "won" else "B"
    rows: list[tuple[str, ...]] = []
    count = 0
    for mode in reversed(joined.modes):
        mask = changed_mask(joined, mode, which)
        for place in mask.nonzero()[0].tolist():
            count += 1
            record = joined.data.modes[f"{side} {mode}"].records[place]
            if len(rows) < MOST_LISTED and record is not None:
                rows.append((mode, shortened(record.sample), record.place, record.kind, failure_reason(record)))
    title = f"Samples that B {which}: {count:,}"
    note = f"The first {MOST_LISTED:,}; {COMPARE_NUMBERS} and --json have all." if count > MOST_LISTED else ""
    header = ("mode", "sample", "place", "kind", f"{side} failed")
    return Table(which, title, header, tuple(rows), 5, note)


def as_json(joined: Joined, report: Report) -> dict[str, Any]:
    """The comparison for programs."""
    data = joined.data
    modes: dict[str, Any] = {}
    for mode in joined.modes:
        kept, missing = data.pairs((f"A {mode}", f"B {mode}"))
        one, two = data.modes[f"A {mode}"], data.modes[f"B {mode}"]
        files = data.clusters_of(kept)
        test = mcnemar(two.success[kept], one.success[kept])
        found: dict[str, Any] = {"pairs": int(kept.sum()), "left_out": missing, "mcnemar_p": test.p}
        for name in ("success", "exact", "edit"):
            a, b = getattr(one, name)[kept], getattr(two, name)[kept]
            gained = paired_difference(b, a, files)
            found[name] = {
                "a": float(a.mean()) if a.size else None,
                "b": float(b.mean()) if b.size else None,
                "difference": gained.value,
                "low": gained.low,
                "high": gained.high,
                "method": gained.method,
            }
        for which in ("won", "lost"):
            places = changed_mask(joined, mode, which).nonzero()[0].tolist()
            found[which] = [{"set": data.keys[place][0], "sample": data.keys[place][1]} for place in places]
        modes[mode] = found
    result: dict[str, Any] = finite(
        {
            "samples": data.count,
            "only_a": joined.only_a,
            "only_b": joined.only_b,
            "other_hole": joined.different,
            "other_prompt": joined.prompts,
            "settings": [{"setting": name, "a": a, "b": b} for name, a, b in settings(joined.infos)],
            "modes": modes,
            "resampled": data.cluster_reason,
            "tables": [table_as_json(table) for _, some in report.sections for table in some],
        }
    )
    return result


def write(joined: Joined, report: Report, numbers: dict[str, Any], out: str | Path) -> None:
    """Write page, summary, numbers and plots into a folder. Raises RecordError if they cannot be written."""
    _, text = page.with_samples(report, joined.data, changed_first(joined), "fim-server eval compare")
    written = json.dumps(numbers, indent=1) + "\n"
    files = {COMPARE_PAGE: text, COMPARE_SUMMARY: summary(report), COMPARE_NUMBERS: written}
    write_files(out, files | report.plot_files())
