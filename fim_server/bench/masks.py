"""``fim-server bench masks``: what token masks take along real files, with a large vocabulary and beside peers.

Files are replayed token by token at cursors that a seed chooses: left and right of a cursor are given, and before each
token of the true middle the whole mask is computed. The mask must allow that token, and an end token after the last;
so every figure stands on answers that are right at least there. What it prints is for people and judged by no test.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import itertools
import json
import math
import random
import re
import sys
import sysconfig
import tempfile
import textwrap
import time
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fim_server.bench import engine as bench
from fim_server.bench import json_documents, peers, plot, scaling
from fim_server.bench.engine import DONE
from fim_server.errors import BenchError
from fim_server.language.session import Language, Matcher
from fim_server.tokens import masks
from fim_server.tokens.vocabulary import Vocabulary

REFUSED = 1
"""Exit status where a true token was refused, or a mask differs from its plain twin."""

LANGUAGES = {"python": (".py",), "json": (".json", ".geojson")}
"""What can be measured, and the suffixes of its files."""

SIZES = range(400, 100_000)
"""Characters of the files that are measured; where a folder has none of these, all that are not empty."""

LINE_START = re.compile(r"^[ \t\f]*(?=\S)", re.MULTILINE)

CHARACTERS_PER_TOKEN = 12
"""A middle is looked for in so many characters for each token; only runs of blanks have tokens that are longer."""

CLEARED_MASKS = 200
"""Masks that are each computed with empty caches."""

BATCH_ROUNDS = 32
"""Masks of each matcher of a batch."""

BATCH_STRIDE = 3
"""By how many tokens matchers of one cursor are apart in a batch."""

SHOWN_DIFFERENCES = 10

WARM_BUDGET = "mean 20, p50 5, p99 100, max 2,000"
COLD_BUDGET = "p99 500"

COLD, WARM, OTHERS, CLEARED, PLAIN, COMMIT = (
    "mask, caches cold",
    "mask, caches warm",
    "mask, other files then",
    "mask, cleared before each",
    "mask, plain walk",
    "commit",
)


CURVES = {WARM: "warm", COLD: "cold", OTHERS: "other files then", CLEARED: "cleared before each"}
"""What the plot shows, and as what; the first is the solid line."""

ENGINE = "fim-server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server bench masks``."""
    parser.epilog = (
        "Exit status: 0 measured, 1 a true token was refused or --verify found a difference, 2 bad input. Times are in "
        "microseconds. cold: language and vocabulary are loaded, the caches of masks are empty at the start of a "
        "pass over all cursors; warm: a second pass with new sessions and matchers."
    )
    parser.add_argument("--vocabulary", required=True, metavar="TOKENIZER.json", help="a model's tokenizer.json")
    parser.add_argument(
        "--language",
        action="append",
        choices=sorted(LANGUAGES),
        help="what to measure; may be given several times (default: python)",
    )
    parser.add_argument(
        "--corpus",
        metavar="FOLDER",
        help="files to replay (default: the standard library for python, generated documents for json)",
    )
    parser.add_argument(
        "--files", type=bench.positive_count, default=12, metavar="N", help="files to replay (default: 12)"
    )
    parser.add_argument(
        "--cursors", type=bench.positive_count, default=4, metavar="N", help="cursors in each (default: 4)"
    )
    parser.add_argument(
        "--steps",
        type=bench.positive_count,
        default=64,
        metavar="N",
        help="tokens of a middle at most (default: 64)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the choice of all (default: 0)")
    parser.add_argument(
        "--batch",
        type=sizes,
        default=(1, 4, 16, 64, 256),
        metavar="N,N,...",
        help="sizes of batches (default: 1,4,16,64,256)",
    )
    parser.add_argument("--verify", action="store_true", help="compare every mask with the plain walk's")
    parser.add_argument("--peers", action="store_true", help="measure llguidance and glrmask, too, if installed")
    parser.add_argument(
        "--peer-seconds",
        type=bench.positive_count,
        default=600,
        metavar="S",
        help="give a peer up after this (default: 600)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", metavar="FILE.svg", help="write a plot of the times' distributions")
    parser.add_argument("--output", metavar="FILE.md", help="write the tables as Markdown")


