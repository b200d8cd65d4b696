"""The section "Tests": of samples that have a test of their own, how many pass it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.measured import Bools, Measured, ModeColumns
from fim_server.evaluation.reporting.statistics import pass_at_1
from fim_server.evaluation.reporting.tables.counts import counted, without_text
from fim_server.evaluation.reporting.tables.pairs import verdict_cells
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import rate


def has_test(data: Measured) -> Bools:
    """The samples with a test of their own: those of which any mode's text was tested."""
    found = data.everything() & False
    for columns in data.modes.values():
        tested = [
            record is not None and (record.passed is not None or bool(record.failure)) for record in columns.records
        ]
        found |= np.array(tested, dtype=bool)
    return found


def passes(data: Measured) -> list[Table]:
    """pass@1 by kind, differences, and why tests failed. A sample without a text has not passed."""
    tested = has_test(data)
    if not tested.any():
        return []
    rows = []
    kinds = list(dict.fromkeys(kind for kind, is_tested in zip(data.kinds, tested, strict=True) if is_tested))
    groups = [(kind, tested & data.of_kind(kind)) for kind in kinds]
    for name, mask in groups if len(groups) == 1 else [("all", tested), *groups]:
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            passed = _passed(columns)
            estimate = pass_at_1(passed[kept])
            rows.append((name, mode, f"{int(kept.sum()):,}", rate(estimate), *_beside(data, mode, mask)))
    header = ("kind", "mode", "samples", "pass@1", "− unconstrained", "only one", "p")
    note = (
        "One text a sample. Wilson's intervals; then the difference to unconstrained on the same samples, in "
        "percentage points, the samples that pass with only one of both, and McNemar's exact test."
    )
    first = Table("pass-at-1", "pass@1", header, tuple(rows), 2, note, brief=True)

    def why(record: Record) -> str:
        return "passed" if record.passed else record.failure or without_text(record)

    names, counts = counted(_limited(data, tested), "verdict of the test", why)
    return [first, Table("test-failures", "Why tests failed", names, counts, 1)]


def _passed(columns: ModeColumns) -> Bools:
    return np.array([record is not None and bool(record.passed) for record in columns.records], dtype=bool)


def _beside(data: Measured, mode: str, mask: Bools) -> tuple[str, str, str]:
    if mode == "unconstrained" or "unconstrained" not in data.modes:
        return "", "", ""
    kept, _ = data.pairs((mode, "unconstrained"), mask)
    one, two = (_passed(data.modes[name])[kept] for name in (mode, "unconstrained"))
    return verdict_cells(one, two, data.clusters_of(kept))


def _limited(data: Measured, mask: Bools) -> Measured:
    """The data with the records of some samples alone."""
    modes = {
        mode: ModeColumns(**{**vars(columns), "present": columns.present & mask})
        for mode, columns in data.modes.items()
    }
    return replace(data, modes=modes)
