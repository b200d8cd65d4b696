"""Texts of lines, and texts that a language's definition provides for the place of left-out lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, product

from fim_server.errors import SearchLimitError
from fim_server.language import State
from fim_server.language.spelling import Spelling

MOST_CLOSED = 3
"""Brackets that one text closes together."""

RANKS = 12
"""Ranks of stand-ins: the language's own lines come first, then opening brackets, closings last."""


@dataclass(frozen=True)
class Insertions:
    """Texts that a repair may write.

    Attributes:
        stand_ins: Lines that may stand for a left-out one, indented as it or as the line above it: the language's own,
            then its opening brackets. A repair keeps one only if the parser takes it.
        statements: Those that need nothing after them.
        openings: Opening brackets.
        closings: Lines that may stand for one that also held the end of brackets.
        endings: Ends of the left side that a middle may need. If none is right, a repair asks for the shortest
            completion, which takes a fifth of a second where a block is open that needs a body.
        joints: Beginnings for the right side by which a middle is tried.
        headers: The same, on a line of their own.
        settles: True if a file could end between most of its statements, as where indentation ends them. Where brackets
            do, it hardly ever could.
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
        """Return the rank of a stand-in or closing, without its indentation; lower ones are preferred."""
        if line in self.openings:
            return RANKS - len(self.openings) + self.openings.index(line)
        return self.stand_ins.index(line) if line in self.stand_ins else RANKS


@lru_cache(maxsize=64)
def insertions(spelling: Spelling) -> Insertions:
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
    return "" if stand_in is None else stand_in + "\n"


BLANKS = " \t\f"


def completion(state: State) -> str | None:
    try:
        return state.shortest_completion()
    except SearchLimitError:
        return None


def size(text: str) -> int:
    """Return the bytes of a text in the engine; lone surrogates, which the engine refuses, raise nothing here."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def line_at(lines: Sequence[str], offset: int) -> int:
    return sum(end <= offset for end in accumulate(map(size, lines)))


def blanks_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip(BLANKS))
