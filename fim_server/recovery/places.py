"""Places where reading fails: possible repairs around them, and their estimated cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, nsmallest
from itertools import count, islice
from math import inf

from fim_server.language import State
from fim_server.recovery.texts import BLANKS, Insertions, blanks_of, in_place, indentation, line_at, size

AHEAD = 16
"""Lines with text to be read after the failure before a repair counts as having solved it."""

WHOLE_STATEMENT = 1.5
"""Extra cost, in lines, of a stand-in for a whole statement that makes the lines below it fit."""

OPENS = 2.0
"""Extra cost, in lines, of a bracket in the place of a line that does not end in one."""

OPENER = 0.5
"""Extra cost, in lines, of leaving out a line that ends in a bracket, in languages whose blocks are in brackets."""

MOST_SINGLE = 24
"""Lines between the last possible end and the failure that are each tried alone."""

MOST_STAND_IN = 6
"""Most lines with text that one stand-in replaces."""

MOST_RUN = 40
"""Most lines with text left out together from one line on, unless their indentation makes them a block."""

FAR_AHEAD = 100
"""Most lines with text to read. An open string or bracket swallows many lines. Of two repairs that solve a failure, one
may have moved a method's body into another's, which shows at the next method."""

FAR_FAILURE = 0.5
"""Extra cost, in lines, of a repair after which reading fails again, but only after `AHEAD` lines: it may be another
error."""

UNSETTLED = 4.0
"""Extra cost, in lines, of a repair that leaves something open. (All do in a language in which only the file ends.)"""

MOST_PLACES = 8
"""Failures to look at for getting past one: some repairs show as wrong only where the next one is due."""

MOST_READ = 200_000
"""Characters to read in trials for getting past one failure, at some 0.1 µs each. A trial counts as 100 more."""

SURE = 2.0
"""Greatest cost of a sufficient repair as a multiple of one that may not suffice."""

MOST_BRANCHES = 6
"""Repairs at one place to follow up."""


@dataclass(frozen=True)
class Repair:
    """Lines from `first` up to `end` go; a stand-in may take their place."""

    first: int
    end: int
    stand_in: str | None
    cost: float


@dataclass(frozen=True)
class Outcome:
    """Outcome of a repair.

    Attributes:
        failed: Index of the line where reading fails next, in the lines before the repair; None if no failure is in
            sight.
        further: Lines that will probably have to change as well. A repair after which reading soon fails again has
            probably missed the error; one that leaves something open has probably only moved it out of sight.
    """

    failed: int | None
    further: float


class Place:
    """Place where reading fails, with the possible repairs around it.

    Attributes:
        begin: Last line before the failing one at which a program could have ended.
        read: Characters read in trials, here and at the places reached from here.
    """

    def __init__(
        self,
        first: int,
        state: State,
        texts: Sequence[str],
        tail: str,
        closed: bool,
        failed: int,
        insertions: Insertions,
    ) -> None:
        """Take the lines from `first` on, with the state before them; reading fails in the line `failed`."""
        self.start = (first, state)
        self._from = first
        self._texts = texts
        self._tail = tail
        self._closed = closed
        self._insertions = insertions
        self._failed = failed
        self._states = {first: state}
        self.read = [0]
        self._starts_statement = False
        """A program could have ended before the failing line."""
        self._at_start = False
        """None of the failing line's text can be read: it may just stand in the wrong column."""
        self.begin = self._last_end()

    def _last_end(self) -> int | None:
        state, found = self.start[1].fork(), None
        for index in range(self._from, self._failed):
            if self._texts[index].strip() and state.is_complete():
                found = index
            state.advance(self._texts[index])
        self._starts_statement = state.is_complete()
        if self._failed < len(self._texts):
            text = self._texts[self._failed]
            self._at_start = state.advance(text) <= len(blanks_of(text))
        return found

    def outcomes(self, most: float) -> Iterator[tuple[Repair, Outcome]]:
        """Yield the repairs that cost less than `most`, with their outcomes if they let more be read."""
        for repair in sorted(self._repairs(), key=lambda repair: repair.cost):
            if repair.cost >= most or self.read[0] > MOST_READ:
                return
            self.read[0] += 100
            outcome = self._outcome(repair)
            if outcome is not None:
                yield repair, outcome

    def after(self, repair: Repair, failed: int) -> Place:
        line = [] if repair.stand_in is None else [in_place(repair.stand_in)]
        texts = [*self._texts[: repair.first], *line, *self._texts[repair.end :]]
        failed += len(line) - (repair.end - repair.first)
        found = Place(*self.start, texts, self._tail, self._closed, failed, self._insertions)
        found.read = self.read
        return found

    def _outcome(self, repair: Repair) -> Outcome | None:
        state = self._state_at(repair.first).fork()
        if repair.stand_in is not None:
            line = in_place(repair.stand_in)
            if state.advance(line) < size(line):
                return None
        settled = state.is_complete()
        passed, index = 0, repair.end
        while passed < FAR_AHEAD and index <= len(self._texts):
            # Line by line first, then faster: all that is still to be seen is whether it goes on.
            many = index + (1 if passed < AHEAD else AHEAD)
            lines = [*self._texts[index:many], *([self._tail] if many > len(self._texts) else [])]
            chunk = "".join(lines)
            self.read[0] += len(chunk)
            accepted = state.advance(chunk)
            if accepted < size(chunk):
                index += line_at(lines, accepted)
                if index <= self._failed and repair.end <= self._failed:
                    return None
                statements = self._insertions.statements
                if passed == 0 and repair.stand_in is not None and repair.stand_in.strip() not in statements:
                    return None  # a header that heads nothing
                if passed >= AHEAD and settled:
                    return Outcome(None, FAR_FAILURE)
                return Outcome(index, 1 + 1 / (1 + passed))
            passed += sum(1 for at, text in enumerate(lines, index) if at >= self._failed and text.strip())
            settled = settled or (self._failed < many <= len(self._texts) and state.is_complete())
            index = many
        if index > len(self._texts) and self._closed and not state.is_complete():
            return None if self._failed == len(self._texts) else Outcome(len(self._texts), UNSETTLED)
        return Outcome(None, 0 if settled or not self._insertions.settles else UNSETTLED)

    def _state_at(self, index: int) -> State:
        if index not in self._states:
            known = max(other for other in self._states if other < index)
            state = self._states[known].fork()
            state.advance("".join(self._texts[known:index]))
            self._states[index] = state
        return self._states[index]

    def _repairs(self) -> Iterator[Repair]:
        """Yield the possible repairs; of those with equal cost the better come first."""
        seen: set[tuple[int, int, str | None]] = set()
        for first, end, stand_in in self._spans():
            if self._from <= first < end <= len(self._texts) and (first, end, stand_in) not in seen:
                seen.add((first, end, stand_in))
                yield Repair(first, end, stand_in, self._cost(first, end, stand_in))

    def _cost(self, first: int, end: int, stand_in: str | None) -> float:
        opens = self._insertions.openings
        had_one = self._texts[end - 1].rstrip().endswith(opens)
        opened = stand_in is not None and stand_in.endswith(opens)
        cost = float(sum(bool(text.strip()) for text in self._texts[first:end]))
        if had_one and not opened and not self._insertions.settles:
            cost += OPENER
        if stand_in is None:
            return cost
        cost += 0.25 + self._insertions.rank(stand_in.lstrip(BLANKS)) / 100
        if opened and not had_one:
            cost += OPENS
        if first < self._failed and self._starts_statement:
            cost += WHOLE_STATEMENT
        return cost

    def _spans(self) -> Iterator[tuple[int, int, str | None]]:
        failed, begin = self._failed, self.begin
        above = self._above(failed, 3)
        headers = self._headers()
        if self._at_start:
            for first in headers:
                if not self._state_at(first + 1).is_complete():
                    yield first, first + 1, None
        yield failed, failed + 1, None
        if begin is not None:
            yield begin, begin + 1, None
        for first in above:
            yield first, first + 1, None
        singles = range(failed - 1, begin if begin is not None else failed - 1, -1)
        for first in singles[:MOST_SINGLE]:
            yield first, first + 1, None
        for first in headers:
            yield first, first + 1, None
        for first in [failed, *above[:1]]:
            closing = self._closing(first)
            if closing is not None:
                yield first, first + 1, closing
        for first in [failed, *([] if begin is None else [begin]), *above[:1], *headers[:1]]:
            for stand_in in self._stand_ins(first):
                yield first, first + 1, stand_in
                if first == begin:
                    yield begin, failed, stand_in
                    yield begin, failed + 1, stand_in
        for first in [failed, *above, *([] if begin is None else [begin])]:
            if first < failed:
                yield first, failed, None
            yield from ((first, end, None) for end in self._run_ends(first, MOST_RUN))
            block = self._block_end(first)
            yield first, block, None
            yield first, block + 1, None
            yield first, self._level_end(first), None
        for stand_in in self._stand_ins(failed):
            for end in self._run_ends(failed, MOST_STAND_IN):
                yield failed, end, stand_in

    def _stand_ins(self, first: int) -> Iterator[str]:
        """Return lines for the place of one, with its indentation and with that of the lines above."""
        like = [first, *([] if self.begin is None else [self.begin]), *self._above(first, 1)]
        blanks = dict.fromkeys(blanks_of(self._texts[index]) for index in like if index < len(self._texts))
        return (before + stand_in for before in blanks for stand_in in self._insertions.stand_ins)

    def _closing(self, first: int) -> str | None:
        """Return a line that ends the constructs open there: a call's last line also holds its brackets."""
        if first >= len(self._texts) or self.begin is None or self._state_at(first).is_complete():
            return None
        for closing in self._insertions.closings:
            state = self._state_at(first).fork()
            if state.advance(closing) == size(closing) and state.is_complete():
                return blanks_of(self._texts[first]) + closing
        return None

    def _above(self, index: int, most: int) -> list[int]:
        found = (other for other in range(index - 1, self._from - 1, -1) if self._texts[other].strip())
        return list(islice(found, most))

    def _headers(self) -> list[int]:
        """Return the nearest lines above, each standing further left than the one before."""
        found: list[int] = []
        if self._failed >= len(self._texts):
            return found
        lowest = indentation(self._texts[self._failed])
        for index in range(self._failed - 1, self._from - 1, -1):
            text = self._texts[index]
            if text.strip() and indentation(text) < lowest and len(found) < 3:
                lowest = indentation(text)
                found.append(index)
        return found

    def _run_ends(self, first: int, most: int) -> Iterator[int]:
        ends = (index + 1 for index in range(first, len(self._texts)) if self._texts[index].strip())
        return islice(ends, most)

    def _block_end(self, first: int) -> int:
        """Return the end of the lines below one that stand further right."""
        if first >= len(self._texts):
            return first
        own = indentation(self._texts[first])
        return self._first_after(first + 1, lambda column: column <= own)

    def _level_end(self, first: int) -> int:
        """Return the end of the lines from one on that stand no further left."""
        if first >= len(self._texts):
            return first
        own = indentation(self._texts[first])
        return self._first_after(first + 1, lambda column: column < own)

    def _first_after(self, start: int, ends: Callable[[int], bool]) -> int:
        end = start
        for index in range(start, len(self._texts)):
            if self._texts[index].strip():
                if ends(indentation(self._texts[index])):
                    break
                end = index + 1
        return end


