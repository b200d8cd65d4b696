"""Opening within a budget: a text that is too large for it is opened on what fits, and says which lines that are.

How long a text takes is not known before: 0.3 µs a character of ordinary code right of the cursor, fifteen in the
densest tables. So one whose length alone does not forbid it is tried as a whole. If that is stopped, or was not tried,
little is opened first, which shows what a character takes here, and then more, as long as time is left.
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
"""Time of a character right of the cursor in code that is swiftly read. Unit: seconds."""

WHOLE_SHARE = 0.6
"""Share of the time in which the whole has to be open."""

LEFT_SHARE = 0.4
"""Share of the time in which the left side has to be read by itself; where it is not, its far lines are left out."""

LEFT_PARTS = (400_000, 40_000, 4_000)
"""Characters left of the cursor that are kept then: the first that can be read in that time."""

FIRST, FIRST_SHARE = 2_000, 1.0
"""Characters right of the cursor of the first part that is opened (some 30 ms where they are densest), and the share of
the time that it may take even where less is left: a machine may be busy, and to have no part at all costs more."""

FILLED = 0.6
"""Share of what is left of time or memory that the next part is meant to take."""

LARGER, MOST_LARGER = 1.5, 16.0
"""How many times as large as the part before the next one has to be to be worth it, and may be."""

MOST_FOUND = 32
"""Right contexts of which it is remembered what fits."""


@dataclass(frozen=True)
class Budget:
    """What opening a session may take.

    Attributes:
        seconds: Time.
        memory: Bytes that the session may come to hold.
        small: Characters of a text that is opened as a whole whatever time that takes: what the densest text of this
            size takes on an idle machine fits, so that a busy one makes no part of an ordinary file.
    """

    seconds: float = 0.15
    memory: int = 200_000_000
    small: int = 20_000


def open_within(language: Language, left: str, right: str, budget: Budget | None = None) -> Session | Recovered | None:
    """Opens two contexts within a budget, as `Budgeted.open` does."""
    return Budgeted(Sessions(), budget).open(language, left, right)


@dataclass(frozen=True)
class _Part:
    """What is kept of a text. The session on it is remembered elsewhere, as long as there is memory for it."""

    kept: Kept
    dropped: str
    """The beginning of the left context that is not kept as it is."""
    cursor_line: int
    lines: int
    """The lines of the document."""
    clean: bool
    """Nothing of it is broken, so that the same is worth trying after the next keystroke."""


_Opened = tuple[Recovered, _Part]


class Budgeted:
    """Opens sessions within a budget, and goes on from what fitted while the right context stays the same.

    Safe to use from several threads.
    """

    def __init__(self, sessions: Sessions, budget: Budget | None = None) -> None:
        """Keeps what it opens in ``sessions``; a right context that these know is not opened again."""
        self._sessions = sessions
        self._budget = budget or Budget()
        self._lock = Lock()
        self._found: OrderedDict[tuple[Language, str], _Part | None] = OrderedDict()
        """By language and right context, where the whole did not fit: what did."""

    def open(self, language: Language, left: str, right: str, *, whole: bool = True) -> Session | Recovered | None:
        """A session on the contexts, or on what of them fits the budget.

        Args:
            language: The language.
            left: The text left of the cursor.
            right: The text right of it.
            whole: Whether to try the whole if it is not small; not where another thread does.

        Returns:
            A session if the whole fits, whatever it guarantees. Else what is left once lines are left out, most of them
            because they are far away (`IgnoredLines.beyond`). None where not even the nearest lines fit, or where they
            could not be made to parse.

        Raises:
            StoppedError: What watches the thread says stop.
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
    """What some work comes to, or None where it takes longer, or holds more bytes."""
    try:
        with Stop(None if seconds is None else max(0.0, seconds), memory):
            return work()
    except StoppedError:
        return None


def _again(open_session: OpenSession, left: str, part: _Part) -> Recovered | None:
    """The same part after another left context, which has changed near its end at most; None where that is no way."""
    if not left.startswith(part.dropped):
        return None
    reduced = part.kept.left.stands + left[len(part.dropped) :]
    session = open_session(reduced, part.kept.right)
    if session.guarantee != "exact":
        return None
    moved = left.count("\n") - part.cursor_line
    ignored = tuple(
        group if group.line < part.cursor_line else replace(group, line=group.line + moved)
        for group in part.kept.ignored
    )
    return Recovered(session, reduced, part.kept.right, ignored, 1, part.lines + moved)


class _Search:
    """Looks for a large part of a text that can be opened in the time that is left."""

    def __init__(self, open_session: OpenSession, left: str, right: str, ends: float, budget: Budget) -> None:
        """``ends``: when the time is over, by `perf_counter`."""
        self._open = open_session
        self._left = left
        self._document = Document(left, right)
        self._all = len(right)
        self._ends = ends
        self._seconds = budget.seconds
        self._memory = budget.memory

    def run(self) -> _Opened | None:
        """The largest part that was opened; None if none was."""
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
        """What is kept of the left side, a session on it with nothing at its right, and the seconds that it took."""
        for most in (len(self._left), *(part for part in LEFT_PARTS if part < len(self._left))):
            side = above(self._document, most)
            before = self._time()
            start = attempt(LEFT_SHARE * self._time(), self._memory, partial(self._open, side.text, ""))
            if start is not None and (start.guarantee == "exact" or side.dropped == 0):
                return side, start, before - self._time()
        return None

    def _part(self, side: Side, start: Session, most: int) -> _Opened | None:
        """The part that has about so many characters of the right context."""
        document = self._document
        lines = document.lines
        dropped = self._left[: side.dropped]
        for found in kept(self._open, document, side, start, most) if start.guarantee == "exact" else ():
            session = self._open(side.text, found.right)
            if session.guarantee == "exact":
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
    """Groups of lines of a part as groups of the document's, of which the part has those with these numbers."""
    changes: dict[int, str | None] = {}
    for group in groups:
        for line in range(group.line, group.line + group.count):
            changes[numbers[line]] = (group.stand_in or None) if line == group.line else None
    return groups_of(changes)
