"""A table of a report as text in cells, of which Markdown, HTML and JSON are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fim_server.evaluation.reporting.tables.text import printable


@dataclass(frozen=True)
class Table:
    """A table whose cells are text.

    Attributes:
        key: A name for links and programs.
        words: Columns that hold words, from the left; the others hold numbers.
        note: How to read it, in a sentence or two.
        brief: Whether it belongs into the summary.
        long: Whether it is folded away on the page until it is asked for.
    """

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    note: str = ""
    brief: bool = False
    long: bool = False


def markdown(table: Table) -> str:
    """A table in Markdown, with its note."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"

    marks = ["---" if index < table.words else "---:" for index in range(len(table.header))]
    body = [line(row) for row in table.rows] or [line(["none", *([""] * (len(table.header) - 1))])]
    parts = [f"**{table.title}**", "", line(table.header), "|" + "|".join(marks) + "|", *body]
    return "\n".join([*parts, "", table.note] if table.note else parts)


def as_json(table: Table) -> dict[str, Any]:
    """A table for programs: cells as they are printed."""
    return {"key": table.key, "title": table.title, "header": table.header, "rows": table.rows, "note": table.note}
