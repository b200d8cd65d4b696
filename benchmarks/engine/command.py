"""``./dev bench engine``: what the engine takes at named positions of the running interpreter's standard library.

Nothing is downloaded. A seed fixes files, positions and holes, so that two runs measure the same work; what they print
is for people and judged by no test. Each figure stands beside what is asked of the engine now (``goal``) and what it is
to reach in the end (``budget``).
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import scaling
from benchmarks.engine.corpus import Library
from benchmarks.engine.positions import LANGUAGE, Position
from benchmarks.engine.samples import HOLE_CHARACTERS, Sample, draw_samples, files_of_size
from benchmarks.engine.vocabularies import (
    EMBEDDED_TOKENIZER,
    SYNTHETIC_CORPUS_CHARACTERS,
    SYNTHETIC_SIZE,
    Tokens,
    read_tokens,
    synthetic_tokens,
)
from benchmarks.families import measuring as family_table
from benchmarks.families.texts import Placement
from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.processes import Clock, Footprint, clock_of, footprint, in_own_process, peak_memory, timed
from benchmarks.report import (
    DONE,
    kind_of_time,
    machine,
    percentiles,
    progress_for,
    publish,
    setting_lines,
    shown,
)
from fim_server.errors import BenchError
from fim_server.language import Language, Matcher, Session
from fim_server.language.definition import compile as grammar
from fim_server.text.reuse import Sessions
from fim_server.text.terminal import Progress, Table
from fim_server.tokens.vocabulary import Vocabulary

OPEN_SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
"""Characters of the files that sessions are opened on."""

MASK_SIZE = "10k"
"""The files on which tokens are checked and masks computed."""

REPLAYS_PER_POSITION = 2
"""Holes per named position along which a mask is computed before every token."""

REPLAYED_TOKENS = 16
"""Tokens of a hole for which masks are computed."""

CACHED_LOADS = 3
"""Processes that load the language from its cache."""

OPEN_SESSIONS = 32
"""Sessions kept open at once to measure the memory of one."""

OPEN_GOALS = {"10k": "50 ms"}
OPEN_BUDGETS = {"10k": "10 ms"}
KEYSTROKES, KEYSTROKE_BUDGETS = 20, {"10k": "1 ms"}
CHECK_GOAL, CHECK_BUDGET = "50 µs", "5 µs"
COLD_MASK_BUDGET = "p99 500 µs"
MASK_BUDGET = "p50 5 µs, p99 100 µs, max 2 ms"
GROWTH_GOAL = "1 (linear)"
UNCACHED_LOAD_BUDGET, CACHED_LOAD_BUDGET = "2 s", "50 ms"
PREPARE_BUDGET = "2 s"
VOCABULARY_BUDGET, LANGUAGE_BUDGET, SESSION_BUDGET = "100 MB", "50 MB", "2 MB"


@dataclass(frozen=True)
class EngineOptions:
    """Options of ``./dev bench engine``."""

    positions: int
    files: int
    seed: int
    vocabulary: str | None
    cpu_time: bool
    json: bool
    scaling: bool = False
    plot: str | None = None
    families: bool = False
    language: str = LANGUAGE
    only: list[str] | None = None
    operations: tuple[str, ...] = family_table.DEFAULT_OPERATIONS
    cursors: tuple[Placement, ...] = family_table.DEFAULT_PLACEMENTS
    sizes: tuple[int, ...] | None = None
    long: bool = False
    all: bool = False
    repeats: int = 1
    most_seconds: int = family_table.SECONDS
    most_megabytes: int = family_table.MEGABYTES

    def of_families(self) -> family_table.FamiliesOptions:
        """Those of ``--families``."""
        sizes = self.sizes or (family_table.LONG_SIZES if self.long else family_table.SIZES)
        return family_table.FamiliesOptions(
            language=self.language,
            only=None if self.only is None else tuple(self.only),
            operations=self.operations,
            cursors=self.cursors,
            sizes=tuple(sorted(set(sizes))),
            repeats=self.repeats,
            seconds=self.most_seconds,
            megabytes=self.most_megabytes,
            all_lines=self.all,
            cpu_time=self.cpu_time,
            json=self.json,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench engine``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. Columns: n, measurements; goal, what is asked of the engine now; "
        "budget, what it is to reach in the end (both of the median where they do not say otherwise)."
    )
    parser.add_argument(
        "--positions", type=positive_count, default=8, metavar="N", help="samples of each named position (default: 8)"
    )
    parser.add_argument("--files", type=positive_count, default=6, metavar="N", help="files of each size (default: 6)")
    add_seed(parser, "the choice of both")
    parser.add_argument(
        "--vocabulary",
        metavar="PATH",
        help=f"the tokenizer.json of a large vocabulary (default: one of {SYNTHETIC_SIZE // 1000}k tokens, made from "
        "the library's own text)",
    )
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="count the processor time of this process instead of the clock's, where the machine has other work",
    )
    add_json(parser)
    scaling.add_arguments(parser)
    family_table.add_arguments(parser)


def run(options: EngineOptions) -> int:
    """Measure, print a table or JSON, and return the exit status.

    Raises:
        BenchError: The vocabulary cannot be read, there is no library to measure on, a plot cannot be written, no
            family has the name, or an option is for families alone.
    """
    if options.families:
        return family_table.run(options.of_families())
    if options.only or options.sizes or options.long or options.all:
        raise BenchError("--only, --sizes, --long and --all are options of --families")
    if options.scaling or options.plot is not None:
        return scaling.run(scaling.ScalingOptions(options.seed, options.cpu_time, options.json, options.plot))
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json)
    return DONE


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of the report; the figures are None where nothing was measured."""

    what: str
    position: str
    unit: str
    n: int
    p50: float | None
    p99: float | None
    max: float | None
    goal: str = ""
    budget: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = map(shown, (self.p50, self.p99, self.max))
        return self.what, self.position, str(self.n), *figures, self.unit, self.goal, self.budget


