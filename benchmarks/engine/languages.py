"""``./dev bench languages``: every language beside the others, on files of its own, in one table.

Cursors are drawn in whole files. At each, a session is opened, keys are typed, the true middle is checked and masked
token by token, and a plan is made. Then a line elsewhere is broken, and the file is opened as in an editor. No test
judges the figures.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine.command import check_along, load_language
from benchmarks.engine.cursors import first_tokens
from benchmarks.engine.masks import with_cache
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER, Tokens, read_tokens
from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.processes import clock_of, in_own_process
from benchmarks.report import (
    DONE,
    machine,
    page,
    page_head,
    percentiles,
    progress_for,
    publish,
    setting_lines,
    shown,
)
from fim_server.datasets.judging.cutting import Files, text_of
from fim_server.errors import BenchError, LanguageError, SearchLimitError
from fim_server.language import Language
from fim_server.recovery.recovery import recover
from fim_server.text.reuse import Sessions
from fim_server.text.terminal import Progress, Table
from fim_server.tokens import masks
from fim_server.tokens.vocabulary import Vocabulary

SIZES = range(4_000, 40_000)
"""Characters of the files that cursors are drawn in."""

CHARACTERS = 10_000
"""Characters that opening is told for; it is linear in a file's length."""

KEYS = 8
"""Characters that are typed at a cursor."""

PER_FILE = 3
"""Cursors in one file."""

TITLE = "Languages side by side"

EXPLAINED = """Times are in milliseconds where no unit is named. open: a session for 10,000 characters, cold; key: one
more character left of the cursor; check: one token checked and appended; mask: all allowed tokens, the first visit of
each place (caches empty at the beginning) and a second visit; shared: sessions whose masks are those of any other file;
plan: a way to complete the program, found within the search's limits; mended: files with one broken line elsewhere that
still have a guarantee."""


@dataclass(frozen=True)
class LanguagesOptions:
    """Options of ``./dev bench languages``."""

    source: list[str]
    vocabulary: str | None
    cursors: int
    steps: int
    seed: int
    cpu_time: bool
    json: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench languages``."""
    parser.epilog = "Exit status: 0 measured, 1 a true token was refused, 2 bad input."
    add_sources(parser)
    parser.add_argument(
        "--vocabulary", metavar="TOKENIZER.json", help="a model's tokenizer.json (default: the embedded model's)"
    )
    parser.add_argument(
        "--cursors", type=positive_count, default=200, metavar="N", help="in each language (default: 200)"
    )
    parser.add_argument(
        "--steps", type=positive_count, default=24, metavar="N", help="tokens of a middle at most (default: 24)"
    )
    add_timing(parser)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the option of the files to measure."""
    parser.add_argument(
        "--source",
        action="append",
        required=True,
        metavar="LANGUAGE=FOLDER",
        help="files of a language; may be given several times, also for one language",
    )


def add_timing(parser: argparse.ArgumentParser) -> None:
    """Add the options of the seed, the clock and the report."""
    add_seed(parser, "the choice of all")
    parser.add_argument("--cpu-time", action="store_true", help="count the processor time of this process")
    add_json(parser)
    parser.add_argument("--output", metavar="FILE.md", help="write the table as Markdown")


def run(options: LanguagesOptions) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: A source is no language and folder, has no files, or a file cannot be read or written.
    """
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json, {} if options.output is None else {options.output: report.as_markdown})
    return 1 if any(found.refused for found in report.languages) else DONE


@dataclass
class Found:
    """Figures of one language; times in seconds, opening for :data:`CHARACTERS` characters."""

    name: str
    load: float = 0.0
    prepare: float = 0.0
    table: int = 0
    rules: int = 0
    files: int = 0
    cursors: int = 0
    shared: int = 0
    inexact: int = 0
    refused: int = 0
    opens: list[float] = field(default_factory=list)
    keys: list[float] = field(default_factory=list)
    checks: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)
    unplanned: int = 0
    broken: int = 0
    mended: int = 0
    left_out: list[int] = field(default_factory=list)


@dataclass
class Report:
    """Report: settings and figures."""

    setting: dict[str, str]
    languages: list[Found] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def table(self) -> Table:
        """A row for each figure, a column for each language."""
        rows = [list(row) for row in zip(*(list(figures(found)) for found in self.languages), strict=True)]
        named = [(row[0][0], *(value for _, value in row)) for row in rows]
        names = [found.name for found in self.languages]
        return Table(("", *names), named, numbers=range(1, len(names) + 1))

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and a table."""
        yield from setting_lines(self.setting)
        yield ""
        yield self.table()

    def as_markdown(self) -> str:
        """The report as a page."""
        return page([*page_head(TITLE, self.setting, EXPLAINED), *self.table().markdown()])


