"""One side of the cursor: lines that are changed until all of them can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from fim_server.language import Session, State
from fim_server.recovery.documents import groups_of
from fim_server.recovery.opener import Opener
from fim_server.recovery.places import Place, Repair, best
from fim_server.recovery.texts import in_place

BACK = (40, 400)
"""Lines before the failure that are searched for where the broken construct began: first these, then those."""

MOST_ATTEMPTS = 3
"""Times that a line which fails is tried with another bridge before it is taken to be broken."""

_CONFLICT = re.compile(r"(?:<{7}|\|{7}|={7}|>{7})(?: |$)")
_MARKS = "<|=>"  # in this order


@dataclass
class Lines:
    """Lines that are to be read after a text that is not theirs to change.

    Attributes:
        opener: Opens sessions.
        before: The text that comes first; a program can begin with it.
        given: The lines as they are in the document.
        number: The document's number of the first of them.
        tail: What comes after them and is not to be changed either.
        closed: The program has to end after them.
        changes: Lines that are left out, by their number in the document, with what stands for each.
        other_before: A text to put in the place of `before`, after which most of the given lines can be read, and how
            many can; None if there is none.
        hopeless: The line, by its number in the document, that no text before the lines makes possible.
    """

    opener: Opener
    before: str
    given: Sequence[str]
    number: int
    tail: str
    closed: bool
    changes: dict[int, str | None] = field(default_factory=dict)
    other_before: Callable[[Sequence[str]], tuple[str, int] | None] | None = None
    hopeless: int | None = None
    _attempts: int = 0
    _session: Session | None = None
    _anchor: tuple[int, State] | None = None
    """A line's index in `_kept` and the state before it. Repairs are made below it only."""

    def text(self) -> str:
        """All of it, as it stands."""
        return self.before + "".join(text for _, text in self._kept()) + self.tail

    def end(self) -> State:
        """After all of it, once `repair` has found a way to read it."""
        assert self._session is not None
        return self._session.start()

    def repair(self) -> bool:
        """Changes lines until all of it can be read; whether that was possible."""
        while (failure := self._failure()) is not None:
            if self._read_differently(*failure):
                continue
            found = self._markers(failure[0])
            if not found:
                place = self._place(failure[0])
                self._anchor = place.start
                found = best(place)
                self.opener.spend(place.read[0])
            if not found:
                return False
            for repair in found:
                self._apply(repair)
        self._put_back()
        return True

    def _markers(self, failed: int) -> tuple[Repair, ...]:
        """If the failing line marks a merge conflict: it and the conflict's later marks, the last one first."""
        found: list[Repair] = []
        last = -1
        for index, (_, text) in enumerate(self._kept()[failed:], failed):
            rank = _MARKS.index(text[0]) if _CONFLICT.match(text) else -1
            if rank > last:
                found.append(Repair(index, index + 1, None, 1))
                last = rank
            if not found or text.startswith(_MARKS[-1] * 7):
                break
        return tuple(reversed(found if last == len(_MARKS) - 1 else found[:1]))

    def _place(self, failed: int) -> Place:
        """The place of a failure, with a line before it at which a program could have ended, if there is one nearby."""
        kept = self._kept()
        texts = [text for _, text in kept]
        place = None
        if self._anchor is not None and self._anchor[0] <= failed <= self._anchor[0] + BACK[0] * 2:
            place = Place(*self._anchor, texts, self.tail, self.closed, failed, self.opener.insertions)
        for back in BACK:
            if place is not None and (place.begin is not None or place.start[0] == 0):
                break
            first = max(0, failed - back)
            state = self.opener(self.before + "".join(texts[:first]), "").start()
            place = Place(first, state, texts, self.tail, self.closed, failed, self.opener.insertions)
        assert place is not None
        return place

    def _read_differently(self, failed: int, at_start: bool) -> bool:
        """Whether the failing line is possible after all, if something else comes before the lines.

        A bridge closes what nothing told it to leave open, so a closing bracket or an `else` may find nothing to close.
        """
        kept = self._kept()
        if self.other_before is None or failed >= len(kept) or self._attempts >= MOST_ATTEMPTS:
            return False
        if not at_start or kept[failed][0] == self.hopeless:
            return False
        self._attempts += 1
        other = self.other_before([text for _, text in kept])
        if other is None or other[1] <= failed:
            return False
        self.before, self._anchor = other[0], None
        return True

    def _kept(self) -> list[tuple[int, str]]:
        """Numbers and texts of the lines as they stand."""
        found = []
        for number, text in enumerate(self.given, self.number):
            if number not in self.changes:
                found.append((number, text))
            elif self.changes[number] is not None:
                found.append((number, in_place(self.changes[number])))
        return found

    def _failure(self) -> tuple[int, bool] | None:
        """Index in `_kept` of the line where reading fails, and whether none of its text can be read.

        The index is their number if it is in the tail or at the end.
        """
        session = self.opener(self.text(), "")
        broken = session.broken_at
        kept = self._kept()
        if broken is None:
            self._session = session
            return None if not self.closed or session.start().is_complete() else (len(kept), False)
        at = broken[1] - len(self.before)
        ends = list(accumulate((len(text) for _, text in kept), initial=0))
        failed = sum(end <= at for end in ends[1:])
        text = kept[failed][1] if failed < len(kept) else self.tail
        return failed, not text[: at - ends[failed]].strip()

    def _apply(self, repair: Repair) -> None:
        kept = self._kept()
        numbers = [number for number, _ in kept[repair.first : repair.end]]
        # What was left out between these lines belongs to them now.
        for number in range(numbers[0], numbers[-1] + 1):
            self.changes[number] = None
        self.changes[numbers[0]] = repair.stand_in

    def _put_back(self) -> None:
        """Takes back what a later repair further up has made unnecessary."""
        order = list(self.changes)
        for group in groups_of(self.changes):
            last = max(order.index(number) for number in range(group.line, group.line + group.count))
            if all(number > group.line for number in order[last + 1 :]):
                continue
            taken = {number: self.changes.pop(number) for number in range(group.line, group.line + group.count)}
            if self._failure() is not None:
                self.changes.update(taken)