def sizes(text: str) -> tuple[int, ...]:
    """Numbers above 0 with commas between them."""
    return tuple(bench.positive_count(part) for part in text.split(","))


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: The vocabulary or the corpus cannot be read, or a result cannot be written.
    """
    with bench.Progress(enabled=sys.stderr.isatty() or not arguments.json) as progress:
        report = measure(arguments, progress)
    if arguments.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report.lines():
            print(line)
    for path, text in ((arguments.plot, report.as_svg), (arguments.output, report.as_markdown)):
        if path is not None:
            try:
                Path(path).write_text(text(), encoding="utf-8")
            except OSError as error:
                raise BenchError(f"{path}: {error.strerror}") from error
    return REFUSED if report.wrong() else DONE


# --- the corpus ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Document:
    """A file's text, which its language's own parser takes."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class Cursor:
    """A hole in a file: left + middle + right is its text, and the ids are the middle's tokens."""

    file: str
    offset: int
    left: str = field(repr=False)
    middle: str = field(repr=False)
    right: str = field(repr=False)
    ids: list[int] = field(repr=False)


def documents(language: str, folder: Path | None, count: int, seed: int) -> Iterator[Document]:
    """Files in random order: a folder's, or the language's default ones.

    Raises:
        BenchError: The folder has none.
    """
    if folder is None and language == "json":
        yield from (
            Document(f"generated {number}", json_documents.document(f"{seed} {number}")) for number in range(count)
        )
        return
    paths = files(language, folder)
    random.Random(f"masks {language} {seed}").shuffle(paths)
    found = (Document(path.name, text) for path in paths if (text := read(language, path)))
    wanted = list(itertools.islice((each for each in found if len(each.text) in SIZES), count))
    if not wanted:
        again = (Document(path.name, text) for path in paths if (text := read(language, path)))
        wanted = list(itertools.islice(again, count))
    if not wanted:
        raise BenchError(f"{folder}: no {language} files to measure on")
    yield from wanted


def files(language: str, folder: Path | None) -> list[Path]:
    """All paths of a language in a folder, sorted; the standard library's if there is none.

    Raises:
        BenchError: No such folder.
    """
    if folder is None:
        return list(bench.Library(Path(sysconfig.get_path("stdlib"))).paths)
    if not folder.is_dir():
        raise BenchError(f"{folder}: no such folder")
    return sorted(path for path in folder.rglob("*") if path.suffix in LANGUAGES[language] and path.is_file())


def read(language: str, path: Path) -> str | None:
    """A file's text; None if its language's own parser does not take it."""
    try:
        if language == "json":
            text = path.read_text(encoding="utf-8")
            json.loads(text, parse_constant=not_json)
            return text
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = file.read()
            ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text


def not_json(name: str) -> None:
    """Refuses the numbers that Python's reader takes and JSON lacks."""
    raise ValueError(name)


def cursors(document: Document, vocabulary: Vocabulary, count: int, steps: int, seed: int) -> Iterator[Cursor]:
    """Cursors in a file: every other one before a line's first symbol, the others anywhere.

    Those are left out whose middle has no tokens.
    """
    draw = random.Random(f"masks {document.name} {seed}")
    text = document.text
    starts = [found.end() for found in LINE_START.finditer(text)]
    for number in range(count):
        at = draw.choice(starts) if number % 2 == 0 and starts else draw.randrange(max(len(text) - 1, 1))
        with suppress(ValueError):  # the vocabulary lacks some bytes
            middle = first_tokens(text[at : at + steps * CHARACTERS_PER_TOKEN], vocabulary, steps)
            ids = vocabulary.encode(middle)
            yield Cursor(document.name, at, text[:at], middle, text[at + len(middle) :], ids)


