"""``fim-server bench engine``: what the engine takes at named positions of the running interpreter's standard library.

Nothing is downloaded. A seed fixes files, positions and holes, so that two runs measure the same work; what they print
is for people and judged by no test. Each figure stands beside what is asked of the engine now (``goal``) and what it is
to reach in the end (``budget``).
"""

from __future__ import annotations

import argparse
import ast
import io
import itertools
import json
import keyword
import math
import multiprocessing
import os
import platform
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from fim_server.errors import BenchError, VocabularyError
from fim_server.language import compile as grammar
from fim_server.language.session import Language, Matcher, Session
from fim_server.text.reuse import Sessions
from fim_server.tokens.vocabulary import Vocabulary

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Clock = Callable[[], float]
"""Seconds from any start."""

DONE = 0

LANGUAGE = "python"
"""Positions are found by `tokenize`, which knows no other language."""

OPEN_SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
"""Characters of the files that sessions are opened on."""

MASK_SIZE = "10k"
"""The files on which tokens are checked and masks computed."""

SIZE_TOLERANCE = 0.2
"""How far a file may be off its size, as a share of it."""

MOST_CONCATENATIONS = 64
"""Texts made of several files, where too few files have a size."""

SPARE_FILES = 200
"""Files looked through for a position that none of the chosen has: few short ones have an f-string."""

HOLE_CHARACTERS = 120
"""Longest hole: the text between left and right, whose tokens are replayed."""

REPLAYS_PER_POSITION = 2
"""Holes per named position along which a mask is computed before every token."""

REPLAYED_TOKENS = 16
"""Tokens of a hole for which masks are computed."""

CACHED_LOADS = 3
"""Processes that load the language from its cache."""

OPEN_SESSIONS = 32
"""Sessions kept open at once to measure the memory of one."""

SYNTHETIC_SIZE = 151_669
"""Tokens of the vocabulary made from the library's text: as many as a large code model has."""

SYNTHETIC_CORPUS_CHARACTERS = 4_000_000
SYNTHETIC_LONGEST_TOKEN = 16
SYNTHETIC_PIECE = re.compile(r" ?[^\W\d_]+|_+[^\W\d_]*|\d|\s*\n\s*| ?[^\w\s]+|\s+")
"""Tokens do not cross these: words with the blank before them, digits, runs of punctuation, line breaks, blanks."""

EMBEDDED_TOKENIZER = Path(__file__).parents[1] / "models" / "embedded" / "tokenizer.json"

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server bench engine``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. Columns: n, measurements; goal, what is asked of the engine now; "
        "budget, what it is to reach in the end (both of the median where they do not say otherwise)."
    )
    parser.add_argument(
        "--positions", type=positive_count, default=8, metavar="N", help="samples of each named position (default: 8)"
    )
    parser.add_argument("--files", type=positive_count, default=6, metavar="N", help="files of each size (default: 6)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the choice of both (default: 0)")
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
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_engine_benchmark(arguments: argparse.Namespace) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: The vocabulary given cannot be read, or there is no library to measure on.
    """
    with Progress(enabled=sys.stderr.isatty() or not arguments.json) as progress:
        report = measure(arguments, progress)
    if arguments.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report.lines():
            print(line)
    return DONE


def positive_count(text: str) -> int:
    """An argument that is a number above 0."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


# --- named positions ----------------------------------------------------------------------------------------------


class Position(StrEnum):
    """Where a cursor stands."""

    IN_STRING = "IN_STRING"
    """Between two characters of a string."""
    IN_FIELD = "IN_FIELD"
    """In the braces of an f-string, before its format spec."""
    IN_COMMENT = "IN_COMMENT"
    """After the hash sign, up to the end."""
    MID_IDENTIFIER = "MID_IDENTIFIER"
    """Between two characters of a name."""
    AFTER_DOT = "AFTER_DOT"
    """Before an attribute's name."""
    AFTER_EQUALS = "AFTER_EQUALS"
    """After an assignment's equals sign."""
    IN_CALL = "IN_CALL"
    """Before an argument, right after the bracket or the comma."""
    LINE_END = "LINE_END"
    """At the end of a statement."""
    LINE_START_IN_BLOCK = "LINE_START_IN_BLOCK"
    """Before a statement in a block, after its indentation."""
    MID_INDENTATION = "MID_INDENTATION"
    """Inside the indentation of such a statement."""
    AFTER_COLON = "AFTER_COLON"
    """At the end of a line that opens a block."""
    BLANK_LINE = "BLANK_LINE"
    """At the start of a line of blanks between statements."""
    FILE_START = "FILE_START"
    FILE_END = "FILE_END"


