"""All sections of a report, in their order."""

from __future__ import annotations

from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.tables.costs import cost, fits, latencies, throughput
from fim_server.evaluation.reporting.tables.endings import guarantees, landing, stop_reasons, what_won, won_quality
from fim_server.evaluation.reporting.tables.failures import failures
from fim_server.evaluation.reporting.tables.pairs import compared, have_pairs
from fim_server.evaluation.reporting.tables.paper import constrained_failures, table_exact, table_one, table_two
from fim_server.evaluation.reporting.tables.passes import passes
from fim_server.evaluation.reporting.tables.slices import by_slice, never_below
from fim_server.evaluation.reporting.tables.success import differences, overview
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.tokens import agreement, refusals, suffixes


def sections(data: Measured) -> list[tuple[str, list[Table]]]:
    """All tables there is something to say in, in their order, under their headings."""
    below, every_slice = never_below(data)
    named: list[tuple[str, list[Table | None]]] = [
        ("Success", [overview(data), differences(data) if compared(data) else None]),
        ("The paper's tables", [table_one(data), table_two(data), constrained_failures(data), table_exact(data)]),
        ("Slices", [below if have_pairs(data) else None, *by_slice(data), every_slice if have_pairs(data) else None]),
        ("Tests", list(passes(data))),
        ("How texts ended", [what_won(data), won_quality(data), landing(data), stop_reasons(data), guarantees(data)]),
        ("Tokens", [refusals(data), suffixes(data), agreement(data)]),
        ("Cost", [cost(data), fits(data), latencies(data), throughput(data)]),
        ("Failures", [failures(data)]),
    ]
    kept = ((heading, [table for table in tables if table is not None]) for heading, tables in named)
    return [(heading, tables) for heading, tables in kept if tables]
