"""Reports of an evaluation: made as the command line makes them, and read back."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

from fim_server.cli import evaluate
from fim_server.evaluation.records import Record, RunInfo
from fim_server.evaluation.reporting import report
from fim_server.evaluation.reporting.files import REPORT_PAGE
from fim_server.evaluation.reporting.measured import measured
from fim_server.evaluation.reporting.tables.table import Table
from support.evaluation.evaluation_records import run_info


def rows_of(table: Table | None) -> list[dict[str, str]]:
    """A table's rows by column."""
    assert table is not None
    assert all(len(row) == len(table.header) for row in table.rows), table.title
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


class Page(HTMLParser):
    """References and contents of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.identifiers: list[str] = []
        self.scripts: list[str] = []
        self.tags: Counter[str] = Counter()
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        for name, value in attributes:
            if name == "id":
                self.identifiers.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster", "background", "style"):
                found = re.findall(r"url\(([^)]*)\)", value or "") if name == "style" else [value or ""]
                self.references += found
            assert not name.startswith("on"), f"a handler in the page: {name}"

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside == "style":
            assert "url(" not in data
            assert "@import" not in data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def page_of(found: Sequence[Record], tmp_path: Path, info: RunInfo | None = None) -> str:
    """The text of the report on some records."""
    report.write_report(measured([info or run_info()], found), tmp_path)
    return (tmp_path / REPORT_PAGE).read_text(encoding="utf-8")


def run_parsed(add: Callable[[argparse.ArgumentParser], None], *arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add(parser)
    namespace = parser.parse_args([str(argument) for argument in arguments])
    found: int = namespace.run(namespace)
    return found


def run_report(*arguments: str | Path) -> int:
    return run_parsed(evaluate.add_report, *arguments)


def run_compare(*arguments: str | Path) -> int:
    return run_parsed(evaluate.add_compare, *arguments)
