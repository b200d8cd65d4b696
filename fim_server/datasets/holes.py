"""Holes in a text: their draws, and the constructions that every language shares.

A construction draws from a generator that is seeded with the construction's name and version, the seed and the SHA-256
of the file's text. So a file's holes do not depend on other files, on the number of holes asked for, on the process,
the interpreter's hash seed or interruptions of a build.

Holes are not empty, and differ within a file. After `TRIES` draws in a row in vain the file gives no more. A sample's
``left + middle + right`` is the file, so the middle always parses.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

Item = TypeVar("Item")

VERSION = 1
"""Version of the constructions, a part of the seed and of every sample's id; raise it when they draw other holes."""

TRIES = 64
"""Most draws in a row in vain."""

PER_FILE = 10
"""Holes of a file, as in the paper."""

START_SHARE = 0.9
"""RANDSPAN: last start of a hole, as a share of the file's characters."""
SPAN_CHARACTERS = 100
"""RANDSPAN: longest hole."""
SPAN_SHARE = 0.2
"""RANDSPAN: longest hole as a share of the file."""

BLOCK_LINES = 30
"""Longest hole of the set `block`; no user expects a whole class as a completion."""


LONGEST_FILE = 5_000_000
"""Most characters of a file, which bounds the memory of a build: CPython's parser takes some hundred bytes for each."""


class Refused(Exception):
    """Refusal of a file; the message is the reason in a few words, the same for all files of its kind."""


class Cut(NamedTuple):
    """Hole: ``text[start:end]`` is the middle."""

    kind: str
    start: int
    end: int


class Draws:
    """Random choices that are the same in every process and version of Python.

    They use only `random.Random.random`, whose sequence for a seed is documented to stay the same.
    """

    def __init__(self, construction: str, seed: int, sha256: str) -> None:
        key = f"{construction}/{VERSION}/{seed}/{sha256}".encode()
        self._random = random.Random(int.from_bytes(hashlib.sha256(key).digest(), "big"))

    def below(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``."""
        return int(self._random.random() * bound)

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items. Raises IndexError if there is none."""
        return items[self.below(len(items))]


Draw = Callable[[Draws], Cut | None]
"""Draw of a hole in a file; None is a draw in vain."""


class Placed(Protocol):
    """Symbol of a file: offsets of its first character and after its last one, and the number of its block."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def block(self) -> int: ...


class Marked(Protocol):
    """Text with the marks that the shared constructions need."""

    @property
    def text(self) -> str: ...
    @property
    def symbols(self) -> Sequence[Placed]: ...
    @property
    def whole_lines(self) -> Sequence[tuple[int, int]]:
        """Offsets of the first character that is no blank and of the end of each line with a symbol.

        Lines that share a string or another lexeme with another line are left out.
        """


File = TypeVar("File", bound=Marked)


class Constructions(dict[str, Callable[[File], Draw | None]], Generic[File]):
    """Constructions of a language by the name of their set.

    A construction takes a file, and returns how to draw holes from it; None where there is nothing to draw.
    """

    def cuts(self, construction: str, file: File, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        """Yield up to ``count`` holes of a construction in a file. ``sha256``: of the text's UTF-8, hexadecimal.

        Raises:
            KeyError: There is no such construction.
            Refused: The construction needs the file's symbols, and `tokenize` refuses the file.
        """
        return drawn(self[construction](file), Draws(construction, seed, sha256), count)


def drawn(draw: Draw | None, draws: Draws, count: int) -> Iterator[Cut]:
    """Yield up to ``count`` different holes that are not empty."""
    if draw is None:
        return
    taken: set[tuple[int, int]] = set()
    while len(taken) < count:
        for _ in range(TRIES):
            cut = draw(draws)
            if cut is not None and cut.start < cut.end and (cut.start, cut.end) not in taken:
                break
        else:
            return
        taken.add((cut.start, cut.end))
        yield cut


def any_of(found: Sequence[Cut]) -> Draw | None:
    """Draw one of some holes, all equally likely."""
    if not found:
        return None
    return lambda draws: draws.choice(found)


def between_symbols(symbols: Sequence[Placed]) -> Draw | None:
    """Draw STACK-BOUNDARY: the text between two symbols of one block, with a random part of the first.

    The first draw takes any symbol whose block has another one, the second any other symbol of that block, all equally
    likely. The one further left is the first. The hole starts at one of its characters or at its end, all equally
    likely, and ends where the second symbol begins.
    """
    blocks: dict[int, list[Placed]] = {}
    for symbol in symbols:
        blocks.setdefault(symbol.block, []).append(symbol)
    choices = [(symbol, block) for block in blocks.values() if len(block) > 1 for symbol in block]
    places = {symbol.start: place for block in blocks.values() for place, symbol in enumerate(block)}
    if not choices:
        return None

    def draw(draws: Draws) -> Cut:
        one, block = draws.choice(choices)
        other = draws.below(len(block) - 1)
        other += other >= places[one.start]
        first, second = sorted((one, block[other]), key=lambda symbol: symbol.start)
        return Cut("stack-boundary", first.start + draws.below(first.end - first.start + 1), second.start)

    return draw


def random_span(text: str) -> Draw | None:
    """Draw STACK-RANDSPAN: a random span of characters.

    The paper (arXiv 2402.17988, section VII-A) wants a start up to 90 % through the file, and a length up to 100
    characters, 20 % of the file, or the file's end. Here, positions and lengths are in characters. The start is any
    offset from 0 to 90 % of the length, rounded down, all equally likely. Every length from 1 to the least bound is
    equally likely. The paper's program always removes 20 % of the file. A file of fewer than 5 characters has no hole.
    """
    length = len(text)
    longest = min(SPAN_CHARACTERS, int(length * SPAN_SHARE))
    if longest < 1:
        return None

    def draw(draws: Draws) -> Cut:
        start = draws.below(int(length * START_SHARE) + 1)
        return Cut("stack-randspan", start, start + 1 + draws.below(min(longest, length - start)))

    return draw


def rest_of_line(text: str, whole: Sequence[tuple[int, int]]) -> Draw | None:
    """Draw the rest of a line, from a random character but the first to its end; a blank rest is a draw in vain."""
    lines = [(start, end) for start, end in whole if end - start > 1]
    if not lines:
        return None

    def draw(draws: Draws) -> Cut | None:
        first, end = draws.choice(lines)
        start = first + 1 + draws.below(end - first - 1)
        return None if text[start:end].isspace() else Cut("line-rest", start, end)

    return draw


def line(file: Marked) -> Draw | None:
    """Draw a line from its first character that is no blank to its end; lines of comments alone are left out."""
    return any_of([Cut("line", start, end) for start, end in file.whole_lines])


SHARED: dict[str, Callable[[Marked], Draw | None]] = {
    "stack-boundary": lambda file: between_symbols(file.symbols),
    "stack-randspan": lambda file: random_span(file.text),
    "line": line,
    "line-rest": lambda file: rest_of_line(file.text, file.whole_lines),
}
"""Constructions of every language."""
