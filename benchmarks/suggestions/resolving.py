"""``./dev bench resolve``: offers in which the language's checker has findings, and what hiding them changes.

Lines are typed again at three cursors each, in this process; nothing stands right of the cursor on its line. An offer
is right if it agrees with the rest of the line as far as it goes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.report import (
    DONE,
    machine,
    percentile,
    percentiles,
    progress_for,
    publish,
    setting_lines,
    shown,
    version_of,
)
from benchmarks.suggestions.holes import LEXEME
from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.projects import open_folder
from benchmarks.suggestions.recipes import PROMPT_TOKENS, remembered
from fim_server.errors import BenchError
from fim_server.server.checking.checkers import Checkers, LanguageChecker
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.ranking.display import shown as display_of
from fim_server.suggest.ranking.findings import Finding, Kind, with_findings
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from fim_server.text.terminal import Progress, Table
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.worker import CompletionWorker

if TYPE_CHECKING:
    from benchmarks.suggestions.projects import Project as Sources
    from benchmarks.suggestions.projects import Task
    from fim_server.suggest.job import Work

CURSORS = 3
"""Cursors in a line: its start, and two before other lexemes."""

PATIENCE_SECONDS = 60.0
"""Longest wait for a checker that reads a project, and for its findings."""


@dataclass(frozen=True)
class ResolveOptions:
    """Options of ``./dev bench resolve``."""

    folder: list[str]
    language: str
    lines: int
    seed: int
    model: str | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench resolve``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. The checker has to find the projects' dependencies: modules of Go are "
        "downloaded, and the projects are outside of the module cache."
    )
    parser.add_argument("folder", nargs="+", metavar="FOLDER", help="a project")
    parser.add_argument("--language", default="go", help="language of the lines (default: go)")
    parser.add_argument("--lines", type=positive_count, default=24, metavar="N", help="of each project (default: 24)")
    add_seed(parser, "the choice of lines")
    parser.add_argument("--model", metavar="NAME", help="a model folder, hub name, smollm2 or embedded")
    add_json(parser)


def run(options: ResolveOptions) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: A folder has no lines of the language, or there is no checker of it.
        DatasetError: A folder cannot be read.
    """
    setting = {"machine": machine(), "versions": f"fim-server {version_of('fim-server')}"}
    report = Report(setting, options.language)
    with progress_for(options.json) as progress:
        folders = [Path(path).resolve() for path in options.folder]
        asyncio.run(measure(folders, options, report, progress))
    publish(report, options.json)
    return DONE


@dataclass(frozen=True)
class Trial:
    """A cursor with an offer.

    Attributes:
        rest: The rest of the line.
        before: The shown part without the checker, or None.
        after: The shown part with it, or None.
        kinds: Kinds of the findings in the shown part.
        milliseconds: Time of the checker's answer.
        in_time: Whether a suggestion waits as long.
        answer_ms: Time of the request without the checker.
        waited_ms: Time that it waits for the checker; a suggestion of the project's memory does not wait.
    """

    rest: str
    before: str
    after: str | None
    kinds: tuple[str, ...]
    milliseconds: float
    in_time: bool
    answer_ms: float
    waited_ms: float

    def agrees(self, text: str) -> bool:
        """Return whether a shown part agrees with the line."""
        first, several, _ = text.partition("\n")
        rest = self.rest.rstrip()
        return first.rstrip() == rest if several else rest.startswith(first.rstrip())

    @property
    def is_right(self) -> bool:
        return self.agrees(self.before)

    @property
    def is_lost(self) -> bool:
        """Return whether the checker takes a right offer away."""
        return self.is_right and (self.after is None or not self.agrees(self.after))

    @property
    def is_saved(self) -> bool:
        """Return whether the checker hides a wrong offer, or its wrong part."""
        return not self.is_right and (self.after is None or self.agrees(self.after))


