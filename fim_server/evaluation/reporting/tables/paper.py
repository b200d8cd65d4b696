"""Section "The paper's tables", and the same crossing for exact matches.

Tables I and II of the paper (Melcer et al., arXiv 2402.17988, section VII) count how two modes cross on one set. Their
contents follow from the queries that the authors published: programs that parse with each mode, and programs that parse
with one mode only. The queries also count constrained failures by whether a left context was complete. The paper's
layout is unknown to us. :func:`table_one` crosses constrained with unconstrained, :func:`table_two` constrained with
checked, and :func:`constrained_failures` has the rest.
"""

from __future__ import annotations

import numpy as np

from fim_server.evaluation.reporting.measured import Bools, Measured, ModeColumns
from fim_server.evaluation.reporting.tables.pairs import compared, said_left_out
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import of


def table_one(data: Measured) -> Table | None:
    """Cross constrained and unconstrained (see the module). Return None if a mode is missing."""
    return _cross(data, "unconstrained", "table-1", "Table I: constrained and unconstrained")


def table_two(data: Measured) -> Table | None:
    """Cross constrained and checked unconstrained. Return None if a mode is missing."""
    return _cross(data, "checked", "table-2", "Table II: constrained and checked unconstrained")


def _cross(data: Measured, other: str, key: str, title: str) -> Table | None:
    if "constrained" not in data.modes or other not in data.modes:
        return None
    rows = []
    missing = 0
    for name, mask in data.groups():
        kept, lacking = data.pairs(("constrained", other), mask)
        missing = max(missing, lacking)
        ours, theirs = data.modes["constrained"].success[kept], data.modes[other].success[kept]
        count = int(kept.sum())
        cells = (ours & theirs, ours & ~theirs, ~ours & theirs, ~ours & ~theirs, ours, theirs)
        rows.append((name, f"{count:,}", *(of(int(cell.sum()), count) for cell in cells)))
    header = (
        "set",
        "samples",
        "both parse",
        "only constrained",
        f"only {other}",
        "neither",
        "constrained",
        other,
    )
    note = (
        "The paper's cross table: programs that parse with both modes, with one of them, with neither, and in all with "
        "each. " + said_left_out({"samples": missing})
    )
    return Table(key, title, header, tuple(rows), 1, note, brief=True)


def constrained_failures(data: Measured) -> Table | None:
    """The paper's two ways in which constrained generation fails, and how often the other modes succeed there."""
    columns = data.modes.get("constrained")
    if columns is None:
        return None
    others = [mode for mode in data.modes if mode != "constrained"]
    rows = []
    for name, mask in data.groups():
        failed = columns.present & mask & ~columns.success
        ways = (
            ("a text was offered that does not parse", failed & columns.offered),
            ("no complete text was found", failed & ~columns.offered & ~columns.error),
            ("not measured", failed & columns.error),
        )
        for way, part in ways:
            count = int(part.sum())
            beside = (of(int((part & data.modes[mode].success).sum()), count) for mode in others)
            rows.append((name, way, f"{count:,}", *beside))
    header = ("set", "constrained failed", "samples", *(f"{mode} parses" for mode in others))
    note = (
        "The paper's failure modes: its parser took a left context for complete that is not, or never found one; and "
        "how many of these the other modes get right."
    )
    return Table("constrained-failures", "Where constrained fails", header, tuple(rows), 2, note, brief=True)


def table_exact(data: Measured) -> Table | None:
    """Cross exact matches with the mode: the constraint's gains and losses among right texts."""
    pairs = [pair for pair in compared(data) if pair[0] == "constrained"]
    if not pairs:
        return None
    rows = []
    for name, mask in data.groups():
        for first, second in pairs:
            kept, _ = data.pairs((first, second), mask)
            one, two = data.modes[first], data.modes[second]
            count = int(kept.sum())
            both = kept & one.success & two.success
            cells = (
                one.exact & two.exact & kept,
                one.exact & ~two.exact & kept,
                ~one.exact & two.exact & kept,
                ~one.exact & ~two.exact & kept,
            )
            agree = both & _same_texts(one, two)
            rows.append(
                (
                    name,
                    f"{first}, {second}",
                    f"{count:,}",
                    *(of(int(cell.sum()), count) for cell in cells),
                    of(int(agree.sum()), int(both.sum())),
                )
            )
    header = ("set", "modes", "samples", "both exact", "only first", "only second", "neither", "same text")
    note = "*Same text*: of the samples on which both parse, those with the same text to the character."
    return Table("exact-match", "Exact match, crossed", header, tuple(rows), 2, note)


def _same_texts(one: ModeColumns, two: ModeColumns) -> Bools:
    pairs = zip(one.records, two.records, strict=True)
    return np.array([a is not None and b is not None and a.text == b.text for a, b in pairs], dtype=bool)
