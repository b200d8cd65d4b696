"""``./dev bench memory``: speed and accuracy of the project index.

No server and no model takes part. Each folder is a package that is indexed. Cursors are drawn in its files, as if a
user typed each line once more in the file without that line. As many cursors are drawn for one line or several. Times
are processor times, without other work on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.index.cursors import Cursor, draw, first_of
from benchmarks.index.trial import SUFFIXES, asked
from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.report import DONE, machine, percentiles, progress_for, publish, setting_lines, shown
from fim_server._core import ProjectMemory
from fim_server.errors import BenchError
from fim_server.memory.continuations import ScoredContinuation, ranked
from fim_server.memory.memory import LOOKED_AT
from fim_server.memory.weights import fitted_weights
from fim_server.text.terminal import Progress, Table

SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Shares of the cursors with a suggestion: the surest ones."""

LENGTHS = ((0, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, None))
"""Classes of matches, in lexemes."""

LINES = 8
"""Lines of a continuation at most."""

SURE_LINES = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Least likelihoods that all of several lines are right."""

T = TypeVar("T")


@dataclass(frozen=True)
class MemoryOptions:
    """Options of ``./dev bench memory``."""

    path: list[str]
    cursors: int
    seed: int
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench memory``."""
    parser.add_argument(
        "--path", nargs="+", required=True, metavar="FOLDER", help="packages, each a project of its own"
    )
    parser.add_argument(
        "--cursors", type=positive_count, default=500, metavar="N", help="in each package (default: 500)"
    )
    add_seed(parser, "what is drawn")
    add_json(parser)


@dataclass(frozen=True)
class Asked:
    """A cursor at which something was found.

    Attributes:
        matched: Lexemes of the match of the best continuation.
        first: Confidence in its first word.
        whole: Confidence in its whole line.
        empty: True if it adds nothing to the line.
        first_right: True if its first word or character is the typed one.
        whole_right: True if its line is the typed one.
    """

    matched: int
    first: float
    whole: float
    empty: bool
    first_right: bool
    whole_right: bool


def judged(cursor: Cursor, offer: ScoredContinuation) -> Asked:
    """Compare the best continuation at a cursor with the typed text; at the end of a line every one is wrong."""
    text, truth = offer.text.rstrip(), cursor.truth.rstrip()
    first = bool(truth) and first_of(offer.text) == first_of(cursor.truth)
    matched = offer.continuation.matched
    return Asked(matched, offer.first, offer.whole, not text, first, bool(truth) and text == truth)


@dataclass
class Several:
    """Offers of several lines that are likely enough to be right.

    Attributes:
        offers: How many.
        right: Of these, all of which is right.
        lines: Of these, after the first.
        right_lines: Of these, that are right as all those before are.
    """

    offers: int = 0
    right: int = 0
    lines: int = 0
    right_lines: int = 0

    def count(self, cursor: Cursor, text: str) -> None:
        """Take an offer into account, if it has several lines."""
        offered, typed = ([line.rstrip() for line in each.split("\n")] for each in (text, cursor.truth))
        same = next((at for at, (one, other) in enumerate(zip(offered, typed, strict=False)) if one != other), None)
        right = min(len(offered), len(typed)) if same is None else same
        if len(offered) > 1:
            self.offers += 1
            self.right += right == len(offered)
            self.lines += len(offered) - 1
            self.right_lines += max(0, right - 1)


