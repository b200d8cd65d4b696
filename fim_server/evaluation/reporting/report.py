"""``fim-server eval report``: runs as a page to browse, a summary in Markdown, and plots.

What draws and counts (matplotlib, scipy, Jinja) is loaded only when a report is made, and is an optional extra.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.errors import RecordError
from fim_server.evaluation.records import RunInfo

if TYPE_CHECKING:
    from fim_server.evaluation.reporting.figures import Plot
    from fim_server.evaluation.reporting.measured import Measured
    from fim_server.evaluation.reporting.page import Card
    from fim_server.evaluation.reporting.tables import Check, Table

PAGE, SUMMARY = "report.html", "summary.md"

HASH_DIGITS = 12


@dataclass(frozen=True)
class Report:
    """What a report says, before it is a page.

    Attributes:
        facts: What the runs were asked for.
        notices: What a reader should know first: what is missing, what could not be measured.
    """

    title: str
    lead: str
    facts: list[tuple[str, str]]
    notices: list[str]
    cards: list[Card]
    checks: list[Check]
    plots: list[Plot]
    sections: list[tuple[str, list[Table]]]


def run_report(runs: Sequence[str | Path], out: str | Path, json_: bool = False) -> int:
    """``fim-server eval report``; returns the exit status. Raises RecordError for runs that cannot be read."""
    with eval_extra():
        from fim_server.evaluation.reporting import tables
        from fim_server.evaluation.reporting.measured import read_measured

        data = read_measured(runs)
        report = write_report(data, out)
    if json_:
        print(json.dumps(as_json(report, data)))
        return 0
    for check in report.checks:
        print(f"{_MARKS[check.holds]} {check.claim}: {check.found}")
    for notice in report.notices:
        print(f"! {notice}")
    print(f"{data.count:,} samples, {len(data.modes)} modes, {sum(len(t) for _, t in tables.sections(data))} tables:")
    print(Path(out) / PAGE)
    return 0


@contextmanager
def eval_extra() -> Iterator[None]:
    """Says in one line how to get a library of the extra ``eval`` that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fim_server"):
            raise
        raise RecordError(
            f"this needs {error.name}, which is not installed: pip install 'fim-server[eval]' brings it"
        ) from None


def write_report(data: Measured, out: str | Path) -> Report:
    """Write the page, the summary and the plots of ``data`` into a folder. The same data give the same files.

    Raises RecordError if they cannot be written.
    """
    from fim_server.evaluation.reporting import page

    report = report_on(data)
    samples, left_out = page.packed(data, failures_first(data))
    if left_out:
        report.notices.append(left_out)
    text = page.html(
        page.Page(
            title=report.title,
            lead=report.lead,
            facts=report.facts,
            variants=list(data.modes),
            data=samples,
            cards=report.cards,
            notices=report.notices,
            checks=report.checks,
            plots=report.plots,
            sections=report.sections,
            footer="Made by fim-server eval report. Nothing on this page is fetched from anywhere.",
        )
    )
    files = {f"{plot.key}.svg": plot.file() for plot in report.plots}
    write_files(out, {PAGE: text, SUMMARY: summary(report), **files})
    return report


def report_on(data: Measured) -> Report:
    """What there is to say about some data."""
    from fim_server.evaluation.reporting import figures, tables
    from fim_server.evaluation.reporting.page import Card
    from fim_server.evaluation.reporting.statistics import wilson

    cards = []
    for mode, columns in data.modes.items():
        count = int(columns.present.sum())
        successes = int(columns.success[columns.present].sum())
        exact = float(columns.exact[columns.present].mean()) if count else math.nan
        estimate = wilson(successes, count)
        interval = f"{100 * estimate.low:.1f}–{100 * estimate.high:.1f}" if count else "no samples"
        more = f"{interval}; {successes:,} of {count:,}; exact match {tables.percent(exact)}"
        cards.append(Card(f"{mode}: programs that parse", tables.percent(estimate.value), more, mode == "constrained"))
    models = distinct(info.model for info in data.infos)
    return Report(
        title=f"Fill-in-the-middle evaluation: {tables.shortened(models)}",
        lead=f"{data.count:,} samples of {tables.shortened(', '.join(data.sets)) or 'no set'}, each in "
        f"{', '.join(data.modes) or 'no mode'}, on the same prompts and seeds.",
        facts=facts(data.infos),
        notices=notices(data),
        cards=cards,
        checks=tables.checks(data) if data.count else [],
        plots=figures.plots(data),
        sections=tables.sections(data) if data.count else [],
    )


def failures_first(data: Measured) -> list[int]:
    """The samples by what went wrong: constrained failures, failures of the other modes, then what is not exact."""
    important = list(data.modes.values())[::-1]  # constrained is the last

    def rank(place: int) -> tuple[bool, ...]:
        successes = (bool(columns.success[place]) or not columns.present[place] for columns in important)
        matches = (bool(columns.exact[place]) or not columns.present[place] for columns in important)
        return (*successes, *matches)

    return sorted(range(data.count), key=rank)