STRING_PREFIX = re.compile(r"""[a-zA-Z]*("{3}|'{3}|"|')""")
F_STRING_PREFIX = re.compile(r"""(?:f|rf|fr)("{3}|'{3}|"|')""", re.IGNORECASE)
STRINGS = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_START", tokenize.STRING)})
"""Tokens that a string begins with; an f-string is one token up to Python 3.11."""
STRUCTURE = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER})
"""Tokens without a text of their own."""


def find_positions(text: str) -> dict[Position, list[range]]:
    """Every occurrence of every named position: the offsets, in characters, at which the cursor may stand there.

    Raises:
        SyntaxError, tokenize.TokenError: The text is no Python.
    """
    found: dict[Position, list[range]] = {position: [] for position in Position}
    found[Position.FILE_START].append(range(1))
    found[Position.FILE_END].append(range(len(text), len(text) + 1))
    starts = [0, *(line_break.end() for line_break in re.finditer("\n", text))]

    def add(position: Position, first: int, last: int) -> None:
        if first <= last:
            found[position].append(range(first, last + 1))

    def add_fields(start: int) -> None:
        if opened := F_STRING_PREFIX.match(text, start):
            for kind, offset in f_string_parts(text, opened.end(), opened[1]):
                if kind == "field":
                    add(Position.IN_FIELD, offset, offset)

    calls: list[bool] = []  # of each open bracket, whether it is a call's
    seen: list[tokenize.TokenInfo] = []  # the last two tokens of code
    in_definition = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in STRUCTURE:
            continue
        line = starts[token.start[0] - 1]
        start = line + token.start[1]
        end = start + len(token.string)
        before = seen[-1] if seen else None
        starts_line = before is None or before.type == tokenize.NEWLINE
        indentation = token.start[1]
        if token.type == tokenize.COMMENT:
            add(Position.IN_COMMENT, start + 1, end)
        elif token.type == tokenize.NL and not calls and not token.line.strip():
            add(Position.BLANK_LINE, line, line)
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        if starts_line and indentation and token.type != tokenize.NEWLINE:
            add(Position.LINE_START_IN_BLOCK, start, start)
            add(Position.MID_INDENTATION, line + 1, start - 1)
        if token.type == tokenize.NEWLINE and before is not None and before.type != tokenize.NEWLINE:
            at_colon = before.string == ":"
            ends_at = starts[before.end[0] - 1] + before.end[1]
            if ends_at == start and token.string:
                add(Position.AFTER_COLON if at_colon else Position.LINE_END, start, start)
        elif token.type == tokenize.STRING and (quote := STRING_PREFIX.match(token.string)):
            add(Position.IN_STRING, start + quote.end() + 1, end - len(quote[1]) - 1)
            add_fields(start)
        elif token.type in STRINGS:
            add_fields(start)
        elif token.type == tokenize.NAME:
            if is_name(token):
                add(Position.MID_IDENTIFIER, start + 1, end - 1)
                if len(seen) == 2 and is_name(seen[0]) and seen[1].string == "." and seen[1].end == token.start:
                    add(Position.AFTER_DOT, start, start)
            in_definition = in_definition or token.string in ("def", "class")
        elif token.type == tokenize.OP:
            if token.string in "([{":
                named = before is not None and is_name(before) and before.end == token.start
                calls.append(named and token.string == "(" and not in_definition)
            elif token.string in ")]}" and calls:
                calls.pop()
            in_definition = False
            if token.string in "(," and calls and calls[-1]:
                add(Position.IN_CALL, end, end)
            elif token.string == "=" and not calls:
                add(Position.AFTER_EQUALS, end, end)
        seen = [*seen[-1:], token]
    return found


def f_string_parts(text: str, start: int, quote: str) -> Iterator[tuple[str, int]]:
    """Every offset in an f-string, and whether it is in a `text`, `field`, `bracket` of a field, or format `spec`.

    The text has to parse; what strange but valid strings in fields do to the kinds is not worth a lexer.

    Args:
        text: The text around it.
        start: The offset after its opening quote, in characters.
        quote: That quote.
    """
    nested: list[str] = []
    offset = start
    while offset < len(text):
        inside = nested[-1] if nested else "text"
        yield inside, offset
        character = text[offset]
        if inside in ("text", "spec"):
            if not nested and text.startswith(quote, offset):
                return
            doubled = not nested and text[offset : offset + 2] in ("{{", "}}")
            if character == "{" and not doubled:
                nested.append("field")
            elif character == "}" and nested:
                nested.pop()
            offset += 2 if doubled or character == "\\" else 1
        elif character in "'\"":
            closed = text.find(character, offset + 1)
            offset = closed + 1 if closed > 0 else len(text)
        else:
            if character in "([{":
                nested.append("bracket")
            elif character in ")]}":
                nested.pop()
            elif character == ":" and inside == "field":
                nested[-1] = "spec"
            offset += 1


