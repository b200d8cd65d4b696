"""The section "Failures": why records are no success."""

from __future__ import annotations

from collections import Counter

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import shortened

MOST_REASONS = 25


def failures(data: Measured) -> Table:
    """Failures by reason and mode, the commonest first."""
    counts = {mode: Counter(map(failure_reason, columns.chosen())) for mode, columns in data.modes.items()}
    everything: Counter[str] = sum(counts.values(), Counter())
    del everything[""]
    reasons = sorted(everything, key=lambda reason: (-everything[reason], reason))
    rows = [(reason, *(f"{counts[mode][reason]:,}" for mode in data.modes)) for reason in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        rest = reasons[MOST_REASONS:]
        rows.append(
            (
                f"{len(rest):,} other reasons",
                *(f"{sum(counts[mode][reason] for reason in rest):,}" for mode in data.modes),
            )
        )
    rows.append(("in all", *(f"{sum(c.values()) - c['']:,}" for c in counts.values())))
    return Table("failures", "Failures by reason", ("reason", *data.modes), tuple(rows), 1, brief=True)


def failure_reason(record: Record) -> str:
    """Return the reason for a record's failure, in words that failures of one kind share; empty for a success."""
    if record.error is not None:
        return "not measured: " + shortened(record.error)
    if record.text is None:
        return f"no text: stopped by {shortened(record.stop_reason or 'what is not said')}"
    if not record.parses:
        guarantee = record.guarantee or "unknown"
        verdict = {None: "did not judge it", True: "takes it", False: "refuses it"}[record.complete]
        return f"does not parse: {record.won or 'text'}, guarantee {guarantee}, the engine {verdict}"
    return ""
