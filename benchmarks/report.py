"""Shared parts of benchmark reports: percentiles, figures, tables and pages, and the machine in words.

A report is printed as tables or as one JSON object (:func:`publish`); some are written as pages and plots. Progress is
:class:`fim_server.text.terminal.Progress` without a thread, which would take a share of the measured time.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fim_server.errors import BenchError
from fim_server.text.terminal import Progress, Table, plain_lines, show

DONE = 0

PAGE_WIDTH = 118
"""Characters of a page's lines at most; a table's may be longer."""


class Report(Protocol):
    """Findings of a benchmark."""

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""


def progress_for(as_json: bool) -> Progress:
    """Return the progress of a benchmark: as lines for people, and with ``--json`` on a terminal only."""
    return Progress(plain=not as_json, ticks=False)


def publish(report: Report, as_json: bool, files: Mapping[str, Callable[[], str]] | None = None) -> None:
    """Print a report, and write its files.

    Args:
        report: The report.
        as_json: Whether to print one JSON object in place of tables.
        files: What makes the text of each file, by path.

    Raises:
        BenchError: A file cannot be written.
    """
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        show(report.parts())
    for path, text in (files or {}).items():
        try:
            Path(path).write_text(text(), encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{path}: {error.strerror}") from error


def lines(report: Report) -> Iterator[str]:
    """A report in plain lines, its tables aligned."""
    return plain_lines(report.parts())


# --- figures ------------------------------------------------------------------------------------------------------


def percentiles(values: Sequence[float], *shares: float) -> tuple[float | None, ...]:
    """Percentiles by nearest rank: the least value that at least such a share of the values does not exceed.

    So each is a measured value. None of no values.

    Args:
        values: In any order and unit.
        shares: Above 0, 1 at most; 1 gives the largest value.
    """
    if not values:
        return (None,) * len(shares)
    return tuple(float(value) for value in np.quantile(np.asarray(values, float), shares, method="inverted_cdf"))


def percentile(values: Sequence[float], share: float) -> float | None:
    """One of the :func:`percentiles`."""
    return percentiles(values, share)[0]


def shown(value: float | None) -> str:
    """A figure with three significant digits, and never more than three after the point."""
    if value is None:
        return "-"
    digits = 0 if value == 0 else 2 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(digits, 0), 3)}f}"


def megabytes(size: int | None) -> float | None:
    """Bytes in millions; None of None."""
    return None if size is None else size / 1e6


# --- the machine and the work, in words ---------------------------------------------------------------------------


def machine() -> str:
    """The processor, its load and the interpreter, in words."""
    load = load_average()
    load_text = f", load {load:.1f}" if load is not None else ""
    return f"{processor()}, {os.cpu_count()} CPUs{load_text}, {platform.system()}, Python {platform.python_version()}"


def load_average() -> float | None:
    """Processes that ran or waited in the last minute, on average; None where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def processor() -> str:
    """The CPU's name."""
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def kind_of_time(cpu_time: bool) -> str:
    """Describe the time that a benchmark's clock counts, in words."""
    return "processor time of this process" if cpu_time else "the clock's"


def version_of(name: str) -> str:
    """The version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def setting_lines(setting: Mapping[str, str]) -> Iterator[str]:
    """The machine and the work, a line each."""
    return (f"{name}: {value}" for name, value in setting.items())


# --- pages of `docs/results` --------------------------------------------------------------------------------------


def page_head(title: str, setting: Mapping[str, str], explained: str) -> Iterator[str]:
    """Yield the lines that begin a page: title, command, settings, and a paragraph.

    Args:
        title: The title, without the heading's mark.
        setting: The machine and the work, in words, with the ``command``.
        explained: Meaning of the figures, one paragraph with any line breaks.
    """
    yield from (f"# {title}", "", f"    {setting['command']}", "")
    yield from (f"- {name}: {value}" for name, value in setting.items() if name != "command")
    yield from ("", *paragraph(explained), "")


def paragraph(text: str, indent: str = "") -> list[str]:
    """A text in lines of a page; those after the first are indented."""
    return textwrap.wrap(text.strip(), PAGE_WIDTH, subsequent_indent=indent)


def page(lines_of: Iterable[str]) -> str:
    """Lines as a file's text."""
    return "\n".join([*lines_of, ""])
