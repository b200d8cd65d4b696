"""Opening within a budget: a text that is too large is opened on a part that fits, with the numbers of its lines.

The time that a text takes is unknown before: 0.3 µs a character of ordinary code right of the cursor, fifteen in the
densest tables. So the whole is tried first unless its length alone forbids it. If the trial is stopped or skipped, a
small part is opened, which shows the time per character here, and then larger ones while time is left.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import perf_counter
from typing import TypeVar

from fim_server.errors import StoppedError
from fim_server.language import Language, Session, Stop
from fim_server.language.stop import heed
from fim_server.recovery.documents import Document, IgnoredLines, groups_of
from fim_server.recovery.near import Kept, Side, above, kept, raw
from fim_server.recovery.opener import OpenSession
from fim_server.recovery.recovery import Recovered, recover
from fim_server.text.reuse import Sessions

T = TypeVar("T")

SWIFT = 0.35e-6
"""Seconds per character right of the cursor in code that reads fast."""

WHOLE_SHARE = 0.6
"""Share of the time in which the whole has to open."""

LEFT_SHARE = 0.4
"""Share of the time in which the left side has to be read alone; otherwise its far lines are left out."""

LEFT_PARTS = (400_000, 40_000, 4_000)
"""Characters left of the cursor to keep then: the first of these that can be read in that time."""

FIRST, FIRST_SHARE = 2_000, 1.0
"""Characters right of the cursor of the first part (some 30 ms where they are densest), and the share of the time that
it may take. It may take that even if less is left: a busy machine may be slow, and no part at all costs more."""

FILLED = 0.6
"""Share of the remaining time or memory that the next part aims at."""

LARGER, MOST_LARGER = 1.5, 16.0
"""Least and greatest factor from one part's size to the next."""

MOST_FOUND = 32
"""Right contexts whose fitting part is remembered."""


@dataclass(frozen=True)
class Budget:
    """Budget for opening a session.

    Attributes:
        seconds: Time.
        memory: Bytes that the session may come to hold.
        small: Characters of a text that is opened as a whole in any case. The densest text of this size fits on an idle
            machine, so that a busy one makes no part of an ordinary file.
    """

    seconds: float = 0.15
    memory: int = 200_000_000
    small: int = 20_000


def open_within(language: Language, left: str, right: str, budget: Budget | None = None) -> Session | Recovered | None:
    """Open two contexts within a budget, as `Budgeted.open` does."""
    return Budgeted(Sessions(), budget).open(language, left, right)


@dataclass(frozen=True)
class _Part:
    """Kept part of a text. Its session is remembered elsewhere, as long as there is memory for it."""

    kept: Kept
    dropped: str
    """Beginning of the left context that is not kept as it is."""
    cursor_line: int
    lines: int
    """Lines of the document."""
    clean: bool
    """True if no line of it is broken, so that the next keystroke can try the same part."""


_Opened = tuple[Recovered, _Part]


class Budgeted:
    """Opener of sessions within a budget; it reuses the fitting part while the right context stays.

    Safe to use from several threads.
    """

    def __init__(self, sessions: Sessions, budget: Budget | None = None) -> None:
        """Keep the sessions in ``sessions``; a right context known there is not opened again."""
        self._sessions = sessions
        self._budget = budget or Budget()
        self._lock = Lock()
        self._found: OrderedDict[tuple[Language, str], _Part | None] = OrderedDict()
        """By language and right context, where the whole did not fit: the part that did."""

    def open(self, language: Language, left: str, right: str, *, whole: bool = True) -> Session | Recovered | None:
        """Return a session on the contexts, or on a part that fits the budget.

        A part leaves out lines, most of them because they are far away (`IgnoredLines.beyond`). None if not even the
        nearest lines fit or can be made to parse. Raises StoppedError if a stop that watches the thread is set.

        Args:
            language: The language.
            left: Text left of the cursor.
            right: Text right of it.
            whole: Whether to try a whole that is not small; False if another thread does.
        """
        ends = perf_counter() + self._budget.seconds
        key = (language, right)
        with self._lock:
            tried, earlier = key in self._found, self._found.get(key)
        small = len(left) + len(right) <= self._budget.small
        if small or (whole and not tried) or self._sessions.knows(language, right):
            session = self._whole(language, left, right, None if small else WHOLE_SHARE * self._budget.seconds)
            if session is not None:
                return session
            heed()
        open_session = partial(self._sessions.open, language)
        if earlier is not None and earlier.clean:
            again = attempt(ends - perf_counter(), self._budget.memory, lambda: _again(open_session, left, earlier))
            if again is not None:
                return again
        found = _Search(open_session, left, right, ends, self._budget).run()
        heed()
        with self._lock:
            self._found[key] = None if found is None else found[1]
            self._found.move_to_end(key)
            while len(self._found) > MOST_FOUND:
                self._found.popitem(last=False)
        return None if found is None else found[0]

    def _whole(self, language: Language, left: str, right: str, seconds: float | None) -> Session | None:
        known = self._sessions.knows(language, right)
        if seconds is not None and SWIFT * len(right) > seconds and not known:
            return None
        return attempt(seconds, self._budget.memory, lambda: self._sessions.open(language, left, right))