@dataclass
class Report:
    """Report: settings and trials by project."""

    setting: dict[str, str]
    language: str
    projects: dict[str, list[Trial]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        yield ""
        names = (
            self.language,
            "shown",
            "wrong",
            "hidden or cut",
            "in time",
            "right",
            "lost",
            "checker, ms",
            "answer, ms",
        )
        everything = [trial for trials in self.projects.values() for trial in trials]
        rows = [row_of(name, trials) for name, trials in [*self.projects.items(), ("all", everything)]]
        yield Table(names, rows, numbers=range(1, len(names)))
        yield ""
        found = Counter((kind, trial.is_right) for trial in everything for kind in trial.kinds)
        kinds = [(kind, str(found[kind, False]), str(found[kind, True])) for kind in Kind]
        yield Table(("finding in", "wrong offers", "right ones"), kinds, numbers=range(1, 3))


def row_of(name: str, trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return a project's row. The checker's times are p50 and p95, the answer's p95 without and with it."""
    wrong, saved = [one for one in trials if not one.is_right], [one for one in trials if one.is_saved]
    times = percentiles([one.milliseconds for one in trials], 0.5, 0.95)
    without = percentile([one.answer_ms for one in trials], 0.95)
    waiting = percentile([one.answer_ms + one.waited_ms for one in trials], 0.95)
    right, lost = len(trials) - len(wrong), sum(one.is_lost for one in trials)
    return (
        name,
        str(len(trials)),
        str(len(wrong)),
        share(len(saved), len(wrong)),
        share(sum(one.in_time for one in saved), len(wrong)),
        str(right),
        share(lost, right),
        " / ".join(map(shown, times)),
        f"{shown(without)} / {shown(waiting)}",
    )


def share(part: int, whole: int) -> str:
    """Return a count and its share.

    >>> share(1, 8)
    '1 (12.5 %)'
    """
    return f"{part} ({100 * part / max(1, whole):.1f} %)"


async def measure(folders: Sequence[Path], options: ResolveOptions, report: Report, progress: Progress) -> None:
    """Type in all projects."""
    models = SharedModels()
    for folder in folders:
        sources = open_folder(str(folder), options.language)
        draw_lines(sources, options.lines, options.seed)
        progress.say(f"{sources.name}: {len(sources.tasks)} lines")
        checkers = Checkers(lambda: True, partial(list, [folder.as_uri()]), lambda language: {}, progress.say)
        checker = checkers.checker(options.language, f"{folder.as_uri()}/file")
        if checker is None:
            raise BenchError(f"{options.language}: there is no checker")
        try:
            report.projects[sources.name] = await Trials(sources, folder, checker, options, models).run()
        finally:
            checkers.close()


class Trials:
    """Trials in one project."""

    def __init__(
        self, sources: Sources, folder: Path, checker: LanguageChecker, options: ResolveOptions, models: SharedModels
    ) -> None:
        self._sources, self._folder, self._checker, self._models = sources, folder, checker, models
        self._settings = ServerSettings(
            model=options.model, prefetch=False, deadline_ms=None, prompt_tokens=PROMPT_TOKENS
        )
        self._chance = random.Random(f"resolving {sources.name} {options.seed}")

    async def run(self) -> list[Trial]:
        """Return the trials of all lines."""
        found: list[Trial] = []
        with remembered(self._sources) as (root, project):
            worker = CompletionWorker(self._settings, self._models, project)
            await asyncio.wrap_future(worker.load())
            for task in self._sources.tasks:
                uri = (root / task.file).as_uri()
                project.opened(uri)
                found += [trial async for trial in self._trials(worker, task, uri)]
                project.forget(uri)
            worker.close()
        return found

    async def _trials(self, worker: CompletionWorker, task: Task, uri: str) -> AsyncIterator[Trial]:
        starts = [match.start() for match in LEXEME.finditer(task.wanted)]
        further = self._chance.sample(starts[1:], min(CURSORS - 1, len(starts) - 1))
        for at in sorted({starts[0], *further}):
            split = Split(task.before + task.wanted[:at], task.after)
            single_line = wants_single_line(Place.of(split), self._settings)
            request = Request(uri, split, task.language, task.file, False, single_line, self._settings)
            started = time.perf_counter()
            work = await asyncio.wrap_future(worker.submit(request, True).future)
            answer_ms = 1000 * (time.perf_counter() - started)
            if work is not None and work.answer.suggestions:
                trial = await self._trial(work, split, task, task.wanted[at:], answer_ms)
                if trial is not None:
                    yield trial

    async def _trial(self, work: Work, split: Split, task: Task, rest: str, answer_ms: float) -> Trial | None:
        offer = work.answer.suggestions[0]
        closers, least = split.right[: offer.covered], self._settings.min_confidence
        before = display_of(offer, closers, least)
        if before is None:
            return None
        await self._findings(task, split.joined(""), 0)  # as where the cursor rests
        started = time.perf_counter()
        findings = await self._findings(task, "".join(offer.document(split)), split.left.count("\n"))
        seconds = time.perf_counter() - started
        after = display_of(with_findings(offer, split.left, findings, len(before.text)), closers, least)
        at = len(split.left)
        kinds = {str(one.kind) for one in findings if at < one.end <= at + len(before.text)}
        longest = self._checker.longest_seconds
        return Trial(
            rest,
            before.text,
            None if after is None else after.text,
            tuple(sorted(kinds)),
            milliseconds=1000 * seconds,
            in_time=seconds <= longest,
            answer_ms=answer_ms,
            waited_ms=0.0 if work.origin == "memory" else 1000 * min(seconds, longest),
        )

    async def _findings(self, task: Task, text: str, line: int) -> Sequence[Finding]:
        uri = (self._folder / task.file).as_uri()
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        return await self._checker.findings(uri, text, range(line, line + 1), deadline) or ()
