"""Verdicts on the other programs of a notebook: an item is exact only if each of them parses.

None of them depends on the cursor, so each is parsed once. One that does not parse is left out: the guarantee is
`partial` then, and still covers the cursor's cell.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from fim_server.language.stop import heed

if TYPE_CHECKING:
    from fim_server.language import Language, Session
    from fim_server.suggest.context.sessions import Opened
    from fim_server.text.notebook import CellContexts, Unit

SECONDS = 0.2
"""Seconds of work that parsing them may take for one request; the rest is parsed for the next one."""

MOST_CHARACTERS = 4_000_000
"""Characters of programs that are remembered."""

MOST_NAMED = 8
"""Most broken cells in a message."""


class OtherCells:
    """Memory of the programs of a notebook that parse. Used by one thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Language, str], int | None] = OrderedDict()
        self._characters = 0
        self._empty: tuple[Language, Session] | None = None
        """Session of an empty program."""
        self._lately: list[tuple[Language, tuple[Unit, ...], tuple[tuple[Unit, int], ...]]] = []
        """Results of the last calls: the programs of other cells stay the same objects while the user types in one."""

    def judged(self, opened: Opened, cell: CellContexts, language: Language) -> Opened:
        """Return the session of a cell, with the guarantee that the notebook's other cells leave it."""
        if opened.guarantee == "none":
            return opened
        broken: list[tuple[Unit, int]] = []
        ends, is_read = time.thread_time() + SECONDS, True
        for units in cell.units:
            found = self._broken_of(language, units, ends)
            is_read = is_read and found is not None
            broken += found or ()
        if is_read and not broken:
            return opened
        gone = {line for unit, _ in broken if not unit.cell for line in lines_of(unit.text)}
        diagnostics = [diagnostic(unit, found) for unit, found in broken[:MOST_NAMED]]
        if not is_read:
            diagnostics.append("not all cells of the notebook are read yet")
        return replace(
            opened,
            guarantee="partial",
            covered_lines=without(opened.covered_lines or (range(cell.lines),), gone, cell.before.count("\n")),
            diagnostics=(*opened.diagnostics, *diagnostics),
            unread=not is_read,
        )

    def _broken_of(
        self, language: Language, units: tuple[Unit, ...], ends: float
    ) -> tuple[tuple[Unit, int], ...] | None:
        """Return the programs that do not parse; None without time to check all."""
        for known in self._lately:
            if known[0] is language and known[1] is units:
                return known[2]
        broken = []
        for unit in units:
            if (language, unit.text) not in self._known and time.thread_time() > ends:
                return None
            found = self._look_at(language, unit.text)
            if found is not None:
                broken.append((unit, found))
        self._lately = [*self._lately[-3:], (language, units, tuple(broken))]
        return tuple(broken)

    def _look_at(self, language: Language, text: str) -> int | None:
        """Return the line, from 1, at which a program does not parse; None if it parses."""
        key = language, text
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        heed()
        if self._empty is None or self._empty[0] is not language:
            self._empty = language, language.open("", "")  # opening takes longer than parsing most cells
        found = self._known[key] = broken_at(self._empty[1], text)
        self._characters += len(text)
        while self._characters > MOST_CHARACTERS and len(self._known) > 1:
            (_, forgotten), _ = self._known.popitem(last=False)
            self._characters -= len(forgotten)
        return found


def broken_at(empty: Session, text: str) -> int | None:
    """Return the line, from 1, at which a program does not parse, if any. ``empty``: session of an empty program."""
    state = empty.start()
    accepted = state.advance(text)
    encoded = text.encode()
    if accepted == len(encoded) and state.is_complete():
        return None
    return encoded[:accepted].count(b"\n") + 1


def lines_of(text: str) -> range:
    """Return the lines of a program, without blank ones before it."""
    return range(len(text) - len(text.lstrip("\n")), text.count("\n") + 1)


def without(stretches: tuple[range, ...], gone: Collection[int], kept: int) -> tuple[range, ...]:
    """Return stretches of lines without some lines, of which one is kept.

    >>> without((range(5),), {1, 2, 4}, 2)
    (range(0, 1), range(2, 4))
    """
    lines = [line for stretch in stretches for line in stretch if line not in gone or line == kept]
    breaks = [0, *(at for at in range(1, len(lines)) if lines[at] != lines[at - 1] + 1), len(lines)]
    return tuple(range(lines[start], lines[end - 1] + 1) for start, end in pairwise(breaks) if start < end)


def diagnostic(unit: Unit, line: int) -> str:
    """Return the line about a program that does not parse."""
    where = f"code cell {unit.cell}, line" if unit.cell else "line"
    return f"{where} {line}: left out, since it does not parse"
