"""``./dev bench engine --scaling``: how time and memory of opening a session grow with the size of the file.

The texts are top-level statements of the standard library's files in a row, so that they are real code at any size.
Every opening has a process of its own, whose first it is: nothing is warm, and no memory is used a second time unseen.
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import math
import random
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import plot
from benchmarks.engine.corpus import Library
from benchmarks.engine.positions import LANGUAGE
from benchmarks.processes import (
    Clock,
    clock_of,
    forget_peak,
    in_own_process,
    peak_since_forgotten,
    release_free_memory,
    resident_memory,
    timed,
)
from benchmarks.report import (
    DONE,
    kind_of_time,
    machine,
    percentile,
    progress_for,
    publish,
    setting_lines,
    shown,
)
from fim_server.errors import BenchError
from fim_server.language import Language
from fim_server.text.terminal import Progress, Table

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
"""Characters of the texts."""

LINEAR_FROM = 50_000
"""Characters from which on the fitted line of the plot is; below, what every opening costs shows."""

TOLERANCE = 0.05
"""Most relative difference between a text's size and the one asked for."""

TEXTS = 3
"""Texts of each size."""

Series = dict[str, Sequence[tuple[float, float]]]

BETWEEN, INSIDE = "between statements", "inside a statement"
"""Places of the cursor, in the middle of the text."""

MEMORY = (
    "peak: by how much opening made the process grow at most; kept: what of that it still holds with the session open"
)


@dataclass(frozen=True)
class ScalingOptions:
    """Options of ``./dev bench engine --scaling``."""

    seed: int
    cpu_time: bool
    json: bool
    plot: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench engine --scaling``."""
    group = parser.add_argument_group("scaling", "time and memory of opening by the size of the file, instead")
    group.add_argument("--scaling", action="store_true", help=f"measure {TEXTS} texts each of 1 kB to 1 MB")
    group.add_argument("--plot", metavar="FILE.svg", help="write a plot of it, too (implies --scaling)")


def run(options: ScalingOptions) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: There is no library to measure on, or the plot cannot be drawn or written.
    """
    if options.plot is not None:
        plot.check_installed()
    with progress_for(options.json) as progress:
        report = measure(SIZES, TEXTS, options.seed, options.cpu_time, progress)
    publish(report, options.json, {} if options.plot is None else {options.plot: report.as_svg})
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


def text_of_size(library: Library, size: int, draw: random.Random) -> list[str]:
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
    """Return the offsets of a statement's tokens, but for the first one if there are others."""
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
    """Cost of one session.

    Attributes:
        size: Size asked for, in characters.
        cursor: Place of the cursor.
        characters: Characters of the text.
        seconds: Time to open it.
        peak: Largest growth of the process in bytes; None where the system does not report it.
        kept: Bytes that it still held with the session open.
        complete: The engine's verdict: True if the text parses.
    """

    size: int
    cursor: str
    characters: int
    seconds: float
    peak: int | None
    kept: int | None
    complete: bool


def measure(sizes: Sequence[int], texts: int, seed: int, cpu_time: bool, progress: Progress) -> Report:
    """Openings of every size, text and place of the cursor, by the clock's time or the process' own.

    Raises:
        BenchError: There is no library to measure on.
    """
    library = Library.of_this_interpreter()
    clock = clock_of(cpu_time)
    setting = {
        "machine": machine(),
        "texts": f"{texts} of each size, seed {seed}",
        "time": kind_of_time(cpu_time),
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
                report.openings.append(in_own_process(open_once, size, cursor, left, right, clock))
    return report


def open_once(size: int, cursor: str, left: str, right: str, clock: Clock) -> Opening:
    """Opens one session; to be run in a process of its own."""
    language = Language.load(LANGUAGE)
    release_free_memory()
    forget_peak()
    before, peak_before = resident_memory(), peak_since_forgotten()
    session, seconds = timed(clock, language.open, left, right)
    complete = session.check("").complete
    peak_after, after = peak_since_forgotten(), resident_memory()
    kept = None if before is None or after is None else after - before
    peak = None if peak_before is None or peak_after is None else max(peak_after - peak_before, kept or 0)
    return Opening(size, cursor, len(left) + len(right), seconds, peak, kept, complete)


# --- the report ---------------------------------------------------------------------------------------------------


HEADER = ("characters", "cursor", "n", "open p50, ms", "max, ms", "µs/character", "peak, MB", "kept, MB")


@dataclass
class Report:
    """All openings, and how they were measured."""

    setting: dict[str, str]
    openings: list[Opening]

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        fits = {"time": self.time(LINEAR_FROM), "memory": self.memory(LINEAR_FROM)}
        return asdict(self) | {f"{name}_exponent": fit and fit.exponent for name, fit in fits.items()}

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and a table."""
        yield from setting_lines(self.setting)
        yield ""
        cells = [self.cells(size, cursor) for size in self.sizes() for cursor in (BETWEEN, INSIDE)]
        yield Table(HEADER, cells, numbers={0, *range(2, len(HEADER))})
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
        milliseconds = [1e3 * each.seconds for each in here]
        per_character = [1e6 * each.seconds / each.characters for each in here]
        peaks, kept = (
            [size / 1e6 for size in sizes if size is not None]
            for sizes in ([each.peak for each in here], [each.kept for each in here])
        )
        figures = (
            percentile(milliseconds, 0.5),
            max(milliseconds),
            *(percentile(values, 0.5) for values in (per_character, peaks, kept)),
        )
        characters = percentile([each.characters for each in here], 0.5)
        return f"{characters:,.0f}", cursor, str(len(here)), *map(shown, figures)

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
