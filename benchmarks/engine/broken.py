"""``./dev bench broken``: true middles in files that are broken elsewhere, by lines left out alone and with windows.

The middle is the rest of a line, in a third of the holes without the closing marks at its end, which an editor has
written. Each hole is measured in the intact file, and in files broken more than three lines away: by a bracket deleted
or inserted, or by a quote deleted.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.engine.languages import add_sources, add_timing, folders_of, texts_of
from benchmarks.options import positive_count
from benchmarks.processes import clock_of
from benchmarks.report import DONE, machine, page, page_head, percentiles, progress_for, publish, setting_lines, shown
from fim_server.language import Language
from fim_server.recovery.recovery import Recovery, recover
from fim_server.text.terminal import Progress, Table

AWAY = 3
"""Lines around the hole that stay as they are."""

TRIES = 15
"""Changes to try for one that breaks a file."""

LEAST_LINE = 4
"""Characters of a line with a hole, without its indentation."""

ENDS = ")]};,"
"""Marks at a line's end that an editor may have written."""

KINDS = ("intact", "bracket deleted", "bracket inserted", "quote deleted")

TITLE = "Files that are broken elsewhere"

EXPLAINED = """refused: true middles that the session refuses, of the holes where it has a guarantee; before: by lines
left out alone; after: with windows. ms: time to open the file for the first time, p50 / p99, after."""


@dataclass(frozen=True)
class BrokenOptions:
    """Options of ``./dev bench broken``."""

    source: list[str]
    holes: int
    seed: int
    cpu_time: bool
    json: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench broken``."""
    parser.epilog = "Exit status: 0 measured, 2 bad input."
    add_sources(parser)
    parser.add_argument(
        "--holes", type=positive_count, default=150, metavar="N", help="in each language (default: 150)"
    )
    add_timing(parser)


def run(options: BrokenOptions) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: A source is no language and folder, has no files, or a file cannot be read or written.
    """
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json, {} if options.output is None else {options.output: report.as_markdown})
    return DONE


@dataclass
class Count:
    """Holes of a kind of file."""

    holes: int = 0
    judged_before: int = 0
    refused_before: int = 0
    judged: int = 0
    refused: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass
class Found:
    """Figures of one language."""

    name: str
    files: int = 0
    counts: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})


@dataclass
class Report:
    """Report: settings and figures."""

    setting: dict[str, str]
    languages: list[Found] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def table(self) -> Table:
        """A row for each language and kind of file."""
        names = ("", "file", "holes", "refused before", "after", "ms")
        rows = [row for found in self.languages for row in rows_of(found)]
        return Table(names, rows, numbers=range(2, len(names)))

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and a table."""
        yield from setting_lines(self.setting)
        yield ""
        yield self.table()

    def as_markdown(self) -> str:
        """The report as a page."""
        return page([*page_head(TITLE, self.setting, EXPLAINED), *self.table().markdown()])


def rows_of(found: Found) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of file."""
    for kind, count in found.counts.items():
        yield (
            found.name,
            kind,
            str(count.holes),
            f"{count.refused_before} of {count.judged_before}",
            f"{count.refused} of {count.judged}",
            " / ".join(
                shown(None if value is None else 1e3 * value) for value in percentiles(count.seconds, 0.5, 0.99)
            ),
        )


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(options: BrokenOptions, progress: Progress) -> Report:
    """All languages, in the order in which they are named.

    Raises:
        BenchError: A source is no language and folder, or has no files.
    """
    folders = folders_of(options.source)
    named = " ".join(f"--source {name}={folder.name}" for name, all_ in folders.items() for folder in all_)
    command = f"./dev bench broken {named} --holes {options.holes} --seed {options.seed}"
    report = Report({"command": command, "machine": machine()})
    for name, paths in folders.items():
        report.languages.append(measure_language(name, paths, options, progress))
    return report


