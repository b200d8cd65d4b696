"""``./dev bench masks``: times of token masks along real files, with a large vocabulary and beside peers.

Files are replayed token by token at cursors that a seed chooses. The texts left and right of a cursor are given, and
the whole mask is computed before each token of the true middle. It must allow that token, and an end token after the
last one, so every figure stands on right answers. No test judges the figures.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import plot
from benchmarks.engine.cursors import Choice, Cursor, choose
from benchmarks.engine.masks_report import (
    CLEARED,
    COLD,
    COMMIT,
    CURVES,
    ENGINE,
    OTHERS,
    PLAIN,
    WARM,
    Fact,
    Report,
    Row,
    summed,
)
from benchmarks.engine.vocabularies import Tokens, read_tokens
from benchmarks.options import add_json, add_seed, positive_count, positive_counts
from benchmarks.peers import running
from benchmarks.peers.engines import PEERS
from benchmarks.peers.jobs import Job, Work
from benchmarks.processes import (
    clock_of,
    forget_peak,
    growth,
    in_own_process,
    peak_since_forgotten,
    release_free_memory,
    resident_memory,
)
from benchmarks.report import DONE, machine, megabytes, progress_for, publish
from fim_server.errors import BenchError
from fim_server.language import Language, Matcher
from fim_server.text.terminal import Progress
from fim_server.tokens import masks
from fim_server.tokens.vocabulary import Vocabulary

REFUSED = 1
"""Exit status where a true token was refused, or a mask differs from its plain twin."""

CLEARED_MASKS = 200
"""Masks that are each computed with empty caches."""

BATCH_ROUNDS = 32
"""Masks of each matcher of a batch."""

BATCH_STRIDE = 3
"""By how many tokens matchers of one cursor are apart in a batch."""

SHOWN_DIFFERENCES = 10

WARM_BUDGET = "mean 20, p50 5, p99 100, max 2,000"
COLD_BUDGET = "p99 500"


@dataclass(frozen=True)
class MasksOptions:
    """Options of ``./dev bench masks``."""

    vocabulary: str
    language: list[str] | None
    corpus: str | None
    files: int
    cursors: int
    steps: int
    seed: int
    batch: tuple[int, ...]
    verify: bool
    peers: bool
    peer_seconds: int
    cpu_time: bool
    json: bool
    plot: str | None
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench masks``."""
    parser.epilog = (
        "Exit status: 0 measured, 1 a true token was refused or --verify found a difference, 2 bad input. Times are in "
        "microseconds. cold: language and vocabulary are loaded, the caches of masks are empty at the start of a "
        "pass over all cursors; warm: a second pass with new sessions and matchers."
    )
    parser.add_argument("--vocabulary", required=True, metavar="TOKENIZER.json", help="a model's tokenizer.json")
    parser.add_argument(
        "--language",
        action="append",
        choices=Language.names(),
        help="what to measure; may be given several times (default: python)",
    )
    parser.add_argument(
        "--corpus",
        metavar="FOLDER",
        help="files to replay (default: the standard library for python, generated documents for json; other languages "
        "need one)",
    )
    parser.add_argument("--files", type=positive_count, default=12, metavar="N", help="files to replay (default: 12)")
    parser.add_argument("--cursors", type=positive_count, default=4, metavar="N", help="cursors in each (default: 4)")
    parser.add_argument(
        "--steps",
        type=positive_count,
        default=64,
        metavar="N",
        help="tokens of a middle at most (default: 64)",
    )
    add_seed(parser, "the choice of all")
    parser.add_argument(
        "--batch",
        type=positive_counts,
        default=(1, 4, 16, 64, 256),
        metavar="N,N,...",
        help="sizes of batches (default: 1,4,16,64,256)",
    )
    parser.add_argument("--verify", action="store_true", help="compare every mask with the plain walk's")
    parser.add_argument("--peers", action="store_true", help="measure llguidance and glrmask, too, if installed")
    parser.add_argument(
        "--peer-seconds",
        type=positive_count,
        default=600,
        metavar="S",
        help="give a peer up after this (default: 600)",
    )
    parser.add_argument(
        "--cpu-time", action="store_true", help="count processor time, except in batches and plain walks"
    )
    add_json(parser)
    parser.add_argument("--plot", metavar="FILE.svg", help="write a plot of the times' distributions")
    parser.add_argument("--output", metavar="FILE.md", help="write the tables as Markdown")


