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
"""Lines before a failure to search for the beginning of the broken construct: first these, then those."""

MOST_ATTEMPTS = 3
"""Other bridges to try for a failing line before it counts as broken."""

_CONFLICT = re.compile(r"(?:<{7}|\|{7}|={7}|>{7})(?: |$)")
_MARKS = "<|=>"  # in this order


@dataclass
class Lines:
    """Lines to read after a text that must not change.

    Attributes:
        opener: Opens sessions.
        before: Text that comes first; a program can begin with it.
        given: Lines as they are in the document.
        number: Number of the first of them in the document.
        tail: Text after them that must not change either.
        closed: True if the program has to end after them.
        changes: Left-out lines, by their number in the document, with their stand-ins.
        other_before: Returns another text for `before`, after which most of the given lines can be read, and how many
            can; None if there is none.
        hopeless: Line, by its number in the document, that no text before the lines makes possible.
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
        return self.before + "".join(text for _, text in self._kept()) + self.tail

    def end(self) -> State:
        """Return the state after all of it, once `repair` has succeeded."""
        assert self._session is not None
        return self._session.start()

    def repair(self) -> bool:
        """Change lines until all of them can be read; return False if that fails."""
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
        """Return repairs for a merge conflict: its failing mark and the later marks, the last one first."""
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
        """Return the place of a failure, with a nearby line before it at which a program could have ended."""
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
        """Return whether the failing line is possible after another text before the lines.

        A bridge closes every construct that nothing told it to leave open, so a closing bracket or an `else` may find
        none.
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
        found = []
        for number, text in enumerate(self.given, self.number):
            if number not in self.changes:
                found.append((number, text))
            elif self.changes[number] is not None:
                found.append((number, in_place(self.changes[number])))
        return found

    def _failure(self) -> tuple[int, bool] | None:
        """Return the index in `_kept` of the line where reading fails, and whether none of its text can be read.

        The index is the number of lines if reading fails in the tail or at the end.
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
        """Restore lines that a later repair further up has made unnecessary to change."""
        order = list(self.changes)
        for group in groups_of(self.changes):
            last = max(order.index(number) for number in range(group.line, group.line + group.count))
            if all(number > group.line for number in order[last + 1 :]):
                continue
            taken = {number: self.changes.pop(number) for number in range(group.line, group.line + group.count)}
            if self._failure() is not None:
                self.changes.update(taken)
