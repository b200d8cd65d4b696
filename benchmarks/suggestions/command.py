"""``./dev bench suggestions``: real lines typed again through the protocol, and verdicts on the suggestions.

Each project has a workspace without the files that are typed in. Each of two sweeps has a server process of its own, so
that neither knows from the other which text comes. In one sweep everything is typed and every suggestion judged. In the
other the user accepts right suggestions. A copying rule is judged beside them on the same lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.report import DONE, machine, progress_for, publish, version_of
from benchmarks.server.command import shared
from benchmarks.suggestions.edit_sessions import SWEEPS, draw_sessions, play_session
from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.parts import CURSOR, PARTS, setting_named, settings_without
from benchmarks.suggestions.playing import LINE_SWEEPS, Record, play
from benchmarks.suggestions.projects import (
    EditSession,
    Project,
    Task,
    open_folder,
    open_package,
    open_releases,
    open_set,
)
from benchmarks.suggestions.report import Report
from benchmarks.suggestions.suggesting import Copying, Suggester, serving
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.errors import BenchError
from fim_server.text.terminal import Progress
from training.corpora.lists import SUGGESTION_USES

HUMAN, NONE = "human", "none"

LINES = 60


@dataclass(frozen=True)
class SuggestionsOptions:
    """Options of ``./dev bench suggestions``."""

    path: list[str] | None
    package: list[str] | None
    edits: list[list[str]] | None
    set: str | None
    edited: bool
    language: str
    lines: int
    seed: int
    pace: str
    without: list[str] | None
    setting: list[str] | None
    model: str | None
    minutes: float | None
    machine: str | None
    json: bool
    output: str | None
    records: str | None

    @property
    def settings(self) -> dict[str, object]:
        """The server's settings.

        Raises:
            BenchError: There is none of that name or value, or a part cannot be left out.
        """
        # Without a pace no key comes during the pause before a request.
        settings: dict[str, object] = {} if self.pace == HUMAN else {"debounceMs": 0}
        for given in self.setting or ():
            settings |= setting_named(given)
        return settings | settings_without(self.without or ())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench suggestions``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input, a part that cannot be left out among it. A key counts as saved where "
        "accepting took its place: 1 - (keys + acceptances) / keys of typing alone."
    )
    parser.add_argument(
        "--path",
        action="append",
        metavar="FOLDER",
        help="a project to type in, whose other files are the workspace; may be given several times",
    )
    parser.add_argument(
        "--package", action="append", metavar="NAME[==VERSION]", help="an installed distribution as a project"
    )
    parser.add_argument(
        "--set",
        choices=SUGGESTION_USES,
        help="the projects of that set in datasets/suggestions, fetched from their registry into .work/suggestions",
    )
    parser.add_argument(
        "--edited",
        action="store_true",
        help="edit the projects of --set from an older release, where the list has one, instead of typing lines",
    )
    parser.add_argument(
        "--language", default=PYTHON, metavar="NAME", help="a language of the package (default: %(default)s)"
    )
    parser.add_argument(
        "--edits",
        action="append",
        nargs=2,
        metavar=("OLD", "NEW"),
        help="two releases of a project: files of OLD are edited to those of NEW, in sessions with jumps",
    )
    parser.add_argument(
        "--lines",
        type=positive_count,
        default=LINES,
        metavar="N",
        help=f"lines that are typed in all, as many in each project (default: {LINES})",
    )
    add_seed(parser, "the choice of lines")
    parser.add_argument(
        "--pace",
        choices=(NONE, HUMAN),
        default=NONE,
        help="none: every answer is waited for (default); human: a second after the file is opened, a key every 150 to "
        "250 ms, and what it overtakes is cancelled",
    )
    parser.add_argument(
        "--without",
        action="append",
        choices=list(PARTS),
        help="leave a part of the server out; may be given several times",
    )
    parser.add_argument(
        "--setting",
        action="append",
        metavar="NAME=VALUE",
        help="a setting of the server, as editors name it; may be given several times",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="a model folder, hub name, smollm2 or embedded (default: the first of these two that is there)",
    )
    parser.add_argument(
        "--minutes", type=float, metavar="N", help="end after that time, and report what there is by then"
    )
    parser.add_argument(
        "--machine", metavar="TEXT", help="how the report calls this machine (default: its processor and its load)"
    )
    add_json(parser)
    parser.add_argument("--output", metavar="FILE.md", help="write the tables as Markdown")
    parser.add_argument("--records", metavar="FILE.jsonl", help="write every request, one JSON object a line")


def run(options: SuggestionsOptions) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: There is nothing to type, the server does not start or answer, or a result cannot be written.
        DatasetError: A project cannot be read.
    """
    settings = options.settings
    with progress_for(options.json) as progress:
        report = measure(options, settings, progress)
    files: dict[str, Callable[[], str]] = {}
    if options.output is not None:
        files[options.output] = report.as_markdown
    if options.records is not None:
        files[options.records] = lambda: records_text(report.records)
    publish(report, options.json, files)
    return DONE