def first_tokens(text: str, vocabulary: Vocabulary, count: int) -> str:
    """The beginning of a text that so many tokens make, or a bit less, so that it ends between characters.

    Raises:
        ValueError: The vocabulary has no tokens for the text.
    """
    data = b"".join(map(vocabulary.token_bytes, vocabulary.encode(text)[:count]))
    return data.decode("utf-8", "ignore") or text[:1]


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Times of one kind, in µs; None where nothing was measured.

    Attributes:
        language: What was parsed.
        system: Who did it.
        what: What was timed.
        right: Whether the right context counted.
        indentation: Whether indentation did; None if the language has none.
        budget: What is asked, in µs.
    """

    language: str
    system: str
    what: str
    right: bool
    indentation: bool | None
    n: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    budget: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = (self.mean, self.p50, self.p95, self.p99, self.max)
        indentation = {True: "yes", False: "no", None: "-"}[self.indentation]
        language = f"{self.language}, flat" if self.indentation is False else self.language
        described = (language, self.system, self.what, "yes" if self.right else "no", indentation)
        return (*described, f"{self.n:,}", *map(bench.shown, figures), self.budget)


HEADER = ("language", "system", "what", "R", "indent", "n", "mean", "p50", "p95", "p99", "max", "budget")


@dataclass(frozen=True)
class Fact:
    """One more figure, or why there is none."""

    language: str
    system: str
    what: str
    value: float | int | None
    unit: str = ""
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        value = f"{self.value:,}" if isinstance(self.value, int) else bench.shown(self.value)
        value = "" if self.note and self.value is None else value
        return self.language, self.system, self.what, f"{value} {self.unit if value else ''}".strip(), self.note


FACTS_HEADER = ("language", "system", "what", "value", "note")


@dataclass
class Report:
    """What was measured, on what, and what was wrong meanwhile."""

    setting: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    steps: int = 0
    refused_tokens: int = 0
    refused_ends: int = 0
    verified_masks: int = 0
    differing_masks: int = 0
    differences: list[str] = field(default_factory=list)
    picture: str = ""
    """The plot's file name, if there is one."""
    curves: dict[str, dict[tuple[str, str], Sequence[float]]] = field(default_factory=dict, repr=False)
    """Times in µs by language, system and kind, for the plot; neither is part of the JSON."""

    def wrong(self) -> bool:
        """Whether the engine gave an answer that is known to be wrong."""
        return bool(self.refused_tokens or self.refused_ends or self.differing_masks)

    def add(self, row: Row, values: Sequence[float] = ()) -> None:
        """One more row; its values in seconds put it into the plot."""
        self.rows.append(row)
        if values:
            name = f"{row.system}, {'with' if row.right else 'without'} R" if row.system == ENGINE else row.system
            self.curves.setdefault(row.language, {})[name, CURVES[row.what]] = [1e6 * value for value in values]

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {name: value for name, value in asdict(self).items() if name not in ("curves", "picture")}

    def as_svg(self) -> str:
        """A panel for each language."""
        kinds = list(CURVES.values())
        panels = []
        for language, curves in self.curves.items():
            names = list(dict.fromkeys(name for name, _ in curves))
            ordered = sorted(curves, key=lambda key: (names.index(key[0]), kinds.index(key[1])))
            series = {key: curves[key] for key in ordered}
            title = f"Token masks: {language}"
            panels.append(plot.Distribution(title, "time of a mask, µs", "share of the masks", series))
        return plot.svg(panels)

    def verdicts(self) -> Iterator[str]:
        """What was right, and what was not."""
        yield f"true next tokens refused: {self.refused_tokens} of {self.steps}; ends refused: {self.refused_ends}"
        if self.verified_masks:
            yield f"masks that differ from the plain walk's: {self.differing_masks} of {self.verified_masks}"
        yield from self.differences

    def lines(self) -> Iterator[str]:
        """The report as aligned tables."""
        yield from (f"{name}: {value}" for name, value in self.setting.items())
        yield ""
        yield from aligned(HEADER, [row.cells() for row in self.rows], range(5, 11))
        yield ""
        yield from aligned(FACTS_HEADER, [fact.cells() for fact in self.facts], range(3, 4))
        yield ""
        yield from self.verdicts()

    def as_markdown(self) -> str:
        """The report as a page of `docs/results`."""
        lines = ["# Token masks along real files", "", f"    {self.setting['command']}", ""]
        lines += [f"- {name}: {value}" for name, value in self.setting.items() if name != "command"]
        lines += ["", *textwrap.wrap(EXPLAINED, 118), ""]
        lines += (
            [f"![Shares of masks by their time, on a logarithmic axis]({self.picture})", ""] if self.picture else []
        )
        lines += markdown(HEADER, [row.cells() for row in self.rows], range(5, 11))
        lines += ["", *markdown(FACTS_HEADER, [fact.cells() for fact in self.facts], range(3, 4)), ""]
        lines += [f"- {line}" for line in self.verdicts()]
        return "\n".join([*lines, ""])