def best(place: Place) -> tuple[Repair, ...]:
    """Return the cheapest repairs, in order, that get past a failure; empty if none do.

    Best-first search: it follows the cheapest sequence that still fails until none can be cheaper than one without a
    failure in sight.
    """
    order = count()
    waiting: list[tuple[float, int, float, tuple[Repair, ...], Place, int]] = []
    done: tuple[float, tuple[Repair, ...]] = (inf, ())
    for _ in range(MOST_PLACES):
        spent, repairs = (waiting[0][2], waiting[0][3]) if waiting else (0.0, ())
        if waiting:
            price, _, _, _, origin, failed = heappop(waiting)
            if price > done[0]:
                break
            place = origin.after(repairs[-1], failed)
        branches = []
        for repair, outcome in place.outcomes(done[0] - spent):
            price = spent + repair.cost + outcome.further
            if outcome.failed is None:
                if price < done[0]:
                    done = price, (*repairs, repair)
            else:
                branches.append((price, next(order), spent + repair.cost, (*repairs, repair), place, outcome.failed))
        for branch in nsmallest(MOST_BRANCHES, branches):
            heappush(waiting, branch)
        if not waiting:
            break
    if waiting and done[0] > SURE * waiting[0][0]:
        return waiting[0][3]
    return done[1]