def records_text(records: Iterable[Record]) -> str:
    """Records as JSON Lines."""
    return "".join(json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in records)


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(options: SuggestionsOptions, settings: dict[str, object], progress: Progress) -> Report:
    """Type in all projects.

    Raises:
        BenchError: There is nothing to type, or the server does not start or answer.
        DatasetError: A project cannot be read.
    """
    progress.say("choosing lines")
    projects = list(choose(options, progress.say))
    report = Report(setting(options, settings, projects))
    asyncio.run(Measuring(options, settings, report, progress).measure_all(projects))
    if not report.efforts and not report.records:
        raise BenchError("nothing was typed in that time")
    return report


def choose(options: SuggestionsOptions, say: Callable[[str], None]) -> Iterator[Project]:
    """The projects, each with its lines.

    Raises:
        BenchError: None is named, one is not there or has nothing to type, or two have one name.
        DatasetError: One cannot be read.
    """
    language = options.language
    plain = [open_folder(path, language) for path in options.path or ()]
    plain += [open_package(one) for one in options.package or ()]
    edited = [(open_folder(old, language), open_folder(new, language)) for old, new in options.edits or ()]
    if options.set is not None and options.edited:
        edited += open_releases(language, options.set, say)
    elif options.set is not None:
        plain += open_set(language, options.set, say)
    names = [project.name for project in plain] + [old.name for old, _ in edited]
    if not names:
        raise BenchError("nothing to type in: --set, --path, --package or --edits expected")
    if twice := {name for name in names if names.count(name) > 1}:
        raise BenchError(f"{min(twice)}: two projects of this name")
    shares = iter(shared(options.lines, len(names)))
    for project in plain:
        draw_lines(project, next(shares), options.seed)
        yield project
    for old, new in edited:
        old.sessions = draw_sessions(old, new, next(shares), options.seed)
        yield old


class Measuring:
    """A measurement under way."""

    def __init__(
        self, options: SuggestionsOptions, settings: dict[str, object], report: Report, progress: Progress
    ) -> None:
        self._options = options
        self._settings = settings
        self._report = report
        self._progress = progress
        self._ends = None if options.minutes is None else time.monotonic() + 60 * options.minutes
        self._parts = 0
        """Sweeps through a project that are still to come: each has an equal part of the time that is left."""

    async def measure_all(self, projects: Sequence[Project]) -> None:
        """Type in all projects, in both ways."""
        sweeps = [(project, sweep) for project in projects for sweep in (SWEEPS if project.sessions else LINE_SWEEPS)]
        self._parts = len(sweeps)
        for project, sweep in sweeps:
            await self._sweep(project, sweep)

    async def _sweep(self, project: Project, sweep: str) -> None:
        """Type in a project in one way, with a server of its own."""
        options = self._options
        now = time.monotonic()
        ends = None if self._ends is None else now + (self._ends - now) / self._parts
        self._parts -= 1
        if ends is not None and ends <= now:
            return
        draw = random.Random(f"keys {project.name} {options.seed}") if options.pace == HUMAN else None
        given = [] if options.model is None else [f"--model={options.model}"]
        self._progress.say(f"{project.name}, {sweep}: starting the server")
        async with serving(project, given, self._settings, draw, CURSOR not in (options.without or ())) as served:
            self._report.model = served.client.status.get("model", {})
            tasks = project.to_do
            for number, task in enumerate(tasks, start=1):
                if ends is not None and time.monotonic() > ends:
                    break
                self._progress.update(f"{project.name}, {sweep}: {task.file}", number, len(tasks))
                await self._play(task, served, sweep)
                await self._play(task, Copying(), sweep)
            await served.client.settle()
            self._report.failures += served.client.errors_logged

    async def _play(self, task: Task | EditSession, suggester: Suggester, sweep: str) -> None:
        if isinstance(task, Task):
            efforts, records = await play(task, suggester, sweep)
        else:
            efforts, records = await play_session(task, suggester, sweep)
        self._report.efforts += efforts
        self._report.records += records


def setting(options: SuggestionsOptions, settings: dict[str, object], projects: Sequence[Project]) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""
    given = [] if options.set is None else [f"--set {options.set}", *(["--edited"] if options.edited else [])]
    given += [f"--language {options.language}"] if options.language != PYTHON else []
    given += [f"--path {Path(path).resolve().name}" for path in options.path or ()]
    given += [f"--package {name}" for name in options.package or ()]
    given += [f"--edits {Path(old).resolve().name} {Path(new).resolve().name}" for old, new in options.edits or ()]
    given += [f"--lines {options.lines}", f"--seed {options.seed}", f"--pace {options.pace}"]
    given += [f"--without {part}" for part in options.without or ()]
    given += [f"--setting {one}" for one in options.setting or ()]
    given += [f"--model {Path(options.model).name}"] if options.model is not None else []
    given += [f"--minutes {options.minutes:g}"] if options.minutes is not None else []
    return {
        "command": f"./dev bench suggestions {' '.join(given)}",
        "machine": options.machine or machine(),
        "versions": f"fim-server {version_of('fim-server')}",
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()) or "the defaults",
        "projects": ", ".join(
            f"{project.name} ({len(project.typed_files)} of {len(project.files)} files)" for project in projects
        ),
        "lines": f"{sum(task.lines for project in projects for task in project.to_do)} chosen",
    }
