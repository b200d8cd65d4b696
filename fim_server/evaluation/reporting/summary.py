"""The short form of a report, in Markdown."""

from __future__ import annotations

from fim_server.evaluation.reporting.content import Report
from fim_server.evaluation.reporting.tables.table import markdown

MARKS = {True: "✓", False: "✗", None: "?"}
"""Marks of a check that holds, that fails, and that is open."""


def summary(report: Report) -> str:
    """The short form in Markdown: what was asked for, goals, the main tables, the plots."""
    parts = [f"# {report.title}", report.lead]
    parts += [f"**Note:** {notice}" for notice in report.notices]
    if report.checks:
        parts.append("\n".join(f"- {MARKS[check.holds]} {check.claim}: {check.found}" for check in report.checks))
    parts += [f"![{plot.title}]({plot.key}.svg)\n\n{plot.about}" for plot in report.plots]
    for heading, tables in report.sections:
        brief = [table for table in tables if table.brief]
        if brief:
            parts += [f"## {heading}", *map(markdown, brief)]
    parts.append("## Run")
    parts.append("\n".join(["| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in report.facts)]))
    return "\n\n".join(parts) + "\n"


def _cell(value: str) -> str:
    return value.replace("|", "\\|")
