"""``fim-server bench engine --scaling``: how time and memory of opening a session grow with the size of the file.

The texts are top-level statements of the standard library's files in a row, so that they are real code at any size.
Every opening has a process of its own, whose first it is: nothing is warm, and no memory is used a second time unseen.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import io
import itertools
import json
import math
import random
import statistics
import sys
import sysconfig
import time
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fim_server.bench import engine as bench
from fim_server.bench import plot
from fim_server.errors import BenchError
from fim_server.language.session import Language

DONE = 0

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
"""Characters of the texts."""

LINEAR_FROM = 50_000
"""Characters from which on the fitted line of the plot is; below, what every opening costs shows."""

TOLERANCE = 0.05
"""How far a text may be off its size, as a share of it."""

TEXTS = 3
"""Texts of each size."""

Series = dict[str, Sequence[tuple[float, float]]]

BETWEEN, INSIDE = "between statements", "inside a statement"
"""Where the cursor stands, in the middle of the text."""

MEMORY = (
    "peak: by how much opening made the process grow at most; kept: what of that it still holds with the session open"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server bench engine --scaling``."""
    group = parser.add_argument_group("scaling", "time and memory of opening by the size of the file, instead")
    group.add_argument("--scaling", action="store_true", help=f"measure {TEXTS} texts each of 1 kB to 1 MB")
    group.add_argument("--plot", metavar="FILE.svg", help="write a plot of it, too (implies --scaling)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: There is no library to measure on, or the plot cannot be written.
    """
    with bench.Progress(enabled=sys.stderr.isatty() or not arguments.json) as progress:
        report = measure(SIZES, TEXTS, arguments.seed, arguments.cpu_time, progress)
    if arguments.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report.lines():
            print(line)
    if arguments.plot is not None:
        try:
            Path(arguments.plot).write_text(report.as_svg(), encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{arguments.plot}: {error.strerror}") from error
    return DONE


# --- texts --------------------------------------------------------------------------------------------------------


def statements(text: str) -> list[str]:
    """A file's top-level statements, each with the comments and blank lines after it; together they are its end.

    Raises:
        SyntaxError, ValueError: Python does not parse it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text).body
    lines = text.splitlines(keepends=True)
    starts: list[int] = []
    last = 0
    for statement in body:
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        if first > last:  # else it follows a semicolon
            starts.append(first - 1)
        last = statement.end_lineno or statement.lineno
    return ["".join(lines[start:end]) for start, end in itertools.pairwise([*starts, len(lines)])]


def text_of_size(library: bench.Library, size: int, draw: random.Random) -> list[str]:
    """Statements of files in random order, each file from a random statement on, that together have about a size.

    Raises:
        BenchError: The library has too little.
    """
    chosen: list[str] = []
    total = 0
    for path in draw.sample(library.paths, len(library.paths)):
        with suppress(OSError, SyntaxError, ValueError), tokenize.open(path) as file:
            text = file.read()
            if "\f" in text or not text.endswith("\n"):  # str.splitlines breaks lines where Python does not
                continue
            found = statements(text)
            for statement in found[draw.randrange(len(found) + 1) :]:
                if total + len(statement) <= size * (1 + TOLERANCE):
                    chosen.append(statement)
                    total += len(statement)
                if total >= size * (1 - TOLERANCE):
                    return chosen
    raise BenchError(f"{library.folder}: too little code for a text of {size} characters")


