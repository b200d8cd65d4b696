"""``./dev bench soak``: the language server's memory over a long day of typing.

Code is taken out of many real files and typed again to a server process, keystroke by keystroke without a pause,
several files at a time. Most requests are overtaken and cancelled, some are awaited. Suggestions are accepted and taken
out again, cursors are asked about, files are closed and others opened. The server's memory is read on the way. A seed
fixes files, holes and decisions; the suggestions depend on the answers that arrive in time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import plot
from benchmarks.options import add_json, add_typing_arguments, positive_count
from benchmarks.processes import usage_of
from benchmarks.report import DONE, machine, progress_for, publish, version_of
from benchmarks.server.command import Source, choose
from benchmarks.server.lsp_client import AUTOMATIC, CANCELLED, CAPABILITIES, INVOKED, Asked, Client
from benchmarks.server.played_editor import Edit, Editor, Hole, next_key, position, span
from benchmarks.server.scenarios import item_of
from fim_server.errors import BenchError
from fim_server.text.terminal import Progress, Table

GREW = 1

OPEN_FILES = 12
"""Files that are open at a time."""

KEYS_IN_A_ROW = 50
"""Keystrokes in a file before the user goes to the next one."""

SETTINGS = {
    "pythonVersion": "newest",
    "debounceMs": 0,
    "promptTokens": 64,
    "maxTokens": 8,
    "maxLineTokens": 6,
    "alternatives": 2,
    "minConfidence": 0,
}
"""Short prompts and answers: it is the server that is looked at, not the model."""

WAITED, ASKED, INVOKED_SHARE, ACCEPTED, EXPLAINED, WRONG, REOPENED = 0.25, 0.9, 0.02, 0.2, 0.003, 0.03, 0.002
"""Shares of the user's actions.

They are awaiting an answer, asking at a keystroke, an explicit request, accepting a suggestion, asking about a cursor,
typing a wrong bracket, and closing and reopening a file.
"""

SETTLED = 0.2
"""Share of the keystrokes in which the server fills its caches, left out of the verdict."""

ROWS = 20
"""Readings that are printed, at least if there are so many; all of them are in the JSON and in the plot."""

MOST_GROWTH = 0.1
"""By which share memory may be higher in the last fifth than in the second, where ``--most-growth`` says nothing."""


@dataclass(frozen=True)
class SoakOptions:
    """Options of ``./dev bench soak``."""

    path: list[str] | None
    files: int
    keystrokes: int
    every: int
    minutes: float | None
    most_growth: float
    seed: int
    model: str
    machine: str | None
    json: bool
    plot: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench soak``."""
    parser.epilog = (
        "Exit status: 0 memory stays, 1 it grows by more than --most-growth from the second fifth of the keystrokes to "
        "the last, or requests failed, 2 bad input."
    )
    add_typing_arguments(parser, files=200, keystrokes=100_000, each="in all")
    parser.add_argument(
        "--every", type=positive_count, default=500, metavar="N", help="keystrokes between two readings (default: 500)"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="end after that time, wherever it is")
    parser.add_argument(
        "--most-growth",
        type=float,
        default=MOST_GROWTH,
        metavar="SHARE",
        help=f"growth that is none yet (default: {MOST_GROWTH})",
    )
    parser.add_argument(
        "--model", default="embedded", metavar="NAME", help="a model folder or hub name (default: embedded)"
    )
    parser.add_argument("--machine", metavar="TEXT", help="how the report calls this machine (default: its processor)")
    add_json(parser, "every reading among it")
    parser.add_argument("--plot", metavar="FILE.svg", help="write a plot of memory over keystrokes")


def run(options: SoakOptions) -> int:
    """Type, and print what memory did; returns the exit status.

    Raises:
        BenchError: There are no files, the server does not start, answer or live, or a result cannot be written.
    """
    if options.plot is not None:
        plot.check_installed()
    with progress_for(options.json) as progress:
        report = asyncio.run(soak(options, progress))
    publish(report, options.json, {} if options.plot is None else {options.plot: report.as_svg})
    growth = report.growth
    grew = growth is not None and growth > options.most_growth
    failed = report.counts["failed"] or report.statistics.get("failed") or report.errors
    return GREW if grew or failed else DONE


@dataclass(frozen=True)
class Reading:
    """The server's memory at a time.

    Attributes:
        seconds: Since the first keystroke.
        memory: Bytes that the server holds.
        processor: Seconds of processor time that it has used.
        closed: Files that were finished and closed by then.
    """

    keystrokes: int
    seconds: float
    memory: int
    processor: float
    closed: int


