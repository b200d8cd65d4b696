"""The report on one or more runs: what there is to say about their results, and the files that say it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.judging.programs import ENGINE
from fim_server.evaluation.records import RunInfo
from fim_server.evaluation.reporting import page
from fim_server.evaluation.reporting.content import Card, Report
from fim_server.evaluation.reporting.figures import plots
from fim_server.evaluation.reporting.files import REPORT_PAGE, REPORT_SUMMARY, write_files
from fim_server.evaluation.reporting.measured import PYTHON, Measured
from fim_server.evaluation.reporting.numbers import estimates, finite
from fim_server.evaluation.reporting.statistics import proportion
from fim_server.evaluation.reporting.summary import summary
from fim_server.evaluation.reporting.tables.goals import checks
from fim_server.evaluation.reporting.tables.sections import sections
from fim_server.evaluation.reporting.tables.table import as_json as table_as_json
from fim_server.evaluation.reporting.tables.text import percent, shortened

HASH_DIGITS = 12


def write_report(data: Measured, out: str | Path) -> Report:
    """Write the page, the summary and the plots of ``data`` into a folder. The same data give the same files.

    Raises RecordError if they cannot be written.
    """
    report, text = page.with_samples(report_on(data), data, failures_first(data), "fim-server eval report")
    write_files(out, {REPORT_PAGE: text, REPORT_SUMMARY: summary(report), **report.plot_files()})
    return report


def report_on(data: Measured) -> Report:
    """Report on some data."""
    cards = []
    for mode, columns in data.modes.items():
        estimate = proportion(columns.success[columns.present])
        count, successes = estimate.count, int(columns.success[columns.present].sum())
        exact = float(columns.exact[columns.present].mean()) if count else math.nan
        interval = f"{100 * estimate.low:.1f}–{100 * estimate.high:.1f}" if count else "no samples"
        more = f"{interval}; {successes:,} of {count:,}; exact match {percent(exact)}"
        cards.append(Card(f"{mode}: programs that parse", percent(estimate.value), more, mode == "constrained"))
    models = distinct(info.model for info in data.infos)
    return Report(
        title=f"Fill-in-the-middle evaluation: {shortened(models)}",
        lead=f"{data.count:,} samples of {shortened(', '.join(data.sets)) or 'no set'}, each in "
        f"{', '.join(data.modes) or 'no mode'}, on the same prompts and seeds.",
        facts=facts(data.infos),
        notices=notices(data),
        cards=cards,
        checks=checks(data) if data.count else [],
        plots=plots.plots(data),
        sections=sections(data) if data.count else [],
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
    """Return the notes that stand before the figures."""
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
    found += by_the_engine(data.infos)
    if data.repeated:
        found.append(f"{data.repeated:,} results came twice; the last of each counts.")
    differing = sum(len(hashes - {None}) > 1 for hashes in _prompts(data))
    if differing:
        found.append(f"The modes of {differing:,} samples had different prompts: their comparison is not a fair one.")
    return found


def judged_by(info: RunInfo) -> str:
    """Return the judge of each language."""
    own = {PYTHON: f"ast.parse of Python {info.judge}"} if info.judge else {}
    return "; ".join(f"{language}: {judge}" for language, judge in {**own, **info.judges}.items()) or "not said"


def versions_of(info: RunInfo) -> str:
    """The versions of the languages' grammars."""
    own = {PYTHON: info.language_version or "newest"} if PYTHON in info.languages else {}
    found = {**own, **info.language_versions}
    if list(found) == [PYTHON]:
        return found[PYTHON]
    return ", ".join(f"{language} {version}" for language, version in found.items()) or "none"


def by_the_engine(infos: Sequence[RunInfo]) -> list[str]:
    """The notice on the languages of which some run had the engine judge its own texts; none where there is none."""
    own = sorted({language for info in infos for language, judge in info.judges.items() if judge == ENGINE})
    if not own:
        return []
    told = f"Texts in {', '.join(own)} were judged by the engine itself, not by the language's own parser"
    return [f"{told}: that constrained ones parse says nothing there."]


def _prompts(data: Measured) -> Iterator[set[str | None]]:
    for place in range(data.count):
        rows = (columns.records[place] for columns in data.modes.values())
        yield {record.prompt_hash for record in rows if record is not None}


def facts(infos: Sequence[RunInfo]) -> list[tuple[str, str]]:
    """Return the runs' options in words, with several values where runs differ."""

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
        ("prompt", said(lambda info: f"at most {info.max_prompt_tokens:,} tokens, {contexts_of(info)}")),
        ("runtime", said(lambda info: info.runtime)),
        ("temperature, seed", said(lambda info: f"{info.temperature:g}, {info.seed}")),
        ("device, batch", said(lambda info: f"{info.machine.get('device', info.device)}, {info.batch}")),
        ("machine", said(lambda info: _of_machine(info, "system", "processor"))),
        ("cores", said(lambda info: _of_machine(info, "cores"))),
        ("threads", said(lambda info: _of_machine(info, "threads"))),
        ("languages", said(lambda info: ", ".join(info.languages))),
        ("judged by", said(judged_by)),
        ("language version", said(versions_of)),
        ("versions", said(lambda info: ", ".join(f"{name} {version}" for name, version in info.versions.items()))),
        ("begun", said(lambda info: info.started)),
    ]
    return [(name, value) for name, value in found if value]


def contexts_of(info: RunInfo) -> str:
    """Return the contexts that the model read, in words."""
    read = {"both": "both contexts", "left": "an empty suffix", "left-alone": "the left context without control tokens"}
    healed = "healed" if info.healing else "not healed"
    return f"{read.get(info.contexts, info.contexts)}, {healed}{', one line' if info.single_line else ''}"


def _of_machine(info: RunInfo, *names: str) -> str:
    return ", ".join(str(info.machine[name]) for name in names if name in info.machine)


def distinct(values: Any) -> str:
    """Values that differ, each once."""
    return " / ".join(dict.fromkeys(str(value) for value in values))


def as_json(report: Report, data: Measured) -> dict[str, Any]:
    """The report for programs: main figures as numbers, tables as they are printed."""
    found: dict[str, Any] = finite(
        {
            "title": report.title,
            "samples": data.count,
            "settings": dict(report.facts),
            "notices": report.notices,
            "checks": [{"claim": c.claim, "holds": c.holds, "found": c.found} for c in report.checks],
            "figures": estimates(data),
            "resampled": data.cluster_reason,
            "tables": [table_as_json(table) for _, some in report.sections for table in some],
        }
    )
    return found