def figures(found: Found) -> Iterator[tuple[str, str]]:
    """Yield a language's column, row by row."""

    def spread(values: Sequence[float], scale: float, *shares: float) -> str:
        return " / ".join(shown(None if value is None else value * scale) for value in percentiles(values, *shares))

    def share(count: int, total: int) -> str:
        return f"{count} of {total}"

    yield "files, cursors", f"{found.files}, {found.cursors}"
    yield "rules", f"{found.rules:,}"
    yield "load, uncached", shown(1e3 * found.load)
    yield "token table, uncached", shown(1e3 * found.prepare)
    yield "token table, MB", shown(found.table / 1e6)
    yield "open, p50 / p99", spread(found.opens, 1e3, 0.5, 0.99)
    yield "key, p50 / p99", spread(found.keys, 1e3, 0.5, 0.99)
    yield "check, µs, p50 / p99", spread(found.checks, 1e6, 0.5, 0.99)
    yield "mask, first, µs, p50 / p90 / p99", spread(found.first, 1e6, 0.5, 0.9, 0.99)
    yield "mask, again, µs, p50 / p90 / p99", spread(found.again, 1e6, 0.5, 0.9, 0.99)
    yield "shared", share(found.shared, found.cursors)
    yield "true tokens refused", str(found.refused)
    yield "plan, p50 / p99", spread(found.plans, 1e3, 0.5, 0.99)
    yield "plan found", share(len(found.plans), len(found.plans) + found.unplanned)
    yield "mended", share(found.mended, found.broken)
    yield "lines left out, mean", shown(sum(found.left_out) / len(found.left_out) if found.left_out else None)


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(options: LanguagesOptions, progress: Progress) -> Report:
    """All languages, in the order in which they are named.

    Raises:
        BenchError: A source is no language and folder, has no files, or the vocabulary cannot be read.
    """
    folders = folders_of(options.source)
    tokens = read_tokens("given", Path(options.vocabulary or EMBEDDED_TOKENIZER))
    report = Report(
        {
            "command": "./dev bench languages "
            + " ".join(f"--source {name}={folder.name}" for name, all_ in folders.items() for folder in all_)
            + f" --cursors {options.cursors} --steps {options.steps} --seed {options.seed}",
            "machine": machine(),
            "vocabulary": f"{tokens.vocabulary.size:,} tokens",
        }
    )
    for name, paths in folders.items():
        report.languages.append(measure_language(name, paths, tokens, options, progress))
    return report


def folders_of(sources: Sequence[str]) -> dict[str, list[Path]]:
    """The folders of each language that options name.

    Raises:
        BenchError: A source is no language and folder.
    """
    folders: dict[str, list[Path]] = {}
    for source in sources:
        name, separator, folder = source.partition("=")
        if not separator or name not in Language.names():
            raise BenchError(f"--source {source}: one of {', '.join(Language.names())}, `=`, and a folder expected")
        folders.setdefault(name, []).append(Path(folder))
    return folders


def texts_of(language: Language, folders: Sequence[Path], seed: int, count: int) -> list[str]:
    """Texts that a language takes, from all projects in turn, at most so many.

    Raises:
        BenchError: A folder is not there, or has no such file.
    """
    try:
        files = Files(folders, Language.suffixes_of(language.name))
    except OSError as error:
        raise BenchError(str(error)) from error
    texts = list(chosen(language, files, seed, count))
    if not texts:
        raise BenchError(f"no {language.name} file of {SIZES.start:,} to {SIZES.stop:,} characters to measure on")
    return texts