def measure_language(name: str, folders: Sequence[Path], options: BrokenOptions, progress: Progress) -> Found:
    """One language.

    Raises:
        BenchError: A folder is not there, or has no file of the language that could be measured on.
    """
    found, language, clock = Found(name), Language.load(name), clock_of(options.cpu_time)
    texts = texts_of(language, folders, options.seed, options.holes)
    found.files = len(texts)
    for number in progress.count(name, range(options.holes)):
        draw = random.Random(f"broken {name} {options.seed} {number}")
        hole = Hole.drawn(language, texts[number % len(texts)], draw)
        if hole is None:
            continue
        for kind, (left, right) in hole.contexts(draw):
            add(found.counts[kind], language, left, hole.middle, right, clock)
    return found


def add(count: Count, language: Language, left: str, middle: str, right: str, clock: Callable[[], float]) -> None:
    """Measure one hole."""
    count.holes += 1
    session = language.open(left, right)
    before = session if session.guarantee != "none" else recover(language.open, left, right)
    if before is not None:
        count.judged_before += 1
        count.refused_before += not before.check(middle).complete
    started = clock()
    after = Recovery(language.open, name=language.name).open(left, right)
    count.seconds.append(clock() - started)
    if after.guarantee != "none":
        count.judged += 1
        count.refused += not after.check(middle).complete


@dataclass(frozen=True)
class Hole:
    """Hole in a text.

    Attributes:
        far: Offsets that are far enough away to be changed.
    """

    language: Language
    text: str
    start: int
    end: int
    far: tuple[int, ...]

    @property
    def middle(self) -> str:
        """The text in the hole."""
        return self.text[self.start : self.end]

    @classmethod
    def drawn(cls, language: Language, text: str, draw: random.Random) -> Hole | None:
        """A hole in a line of code; None if there is no such line."""
        lines = text.split("\n")
        comments = language.spelling.comments
        long = [at for at, line in enumerate(lines) if len(line.strip()) >= LEAST_LINE]
        code = [at for at in long if not lines[at].lstrip().startswith((*comments, "*"))]
        if not code:
            return None
        at = draw.choice(code)
        begin = sum(len(line) + 1 for line in lines[:at])
        line = lines[at].rstrip()
        start, end = begin + draw.randrange(len(line) - len(line.lstrip()), len(line)), begin + len(lines[at])
        if draw.random() < 1 / 3:
            end = start + len(text[start:end].rstrip(ENDS))
        first = sum(len(line) + 1 for line in lines[: max(0, at - AWAY)])
        last = sum(len(line) + 1 for line in lines[: at + AWAY + 1])
        return cls(language, text, start, end, (*range(first), *range(last, len(text))))

    def contexts(self, draw: random.Random) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield the texts around the hole for each kind of file, for those that a change has broken."""
        spelling = self.language.spelling
        brackets = [text for pair in spelling.brackets for text in pair if len(text) == 1]
        quotes = spelling.closers - {closing for _, closing in spelling.brackets}
        yield "intact", (self.text[: self.start], self.text[self.end :])
        held = [at for at in self.far if self.text[at] in brackets]
        quoted = [at for at in self.far if self.text[at] in quotes]
        for kind, places, new in (
            ("bracket deleted", held, ("",)),
            ("bracket inserted", self.far, brackets),
            ("quote deleted", quoted, ("",)),
        ):
            tries = ((draw.choice(places), draw.choice(new)) for _ in range(TRIES if places and new else 0))
            found = next((changed for at, one in tries if self.breaks(changed := self.changed(at, one))), None)
            if found is not None:
                yield kind, found

    def changed(self, at: int, new: str) -> tuple[str, str]:
        """The texts around the hole after inserting a text at an offset, or deleting the character there."""
        rest = at if new else at + 1
        if at < self.start:
            return self.text[:at] + new + self.text[rest : self.start], self.text[self.end :]
        return self.text[: self.start], self.text[self.end : at] + new + self.text[rest:]

    def breaks(self, contexts: tuple[str, str]) -> bool:
        """Return whether the file with the true middle does not parse."""
        left, right = contexts
        return not self.language.open(left + self.middle + right, "").check("").complete