HEADER = ("what", "position", "n", "p50", "p99", "max", "", "goal", "budget")


def row(what: str, unit: str, values: Sequence[float], *, position: str = "", goal: str = "", budget: str = "") -> Row:
    """Return the row of a table that sums measurements up."""
    p50, p99, most = percentiles(values, 0.5, 0.99, 1.0)
    return Row(what, position, unit, len(values), p50, p99, most, goal, budget)


@dataclass
class Report:
    """Report: settings, figures, and wrong verdicts of the engine."""

    setting: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    sessions: int = 0
    exact_sessions: int = 0
    replayed_tokens: int = 0
    refused_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and a table."""
        yield from setting_lines(self.setting)
        yield ""
        yield Table(HEADER, [each.cells() for each in self.rows], numbers=range(2, 6))
        yield ""
        yield f"sessions with guarantee exact: {self.exact_sessions} of {self.sessions}"
        yield f"tokens of the true text refused: {self.refused_tokens} of {self.replayed_tokens}"


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(options: EngineOptions, progress: Progress) -> Report:
    """Everything, in the order of the table.

    Raises:
        BenchError: The vocabulary given cannot be read, or there is no library to measure on.
    """
    library = Library.of_this_interpreter()
    progress.say("reading vocabularies")
    embedded = read_tokens("embedded", EMBEDDED_TOKENIZER)
    if options.vocabulary is not None:
        large = read_tokens("given", Path(options.vocabulary))
    else:
        large = synthetic_tokens(library.text(SYNTHETIC_CORPUS_CHARACTERS), SYNTHETIC_SIZE)
    progress.say("choosing files and positions")
    samples = {
        name: draw_samples(
            files_of_size(library, size, random.Random(f"files {name} {options.seed}")),
            options.files,
            options.positions,
            random.Random(f"positions {name} {options.seed}"),
        )
        for name, size in OPEN_SIZES.items()
    }
    clock = clock_of(options.cpu_time)
    report = Report(setting(options, large, samples))
    progress.say("loading the language")
    report.rows += language_rows(clock)
    progress.say("preparing vocabularies")
    for tokens in (embedded, large):
        report.rows += vocabulary_rows(tokens, clock)
    language = Language.load(LANGUAGE)
    report.rows += open_rows(language, samples, clock, report, progress)
    report.rows += keystroke_rows(language, samples, clock, progress)
    for tokens in (embedded, large):
        report.rows += token_rows(language, tokens, samples[MASK_SIZE], clock, report, progress)
    progress.say(f"keeping {OPEN_SESSIONS} sessions open")
    report.rows.append(session_row(samples[MASK_SIZE], embedded, clock))
    peak = peak_memory()
    report.rows.append(row("peak memory of this run", "MB", [] if peak is None else [peak / 1e6]))
    return report


def setting(options: EngineOptions, large: Tokens, samples: dict[str, list[Sample]]) -> dict[str, str]:
    """The machine and the work, in words."""
    shares = (f"{sum(each.f_strings for each in drawn)} of {len(drawn)} ({size})" for size, drawn in samples.items())
    made = f"{large.vocabulary.size} substrings of the standard library, no model's own tokens"
    return {
        "machine": machine(),
        "files": f"{options.files} of each size from the standard library, {options.positions} samples of each "
        f"named position, seed {options.seed}",
        "contexts with f-strings": ", ".join(shares),
        "holes": f"up to {HOLE_CHARACTERS} characters, every other one ends at a line's end",
        "time": kind_of_time(options.cpu_time),
        "large vocabulary": f"synthetic: {made}" if options.vocabulary is None else options.vocabulary,
    }


def open_rows(
    language: Language, samples: dict[str, list[Sample]], clock: Clock, report: Report, progress: Progress
) -> Iterator[Row]:
    """Sessions opened cold: time by size and position, and how time grows with size."""
    language.open("", "")
    times: dict[str, list[float]] = {}
    for size, drawn in samples.items():
        what = f"open, {size} characters"
        times[size] = []
        for sample in progress.count(what, drawn):
            session, seconds = timed(clock, language.open, sample.left, sample.right)
            times[size].append(seconds)
            count_session(session, report)
            del session  # it would be released within the next measurement
        limits = {"goal": OPEN_GOALS.get(size, ""), "budget": OPEN_BUDGETS.get(size, "")}
        yield row(what, "ms", [1e3 * seconds for seconds in times[size]], **limits)
        yield from by_position(what, "ms", drawn, [1e3 * seconds for seconds in times[size]])
    for size, drawn in samples.items():
        per_character = [1e6 * t / sample.characters for t, sample in zip(times[size], drawn, strict=True)]
        yield row(f"open, per character at {size}", "µs", per_character)
    small, large = list(samples)[-2:]
    both = [*samples[small], *samples[large]]
    characters = np.log([sample.characters for sample in both])
    exponent = float(np.polyfit(characters, np.log([*times[small], *times[large]]), deg=1)[0])
    what = f"open, growth {small} to {large}: x of size^x"
    yield Row(what, "", "", len(both), exponent, None, None, GROWTH_GOAL)


def keystroke_rows(
    language: Language, samples: dict[str, list[Sample]], clock: Clock, progress: Progress
) -> Iterator[Row]:
    """Sessions opened after one more character left of the cursor, the last ones of each left context."""
    for size, drawn in samples.items():
        what = f"keystroke, {size} characters"
        times: list[float] = []
        for sample in progress.count(what, drawn):
            sessions, start = Sessions(), max(0, len(sample.left) - KEYSTROKES)
            sessions.open(language, sample.left[:start], sample.right)
            times.extend(
                timed(clock, sessions.open, language, sample.left[:end], sample.right)[1]
                for end in range(start + 1, len(sample.left) + 1)
            )
        yield row(what, "ms", [1e3 * seconds for seconds in times], budget=KEYSTROKE_BUDGETS.get(size, ""))


def by_position(what: str, unit: str, samples: Sequence[Sample], values: Sequence[float]) -> Iterator[Row]:
    """One row for each named position."""
    for position in Position:
        here = [value for sample, value in zip(samples, values, strict=True) if sample.position is position]
        yield row(what, unit, here, position=position)


def token_rows(
    language: Language, tokens: Tokens, samples: Sequence[Sample], clock: Clock, report: Report, progress: Progress
) -> Iterator[Row]:
    """Checks of single tokens along the true text, masks at the cursor, and masks along the true text."""
    checks: list[float] = []
    cold: list[float] = []
    warm: list[float] = []
    replayed: Counter[Position] = Counter()
    words = np.zeros(-(-tokens.vocabulary.size // 32), dtype=np.uint32)
    for sample in progress.count(f"tokens and masks, {tokens.label}", samples):
        session = language.open(sample.left, sample.right)
        count_session(session, report)
        if session.guarantee != "none":
            ids = tokens.tokenise(sample.middle)
            spent = list(check_along(session.matcher(tokens.vocabulary), ids, clock))
            checks += spent
            report.replayed_tokens += len(ids)
            report.refused_tokens += len(ids) > len(spent)
        matcher = session.matcher(tokens.vocabulary)
        cold.append(timed(clock, matcher.fill_mask, words)[1])
        if replayed[sample.position] < REPLAYS_PER_POSITION and session.guarantee != "none":
            replayed[sample.position] += 1
            warm += masks_along(matcher, words, tokens.tokenise(sample.middle)[:REPLAYED_TOKENS], clock)
    yield row(f"check one token, {tokens.label}", "µs", [1e6 * t for t in checks], goal=CHECK_GOAL, budget=CHECK_BUDGET)
    what = f"full mask at the cursor, {tokens.label}"
    yield row(what, "ms", [1e3 * seconds for seconds in cold], budget=COLD_MASK_BUDGET)
    yield from by_position(what, "ms", samples, [1e3 * seconds for seconds in cold])
    yield row(f"full mask, replay, {tokens.label}", "ms", [1e3 * seconds for seconds in warm], budget=MASK_BUDGET)


def count_session(session: Session, report: Report) -> None:
    report.sessions += 1
    report.exact_sessions += session.guarantee != "none"


def check_along(matcher: Matcher, ids: Sequence[int], clock: Clock) -> Iterator[float]:
    """Seconds to check and append each token; ends at one that is refused."""
    for token in ids:
        started = clock()
        if not matcher.allows(token):
            return
        matcher.commit(token)
        yield clock() - started


def masks_along(matcher: Matcher, words: NDArray[np.uint32], ids: Sequence[int], clock: Clock) -> Iterator[float]:
    """Seconds of the mask after each token; ends at one that is refused."""
    for token in ids:
        if not matcher.allows(token):
            return
        matcher.commit(token)
        yield timed(clock, matcher.fill_mask, words)[1]


# --- in processes of their own ------------------------------------------------------------------------------------


def load_language(cache: str, clock: Clock, name: str = LANGUAGE) -> Footprint:
    """Reads and compiles a language, or loads it from a cache folder that has it."""
    os.environ["FIM_SERVER_CACHE"] = cache
    return footprint(clock, lambda: Language(grammar.read_builtin(name)))


def prepare_vocabulary(tokens: list[bytes | None], end_token_ids: list[int], clock: Clock) -> Footprint:
    """Builds a vocabulary from its tokens."""
    return footprint(clock, lambda: Vocabulary(tokens, end_token_ids))


def open_sessions(
    samples: Sequence[Sample], tokens: list[bytes | None], end_token_ids: list[int], clock: Clock
) -> Footprint:
    """Opens sessions with a matcher each, and keeps them."""
    language, vocabulary = Language.load(LANGUAGE), Vocabulary(tokens, end_token_ids)

    def hold(sample: Sample) -> tuple[Session, Matcher]:
        session = language.open(sample.left, sample.right)
        matcher = session.matcher(vocabulary)
        matcher.is_complete()
        return session, matcher

    hold(samples[0])  # what the first one leaves behind serves the others
    return footprint(clock, lambda: [hold(sample) for sample in samples])


def language_rows(clock: Clock) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as cache:
        uncached = in_own_process(load_language, cache, clock)
        cached = [in_own_process(load_language, cache, clock) for _ in range(CACHED_LOADS)]
    yield row("load the language, uncached", "ms", [1e3 * uncached.seconds], budget=UNCACHED_LOAD_BUDGET)
    yield row("load the language, cached", "ms", [1e3 * load.seconds for load in cached], budget=CACHED_LOAD_BUDGET)
    yield memory_row("memory of the language", cached, budget=LANGUAGE_BUDGET)


def vocabulary_rows(tokens: Tokens, clock: Clock) -> Iterator[Row]:
    prepared = in_own_process(prepare_vocabulary, tokens.tokens, tokens.vocabulary.end_token_ids, clock)
    yield row(f"prepare the vocabulary, {tokens.label}", "ms", [1e3 * prepared.seconds], budget=PREPARE_BUDGET)
    yield memory_row(f"memory of the vocabulary, {tokens.label}", [prepared], budget=VOCABULARY_BUDGET)


def session_row(samples: Sequence[Sample], tokens: Tokens, clock: Clock) -> Row:
    kept = list(itertools.islice(itertools.cycle(samples), OPEN_SESSIONS))
    opened = in_own_process(open_sessions, kept, tokens.tokens, tokens.vocabulary.end_token_ids, clock)
    each = Footprint(opened.seconds, None if opened.growth is None else opened.growth // len(kept))
    return memory_row(f"memory of a session, {MASK_SIZE} characters", [each], budget=SESSION_BUDGET)


def memory_row(what: str, footprints: Sequence[Footprint], budget: str) -> Row:
    return row(what, "MB", [each.growth / 1e6 for each in footprints if each.growth is not None], budget=budget)