def measure_language(
    name: str, folders: Sequence[Path], tokens: Tokens, options: LanguagesOptions, progress: Progress
) -> Found:
    """One language.

    Raises:
        BenchError: A folder is not there, or has no file of the language that could be measured on.
    """
    found = Found(name)
    clock = clock_of(options.cpu_time)
    progress.say(f"compiling, {name}")
    with tempfile.TemporaryDirectory() as cache:
        found.load = in_own_process(load_language, cache, time.perf_counter, name).seconds
        given = (name, tokens.tokens, tokens.vocabulary.end_token_ids)
        found.prepare = in_own_process(with_cache, cache, *given, []).seconds
    language, vocabulary = Language.load(name), tokens.vocabulary
    found.rules = language.core.sizes()[2]
    found.table = masks.prepare(language, vocabulary).bytes
    masks.clear(language, vocabulary)
    texts = texts_of(language, folders, options.seed, -(-options.cursors // PER_FILE))
    found.files = len(texts)
    draw = random.Random(f"languages {name} {options.seed}")
    for number in progress.count(name, range(options.cursors)):
        text = texts[number // PER_FILE % len(texts)]
        Trial(found, language, vocabulary, clock, options.steps).at(text, draw)
    return found


def chosen(language: Language, files: Files, seed: int, wanted: int) -> Iterator[str]:
    """Texts that the language takes, from all projects in turn."""
    draw = random.Random(f"files {language.name} {seed}")
    shuffled = [draw.sample(paths, len(paths)) for _, paths in files.projects]
    for at in range(max(map(len, shuffled))):
        for paths in shuffled:
            text = text_of(paths[at]) if at < len(paths) else None
            if wanted and text is not None and len(text) in SIZES and language.open(text, "").check("").complete:
                wanted -= 1
                yield text


@dataclass
class Trial:
    """Measurements at one cursor."""

    found: Found
    language: Language
    vocabulary: Vocabulary
    clock: Any
    steps: int

    def at(self, text: str, draw: random.Random) -> None:
        """Everything at a cursor of a text, which is drawn."""
        at = draw.randrange(KEYS, len(text) - 1)
        middle = first_tokens(text[at : at + 12 * self.steps], self.vocabulary, self.steps)
        left, right = text[:at], text[at + len(middle) :]
        found, clock = self.found, self.clock
        found.cursors += 1
        started = clock()
        session = self.language.open(left, right)
        found.opens.append((clock() - started) * CHARACTERS / len(text))
        found.inexact += session.guarantee == "none"
        found.shared += session.shares_masks
        self.keys(left, right)
        ids = self.vocabulary.encode(middle)
        spent = list(check_along(session.matcher(self.vocabulary), ids, clock))
        found.checks += spent
        found.refused += len(spent) < len(ids)
        for times in (found.first, found.again):
            self.masks(left, right, ids, times)
        self.plan(left, right, ids[: draw.randrange(len(ids) + 1)])
        self.mend(text, at, draw)

    def keys(self, left: str, right: str) -> None:
        """The last characters left of the cursor, typed."""
        sessions = Sessions()
        sessions.open(self.language, left[:-KEYS], right)
        for end in range(len(left) - KEYS + 1, len(left) + 1):
            started = self.clock()
            sessions.open(self.language, left[:end], right)
            self.found.keys.append(self.clock() - started)

    def masks(self, left: str, right: str, ids: Sequence[int], times: list[float]) -> None:
        """The mask before each token of the middle."""
        matcher = self.language.open(left, right).matcher(self.vocabulary)
        words = np.zeros(-(-self.vocabulary.size // 32), dtype=np.uint32)
        for token in ids:
            started = self.clock()
            matcher.fill_mask(words)
            times.append(self.clock() - started)
            if not matcher.allows(token):
                return
            matcher.commit(token)

    def plan(self, left: str, right: str, ids: Sequence[int]) -> None:
        """A plan after some of the middle's tokens."""
        matcher = self.language.open(left, right).matcher(self.vocabulary)
        for token in ids:
            if not matcher.allows(token):
                return
            matcher.commit(token)
        started = self.clock()
        try:
            matcher.plan()
        except SearchLimitError:
            self.found.unplanned += 1
        else:
            self.found.plans.append(self.clock() - started)

    def mend(self, text: str, at: int, draw: random.Random) -> None:
        """The file with some characters gone from one line elsewhere, if that breaks it."""
        lines = text.split("\n")
        here = text.count("\n", 0, at)
        line = draw.randrange(len(lines))
        if abs(line - here) < 2 or len(lines[line].strip()) < 3:
            return
        begin = draw.randrange(len(lines[line]))
        lines[line] = lines[line][:begin] + lines[line][begin + draw.randint(1, 4) :]
        broken = "\n".join(lines)
        cut = len("\n".join(lines[:here])) + 1 if here else 0
        left, right = broken[:cut], broken[cut:]
        try:
            if self.language.open(left, right).guarantee != "none":
                return
            self.found.broken += 1
            mended = recover(self.language.open, left, right)
        except LanguageError:
            return
        if mended is not None:
            self.found.mended += 1
            self.found.left_out.append(sum(group.count for group in mended.ignored))