def is_name(token: tokenize.TokenInfo) -> bool:
    """Whether a token is an identifier."""
    return token.type == tokenize.NAME and not keyword.iskeyword(token.string)


# --- files and samples --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceFile:
    """A text that Python parses, and the named positions in it."""

    name: str
    text: str
    positions: dict[Position, list[range]] = field(repr=False)


@dataclass(frozen=True)
class Sample:
    """A cursor in a file, and the hole there: left + middle + right is the file."""

    position: Position
    file: str
    left: str
    middle: str
    right: str
    f_strings: bool = False
    """Whether the file has f-strings with fields."""

    @property
    def characters(self) -> int:
        """Characters of context, which is what the engine reads."""
        return len(self.left) + len(self.right)


class Library:
    """The standard library's own sources, without its tests and its tables of characters."""

    SKIPPED = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test", "encodings", "__pycache__"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def paths(self) -> list[Path]:
        """All files, sorted.

        Raises:
            BenchError: There are none.
        """
        found = sorted(
            path
            for path in self.folder.rglob("*.py")
            if not self.SKIPPED.intersection(path.relative_to(self.folder).parts)
        )
        if not found:
            raise BenchError(f"{self.folder}: no sources of the standard library to measure on")
        return found

    def read(self, path: Path) -> SourceFile | None:
        """A file that Python parses; None if this is none."""
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None
        return source_file(path.relative_to(self.folder).as_posix(), text)

    def files_of_size(self, size: int, draw: random.Random) -> Iterator[SourceFile]:
        """Files of about a size in random order, then concatenations of smaller ones."""
        close, smaller = [], []
        for path in self.paths:
            length = path.stat().st_size
            if abs(length - size) <= size * SIZE_TOLERANCE:
                close.append(path)
            elif length < size:
                smaller.append(path)
        draw.shuffle(close)
        yield from (file for path in close if (file := self.read(path)) is not None)
        for _ in range(MOST_CONCATENATIONS):
            draw.shuffle(smaller)
            text, parts = "", 0
            for file in filter(None, map(self.read, smaller)):
                if len(text) + len(file.text) <= size * (1 + SIZE_TOLERANCE):
                    text += file.text.rstrip("\n") + "\n\n\n"
                    parts += 1
                if len(text) >= size * (1 - SIZE_TOLERANCE):
                    joined = source_file(f"{parts} files in a row, {smaller[0].name} among them", text)
                    if joined is not None:
                        yield joined
                    break

    def text(self, characters: int) -> str:
        """The first characters of all files in a row."""
        parts: list[str] = []
        missing = characters
        for path in self.paths:
            with suppress(OSError, SyntaxError, UnicodeDecodeError), tokenize.open(path) as file:
                parts.append(file.read(missing))
                missing -= len(parts[-1])
            if missing <= 0:
                break
        return "".join(parts)


def source_file(name: str, text: str) -> SourceFile | None:
    """A text with its positions; None if Python does not parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
        return SourceFile(name, text, find_positions(text))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None


def draw_samples(files: Iterator[SourceFile], file_count: int, per_position: int, draw: random.Random) -> list[Sample]:
    """Samples of every named position, spread over some files; where none of them has a position, over a few more."""
    chosen = list(itertools.islice(files, file_count))
    spare = itertools.islice(files, SPARE_FILES)
    samples: list[Sample] = []
    for position in Position:
        holders = [file for file in chosen if file.positions[position]]
        while not holders:
            another = next(spare, None)
            if another is None:
                break
            chosen.append(another)
            holders = [file for file in chosen if file.positions[position]]
        samples.extend(
            draw_sample(holders[index % len(holders)], position, draw, to_line_end=index % 2 == 0)
            for index in range(per_position if holders else 0)
        )
    return samples


def draw_sample(file: SourceFile, position: Position, draw: random.Random, to_line_end: bool) -> Sample:
    """A cursor at a named position. Its hole ends at a line's end, as an editor's user leaves it, or anywhere."""
    start = draw.choice(draw.choice(file.positions[position]))
    limit = min(len(file.text), start + HOLE_CHARACTERS)
    end = file.text.rfind("\n", start, limit) if to_line_end else draw.randint(start, limit)
    end = end if end >= 0 else limit
    f_strings = bool(file.positions[Position.IN_FIELD])
    return Sample(position, file.name, file.text[:start], file.text[start:end], file.text[end:], f_strings)


# --- vocabularies -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """A vocabulary, and its tokens once more as byte strings."""

    name: str
    vocabulary: Vocabulary
    tokens: list[bytes | None] = field(repr=False)

    @property
    def label(self) -> str:
        """The name with the size."""
        return f"{self.name} {self.vocabulary.size // 1000}k"

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Token ids by byte string."""
        return {token: index for index, token in reversed(list(enumerate(self.tokens))) if token}

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token."""
        return max(map(len, self.ids), default=0)

    def tokenise(self, text: str) -> list[int]:
        """A text's tokens, the longest that fits first; stops where none fits."""
        return longest_first(self.ids, self.longest, text.encode())


