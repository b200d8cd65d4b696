"""The section "How texts ended": what was offered and why generation stopped."""

from __future__ import annotations

from collections import Counter

from fim_server.evaluation.records import WON
from fim_server.evaluation.reporting.measured import Measured, is_exact, is_success
from fim_server.evaluation.reporting.statistics import percentiles, proportion
from fim_server.evaluation.reporting.tables.counts import counted, without_text
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import number, of, percent, rate


def what_won(data: Measured) -> Table:
    """Return the table of the texts' origins: the model's own end, a point before the budget's end, a landed text."""
    header, rows = counted(data, "offered text", lambda record: record.won or without_text(record))
    known = {name: place for place, name in enumerate(WON)}
    rows = tuple(sorted(rows, key=lambda row: known.get(row[0], len(known))))
    note = (
        "*end_token*: the model ended the text; *point*: the best complete point before the budget's end; *landed*: "
        "the text that the budget's end forced; *prefix*: the best prefix that parses; *truncated*: cut as SAFIM cuts "
        "texts; *budget*: cut off where the budget ended."
    )
    return Table("won", "What was offered", header, rows, 1, note, brief=True)


def won_quality(data: Measured) -> Table:
    """Success and matches by what was offered."""
    rows = []
    for mode, columns in data.modes.items():
        records = columns.chosen()
        for value in sorted({record.won or without_text(record) for record in records}):
            some = [record for record in records if (record.won or without_text(record)) == value]
            similar = [record.edit_similarity or 0.0 for record in some]
            rows.append(
                (
                    mode,
                    value,
                    f"{len(some):,}",
                    rate(proportion([is_success(record) for record in some])),
                    percent(sum(map(is_exact, some)) / len(some)),
                    percent(sum(similar) / len(some)),
                )
            )
    header = ("mode", "offered text", "samples", "success", "exact match", "edit similarity")
    return Table("won-quality", "How good each kind of offered text is", header, tuple(rows), 2)


def landing(data: Measured) -> Table | None:
    """Steps at which the budget's end ruled tokens out."""
    columns = data.modes.get("constrained")
    if columns is None:
        return None
    rows = []
    for name, mask in data.groups():
        records = [record for record in columns.chosen(mask) if record.landing is not None]
        steps = [float(record.landing or 0) for record in records if record.landing]
        won = Counter(record.won for record in records if record.landing)
        figures = percentiles(steps, (0.5, 0.9, 1.0))
        rows.append(
            (
                name,
                of(len(steps), len(records)),
                *(number(figure) for figure in figures),
                of(won["landed"], len(steps)),
                of(won["point"], len(steps)),
                of(won["end_token"], len(steps)),
            )
        )
    header = ("set", "samples landed", "steps p50", "p90", "max", "landed won", "point won", "ended by the model")
    note = (
        "Of the constrained samples at which the budget's end ruled out at least one token, and what was offered then."
    )
    return Table("landing", "Landing", header, tuple(rows), 1, note, brief=True)


def stop_reasons(data: Measured) -> Table:
    """Return the table of the reasons for the ends of texts."""
    header, rows = counted(data, "stop reason", lambda record: record.stop_reason or without_text(record))
    return Table("stop-reasons", "Why generation stopped", header, rows, 1)


def guarantees(data: Measured) -> Table:
    """Return the table of the sessions' guarantees."""
    header, rows = counted(data, "guarantee", lambda record: record.guarantee or without_text(record))
    return Table("guarantees", "Guarantees", header, rows, 1)
