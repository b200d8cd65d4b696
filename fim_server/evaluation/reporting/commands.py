"""``fim-server eval report``, ``compare`` and ``table``: what they print.

What draws and counts (matplotlib, scipy, Jinja) is imported when a report is made, not when a command line is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fim_server.errors import MissingLibrary
from fim_server.evaluation.reporting.files import COMPARE_PAGE, REPORT_PAGE
from fim_server.evaluation.reporting.summary import MARKS, summary


def run_report(runs: Sequence[str | Path], out: str | Path, json_: bool = False) -> int:
    """``fim-server eval report``; returns the exit status. Raises RecordError for runs that cannot be read."""
    with eval_extra():
        from fim_server.evaluation.reporting.measured import read_measured
        from fim_server.evaluation.reporting.report import as_json, write_report

        data = read_measured(runs)
        report = write_report(data, out)
    if json_:
        print(json.dumps(as_json(report, data)))
        return 0
    for check in report.checks:
        print(f"{MARKS[check.holds]} {check.claim}: {check.found}")
    for notice in report.notices:
        print(f"! {notice}")
    tables = sum(len(some) for _, some in report.sections)
    print(f"{data.count:,} samples, {len(data.modes)} modes, {tables} tables:")
    print(Path(out) / REPORT_PAGE)
    return 0


def run_compare(a: str | Path, b: str | Path, out: str | Path | None = None, json_: bool = False) -> int:
    """``fim-server eval compare``; returns the exit status. Raises RecordError for runs that cannot be compared."""
    with eval_extra():
        from fim_server.evaluation.reporting.compare import as_json, report_on, write
        from fim_server.evaluation.reporting.joined import join

        joined = join(a, b)
        report = report_on(joined)
        numbers = as_json(joined, report)
        if out is not None:
            write(joined, report, numbers, out)
    if json_:
        print(json.dumps(numbers))
    elif out is None:
        print(summary(replace(report, plots=[])), end="")
    else:
        for check in report.checks:
            print(f"{check.claim}: {check.found}")
        print(Path(out) / COMPARE_PAGE)
    return 0


def run_table(runs: Sequence[str], common: bool, into: Path | None, block: str, json_: bool) -> int:
    """``fim-server eval table``; returns the exit status. Raises RecordError for runs that cannot be read."""
    with eval_extra():
        from fim_server.evaluation.reporting.models import as_text, put_into, read_rows, tables
        from fim_server.evaluation.reporting.tables.table import as_json

        made = tables(read_rows(runs), common)
    if into is not None:
        put_into(into, block, as_text(made))
        print(into)
    elif json_:
        print(json.dumps([as_json(table) for table in made]))
    else:
        print(as_text(made), end="")
    return 0


@contextmanager
def eval_extra() -> Iterator[None]:
    """Says in one line how to get a library of the extra ``eval`` that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fim_server"):
            raise
        raise MissingLibrary(
            f"this needs {error.name}, which is not installed: pip install 'fim-server[eval]' brings it"
        ) from None