def longest_first(ids: Mapping[bytes, int], longest: int, text: bytes) -> list[int]:
    """A text's tokens, the longest that fits first; stops where none fits.

    Args:
        ids: Token ids by byte string.
        longest: Bytes of the longest.
        text: The text.
    """
    found: list[int] = []
    start = 0
    while start < len(text):
        for length in range(min(longest, len(text) - start), 0, -1):
            if (token := ids.get(text[start : start + length])) is not None:
                found.append(token)
                start += length
                break
        else:
            break
    return found


def read_tokens(name: str, path: Path) -> Tokens:
    """The vocabulary of a tokenizer.json.

    Raises:
        BenchError: It cannot be read.
    """
    try:
        vocabulary = Vocabulary.from_file(path)
    except VocabularyError as error:
        raise BenchError(str(error)) from error
    return Tokens(name, vocabulary, [vocabulary.token_bytes(index) or None for index in range(vocabulary.size)])


def synthetic_tokens(text: str, size: int) -> Tokens:
    """A vocabulary from a text: an end token, every byte, and the commonest substrings of its words.

    It stands in for a large model's in size and in the shape of its trie, not in its very tokens.
    """
    counts: Counter[str] = Counter()
    for piece, count in Counter(SYNTHETIC_PIECE.findall(text)).items():
        for start in range(min(len(piece), SYNTHETIC_LONGEST_TOKEN)):
            for end in range(start + 2, min(len(piece), start + SYNTHETIC_LONGEST_TOKEN) + 1):
                counts[piece[start:end]] += count
    commonest = sorted(counts, key=lambda substring: (-counts[substring], substring))
    tokens: list[bytes | None] = [None, *(bytes([byte]) for byte in range(256))]
    tokens += [substring.encode() for substring in commonest[: max(size - len(tokens), 0)]]
    return Tokens("synthetic", Vocabulary(tokens, [0]), tokens)


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


def row(what: str, unit: str, values: Sequence[float], *, position: str = "", goal: str = "", budget: str = "") -> Row:
    """Sums measurements up. Percentiles are measured values: the least one that so many do not exceed."""
    ordered = sorted(values)

    def rank(share: float) -> float | None:
        return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None

    return Row(what, position, unit, len(ordered), rank(0.5), rank(0.99), rank(1.0), goal, budget)