def notices(data: Measured) -> list[str]:
    """What a reader should know before the figures."""
    found = []
    expected = sum(info.samples for info in data.infos)
    complete, _ = data.pairs(list(data.modes))
    asked = {mode for info in data.infos for mode in info.modes}
    whole = int(complete.sum()) if asked <= set(data.modes) else 0
    if not data.count:
        found.append("There are no results yet.")
    elif whole < expected:
        found.append(f"Not finished: {whole:,} of {expected:,} samples have a result in every mode.")
    elif whole < data.count:
        found.append(
            f"{data.count - whole:,} samples lack a result in some mode; comparisons are on those that have both."
        )
    errors = {mode: int((columns.error & columns.present).sum()) for mode, columns in data.modes.items()}
    if any(errors.values()):
        said = ", ".join(f"{count:,} {mode}" for mode, count in errors.items() if count)
        found.append(f"Could not be measured, and counted as failures: {said}.")
    if data.repeated:
        found.append(f"{data.repeated:,} results came twice; the last of each counts.")
    differing = sum(len(hashes - {None}) > 1 for hashes in _prompts(data))
    if differing:
        found.append(f"The modes of {differing:,} samples had different prompts: their comparison is not a fair one.")
    return found


def _prompts(data: Measured) -> Iterator[set[str | None]]:
    for place in range(data.count):
        rows = (columns.records[place] for columns in data.modes.values())
        yield {record.prompt_hash for record in rows if record is not None}


def facts(infos: Sequence[RunInfo]) -> list[tuple[str, str]]:
    """What the runs were asked for, in words; several values where runs differ."""
    from fim_server.evaluation.reporting.tables import shortened

    def said(read: Any) -> str:
        return shortened(distinct(read(info) for info in infos))

    found = [
        ("model", said(lambda info: info.model)),
        ("weights", said(lambda info: info.model_sha256[:HASH_DIGITS])),
        ("format", said(lambda info: info.format)),
        ("data", said(lambda info: ", ".join(Path(one.path).name for one in info.data))),
        ("data, SHA-256", said(lambda info: ", ".join(one.sha256[:HASH_DIGITS] for one in info.data))),
        ("budget", said(lambda info: f"{info.budget:,} tokens")),
        ("landing", said(lambda info: "on" if info.landing else "off")),
        ("prompt", said(lambda info: f"at most {info.max_prompt_tokens:,} tokens")),
        ("temperature, seed", said(lambda info: f"{info.temperature:g}, {info.seed}")),
        ("device, batch", said(lambda info: f"{info.machine.get('device', info.device)}, {info.batch}")),
        ("machine", said(lambda info: _of_machine(info, "system", "processor"))),
        ("cores", said(lambda info: _of_machine(info, "cores"))),
        ("threads", said(lambda info: _of_machine(info, "threads"))),
        ("language version", said(lambda info: info.language_version or "newest")),
        ("versions", said(lambda info: ", ".join(f"{name} {version}" for name, version in info.versions.items()))),
        ("begun", said(lambda info: info.started)),
    ]
    return [(name, value) for name, value in found if value]


def _of_machine(info: RunInfo, *names: str) -> str:
    return ", ".join(str(info.machine[name]) for name in names if name in info.machine)


def distinct(values: Any) -> str:
    """Values that differ, each once."""
    return " / ".join(dict.fromkeys(str(value) for value in values))


_MARKS = {True: "✓", False: "✗", None: "?"}


def summary(report: Report) -> str:
    """The short form in Markdown: what was asked for, goals, the main tables, the plots."""
    from fim_server.evaluation.reporting.tables import markdown

    parts = [f"# {report.title}", report.lead]
    parts += [f"**Note:** {notice}" for notice in report.notices]
    if report.checks:
        parts.append("\n".join(f"- {_MARKS[check.holds]} {check.claim}: {check.found}" for check in report.checks))
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


def as_json(report: Report, data: Measured) -> dict[str, Any]:
    """The report for programs: main figures as numbers, tables as they are printed."""
    from fim_server.evaluation.reporting import tables

    found: dict[str, Any] = tables.finite(
        {
            "title": report.title,
            "samples": data.count,
            "settings": dict(report.facts),
            "notices": report.notices,
            "checks": [{"claim": c.claim, "holds": c.holds, "found": c.found} for c in report.checks],
            "figures": tables.estimates(data),
            "resampled": data.cluster_reason,
            "tables": [tables.as_json(table) for _, some in report.sections for table in some],
        }
    )
    return found


def write_files(out: str | Path, files: dict[str, str]) -> None:
    """Write texts into a folder, which is made. Raises RecordError where that cannot be done."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise RecordError(f"{out}: {error.strerror or error}") from None