EXPLAINED = """
Times are in µs, from Python, into a buffer that is there already. R: whether the right context counts, so that a token
is only allowed if the whole file can still parse; indent: whether Python's indentation does. *Cold*: language and
vocabulary are loaded, and the caches of masks are empty at the start of a pass over all cursors. *Warm*: a second pass
with new sessions and matchers. *Other files then*: a first pass over as many other files after that, which is what an
editor meets. *Cleared before each*: no mask is cached at all. Peers have neither right context nor indentation; each
replays the left context untimed, in a process of its own.
"""


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]], numbers: range) -> Iterator[str]:
    """A table in columns; those with numbers end at one place."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    for line in (header, *lines):
        cells = (
            cell.rjust(width) if index in numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]], numbers: range) -> Iterator[str]:
    """A table in Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join("---:" if index in numbers else "---" for index in range(len(header))) + "|"
    yield from ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def summed(row: Row, values: Sequence[float]) -> Row:
    """A row with the figures of measurements in seconds. Percentiles are measured values."""
    ordered = sorted(values)
    if not ordered:
        return row

    def rank(share: float) -> float:
        return 1e6 * ordered[math.ceil(share * len(ordered)) - 1]

    figures = (len(ordered), 1e6 * math.fsum(ordered) / len(ordered), *map(rank, (0.5, 0.95, 0.99, 1.0)))
    named = dict(zip(("n", "mean", "p50", "p95", "p99", "max"), figures, strict=True))
    return Row(**{**asdict(row), **named})


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass
class Pass:
    """One replay of all cursors; times in seconds."""

    fills: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    steps: int = 0
    refused: int = 0
    refused_ends: int = 0