def split(chosen: Sequence[str], cursor: str) -> tuple[str, str]:
    """Left and right of a cursor at about the middle of some statements."""
    text = "".join(chosen)
    ends = list(itertools.accumulate(map(len, chosen)))
    if cursor == BETWEEN:
        at = min(ends, key=lambda end: abs(end - len(text) // 2))
    else:
        index = next(index for index, end in enumerate(ends) if end > len(text) // 2)
        statement, start = chosen[index], ends[index] - len(chosen[index])
        at = start + min(token_starts(statement), key=lambda offset: abs(start + offset - len(text) // 2))
    return text[:at], text[at:]


def token_starts(statement: str) -> list[int]:
    """Where the tokens of a statement begin, but for the first."""
    starts = [0, *itertools.accumulate(map(len, statement.splitlines(keepends=True)))]
    found = [
        starts[token.start[0] - 1] + token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(statement).readline)
        if token.string.strip() and token.type != tokenize.COMMENT
    ]
    return found[1:] or found


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """What one session took.

    Attributes:
        size: Asked for, in characters.
        cursor: Where it stood.
        characters: Of the text.
        seconds: To open it.
        peak: Bytes by which the process grew at most; None where the system does not tell.
        kept: Bytes that it still held with the session open.
        complete: Whether the engine says that the text parses.
    """

    size: int
    cursor: str
    characters: int
    seconds: float
    peak: int | None
    kept: int | None
    complete: bool


def measure(sizes: Sequence[int], texts: int, seed: int, cpu_time: bool, progress: bench.Progress) -> Report:
    """Openings of every size, text and place of the cursor, by the clock's time or the process' own.

    Raises:
        BenchError: There is no library to measure on.
    """
    library = bench.Library(Path(sysconfig.get_path("stdlib")))
    clock: bench.Clock = time.process_time if cpu_time else time.perf_counter
    setting = {
        "machine": bench.machine(),
        "texts": f"{texts} of each size, seed {seed}",
        "time": bench.kind_of_time(cpu_time),
        "memory": MEMORY,
    }
    report = Report(setting, [])
    for size in sizes:
        progress.say(f"{size:,} characters")
        draw = random.Random(f"scaling {size} {seed}")
        for _ in range(texts):
            chosen = text_of_size(library, size, draw)
            for cursor in (BETWEEN, INSIDE):
                left, right = split(chosen, cursor)
                report.openings.append(bench.in_own_process(open_once, size, cursor, left, right, clock))
    return report


def open_once(size: int, cursor: str, left: str, right: str, clock: bench.Clock) -> Opening:
    """Opens one session; to be run in a process of its own."""
    language = Language.load(bench.LANGUAGE)
    release_free_memory()
    forget_peak()
    before, peak_before = bench.resident_memory(), peak_memory()
    session, seconds = bench.timed(clock, language.open, left, right)
    complete = session.check("").complete
    peak_after, after = peak_memory(), bench.resident_memory()
    kept = None if before is None or after is None else after - before
    peak = None if peak_before is None or peak_after is None else max(peak_after - peak_before, kept or 0)
    return Opening(size, cursor, len(left) + len(right), seconds, peak, kept, complete)


def release_free_memory() -> None:
    """Gives back what the allocator holds free, which would serve the session unseen (glibc only)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak() -> None:
    """Makes the peak the memory of now (Linux only; elsewhere only what passes the old peak is seen)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> int | None:
    """Bytes of memory this process held at most since `forget_peak`; None where the system does not tell."""
    with suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split()[1] for line in status if line.startswith("VmHWM:"))) * 1024
    return bench.peak_memory()


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """All openings, and how they were measured."""

    setting: dict[str, str]
    openings: list[Opening]

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        fits = {"time": self.time(LINEAR_FROM), "memory": self.memory(LINEAR_FROM)}
        return asdict(self) | {f"{name}_exponent": fit and fit.exponent for name, fit in fits.items()}

    def lines(self) -> Iterator[str]:
        """The report as an aligned table."""
        yield from (f"{name}: {value}" for name, value in self.setting.items())
        yield ""
        header = ("characters", "cursor", "n", "open p50, ms", "max, ms", "µs/character", "peak, MB", "kept, MB")
        cells = [self.cells(size, cursor) for size in self.sizes() for cursor in (BETWEEN, INSIDE)]
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        for line in (header, *cells):
            aligned = (
                cell.ljust(width) if index == 1 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield "  ".join(aligned).rstrip()
        yield ""
        for first in (min(self.sizes()), LINEAR_FROM):
            fits = [fit.label for fit in (self.time(first), self.memory(first)) if fit is not None]
            yield f"from {first:,} characters on: {'; '.join(fits) or 'too few sizes to fit'}"
        yield f"texts that parse, by the engine: {sum(each.complete for each in self.openings)} of {len(self.openings)}"

    def sizes(self) -> list[int]:
        return list(dict.fromkeys(each.size for each in self.openings))

    def cells(self, size: int, cursor: str) -> tuple[str, ...]:
        """A line of the table."""
        here = [each for each in self.openings if (each.size, each.cursor) == (size, cursor)]
        seconds = [each.seconds for each in here]

        def megabytes(values: Sequence[int | None]) -> str:
            known = [value for value in values if value is not None]
            return bench.shown(statistics.median_low(known) / 1e6 if known else None)

        return (
            f"{statistics.median_low([each.characters for each in here]):,}",
            cursor,
            str(len(here)),
            bench.shown(1e3 * statistics.median_low(seconds)),
            bench.shown(1e3 * max(seconds)),
            bench.shown(1e6 * statistics.median_low([each.seconds / each.characters for each in here])),
            megabytes([each.peak for each in here]),
            megabytes([each.kept for each in here]),
        )

    def time(self, first: int) -> plot.Line | None:
        """Milliseconds by characters, fitted from a size on."""
        return fitted("time", [(each.characters, 1e3 * each.seconds) for each in self.openings if each.size >= first])

    def memory(self, first: int) -> plot.Line | None:
        """Megabytes at the peak by characters, fitted from a size on."""
        return fitted("memory", self.peaks([each for each in self.openings if each.size >= first]))

    @staticmethod
    def peaks(openings: Sequence[Opening]) -> list[tuple[float, float]]:
        """Megabytes at the peak by characters, where there was any growth."""
        return [(each.characters, each.peak / 1e6) for each in openings if each.peak]

    def as_svg(self) -> str:
        """Both on logarithmic axes."""
        by_cursor = {name: [each for each in self.openings if each.cursor == name] for name in (BETWEEN, INSIDE)}
        times: Series = {
            name: [(each.characters, 1e3 * each.seconds) for each in here] for name, here in by_cursor.items()
        }
        peaks: Series = {name: self.peaks(here) for name, here in by_cursor.items()}
        size = "size of the file, characters"
        panels = (
            ("Opening a session: time", "time, ms", times, self.time(LINEAR_FROM)),
            ("Opening a session: peak memory", "growth of resident memory, MB", peaks, self.memory(LINEAR_FROM)),
        )
        return plot.svg(
            [plot.Panel(title, size, y, points, fit) for title, y, points, fit in panels if fit is not None]
        )


def fitted(what: str, points: Sequence[tuple[float, float]]) -> plot.Line | None:
    """The power law that least squares of the logarithms give; None where there are not two sizes."""
    if len({x for x, _ in points}) < 2:
        return None
    xs, ys = np.log(np.asarray(points)).T
    exponent, offset = (float(value) for value in np.polyfit(xs, ys, deg=1))
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    return plot.Line(f"{what} grows as size^{exponent:.2f}", math.exp(offset), exponent, first, last)
