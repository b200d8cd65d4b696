"""Bridges: texts for the cursor's place after which the right side can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fim_server.recovery.lines import Lines
from fim_server.recovery.texts import completion, indentation, size

MOST_BRIDGE = 48
"""Characters of the left side's shortest completion of which every prefix is tried as a bridge."""

BRIDGE_AHEAD = 50
"""Lines of the right side to try such a prefix on."""

MOST_UNSETTLED = 3
"""Most lines with text that count for a bridge although their construct does not end."""


class Bridges:
    """Bridges between two sides of a cursor.

    The right side seldom needs much of a middle. It has to end the left side's constructs, or to begin one that the
    right side ends: those are tried. (A shortest middle would be exact, but may take a second to find.)
    """

    def __init__(self, above: Lines, tail: str) -> None:
        """Take lines that can be read to their end, and the text between them and the cursor."""
        self._above = above
        self._tail = tail
        self._start = above.end()
        self._insertions = above.opener.insertions
        self._completion: str | None = None

    def before(self, head: str, lines: Sequence[str], reach: int = 0) -> tuple[str, int] | None:
        """Return the left side with a bridge and the rest of its line, so that most of the lines can be read after it.

        Also return how many of the lines can be. None if not even the rest of the cursor's line can.

        Args:
            head: Rest of the cursor's line.
            lines: Lines below it.
            reach: Lines, the cursor's included, after which a bridge is good enough.
        """
        trial = [head, *islice(lines, BRIDGE_AHEAD)]
        whole = len(trial) > len(lines)
        best = max((self._read(ending, trial, whole) for ending in self._insertions.endings), key=_Read.key)
        if best.lines != reach:
            if self._completion is None:
                self._completion = (completion(self._start) or "")[:MOST_BRIDGE]
            prefixes = (self._completion[:end] for end in range(len(self._completion) + 1))
            best = max(best, *(self._read(prefix, trial, whole) for prefix in prefixes), key=_Read.key)
            for other in self._beginnings(best.bridge, lines):
                read = self._read(other, trial, whole)
                if read.worth > best.worth or (read.key() > best.key() and (best.lines == 0 or not best.settled)):
                    best = read
        if best.lines == 0 and best.partly < size(head):
            session = self._above.opener(self._above.text(), head)
            bridge = completion(session.start()) if session.guarantee != "none" else None
            if bridge is None:
                return None
            best = self._read(bridge, trial, whole)
        return self._above.text() + best.bridge + head, best.lines - 1

    def _beginnings(self, ending: str, lines: Sequence[str]) -> Iterator[str]:
        below = [indentation(line) for line in islice((line for line in lines if line.strip()), 8)]
        columns = sorted({0, indentation(self._tail), *below})
        for known in dict.fromkeys((ending, "", self._completion or "")):
            for joined in self._insertions.joints:
                yield known + joined
            for column in columns:
                for header in self._insertions.headers:
                    yield f"{known}\n{' ' * column}{header}"

    def _read(self, bridge: str, trial: Sequence[str], whole: bool) -> _Read:
        state = self._start.fork()
        if state.advance(bridge) < size(bridge):
            return _Read(bridge, 0, -1, -1, False)
        worth = unsettled = 0
        settled = False
        for number, line in enumerate(trial):
            accepted = state.advance(line)
            if accepted < size(line):
                return _Read(bridge, number, accepted, worth + min(unsettled, MOST_UNSETTLED), settled)
            unsettled += bool(line.strip())
            if number == 0:
                settled = state.is_complete()
            elif line.strip() and state.is_complete():
                worth, unsettled = worth + unsettled + 1, 0
        return _Read(bridge, len(trial), 0, worth if whole else worth + min(unsettled, MOST_UNSETTLED), settled)


@dataclass(frozen=True)
class _Read:
    """Reach of the right side after a bridge: whole lines, and bytes of the next.

    Lines with text count for the bridge's worth, those below the cursor twice if a program could end after them. Last
    lines after which none could end count little: an opened bracket or string lets much be read with another meaning. A
    bridge is settled if a program could end after the cursor's line.
    """

    bridge: str
    lines: int
    partly: int
    worth: int
    settled: bool

    def key(self) -> tuple[int, int, int, bool]:
        return self.worth, self.lines, self.partly, self.settled