@dataclass
class Report:
    """Course of the memory."""

    setting: dict[str, str]
    readings: list[Reading] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    statistics: dict[str, Any] = field(default_factory=dict)
    """The server's own, at the end."""
    errors: list[str] = field(default_factory=list)
    """Errors in the server's log."""

    @property
    def growth(self) -> float | None:
        """By which share the median of the last fifth is above that of the second; None of fewer than ten readings."""
        if len(self.readings) < 10:
            return None
        end = self.readings[-1].keystrokes
        memory = [
            [each.memory for each in self.readings if first * end < each.keystrokes <= last * end]
            for first, last in ((SETTLED, 2 * SETTLED), (1 - SETTLED, 1))
        ]
        before, after = (statistics.median(part) for part in memory)
        return after / before - 1

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {
            "setting": self.setting,
            "growth": self.growth,
            "counts": dict(self.counts),
            "statistics": self.statistics,
            "errors": self.errors,
            "readings": [vars(reading) for reading in self.readings],
        }

    def as_svg(self) -> str:
        """Memory over keystrokes."""
        points = [(float(each.keystrokes), each.memory / 1e6) for each in self.readings]
        title = "The server's memory while a user types"
        return plot.svg([plot.Course(title, "keystrokes", "resident memory, MB", {"server": points})])

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from (f"{name}: {value}" for name, value in self.setting.items())
        yield ""
        step = max(1, len(self.readings) // ROWS)
        rows = [
            (
                f"{each.keystrokes:,}",
                str(each.closed),
                f"{each.seconds / 60:.1f}",
                f"{each.memory / 1e6:.0f}",
                f"{each.processor:.0f}",
            )
            for number, each in enumerate(self.readings)
            if number % step == 0 or number == len(self.readings) - 1
        ]
        yield Table(("keystrokes", "files closed", "minutes", "MB", "processor s"), rows, range(5))
        yield ""
        yield ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        yield from self.errors
        if self.growth is not None:
            yield f"from the second fifth to the last, in the median: {self.growth:+.1%}"


async def soak(options: SoakOptions, progress: Progress) -> Report:
    """Type until the keystrokes or the minutes are spent.

    Raises:
        BenchError: There are no files, or the server does not start, answer or live.
    """
    progress.say("choosing files")
    sources = list(choose(options.path, options.files, options.seed))
    report = Report(setting(options, sources))
    progress.say("starting the server")
    with tempfile.TemporaryFile() as errors:
        client = await Client.start([f"--model={options.model}"], None, errors)
        try:
            initialize = {"processId": os.getpid(), "rootUri": None, "capabilities": CAPABILITIES}
            await client.answer_to(client.ask("initialize", {**initialize, "initializationOptions": SETTINGS}))
            client.notify("initialized", {})
            await client.ready()
            await Soak(client, report, options, progress).type_all(sources)
            await client.settle()
            command = {"command": "fim-server.statistics", "arguments": []}
            report.statistics = await client.answer_to(client.ask("workspace/executeCommand", command)) or {}
            report.errors = client.errors_logged
        finally:
            await client.end()
    return report


class Soak:
    """User with many files and no patience."""

    def __init__(self, client: Client, report: Report, options: SoakOptions, progress: Progress) -> None:
        self.client = client
        self.report = report
        self.options = options
        self.progress = progress
        self.draw = random.Random(f"soak {options.seed}")
        self.started = time.perf_counter()
        self.keystrokes = 0
        self.closed = 0
        self.asked: Asked | None = None

    @property
    def over(self) -> bool:
        """Return whether all is typed, or the time is up."""
        spent = time.perf_counter() - self.started
        late = self.options.minutes is not None and spent > 60 * self.options.minutes
        return late or self.keystrokes >= self.options.keystrokes

    async def type_all(self, sources: Sequence[Source]) -> None:
        """Type in all files, some of them open at a time."""
        share = -(-self.options.keystrokes // len(sources))
        waiting = deque(enumerate(sources))
        files: deque[File] = deque()
        self.read()
        while not self.over and (waiting or files):
            while waiting and len(files) < OPEN_FILES:
                number, source = waiting.popleft()
                files.append(File(self, f"{number}/{source.name}", source, share))
            file = files.popleft()
            for _ in range(min(KEYS_IN_A_ROW, file.left)):
                await file.key()
            if file.left > 0:
                files.append(file)
            else:
                file.close()
                self.closed += 1
        await self.client.settle()
        self.read()

    def count_key(self) -> None:
        """Count a keystroke, and read the server's memory from time to time."""
        self.keystrokes += 1
        if self.keystrokes % self.options.every == 0:
            self.read()

    def read(self) -> None:
        """Read the server's memory.

        Raises:
            BenchError: The system does not tell of it.
        """
        usage = usage_of(self.client.process.pid)
        if usage is None:
            raise BenchError("this system does not tell what another process uses")
        seconds = time.perf_counter() - self.started
        self.report.readings.append(Reading(self.keystrokes, seconds, usage.memory, usage.seconds, self.closed))
        self.progress.update(
            f"{self.keystrokes:,} keystrokes, {usage.memory / 1e6:.0f} MB", self.keystrokes, self.options.keystrokes
        )


class File:
    """A file that is open: what was taken out of it, and how much of it is typed again."""

    def __init__(self, soak: Soak, name: str, source: Source, keystrokes: int) -> None:
        self.soak = soak
        self.source = source
        self.left = keystrokes
        """Keystrokes that are still to come."""
        self.uri = f"file:///soak/{name}"
        self.version = 1
        self.editor = Editor(source.text, 0)
        self.holes: Iterator[Hole] = iter(())
        self.hole = Hole("none", 0, 0)
        self._open()

    @property
    def wanted(self) -> str:
        """Text to type into the hole."""
        return self.source.text[self.hole.start : self.hole.end]

    async def key(self) -> None:
        """Press a key, and ask for what may follow."""
        draw, counts = self.soak.draw, self.soak.report.counts
        key = next_key(self.editor, self.hole.start, self.wanted)
        if key is None:
            self._next_hole()
        else:
            self._tell(self.editor.press(draw.choice("()[]{}") if draw.random() < WRONG else key))
        self.left -= 1
        self.soak.count_key()
        if draw.random() < REOPENED:
            self.close()
            self._open()
            counts["reopened"] += 1
        if self.soak.asked is not None and not self.soak.asked.answer.done():
            self.soak.client.cancel(self.soak.asked)
        if draw.random() < EXPLAINED:
            counts["explained"] += 1
            await self.soak.client.answer_to(self._explain())
        elif draw.random() < ASKED:
            await self._ask()
        await asyncio.sleep(0)

    def close(self) -> None:
        """Close the file."""
        self.soak.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    def _open(self) -> None:
        text = self.editor.text
        document = {"uri": self.uri, "languageId": "python", "version": self.version, "text": text}
        self.soak.client.notify("textDocument/didOpen", {"textDocument": document})

    def _next_hole(self) -> None:
        """Go to another place, and take out what is to be typed there."""
        if self.editor.text != self.source.text:
            self._tell(self.editor.restore(self.source.text, self.editor.cursor))
        hole = next(self.holes, None)
        if hole is None:
            self.holes = iter(self.source.holes)
            hole = next(self.holes)
        self.hole = hole
        self._tell(self.editor.replace(hole.start, hole.end, ""))

    async def _ask(self) -> None:
        draw, counts, client = self.soak.draw, self.soak.report.counts, self.soak.client
        invoked = draw.random() < INVOKED_SHARE
        params = {
            "textDocument": {"uri": self.uri},
            "position": position(self.editor.text, self.editor.cursor),
            "context": {"triggerKind": INVOKED if invoked else AUTOMATIC},
        }
        asked = self.soak.asked = client.ask("textDocument/inlineCompletion", params)
        counts["asked"] += 1
        asked.answer.add_done_callback(self._note)
        if draw.random() >= WAITED:
            return
        result = await client.answer_to(asked)
        items = [item_of(entry) for entry in (result or {}).get("items", ())]
        counts["offered"] += len(items)
        if items and draw.random() < ACCEPTED:
            counts["accepted"] += 1
            item = items[0]
            self._tell(self.editor.accept(item.text, item.covered))
            if item.command is not None:
                command = {name: item.command.get(name) for name in ("command", "arguments")}
                client.ask("workspace/executeCommand", command)

    def _note(self, answer: asyncio.Future[dict[str, Any]]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            return
        code = answer.result().get("error", {}).get("code")
        kind = "answered" if code is None else "cancelled" if code == CANCELLED else "failed"
        self.soak.report.counts[kind] += 1

    def _explain(self) -> Asked:
        argument = {"uri": self.uri, "position": position(self.editor.text, self.editor.cursor)}
        command = {"command": "fim-server.explainAt", "arguments": [argument]}
        return self.soak.client.ask("workspace/executeCommand", command)

    def _tell(self, edit: Edit) -> None:
        self.version += 1
        changes = [{"range": span(self.editor.before, edit.start, edit.end), "text": edit.text}]
        document = {"uri": self.uri, "version": self.version}
        self.soak.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})


def setting(options: SoakOptions, sources: Sequence[Source]) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""
    given = [f"--{name} {getattr(options, name)}" for name in ("files", "keystrokes", "every", "seed")]
    given += [f"--minutes {options.minutes:g}"] if options.minutes is not None else []
    return {
        "command": f"./dev bench soak {' '.join(given)}",
        "machine": options.machine or machine(),
        "versions": ", ".join(f"{name} {version_of(name)}" for name in ("fim-server", "onnxruntime", "pygls")),
        "files": f"{len(sources)}, {sum(len(source.text) for source in sources) / 1000:,.0f} kB",
    }