def attempt(seconds: float | None, memory: int, work: Callable[[], T]) -> T | None:
    """Return the result of some work; None if it takes longer than ``seconds`` or holds more bytes than ``memory``."""
    try:
        with Stop(None if seconds is None else max(0.0, seconds), memory):
            return work()
    except StoppedError:
        return None


def _again(open_session: OpenSession, left: str, part: _Part) -> Recovered | None:
    """Return the same part after another left context that has changed near its end at most; None if that fails."""
    if not left.startswith(part.dropped):
        return None
    reduced = part.kept.left.stands + left[len(part.dropped) :]
    session = open_session(reduced, part.kept.right)
    if session.guarantee == "none":
        return None
    moved = left.count("\n") - part.cursor_line
    ignored = tuple(
        group if group.line < part.cursor_line else replace(group, line=group.line + moved)
        for group in part.kept.ignored
    )
    return Recovered(session, reduced, part.kept.right, ignored, 1, part.lines + moved)


class _Search:
    """Search for a large part of a text that opens in the remaining time."""

    def __init__(self, open_session: OpenSession, left: str, right: str, ends: float, budget: Budget) -> None:
        """Prepare the search; ``ends``: end of the time, by `perf_counter`."""
        self._open = open_session
        self._left = left
        self._document = Document(left, right)
        self._all = len(right)
        self._ends = ends
        self._seconds = budget.seconds
        self._memory = budget.memory

    def run(self) -> _Opened | None:
        """Return the largest part that was opened; None if none was."""
        began = self._read_left()
        if began is None:
            return None
        side, start, fixed = began
        best: _Opened | None = None
        most = float(FIRST)
        while True:
            before = self._time()
            size = int(min(most, self._all))
            seconds = before if best is not None else max(before, FIRST_SHARE * self._seconds)
            found = attempt(seconds, self._memory, partial(self._part, side, start, size))
            if found is None:
                return best
            best = found
            rate = max(SWIFT, (before - self._time() - fixed) / max(1, size))
            held = max(1.0, best[0].session.held / max(1, len(best[1].kept.right)))
            room = FILLED * min((self._time() - fixed) / rate, self._memory / held)
            if size >= self._all or room < LARGER * size:
                return best
            most = min(room, MOST_LARGER * size)

    def _time(self) -> float:
        return self._ends - perf_counter()

    def _read_left(self) -> tuple[Side, Session, float] | None:
        """Return the kept left side, a session on it with an empty right side, and the seconds that it took."""
        for most in (len(self._left), *(part for part in LEFT_PARTS if part < len(self._left))):
            side = above(self._document, most)
            before = self._time()
            start = attempt(LEFT_SHARE * self._time(), self._memory, partial(self._open, side.text, ""))
            if start is not None and (start.guarantee != "none" or side.dropped == 0):
                return side, start, before - self._time()
        return None

    def _part(self, side: Side, start: Session, most: int) -> _Opened | None:
        """Return the part with about ``most`` characters of the right context."""
        document = self._document
        lines = document.lines
        dropped = self._left[: side.dropped]
        for found in kept(self._open, document, side, start, most) if start.guarantee != "none" else ():
            session = self._open(side.text, found.right)
            if session.guarantee != "none":
                recovered = Recovered(session, side.text, found.right, found.ignored, 2, lines)
                return recovered, _Part(found, dropped, document.cursor_line, lines, True)
        found = raw(document, side, most)
        repaired = recover(self._open, side.text, found.right)
        if repaired is None:
            return None
        numbers = [*side.numbers, document.cursor_line, *found.below]
        ignored = sorted([*found.ignored, *_in_document(repaired.ignored, numbers)], key=lambda group: group.line)
        recovered = replace(repaired, ignored=tuple(ignored), lines=lines)
        return recovered, _Part(found, dropped, document.cursor_line, lines, False)


def _in_document(groups: tuple[IgnoredLines, ...], numbers: list[int]) -> tuple[IgnoredLines, ...]:
    """Return a part's groups of lines as groups of the document; ``numbers``: the part's lines in the document."""
    changes: dict[int, str | None] = {}
    for group in groups:
        for line in range(group.line, group.line + group.count):
            changes[numbers[line]] = (group.stand_in or None) if line == group.line else None
    return groups_of(changes)