@dataclass(frozen=True)
class Subject:
    """A language, its vocabulary and the cursors: what is measured."""

    name: str
    language: Language
    vocabulary: Vocabulary
    cursors: list[Cursor]
    others: list[Cursor]
    """Cursors in other files, or none."""

    @cached_property
    def words(self) -> NDArray[np.uint32]:
        """A mask. Shape: [ceil(vocabulary size / 32)]."""
        return np.zeros(-(-self.vocabulary.size // 32), dtype=np.uint32)

    @property
    def indentation(self) -> bool | None:
        return True if self.name == "python" else None

    def clear(self) -> None:
        """Empties the caches of masks."""
        masks.clear(self.language, self.vocabulary)

    def open(self, cursor: Cursor, right: bool) -> Matcher:
        """A new session's matcher, with the right context or without."""
        return self.language.open(cursor.left, cursor.right if right else "").matcher(self.vocabulary)

    def row(self, what: str, right: bool, values: Sequence[float], budget: str = "") -> Row:
        """A row of this engine."""
        empty = Row(self.name, ENGINE, what, right, self.indentation, 0, None, None, None, None, None, budget)
        return summed(empty, values)

    def fact(self, what: str, value: float | int | None, unit: str = "", note: str = "") -> Fact:
        return Fact(self.name, ENGINE, what, value, unit, note)


def measure(arguments: argparse.Namespace, progress: bench.Progress) -> Report:
    """Everything, in the order of the tables.

    Raises:
        BenchError: The vocabulary or the corpus cannot be read.
    """
    progress.say("reading the vocabulary")
    tokens = bench.read_tokens("given", Path(arguments.vocabulary))
    folder = None if arguments.corpus is None else Path(arguments.corpus)
    chosen = {}
    for name in dict.fromkeys(arguments.language or ["python"]):
        progress.say(f"choosing cursors, {name}")
        chosen[name] = choose(name, folder, tokens, arguments)
    picture = "" if arguments.plot is None else Path(arguments.plot).name
    report = Report(setting(arguments, tokens, chosen), picture=picture)
    for name, (here, others) in chosen.items():
        subject = Subject(name, Language.load(name), tokens.vocabulary, here, others)
        measure_engine(subject, tokens, arguments, report, progress)
        if arguments.peers:
            measure_peers(subject, tokens, arguments.peer_seconds, report, progress)
    return report


def choose(
    name: str, folder: Path | None, tokens: bench.Tokens, arguments: argparse.Namespace
) -> tuple[list[Cursor], list[Cursor]]:
    """Cursors in the files that are measured, and in as many others if there are so many.

    Raises:
        BenchError: There is no file, or none has a cursor.
    """
    found = list(documents(name, folder, 2 * arguments.files, arguments.seed))
    parts = found[: arguments.files], found[arguments.files :]
    here, others = (
        [
            cursor
            for document in part
            for cursor in cursors(document, tokens.vocabulary, arguments.cursors, arguments.steps, arguments.seed)
        ]
        for part in parts
    )
    if not here:
        raise BenchError(f"{arguments.vocabulary}: its tokens cannot spell the {name} files to measure on")
    return here, others


def setting(
    arguments: argparse.Namespace, tokens: bench.Tokens, chosen: dict[str, tuple[list[Cursor], list[Cursor]]]
) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""

    def corpus(name: str) -> str:
        if arguments.corpus is not None:
            return f"{name} files of {Path(arguments.corpus).name}"
        return "the standard library" if name == "python" else "generated JSON documents"

    counts = (
        f"{len(here)} cursors in {len({cursor.file for cursor in here})} files of {corpus(name)}"
        for name, (here, _) in chosen.items()
    )
    vocabulary = Path(arguments.vocabulary).name
    options = [f"--vocabulary {vocabulary}", *(f"--language {name}" for name in chosen)]
    options += [f"--corpus {Path(arguments.corpus).name}"] if arguments.corpus is not None else []
    options += [f"--{name} {getattr(arguments, name)}" for name in ("files", "cursors", "steps", "seed")]
    options += [f"--{name}" for name in ("verify", "peers") if getattr(arguments, name)]
    return {
        "command": f"fim-server bench masks {' '.join(options)}",
        "machine": bench.machine(),
        "cursors": f"{'; '.join(counts)}; seed {arguments.seed}, every other one at the start of a line's code",
        "middles": f"about {arguments.steps} tokens, as the tokenizer cuts them",
        "vocabulary": f"{vocabulary}, {tokens.vocabulary.size:,} tokens",
    }


def measure_engine(
    subject: Subject, tokens: bench.Tokens, arguments: argparse.Namespace, report: Report, progress: bench.Progress
) -> None:
    """All rows of this engine."""
    name = subject.name
    progress.say(f"preparing, {name}")
    report.facts += prepared_facts(subject, tokens)
    prepared = masks.prepare(subject.language, subject.vocabulary)
    report.facts.append(subject.fact("token table", prepared.bytes / 1e6, "MB"))
    for right in (True, False):
        with_right = "with R" if right else "without R"
        subject.clear()
        for what, budget in ((COLD, COLD_BUDGET), (WARM, WARM_BUDGET)):
            progress.say(f"{what}, {name} {with_right}")
            done = replayed(subject, subject.cursors, right)
            count(done, report, ends=right)
            report.add(subject.row(what, right, done.fills, budget if right else ""), done.fills)
            if what == COLD:
                report.facts += cache_facts(subject, with_right)
        report.add(subject.row(COMMIT, right, done.commits))
        different = len(set(replayed_masks(subject, right)))
        report.facts.append(
            subject.fact(f"distinct masks {with_right}", different, note=f"in {len(done.fills):,} steps")
        )
        if right and subject.others:
            progress.say(f"{OTHERS}, {name}")
            done = replayed(subject, subject.others, right)
            count(done, report)
            report.add(subject.row(OTHERS, right, done.fills, WARM_BUDGET), done.fills)
    report.facts.append(subject.fact("mean of a warm mask with R, over without", ratio(report.rows, name)))
    progress.say(f"{CLEARED}, {name}")
    every = max(sum(len(cursor.ids) for cursor in subject.cursors) // CLEARED_MASKS, 1)
    done = replayed(subject, subject.cursors, True, clear_every=every)
    count(done, report)
    report.add(subject.row(CLEARED, True, done.fills, COLD_BUDGET), done.fills)
    replayed(subject, subject.cursors, True)
    for size in arguments.batch:
        progress.say(f"batches of {size}, {name}")
        report.add(subject.row(f"mask in batches of {size}, caches warm", True, batch(subject, size)))
    if arguments.verify:
        progress.say(f"verifying, {name}")
        report.add(subject.row(PLAIN, True, list(verify(subject, report))))


def count(done: Pass, report: Report, ends: bool = True) -> None:
    """Adds what a pass found wrong; without R nothing need end where a middle does."""
    report.steps += done.steps
    report.refused_tokens += done.refused
    report.refused_ends += done.refused_ends if ends else 0


def ratio(rows: Sequence[Row], name: str) -> float | None:
    """Mean of warm masks with R, divided by that without."""
    with_right, without = (
        next((row.mean for row in rows if (row.language, row.what, row.right) == (name, WARM, right)), None)
        for right in (True, False)
    )
    return with_right / without if with_right is not None and without else None


def replayed(subject: Subject, chosen: Sequence[Cursor], right: bool, clear_every: int = 0) -> Pass:
    """Masks along the middles of some cursors, with new sessions and matchers.

    Args:
        subject: The language and the vocabulary.
        chosen: The cursors.
        right: Whether the right context counts.
        clear_every: If not 0, masks at every so manieth step only, each with empty caches.
    """
    done = Pass()
    words = subject.words
    ends = subject.vocabulary.end_token_ids
    clock = time.perf_counter
    for cursor in chosen:
        matcher = subject.open(cursor, right)
        gc.collect()
        gc.disable()  # or some masks would pay for the garbage of all
        try:
            for token_id in cursor.ids:
                done.steps += 1
                if clear_every == 0 or done.steps % clear_every == 0:
                    if clear_every:
                        subject.clear()
                    started = clock()
                    matcher.fill_mask(words)
                    done.fills.append(clock() - started)
                    if not contains(words, token_id):
                        done.refused += 1
                        break
                started = clock()
                matcher.commit(token_id)
                done.commits.append(clock() - started)
            else:
                matcher.fill_mask(words)
                done.refused_ends += bool(ends) and not all(contains(words, token_id) for token_id in ends)
        finally:
            gc.enable()
    return done


def contains(words: NDArray[np.uint32], token_id: int) -> bool:
    """Whether a packed mask allows a token."""
    return bool(int(words[token_id >> 5]) >> (token_id & 31) & 1)


def replayed_masks(subject: Subject, right: bool) -> Iterator[bytes]:
    """The masks along all middles, as digests; not timed, because reading them all takes longer than some do."""
    for cursor in subject.cursors:
        matcher = subject.open(cursor, right)
        for token_id in cursor.ids:
            matcher.fill_mask(subject.words)
            yield hashlib.sha256(subject.words.tobytes()).digest()
            if not contains(subject.words, token_id):
                break
            matcher.commit(token_id)


def cache_facts(subject: Subject, with_right: str) -> Iterator[Fact]:
    """What one pass over all cursors leaves in the caches; what they hold need not be whole masks."""
    found = masks.statistics(subject.language, subject.vocabulary)
    note = f"{found['hits']:,} hits, {found['misses']:,} misses"
    yield subject.fact(f"states cached in the cold pass {with_right}", found["masks"], note=note)
    yield subject.fact(f"masks cached in the cold pass {with_right}", found["distinct"])
    yield subject.fact(f"their memory {with_right}", found["bytes"] / 1e6, "MB")


def batch(subject: Subject, size: int) -> list[float]:
    """Seconds a mask, for each round of a batch that a pool of threads fills.

    Matchers are at different steps: those of one cursor are apart by a few tokens, and start again at its end.
    """
    words = np.zeros((size, len(subject.words)), dtype=np.uint32)
    matchers, ids, at = [], [], []
    for number in range(size):
        cursor = subject.cursors[number % len(subject.cursors)]
        start = number // len(subject.cursors) * BATCH_STRIDE % len(cursor.ids)
        matcher = subject.open(cursor, True)
        for token_id in cursor.ids[:start]:
            matcher.commit(token_id)
        matchers.append(matcher)
        ids.append(cursor.ids)
        at.append(start)
    masks.fill_masks(matchers, words)  # wakes the threads
    spent = []
    for _ in range(BATCH_ROUNDS):
        started = time.perf_counter()
        masks.fill_masks(matchers, words)
        spent.append((time.perf_counter() - started) / size)
        for number, matcher in enumerate(matchers):
            if at[number] == len(ids[number]):
                matcher.rollback(at[number])
                at[number] = 0
            else:
                matcher.commit(ids[number][at[number]])
                at[number] += 1
    return spent


def verify(subject: Subject, report: Report) -> Iterator[float]:
    """Compares the masks along all middles, with R and without, computed and cached, with the plain walk's.

    Yields:
        Seconds of the plain walk, where the right context counts.
    """
    subject.clear()
    words = subject.words
    plain = np.zeros_like(words)
    for right in (True, False):
        for cursor in subject.cursors:
            matcher = subject.open(cursor, right)
            for step in range(len(cursor.ids) + 1):
                started = time.perf_counter()
                matcher.fill_mask_plain(plain)
                if right:
                    yield time.perf_counter() - started
                for kind in ("computed", "cached"):
                    matcher.fill_mask(words)
                    report.verified_masks += 1
                    differ = np.bitwise_xor(words, plain)
                    if differ.any():
                        report.differing_masks += 1
                        if len(report.differences) < SHOWN_DIFFERENCES:
                            tokens = np.flatnonzero(np.unpackbits(differ.view(np.uint8), bitorder="little"))
                            report.differences.append(difference(cursor, right, step, kind, tokens, subject))
                if step < len(cursor.ids):
                    if not contains(plain, cursor.ids[step]):
                        break
                    matcher.commit(cursor.ids[step])


def difference(cursor: Cursor, right: bool, step: int, kind: str, tokens: NDArray[np.intp], subject: Subject) -> str:
    """Where a mask differs, in one line."""
    shown = ", ".join(repr(subject.vocabulary.token_bytes(int(index))) for index in tokens[:4])
    where = f"{cursor.file}, cursor at character {cursor.offset}, {'with' if right else 'without'} R, step {step}"
    return f"difference: {subject.name}, {where}, {kind}: {len(tokens)} tokens, {shown}"


# --- in processes of their own ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preparation:
    """What a process took that prepares a language and a vocabulary for masks; memory in bytes, where it is known."""

    seconds: float
    cached: bool
    growth: int | None
    peak: int | None


def prepare_once(
    name: str, tokens: list[bytes | None], end_token_ids: list[int], holes: Sequence[tuple[str, str, list[int]]]
) -> Preparation:
    """Prepares, then computes the masks of some cursors; to be run in a process of its own.

    Args:
        name: The language.
        tokens: The vocabulary's byte strings.
        end_token_ids: Its end tokens.
        holes: Left, right and the middle's tokens.
    """
    scaling.release_free_memory()
    scaling.forget_peak()
    before = bench.resident_memory()
    language, vocabulary = Language.load(name), Vocabulary(tokens, end_token_ids)
    prepared = masks.prepare(language, vocabulary)
    growth = peers.growth(before, bench.resident_memory())
    subject = Subject(name, language, vocabulary, [], [])
    replayed(subject, [Cursor("", 0, left, "", right, ids) for left, right, ids in holes], True)
    return Preparation(prepared.seconds, prepared.cached, growth, peers.growth(before, scaling.peak_memory()))


def prepared_facts(subject: Subject, tokens: bench.Tokens) -> Iterator[Fact]:
    """Preparing with an empty cache on disk, then with what that left there."""
    given = (subject.name, tokens.tokens, subject.vocabulary.end_token_ids)
    holes = [(cursor.left, cursor.right, cursor.ids) for cursor in subject.cursors]
    with tempfile.TemporaryDirectory() as cache:
        uncached = bench.in_own_process(with_cache, cache, *given, [])
        again = bench.in_own_process(with_cache, cache, *given, holes)
    yield subject.fact("prepare, uncached", uncached.seconds, "s", "budget 2 s")
    yield subject.fact("prepare, cached", again.seconds if again.cached else None, "s", "budget 0.020 s")
    for what, size in (
        ("memory at the peak of preparing, uncached", uncached.peak),
        ("memory of language, vocabulary and tables", again.growth),
        ("memory at the peak of a pass", again.peak),
    ):
        yield subject.fact(what, None if size is None else size / 1e6, "MB")


def with_cache(cache: str, *given: Any) -> Preparation:
    """`prepare_once` with a cache folder of its own."""
    import os

    os.environ["FIM_SERVER_CACHE"] = cache
    return prepare_once(*given)


# --- peers --------------------------------------------------------------------------------------------------------


def measure_peers(
    subject: Subject, tokens: bench.Tokens, most_seconds: float, report: Report, progress: bench.Progress
) -> None:
    """Rows of the peers, at the same steps."""
    ends = subject.vocabulary.end_token_ids
    jobs, others = (
        [peers.Job(cursor.left.encode(), subject.vocabulary.encode(cursor.left), cursor.ids) for cursor in chosen]
        for chosen in (subject.cursors, subject.others)
    )
    work = peers.Work(subject.name, tokens.tokens, ends[0] if ends else None, jobs, others)
    indentation = False if subject.name == "python" else None
    for peer in peers.PEERS:
        progress.say(f"{peer.name}, {subject.name}")
        outcome = peers.run(peer, work, most_seconds)
        if not outcome.ran:
            report.facts.append(Fact(subject.name, outcome.name, "not measured", None, note=outcome.note))
            continue
        times = {COLD: outcome.cold, WARM: outcome.warm, OTHERS: outcome.others, COMMIT: outcome.commits}
        for what, values in times.items():
            row = Row(subject.name, outcome.name, what, False, indentation, 0, None, None, None, None, None)
            report.add(summed(row, values), values if what in CURVES else ())
        memory = (("memory when prepared", outcome.prepared_memory), ("memory at the peak", outcome.peak_memory))
        report.facts += [
            Fact(subject.name, outcome.name, "prepare", outcome.preparation, "s", outcome.note),
            *(Fact(subject.name, outcome.name, what, None if n is None else n / 1e6, "MB") for what, n in memory),
            Fact(subject.name, outcome.name, "true next tokens refused", outcome.refused, note=f"of {outcome.steps:,}"),
            Fact(subject.name, outcome.name, "cursors whose left text is refused", outcome.refused_left),
        ]
