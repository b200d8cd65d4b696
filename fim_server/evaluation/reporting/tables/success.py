"""The section "Success": every mode by itself, and the differences between modes."""

from __future__ import annotations

from fim_server.evaluation.reporting.measured import PYTHON, Measured
from fim_server.evaluation.reporting.statistics import (
    CONFIDENCE,
    RESAMPLES,
    mean,
    paired_difference,
    proportion,
)
from fim_server.evaluation.reporting.tables.pairs import compared, said_left_out, verdict_cells
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import difference, percent, rate

PAPER_SUCCESS = {"stack-boundary": 0.950, "stack-randspan": 0.965}
"""Rates that the paper reports for its constrained mode, with its own model, on Python."""


def overview(data: Measured) -> Table:
    """Success, matches and similarity by set and mode, each mode on all its records."""
    rows: list[tuple[str, ...]] = []
    for name, mask in data.groups():
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            files = data.clusters_of(kept)
            count = int(kept.sum())
            paper = PAPER_SUCCESS.get(name.removeprefix(f"{PYTHON}, ")) if mode == "constrained" else None
            rows.append(
                (
                    name,
                    mode,
                    f"{count:,}",
                    rate(proportion(columns.success[kept])),
                    "" if paper is None else percent(paper),
                    rate(mean(columns.exact[kept], files)),
                    rate(mean(columns.edit[kept], files)),
                )
            )
    header: tuple[str, ...] = ("set", "mode", "samples", "success", "paper", "exact match", "edit similarity")
    known = any(row[4] for row in rows)
    if not known:
        header, rows = header[:4] + header[5:], [row[:4] + row[5:] for row in rows]
    note = (
        f"Success: a text was offered and the whole program parses ({data.parser}). Exact match: that, and the text is "
        f"the one that stood there but for blanks at its ends. In brackets {100 * CONFIDENCE:.0f} % intervals: "
        "Wilson's for success, which takes samples as independent; bootstrap for the others."
    )
    if known:
        note += " *Paper*: what arXiv 2402.17988 reports for its constrained mode, with its own model and samples."
    return Table("success", "Success by set and mode", header, tuple(rows), 2, note, brief=True)


def differences(data: Measured) -> Table:
    """Paired differences between modes, with the test of the verdicts."""
    rows = []
    left_out: dict[str, int] = {}
    for name, mask in data.groups():
        for first, second in compared(data):
            kept, missing = data.pairs((first, second), mask)
            if name == data.groups()[0][0]:
                left_out[f"{first} beside {second}"] = missing
            one, two = data.modes[first], data.modes[second]
            files = data.clusters_of(kept)
            exact, _, exact_p = verdict_cells(one.exact[kept], two.exact[kept], files)
            rows.append(
                (
                    name,
                    f"{first} − {second}",
                    f"{int(kept.sum()):,}",
                    *verdict_cells(one.success[kept], two.success[kept], files),
                    exact,
                    exact_p,
                    difference(paired_difference(one.edit[kept], two.edit[kept], files)),
                )
            )
    header = ("set", "modes", "pairs", "success", "only one", "p", "exact match", "p", "edit similarity")
    note = (
        f"Differences in percentage points on the samples that have both modes, with {100 * CONFIDENCE:.0f} % "
        f"percentile intervals of {RESAMPLES:,} paired bootstrap resamples. {data.cluster_reason} *Only one*: samples "
        "on which only the first or only the second succeeds. *p*: McNemar's exact test. " + said_left_out(left_out)
    )
    return Table("differences", "Differences between modes", header, tuple(rows), 2, note, brief=True)
