"""Recovery of broken texts: lines to leave out so that the rest parses (design, section 11).

A parser that only reports where a text first cannot be continued is enough to find them. Both sides of the cursor are
read as the beginning of a program: the left side from nothing, the right side after a middle that bridges the cursor.
Where reading fails, a few changes of the lines around the place are tried, each by reading on for some lines. They
leave out the line, the one before, the opener of an open construct, or the lines below it, or put in a line that keeps
its block. The cheapest wins.

This is the local repair of Burke and Fisher (*A practical method for LR and LL syntactic error diagnosis and recovery*,
TOPLAS 1987). Lines take the place of symbols, because users break lines and read about lines.

The cost of a repair is an estimate; the result is not. Its session was opened on the reduced contexts and is exact for
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from fim_server.language import Matcher, Session, Verdict
from fim_server.language.plain import unjudged
from fim_server.language.shapes import Shape
from fim_server.language.state import State
from fim_server.recovery.agreement import agrees
from fim_server.recovery.bridges import Bridges
from fim_server.recovery.documents import Around, Document, IgnoredLines, Mark, changes_of, groups_of, marks_of
from fim_server.recovery.lines import Lines
from fim_server.recovery.opener import BUDGET, BudgetSpent, Opener, OpenSession
from fim_server.recovery.windows import window
from fim_server.tokens.vocabulary import Vocabulary

__all__ = ["BUDGET", "IgnoredLines", "OpenSession", "Recovered", "Recovery", "recover"]

NO_WINDOW = "brackets or quotes elsewhere do not fit the indentation: any text may come here"
"""Diagnostic of a document of which no part is judged."""

MOST_CHECKED = 4
"""Groups to check one by one, after an edit elsewhere, for being still broken."""


@dataclass(frozen=True)
class Recovered:
    """Session on contexts without their broken lines.

    Attributes:
        session: Exact, for the reduced contexts.
        left: Reduced left context.
        right: Reduced right context.
        ignored: Lines left out, in the order of the document.
        openings: Sessions opened to find it.
        lines: Number of lines of left + right.
    """

    session: Session
    left: str
    right: str
    ignored: tuple[IgnoredLines, ...]
    openings: int = 0
    lines: int = 0

    @property
    def covered(self) -> tuple[range, ...]:
        """Return the lines that the guarantee covers, from 0: those of which nothing is left out."""
        return covered(self.ignored, self.lines)

    @property
    def guarantee(self) -> str:
        """Return `partial`: the guarantee holds for the text without the ignored lines."""
        return "partial"

    @property
    def diagnostics(self) -> list[str]:
        return [group.diagnostic for group in self.ignored]

    def check(self, middle: str) -> Verdict:
        """Check a middle as `Session.check` does, for the reduced contexts."""
        return self.session.check(middle)

    def matcher(
        self, vocabulary: Vocabulary, shape: Shape | str | None = None, *, healing: str | bytes = b""
    ) -> Matcher:
        """Make a matcher as `Session.matcher` does, for the reduced contexts."""
        return self.session.matcher(vocabulary, shape, healing=healing)

    def start(self) -> State:
        """Return the state before the middle, for the reduced contexts."""
        return self.session.start()

    @property
    def floor(self) -> str:
        return self.session.floor

    def floored(self, floor: str) -> Recovered:
        """Return the same with a floor (`Session.floored`)."""
        session = self.session.floored(floor)
        return self if session is self.session else replace(self, session=session)


def is_taken(open_session: OpenSession, session: Session, left: str, right: str) -> bool:
    """Return whether a session on a whole file, which can be completed, is the right one.

    It is not if the file seems to be broken elsewhere; a file that wants nothing more is not. In an exact language,
    only a string or comment at the cursor is suspected.
    """
    if not session.spelling.surroundings or (session.guarantee == "exact" and session.inside is None):
        return True
    if session.start().is_complete():
        return True
    return agrees(open_session, session, Document(left, right))


def covered(ignored: Sequence[IgnoredLines], lines: int) -> tuple[range, ...]:
    """Return the ranges of a document's lines between the ignored groups, which are in order."""
    ends = [0, *(group.line + group.count for group in ignored)]
    begins = [*(group.line for group in ignored), lines]
    return tuple(range(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin)


def recover(open_session: OpenSession, left: str, right: str, *, budget: int = BUDGET) -> Recovered | None:
    """Leave lines out of contexts that do not parse, so that the rest does; None if no repair was found.

    The cursor's own line stays, except its text right of the cursor if nothing else helps. An error in that line, or
    too many errors, cannot be repaired.

    Args:
        open_session: `Language.open`, or one that keeps its sessions.
        left: Text left of the cursor.
        right: Text right of it.
        budget: Most sessions to open.
    """
    return _recover(Opener(open_session, budget), Document(left, right), None)


class Recovery:
    """Opener of sessions on one document that remembers the lines it had to leave out.

    It finds them by their own text and that of their neighbours, so edits elsewhere do not matter. Not thread-safe.
    """

    def __init__(self, open_session: OpenSession, *, budget: int = BUDGET, name: str = "") -> None:
        """Take the arguments of `recover`, and the language's name."""
        self.name = name
        self._open = open_session
        self._budget = budget
        self._marks: list[Mark] = []
        self._around: Around = [], []
        """Lines around the cursor where all marks were last needed."""
        self._given_up: Around | None = None
        """Lines around the cursor where no search within the budget is enough."""
        self._without_window: Around | None = None
        """Lines around the cursor where an exact language has no window."""

    def open(self, left: str, right: str) -> Session | Recovered:
        """Return a session on the contexts if they parse, or on their rest; at worst a session without a guarantee.

        Where the brackets that they want do not fit the indentation, the rest is a window (:mod:`.windows`).
        """
        session = self._open(left, right)
        if session.guarantee != "none":
            self._marks = []
            if is_taken(self._open, session, left, right):
                return session
        document, spelling = Document(left, right), session.spelling
        if spelling.whole_files:
            return unjudged(spelling, NO_WINDOW)
        found = self._repaired(document, session) if session.guarantee == "none" else None
        if not spelling.surroundings:
            return found or session
        if found is not None and agrees(self._open, found.session, Document(found.left, found.right)):
            return found
        windowed = self._windowed(document, session)
        if windowed is None and session.language_guarantee != "exact":
            return unjudged(spelling, NO_WINDOW)
        return windowed or found or session

    def _repaired(self, document: Document, session: Session) -> Recovered | None:
        """Return the rest of a document without the lines that break it; None if they are not found."""
        found = self._remembered(document)
        if found is None and document.around != self._given_up:
            opener = Opener(self._open, self._budget)
            found = _recover(opener, document, session)
            self._given_up = document.around if found is None and opener.count >= self._budget else None
        if found is not None:
            self._marks = marks_of(document, found.ignored)
            self._around = document.around
        return found

    def _windowed(self, document: Document, session: Session) -> Recovered | None:
        """Return the largest window that fits the indentation; None if there is none."""
        is_exact = session.language_guarantee == "exact"
        if is_exact and document.around == self._without_window:
            return None
        opener = Opener(self._open, self._budget)
        try:
            found = window(opener, document, session.spelling)
        except BudgetSpent:
            found = None
        if found is None:
            self._without_window = document.around
            return None
        ignored = tuple(replace(group, outside=True) for group in groups_of(found[1]))
        return Recovered(found[0], *document.reduced(found[1]), ignored, opener.count, document.lines)

    def _remembered(self, document: Document) -> Recovered | None:
        """Return the result of leaving out the lines of the last time, if that is enough."""
        groups = [group for mark in self._marks if (group := mark.find(document)) is not None]
        if not groups:
            return None
        opener = Opener(self._open, 1 + MOST_CHECKED)
        session = opener(*document.reduced(changes_of(groups)))
        if session.guarantee == "none":
            return None
        if document.around != self._around and 1 < len(groups) <= MOST_CHECKED:
            # An edit elsewhere, such as a bracket that was closed, may have repaired one of them.
            for group in list(groups):
                others = [other for other in groups if other != group]
                without = opener(*document.reduced(changes_of(others)))
                if others and without.guarantee != "none":
                    groups, session = others, without
        changes = changes_of(groups)
        return Recovered(session, *document.reduced(changes), groups_of(changes), opener.count, document.lines)


def _recover(opener: Opener, document: Document, known: Session | None) -> Recovered | None:
    """Recover as `recover` does, where a session on the contexts as they are may be open already."""
    right = document.head + "".join(document.below)
    above = Lines(opener, "", document.above, 0, document.tail, closed=False)
    try:
        if not above.repair():
            return None
        session = known if known is not None and not above.changes else opener(above.text(), right)
        if session.guarantee != "none":
            changes = above.changes
        elif (below := _repaired_below(above, document, right, session)) is not None:
            changes = above.changes | below
            session = opener(*document.reduced(changes))
        if session.guarantee == "none" or not changes:
            return None
    except BudgetSpent:
        return None
    return Recovered(session, *document.reduced(changes), groups_of(changes), opener.count, document.lines)


def _repaired_below(above: Lines, document: Document, right: str, session: Session) -> dict[int, str | None] | None:
    """Return changes that make the right side meet the left one; `session`: both as they are."""
    broken = session.broken_at
    reach = right.count("\n", 0, broken[1]) if broken is not None and broken[0] == "right" else 0
    bridges = Bridges(above, document.tail)
    # If nothing else helps, the text right of the cursor on its line goes; the line's end stays.
    for head in (document.head, "\n") if document.head.strip() else (document.head,):
        before = bridges.before(head, document.below, reach)
        if before is None:
            continue
        below = Lines(above.opener, before[0], document.below, document.cursor_line + 1, "", closed=True)
        below.other_before = partial(bridges.before, head)
        if reach:
            below.hopeless = document.cursor_line + reach
        if below.repair():
            return below.changes if head == document.head else {document.cursor_line: "", **below.changes}
    return None