@dataclass
class Report:
    """What was measured, on what, and what the engine said meanwhile."""

    setting: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    sessions: int = 0
    exact_sessions: int = 0
    replayed_tokens: int = 0
    refused_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The report as an aligned table."""
        yield from (f"{name}: {value}" for name, value in self.setting.items())
        yield ""
        header = ("what", "position", "n", "p50", "p99", "max", "", "goal", "budget")
        cells = [
            (
                *(each.what, each.position, str(each.n)),
                *(shown(figure) for figure in (each.p50, each.p99, each.max)),
                *(each.unit, each.goal, each.budget),
            )
            for each in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        for line in (header, *cells):
            aligned = (
                cell.rjust(width) if 2 <= index <= 5 else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield "  ".join(aligned).rstrip()
        yield ""
        yield f"sessions with guarantee exact: {self.exact_sessions} of {self.sessions}"
        yield f"tokens of the true text refused: {self.refused_tokens} of {self.replayed_tokens}"


def shown(value: float | None) -> str:
    """A figure with three significant digits, and never more than those before the point."""
    if value is None:
        return "-"
    digits = 0 if value == 0 else 2 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(digits, 0), 3)}f}"


class Progress:
    """Names the work under way on standard error: one changing line on a terminal, a line for each stage elsewhere."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._terminal = sys.stderr.isatty()
        self._shown_at = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._enabled and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def say(self, stage: str) -> None:
        """A stage begins."""
        if self._enabled:
            line = f"\r\x1b[K{stage} ..." if self._terminal else f"{stage} ...\n"
            print(line, end="", file=sys.stderr, flush=True)

    def count(self, stage: str, samples: Sequence[Sample]) -> Iterator[Sample]:
        """Goes through a stage's samples."""
        self.say(stage)
        for number, sample in enumerate(samples, start=1):
            if self._terminal and time.monotonic() - self._shown_at > 0.2:
                self._shown_at = time.monotonic()
                self.say(f"{stage} {number}/{len(samples)}")
            yield sample


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Everything, in the order of the table.

    Raises:
        BenchError: The vocabulary given cannot be read, or there is no library to measure on.
    """
    library = Library(Path(sysconfig.get_path("stdlib")))
    progress.say("reading vocabularies")
    embedded = read_tokens("embedded", EMBEDDED_TOKENIZER)
    if arguments.vocabulary is not None:
        large = read_tokens("given", Path(arguments.vocabulary))
    else:
        large = synthetic_tokens(library.text(SYNTHETIC_CORPUS_CHARACTERS), SYNTHETIC_SIZE)
    progress.say("choosing files and positions")
    samples = {
        name: draw_samples(
            library.files_of_size(size, random.Random(f"files {name} {arguments.seed}")),
            arguments.files,
            arguments.positions,
            random.Random(f"positions {name} {arguments.seed}"),
        )
        for name, size in OPEN_SIZES.items()
    }
    clock: Clock = time.process_time if arguments.cpu_time else time.perf_counter
    report = Report(setting(arguments, large, samples))
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


def machine() -> str:
    """The processor, its load and the interpreter, in words."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{processor()}, {os.cpu_count()} CPUs{load}, {platform.system()}, Python {platform.python_version()}"


def setting(arguments: argparse.Namespace, large: Tokens, samples: dict[str, list[Sample]]) -> dict[str, str]:
    """The machine and the work, in words."""
    shares = (f"{sum(each.f_strings for each in drawn)} of {len(drawn)} ({size})" for size, drawn in samples.items())
    made = f"{large.vocabulary.size} substrings of the standard library, no model's own tokens"
    return {
        "machine": machine(),
        "files": f"{arguments.files} of each size from the standard library, {arguments.positions} samples of each "
        f"named position, seed {arguments.seed}",
        "contexts with f-strings": ", ".join(shares),
        "holes": f"up to {HOLE_CHARACTERS} characters, every other one ends at a line's end",
        "time": kind_of_time(arguments.cpu_time),
        "large vocabulary": f"synthetic: {made}" if arguments.vocabulary is None else arguments.vocabulary,
    }


def kind_of_time(cpu_time: bool) -> str:
    return "processor time of this process" if cpu_time else "the clock's"


def processor() -> str:
    """The CPU's name."""
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def timed(clock: Clock, work: Callable[..., Result], *given: object) -> tuple[Result, float]:
    """What the work returns, and its seconds. The result lives on: releasing it is not measured."""
    started = clock()
    result = work(*given)
    return result, clock() - started


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
    report.exact_sessions += session.guarantee == "exact"


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
#
# Memory that a process has freed serves it again unseen, and Lark stays imported: both are measured once a process.


@dataclass(frozen=True)
class Footprint:
    """What some work took: seconds, and how much the process grew by it in bytes, where the system tells."""

    seconds: float
    growth: int | None


def in_own_process(
    work: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Result:
    """Runs a function of this module in a fresh interpreter."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **named).result()


def footprint(clock: Clock, work: Callable[[], object]) -> Footprint:
    """Does the work and keeps its result until its memory has been read."""
    before = resident_memory()
    result, seconds = timed(clock, work)
    after = resident_memory()
    del result
    return Footprint(seconds, None if before is None or after is None else after - before)


def load_language(cache: str, clock: Clock) -> Footprint:
    """Reads and compiles the language, or loads it from a cache folder that has it."""
    os.environ["FIM_SERVER_CACHE"] = cache
    return footprint(clock, lambda: Language(grammar.read_builtin(LANGUAGE)))


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


def resident_memory() -> int | None:
    """Bytes of memory this process holds now; None where the system does not tell."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, check=False)
        return int(shown.stdout) * 1024
    return None


def peak_memory() -> int | None:
    """Bytes of memory this process held at most; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, everyone else kilobytes
