"""Lines as texts, and what a language's definition says that may be put in the place of lines that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, product

from fim_server.errors import SearchLimitError
from fim_server.language import State
from fim_server.language.spelling import Spelling

MOST_CLOSED = 3
"""Brackets that are closed together by one text."""

RANKS = 12
"""Places in the order of stand-ins: the language's own lines come first, then brackets, and what closes them last."""


@dataclass(frozen=True)
class Insertions:
    """What a repair may write.

    Attributes:
        stand_ins: Lines that may stand for one that is left out, as far right as it or as what is above it: those of
            the language, then its opening brackets. They are tried like all else and kept only where the parser takes
            them, so a language without such lines has only the other repairs.
        statements: Those that need nothing after them.
        openings: Opening brackets.
        closings: Lines that may stand for one that held the end of brackets as well.
        endings: What a middle may have to end of the left side. Only where none is right its shortest completion is
            asked for, which takes a fifth of a second where a block is open that something has to follow.
        joints: What a middle may have to begin for the right side, by which such a middle is tried.
        headers: The same, on a line of its own.
        settles: A file could end between most of its statements, as it can where indentation ends them. Where brackets
            do, it hardly ever can.
    """

    stand_ins: tuple[str, ...]
    statements: tuple[str, ...]
    openings: tuple[str, ...]
    closings: tuple[str, ...]
    endings: tuple[str, ...]
    joints: tuple[str, ...]
    headers: tuple[str, ...]
    settles: bool = True

    def rank(self, line: str) -> int:
        """The place of a stand-in or closing, without its indentation, in the order in which they are preferred."""
        if line in self.openings:
            return RANKS - len(self.openings) + self.openings.index(line)
        return self.stand_ins.index(line) if line in self.stand_ins else RANKS


@lru_cache(maxsize=64)
def insertions(spelling: Spelling) -> Insertions:
    """What a repair may write in a language."""
    openings = tuple(dict.fromkeys(opening for opening, _ in spelling.brackets))
    closers = tuple(dict.fromkeys(closing for _, closing in spelling.brackets))
    values = tuple(dict.fromkeys(("", spelling.placeholder)))
    closings = tuple(
        value + "".join(brackets)
        for depth in range(1, MOST_CLOSED + 1)
        for value in values
        for brackets in product(closers, repeat=depth)
    )
    opener = spelling.block_opener
    return Insertions(
        stand_ins=(*spelling.stand_ins, *openings),
        statements=tuple(line for line in spelling.stand_ins if not (opener and line.endswith(opener))),
        openings=openings,
        closings=closings,
        endings=(*values, *closings),
        joints=spelling.joints,
        headers=spelling.headers,
        settles=bool(opener),
    )


def in_place(stand_in: str | None) -> str:
    """What is put in the place of a line."""
    return "" if stand_in is None else stand_in + "\n"


BLANKS = " \t\f"


def completion(state: State) -> str | None:
    try:
        return state.shortest_completion()
    except SearchLimitError:
        return None


def size(text: str) -> int:
    """Bytes that the engine takes if it takes all. Lone surrogates it refuses; they must only not raise here."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def line_at(lines: Sequence[str], offset: int) -> int:
    """Index of the line that has the byte at an offset."""
    return sum(end <= offset for end in accumulate(map(size, lines)))


def blanks_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip(BLANKS))