@dataclass
class Report:
    """Report of the index.

    Attributes:
        seconds: Processor time for reading all packages.
        characters: Characters of their files.
        held: Bytes of their indexes.
        cursors: Number of cursors.
        asked: Results at the cursors with a suggestion.
        times: Processor times in seconds by operation, one for each cursor.
        several_cursors: Cursors at which one line was typed, or several.
        several: Suggestions there, by the least likelihood of all their lines.
    """

    setting: dict[str, str]
    seconds: float = 0.0
    files: int = 0
    characters: int = 0
    held: int = 0
    cursors: int = 0
    asked: list[Asked] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    several_cursors: int = 0
    several: dict[float, Several] = field(default_factory=lambda: {least: Several() for least in SURE_LINES})

    def surest(self) -> list[Asked]:
        """The offers that have a text, the surest first."""
        return sorted((one for one in self.asked if not one.empty), key=lambda one: -one.first)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {
            "setting": self.setting,
            "files": self.files,
            "characters": self.characters,
            "seconds": self.seconds,
            "bytes": self.held,
            "cursors": self.cursors,
            "found": len(self.asked),
            "times": {
                name: dict(zip(("p50", "p95", "max"), triple(each), strict=True)) for name, each in self.times.items()
            },
            "shown": [
                {"share": share, "confidence": chosen[-1].first, **rates(chosen)} for share, chosen in self.by_share()
            ],
            "matches": [{"from": low, "to": high, **rates(chosen)} for (low, high), chosen in self.by_length()],
            "calibration": [{"from": low, **held} for low, held in self.calibration()],
            "several_cursors": self.several_cursors,
            "several": [{"confidence": least, **asdict(found)} for least, found in self.several.items()],
        }

    def by_share(self) -> Iterator[tuple[float, list[Asked]]]:
        """The surest offers, as many as are a share of the cursors; as far as there are so many."""
        surest = self.surest()
        for share in SHARES:
            count = round(share * self.cursors)
            if 0 < count <= len(surest):
                yield share, surest[:count]

    def by_length(self) -> Iterator[tuple[tuple[int, int | None], list[Asked]]]:
        """Offers with a text, by the length of their match."""
        offers = self.surest()
        for low, high in LENGTHS:
            chosen = [one for one in offers if low <= one.matched and (high is None or one.matched <= high)]
            if chosen:
                yield (low, high), chosen

    def calibration(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """By tenth of confidence: how many offers had it, and the share of them that were right, of both questions."""
        for tenth in range(10):
            low, high = tenth / 10, (tenth + 1) / 10 if tenth < 9 else 2.0
            first = [one.first_right for one in self.surest() if low <= one.first < high]
            whole = [one.whole_right for one in self.surest() if low <= one.whole < high]
            yield (
                low,
                {
                    "first": len(first),
                    "first_right": sum(first) / len(first) if first else None,
                    "whole": len(whole),
                    "whole_right": sum(whole) / len(whole) if whole else None,
                },
            )

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        yield ""
        speed = self.characters / 1e6 / self.seconds if self.seconds else None
        yield (
            f"{self.files:,} files of {self.characters:,} characters: {shown(speed)} MB/s, "
            f"{shown(self.held / max(1, self.characters))} bytes a character"
        )
        yield Table(
            ("milliseconds", "p50", "p95", "max"),
            [
                (name, *(shown(None if one is None else 1e3 * one) for one in triple(each)))
                for name, each in self.times.items()
            ],
            range(1, 4),
        )
        yield ""
        yield f"{self.cursors:,} cursors, {len(self.asked) / max(1, self.cursors):.1%} of them with a continuation"
        yield Table(
            ("offered at", "confidence", "first word right", "line right"),
            [(f"{share:.0%}", f"{chosen[-1].first:.2f}", *percent(chosen)) for share, chosen in self.by_share()],
            range(4),
        )
        yield ""
        yield Table(
            ("lexemes matched", "offers", "first word right", "line right"),
            [
                (f"{low} and more" if high is None else f"{low} to {high}", f"{len(chosen):,}", *percent(chosen))
                for (low, high), chosen in self.by_length()
            ],
            range(1, 4),
        )
        yield ""
        yield Table(
            ("confidence from", "offers", "first word right", "offers", "line right"),
            [
                (
                    f"{low:.1f}",
                    str(held["first"]),
                    rate(held["first_right"]),
                    str(held["whole"]),
                    rate(held["whole_right"]),
                )
                for low, held in self.calibration()
            ],
            range(5),
        )
        yield ""
        yield f"{self.several_cursors:,} cursors where one line is typed, or several"
        yield Table(
            ("confidence in all", "offers of several lines", "right", "lines after the first", "right"),
            [(f"{least:.1f}", *(f"{count:,}" for count in astuple(found))) for least, found in self.several.items()],
            range(5),
        )


def triple(values: Sequence[float]) -> tuple[float | None, ...]:
    """Median, 95th percentile and largest value."""
    return percentiles(values, 0.5, 0.95, 1.0)


def rates(chosen: Sequence[Asked]) -> dict[str, Any]:
    """Return the number of suggestions and the share of right ones."""
    count = len(chosen)
    return {
        "offers": count,
        "first_right": sum(one.first_right for one in chosen) / count,
        "whole_right": sum(one.whole_right for one in chosen) / count,
    }


def rate(share: float | None) -> str:
    """A share as a text."""
    return "-" if share is None else f"{share:.1%}"


def percent(chosen: Sequence[Asked]) -> tuple[str, str]:
    """The shares that are right, as texts."""
    held = rates(chosen)
    return rate(held["first_right"]), rate(held["whole_right"])


def run(options: MemoryOptions) -> int:
    """Measure and print; returns the exit status.

    Raises:
        BenchError: A folder has no files to measure on.
    """
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json)
    return DONE


def measure(options: MemoryOptions, progress: Progress) -> Report:
    """Read each package and ask at its cursors.

    Raises:
        BenchError: A folder has no files to measure on.
    """
    paths = " ".join(options.path)
    command = f"./dev bench memory --path {paths} --cursors {options.cursors} --seed {options.seed}"
    report = Report({"command": command, "machine": machine(), "times": "processor time of the thread"})
    for path in options.path:
        folder = Path(path)
        progress.say(f"reading {folder.name}")
        memory = ProjectMemory()
        started = time.thread_time()
        memory.index_folder(folder, SUFFIXES)
        report.seconds += time.thread_time() - started
        files, _, characters, *_, held = memory.sizes()
        if files == 0:
            raise BenchError(f"{path}: no Python files to measure on")
        report.files += files
        report.characters += characters
        report.held += held
        progress.say(f"asking in {folder.name}")
        ask(memory, draw(folder, SUFFIXES, options.cursors, options.seed), report)
        for cursor, found in asked(folder, options.cursors, options.seed, LOOKED_AT, LINES):
            report.several_cursors += 1
            best = next(iter(ranked(found, fitted_weights())), None)
            for least, several in report.several.items():
                if best is not None:
                    several.count(cursor, best.text[: best.end_of_lines(least)])
    return report


def ask(memory: ProjectMemory, cursors: Iterator[Cursor], report: Report) -> None:
    """Ask a memory at cursors, and note how long it took and what it said."""

    def timed(name: str, work: Callable[[], T]) -> T:
        started = time.thread_time()
        made = work()
        report.times.setdefault(name, []).append(time.thread_time() - started)
        return made

    weights = fitted_weights()
    last = None
    for cursor in cursors:
        if last is not None and last != cursor.key:
            memory.close(last)
        last = cursor.key
        left, right = cursor.left, cursor.right
        timed("update", partial(memory.update, cursor.key, cursor.before, cursor.after))
        found = timed("continuations", partial(memory.continuations, cursor.key, left, right, LINES))
        offers = timed("confidence", partial(ranked, found, weights))
        timed("predict", partial(memory.predict, cursor.key, left))
        report.cursors += 1
        if offers:
            first_line = memory.continuations(cursor.key, left, right, 1)
            report.asked.append(judged(cursor, ranked(first_line, weights)[0]))
