"""Counts of the values of a record's field, shared by several sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.tables.text import of

Header = tuple[str, ...]
Rows = tuple[tuple[str, ...], ...]


def counted(data: Measured, what: str, read: Callable[[Record], str]) -> tuple[Header, Rows]:
    """Header and rows of a table that says how often each value occurs, by mode, the commonest first.

    Args:
        data: What was measured.
        what: The values' name.
        read: The value of a record.
    """
    counts = {mode: Counter(map(read, columns.chosen())) for mode, columns in data.modes.items()}
    totals = {mode: sum(counter.values()) for mode, counter in counts.items()}
    everything: Counter[str] = sum(counts.values(), Counter())
    rows = tuple(
        (value, *(of(counts[mode][value], totals[mode]) if counts[mode][value] else "0" for mode in data.modes))
        for value, _ in sorted(everything.items(), key=lambda item: (-item[1], item[0]))
    )
    return (what, *data.modes), rows


def without_text(record: Record) -> str:
    """Text for a missing value."""
    return "not measured" if record.error is not None else "no text" if record.text is None else "not said"