def run(options: MasksOptions) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: The vocabulary or the corpus cannot be read, or a result cannot be drawn or written.
    """
    if options.plot is not None:
        plot.check_installed()
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    files = ((options.plot, report.as_svg), (options.output, report.as_markdown))
    publish(report, options.json, {path: text for path, text in files if path is not None})
    return REFUSED if report.wrong() else DONE


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
    cpu_time: bool = False
    """True if times of single masks and commits are processor times."""

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


def measure(options: MasksOptions, progress: Progress) -> Report:
    """Everything, in the order of the tables.

    Raises:
        BenchError: The vocabulary or the corpus cannot be read.
    """
    progress.say("reading the vocabulary")
    tokens = read_tokens("given", Path(options.vocabulary))
    folder = None if options.corpus is None else Path(options.corpus)
    choice = Choice(folder, options.files, options.cursors, options.steps, options.seed)
    subjects = []
    for name in dict.fromkeys(options.language or ["python"]):
        progress.say(f"choosing cursors, {name}")
        here, others = choose(name, tokens.vocabulary, choice)
        if not here:
            raise BenchError(f"{options.vocabulary}: its tokens cannot spell the {name} files to measure on")
        subjects.append(Subject(name, Language.load(name), tokens.vocabulary, here, others, options.cpu_time))
    picture = "" if options.plot is None else Path(options.plot).name
    report = Report(setting(options, tokens, subjects), picture=picture)
    for subject in subjects:
        measure_engine(subject, tokens, options, report, progress)
        if options.peers:
            measure_peers(subject, tokens, options.peer_seconds, report, progress)
    return report


def setting(options: MasksOptions, tokens: Tokens, subjects: Sequence[Subject]) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""

    def corpus(name: str) -> str:
        if options.corpus is not None:
            return f"{name} files of {Path(options.corpus).name}"
        return "the standard library" if name == "python" else "generated JSON documents"

    counts = (
        f"{len(each.cursors)} cursors in {len({cursor.file for cursor in each.cursors})} files of {corpus(each.name)}"
        for each in subjects
    )
    vocabulary = Path(options.vocabulary).name
    given = [f"--vocabulary {vocabulary}", *(f"--language {each.name}" for each in subjects)]
    given += [f"--corpus {Path(options.corpus).name}"] if options.corpus is not None else []
    given += [f"--{name} {getattr(options, name)}" for name in ("files", "cursors", "steps", "seed")]
    given += [f"--{name}" for name in ("verify", "peers") if getattr(options, name)]
    given += ["--cpu-time"] if options.cpu_time else []
    return {
        "command": f"./dev bench masks {' '.join(given)}",
        "machine": machine(),
        "cursors": f"{'; '.join(counts)}; seed {options.seed}, every other one at the start of a line's code",
        "middles": f"about {options.steps} tokens, as the tokenizer cuts them",
        "vocabulary": f"{vocabulary}, {tokens.vocabulary.size:,} tokens",
    }


def measure_engine(subject: Subject, tokens: Tokens, options: MasksOptions, report: Report, progress: Progress) -> None:
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
    for size in options.batch:
        progress.say(f"batches of {size}, {name}")
        report.add(subject.row(f"mask in batches of {size}, caches warm", True, batch(subject, size)))
    if options.verify:
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
    clock = clock_of(subject.cpu_time)
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
    """Return whether a packed mask allows a token."""
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
    """State of the caches after one pass over all cursors; they need not hold whole masks."""
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
    """Describe a difference between masks and its place, in one line."""
    shown = ", ".join(repr(subject.vocabulary.token_bytes(int(index))) for index in tokens[:4])
    where = f"{cursor.file}, cursor at character {cursor.offset}, {'with' if right else 'without'} R, step {step}"
    return f"difference: {subject.name}, {where}, {kind}: {len(tokens)} tokens, {shown}"


# --- in processes of their own ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preparation:
    """Cost of preparing a language and a vocabulary for masks in a process; memory in bytes, where it is known."""

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
    release_free_memory()
    forget_peak()
    before = resident_memory()
    language, vocabulary = Language.load(name), Vocabulary(tokens, end_token_ids)
    prepared = masks.prepare(language, vocabulary)
    kept = growth(before, resident_memory())
    subject = Subject(name, language, vocabulary, [], [])
    replayed(subject, [Cursor("", 0, left, "", right, ids) for left, right, ids in holes], True)
    return Preparation(prepared.seconds, prepared.cached, kept, growth(before, peak_since_forgotten()))


def prepared_facts(subject: Subject, tokens: Tokens) -> Iterator[Fact]:
    """Preparing with an empty cache on disk, then with what that left there."""
    given = (subject.name, tokens.tokens, subject.vocabulary.end_token_ids)
    holes = [(cursor.left, cursor.right, cursor.ids) for cursor in subject.cursors]
    with tempfile.TemporaryDirectory() as cache:
        uncached = in_own_process(with_cache, cache, *given, [])
        again = in_own_process(with_cache, cache, *given, holes)
    yield subject.fact("prepare, uncached", uncached.seconds, "s", "budget 2 s")
    yield subject.fact("prepare, cached", again.seconds if again.cached else None, "s", "budget 0.020 s")
    for what, size in (
        ("memory at the peak of preparing, uncached", uncached.peak),
        ("memory of language, vocabulary and tables", again.growth),
        ("memory at the peak of a pass", again.peak),
    ):
        yield subject.fact(what, megabytes(size), "MB")


def with_cache(cache: str, *given: Any) -> Preparation:
    """`prepare_once` with a cache folder of its own."""
    os.environ["FIM_SERVER_CACHE"] = cache
    return prepare_once(*given)


# --- peers --------------------------------------------------------------------------------------------------------


def measure_peers(subject: Subject, tokens: Tokens, most_seconds: float, report: Report, progress: Progress) -> None:
    """Rows of the peers, at the same steps."""
    ends = subject.vocabulary.end_token_ids
    jobs, others = (
        [Job(cursor.left.encode(), subject.vocabulary.encode(cursor.left), cursor.ids) for cursor in chosen]
        for chosen in (subject.cursors, subject.others)
    )
    work = Work(subject.name, tokens.tokens, ends[0] if ends else None, jobs, others, subject.cpu_time)
    indentation = False if subject.name == "python" else None
    for peer in PEERS:
        progress.say(f"{peer.name}, {subject.name}")
        outcome = running.run(peer, work, most_seconds)
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
            *(Fact(subject.name, outcome.name, what, megabytes(n), "MB") for what, n in memory),
            Fact(subject.name, outcome.name, "true next tokens refused", outcome.refused, note=f"of {outcome.steps:,}"),
            Fact(subject.name, outcome.name, "cursors whose left text is refused", outcome.refused_left),
        ]
