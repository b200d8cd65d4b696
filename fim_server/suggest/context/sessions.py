"""Sessions of open documents: reused from keystroke to keystroke, recovered where a document is broken.

A document that is too large for a request is opened in part, and as a whole in the background.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Session, Stop
from fim_server.language.plain import PlainSession
from fim_server.language.session import WHOLE
from fim_server.language.shapes import SINGLE_LINE
from fim_server.recovery.agreement import wanted
from fim_server.recovery.budget import Budget, Budgeted
from fim_server.recovery.recovery import IgnoredLines, Recovered, Recovery, is_taken
from fim_server.suggest.context.background_open import Finisher, Unfinished
from fim_server.suggest.context.cursor import Place
from fim_server.suggest.context.placeholders import (
    StandIn,
    block_stand_ins,
    empty_block,
    stand_ins_for,
    without_blank_breaks,
    without_closers,
    without_rest,
)
from fim_server.system.one_thread import OneThread
from fim_server.text.brackets import unmatched
from fim_server.text.reuse import SessionMemory, Sessions

if TYPE_CHECKING:
    from fim_server.language import Language
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

SESSIONS = 16
"""Most right contexts whose sessions are kept, while there is memory for them."""

MOST_COVERED = 4
"""Most closers that are left to the middle, except all of them. Each number that is tried costs an opening."""

STAND_IN_SECONDS = 0.1
"""Time for the search and the opening of a stand-in."""

SHORTEST_STATES = 300
"""States to look at for a shortest completion. Real files take ten, some thirty times as many."""

REOPENS_SECONDS = 0.05
"""Time for the search of a completion on one line."""

PATIENCE = 5.0
"""Factor of these limits for an explicit request."""

DOCUMENTS = 64
"""Most documents whose broken lines are kept."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Session at a cursor, and the part of the document that it covers.

    Attributes:
        session: The session.
        guarantee: `exact`, `balanced`, `partial` or `none`. `partial`: distant or broken lines were left out, or a
            stand-in takes the place of missing text.
        left: The left context of the session.
        right: The right context of the session, with the stand-in.
        diagnostics: Messages for the user.
        covered: Length of the closers right of the cursor that the middle must contain. With them, the text does not
            parse, or they would close brackets of the middle.
        ignored: Lines left out, if the guarantee is `partial`.
        cursor_line: The cursor's line in the document, from 0.
        covered_lines: The document's lines, from 0, that a `partial` guarantee covers as they stand.
        stood_in: The lines of the session's contexts, from 0, that belong to the stand-in.
        stand_in: Missing text after the cursor's line. With it, the lines up to there parse, too.
        unread: Whether other cells of the notebook are not read yet.
    """

    session: Session
    guarantee: str
    left: str
    right: str
    diagnostics: tuple[str, ...] = ()
    covered: int = 0
    ignored: tuple[IgnoredLines, ...] = ()
    cursor_line: int = 0
    covered_lines: tuple[range, ...] = ()
    stood_in: range = range(0)
    stand_in: StandIn | None = None
    unread: bool = False

    @property
    def has_grammar(self) -> bool:
        """Return whether a grammar reads the contexts: the language has one, and its marks fit the indentation."""
        return not isinstance(self.session, PlainSession)

    @property
    def is_unfinished(self) -> bool:
        """Return whether the session may cover more soon: distant lines were left out for lack of time."""
        return self.unread or any(group.beyond for group in self.ignored)

    def line_in_document(self, line: int) -> int:
        """Return the document's line, from 0, for a line of the session's contexts."""
        if self.stood_in and line >= self.stood_in.start:
            return max(self.stood_in.start, line - len(self.stood_in))
        for group in self.ignored:
            # Only the part right of the cursor is ever left out of its line.
            kept = 1 if group.stand_in or group.line <= self.cursor_line < group.line + group.count else 0
            if line >= group.line + kept:
                line += group.count - kept
        return line


class DocumentSessions:
    """Sessions of documents. Used by one thread."""

    def __init__(
        self,
        budget: Budget | None = None,
        memory: SessionMemory | None = None,
        unfinished: Unfinished | None = None,
        covers: bool = True,
    ) -> None:
        """Make an empty store.

        Args:
            budget: Time and memory for opening during a request.
            memory: Memory for the sessions of all documents.
            unfinished: Watches the threads that open in the background.
            covers: Whether a suggestion may replace closers right of the cursor.
        """
        self._covers = covers
        self._thread = OneThread()
        self._memory = memory or SessionMemory()
        self._unfinished = unfinished or Unfinished()
        self._budget = budget or Budget()
        self._begin()

    def _begin(self) -> None:
        self._sessions = Sessions(SESSIONS, self._memory)
        self._budgeted = Budgeted(self._sessions, self._budget)
        self._finisher = Finisher(self._sessions, self._budget.memory, self._unfinished)
        self._recoveries: OrderedDict[tuple[str, Language], Recovery] = OrderedDict()

    def open(
        self,
        uri: str,
        language: Language,
        split: Split,
        floor: str = "off",
        stands_in: bool = False,
        patience: float = 1.0,
    ) -> Opened:
        """Return the session of a cursor.

        A text beyond the budget is opened in part, and as a whole in the background. If the text parses only without
        some closers right of the cursor, the middle must contain them. The editor inserted them for a bracket that is
        closed already, or before text that has to follow. Lines that break the text otherwise are left out.

        Args:
            uri: The document.
            language: Its language.
            split: The text.
            floor: The setting `floor`: blocks or brackets that the middle must not close.
            stands_in: Put a stand-in (:mod:`.placeholders`) in place of missing text, if no line of the middle
                completes the program. Below a header whose end is right of the cursor, this happens in any case.
            patience: Factor of the usual time for finding a stand-in.
        """
        found = self._open_covered(uri, language, split)
        if found.guarantee in WHOLE:
            found = self._open_stood_in(uri, language, split, found, stands_in, patience) or found
        return found if floor == "off" else replace(found, session=found.session.floored(floor))

    def _open_covered(self, uri: str, language: Language, split: Split) -> Opened:
        found = self._open_whole(uri, language, split)
        if isinstance(found, Opened) and self._is_taken(language, found):
            return found
        if isinstance(found, Recovered):
            return opened(found, split.left, split.right)
        return self._open_recovered(uri, language, split)

    def _is_taken(self, language: Language, found: Opened) -> bool:
        """Return whether an opening is the right one, as far as the file's indentation shows."""
        if found.guarantee not in WHOLE:
            return True
        return is_taken(partial(self._sessions.open, language), found.session, found.left, found.right)

    def _open_whole(self, uri: str, language: Language, split: Split) -> Opened | Session | Recovered:
        """Return an opening without broken lines near the cursor, or the session or recovery with all closers."""
        assert self._thread.is_current()
        left, right = split.left, split.right
        found = self._open(uri, language, left, right)
        closers = Place.of(split).closers(language) if self._covers else ""
        line = left[left.rfind("\n") + 1 :]
        best, least = None, Reopening.NO
        if is_whole(found):
            best, least = opened(found, left, right), reopening(found, line, closers) if closers else Reopening.NO
        for covered in covers(closers):
            if best is not None and least is Reopening.NO:
                break
            without = self._open(uri, language, left, right[covered:])
            if not is_whole(without):
                continue
            needed = Reopening.NO if best is None else reopening(without, line, closers[covered:])
            if best is None or needed < least:
                best, least = opened(without, left, right[covered:], covered), needed
        return found if best is None else best

    def _open_recovered(self, uri: str, language: Language, split: Split) -> Opened:
        """Open without broken lines, and leave closers to the middle as :meth:`_open_whole` does."""
        recovery, left, right = self._recovery(uri, language), split.left, split.right
        best = opened(recovery.open(left, right), left, right)
        closers = Place.of(split).closers(language) if self._covers else ""
        if not closers or (best.guarantee == "none" and not is_of_trees(language.guarantee, language.spelling)):
            return best
        line = left[left.rfind("\n") + 1 :]
        least = Reopening.HIDES if best.guarantee == "none" else reopening(best.session, line, closers)
        for covered in covers(closers):
            if least is Reopening.NO:
                break
            found = opened(recovery.open(left, right[covered:]), left, right[covered:], covered)
            needed = reopening(found.session, line, closers[covered:])
            if found.guarantee != "none" and needed < least:
                best, least = found, needed
        return best

    def _open_stood_in(
        self, uri: str, language: Language, split: Split, found: Opened, on_one_line: bool, patience: float
    ) -> Opened | None:
        """Open with a stand-in for missing text after the cursor's line; return None if none helps.

        ``on_one_line``: a stand-in may follow a middle of one line. A block below a header whose end is right of the
        cursor has to follow in any case.
        """
        completion = shortest(found.session, patience) or ""
        hidden = hides_rest(found, completion)
        if not hidden and not (on_one_line and needs_more(found.session, completion, patience)):
            return None
        bare = without_rest(split) if hidden else without_closers(split, language)
        with suppress(StoppedError), Stop(patience * STAND_IN_SECONDS):
            session = self._open(uri, language, split.left, bare.right, finishes=False)
            if not is_whole(session):
                return None
            whole = session if isinstance(session, Session) else session.session
            text = shortest(whole, patience)
            if not text or unmatched(text, language.spelling.brackets)[1]:
                return None  # the line itself began the text that has to follow
            text = without_blank_breaks(text, lambda joined: whole.check(joined).complete)
            if hidden:
                stand_ins = block_stand_ins(empty_block(split, language.spelling), text)
            else:
                stand_ins = stand_ins_for(split, bare, text)
            opened = (self._open_with(uri, language, split, stand_in, patience) for stand_in in stand_ins)
            return next((one for one in opened if one is not None), None)
        return None

    def _open_with(
        self, uri: str, language: Language, split: Split, stand_in: StandIn, patience: float
    ) -> Opened | None:
        """Open with a stand-in; return None if no single line completes the program with it."""
        right = stand_in.inserted(split.right)
        found = self._open_whole(uri, language, replace(split, right=right))
        if not isinstance(found, Opened) or found.guarantee not in WHOLE:
            return None
        completion = shortest(found.session, patience)
        if completion is None or hides_rest(found, completion):
            return None
        if unmatched(completion, language.spelling.brackets)[1] or not found.session.start(SINGLE_LINE).is_viable():
            return None
        at, lines = split.left.count("\n"), split.right.count("\n")
        behind = at + stand_in.below + 1
        others = range(at), range(behind, at + lines + 1)
        return replace(
            found,
            guarantee="partial",
            covered_lines=tuple(stretch for stretch in others if stretch),
            diagnostics=(f"line {at + 1}: the text that has to follow is missing",),
            stood_in=range(behind, behind + right.count("\n") - lines),
            stand_in=stand_in,
        )

    def _open(self, uri: str, language: Language, left: str, right: str, finishes: bool = True) -> Session | Recovered:
        """Return a session within the budget. If the whole does not fit and ``finishes``, open it in the background."""
        try:
            whole = not self._finisher.is_finishing(uri, language, right)
            found = self._budgeted.open(language, left, right, whole=whole)
            if found is None:
                return self._sessions.open(language, left, right)
        except StoppedError:
            # The user types on; without the background, each key would begin the work again.
            if finishes:
                self._finisher.finish(uri, language, left, right)
            raise
        if isinstance(found, Recovered) and finishes:
            self._finisher.finish(uri, language, left, right)
        return found

    def forget(self, uri: str) -> None:
        assert self._thread.is_current()
        self._finisher.leave(uri)
        for key in [key for key in self._recoveries if key[0] == uri]:
            del self._recoveries[key]

    def rest(self) -> None:
        """End the use of all sessions, so that those beyond the memory limit may be dropped."""
        assert self._thread.is_current()
        self._sessions.rest()

    def clear(self) -> None:
        assert self._thread.is_current()
        self._finisher.close()
        self._begin()

    def _recovery(self, uri: str, language: Language) -> Recovery:
        """Return the recovery of a document, which knows its broken lines."""
        found = self._recoveries.pop((uri, language), None)
        if found is None:
            found = Recovery(partial(self._sessions.open, language))
        self._recoveries[uri, language] = found
        while len(self._recoveries) > DOCUMENTS:
            self._recoveries.popitem(last=False)
        return found


def covers(closers: str) -> list[int]:
    """Return the lengths of the parts of closers that the middle is tried with in turn. Each ends with a closer."""
    ends = [end for end, character in enumerate(closers, 1) if not character.isspace()]
    return sorted({*ends[:MOST_COVERED], *ends[-1:]})


def is_whole(found: Session | Recovered) -> bool:
    """Return whether no line near the cursor is broken. Distant lines may be left out for lack of time."""
    if isinstance(found, Session):
        return found.guarantee != "none"
    return all(group.beyond for group in found.ignored)


class Reopening(IntEnum):
    """Use of the closers right of the cursor by the shortest completion; the editor meant the least value."""

    NO = 0
    """They close brackets of the left side."""
    OPENS = 1
    """They close brackets of the middle, which closed those of the left side."""
    HIDES = 2
    """They stand in a comment or a string of the middle. No user writes that."""


def reopening(found: Session | Recovered, line: str, closers: str) -> Reopening:
    """Return the use of the closers right of the cursor, by what completes a session.

    That is a shortest completion; if none is found within the limit, NO. In a language of token trees it is the fewest
    brackets and quotes; if none complete it, HIDES.

    Args:
        found: The session.
        line: The cursor's line up to the cursor. If it leaves no bracket open, the editor did not insert the closers
            for it.
        closers: The closers that the right context of the session begins with.
    """
    session = found if isinstance(found, Session) else found.session
    of_trees = is_of_trees(session.language_guarantee, session.spelling)
    if of_trees and not closers:
        return Reopening.NO
    text = wanted(session) if of_trees else shortest(session)
    if not text:
        return Reopening.HIDES if of_trees and text is None else Reopening.NO
    state = session.start()
    if state.inside == "string":
        return Reopening.HIDES if leaves_string(session, text) else Reopening.NO
    closed, opened_again = unmatched(text, session.spelling.brackets)
    state.advance(text)
    if state.inside == "comment":
        return Reopening.HIDES if closed or unmatched(line, session.spelling.brackets)[1] else Reopening.NO
    return Reopening.OPENS if closers and closed and opened_again else Reopening.NO


def is_of_trees(guarantee: str, spelling: Spelling) -> bool:
    """Return whether a language is one of token trees with brackets, by its guarantee and spelling."""
    return guarantee == "balanced" and bool(spelling.brackets)


def shortest(session: Session, patience: float = 1.0) -> str | None:
    """Return the shortest completion of a session; None where none is found within the limit."""
    state = session.start()
    if state.is_complete():
        return ""
    try:
        return state.shortest_completion(int(patience * SHORTEST_STATES))
    except SearchLimitError:
        return None


def needs_more(session: Session, text: str, patience: float) -> bool:
    """Return whether no single line completes a session's program, or only one that opens a bracket for lines below.

    A line break in the shortest completion, ``text``, says little: inside brackets it is white space. False where the
    answer is not found in time.
    """
    if "\n" in text:
        with suppress(StoppedError), Stop(patience * REOPENS_SECONDS):
            return not session.start(SINGLE_LINE).is_viable()
        return False
    return unmatched(text, session.spelling.brackets)[1] > 0


def hides_rest(found: Opened, text: str) -> bool:
    """Return whether the shortest completion, ``text``, takes the rest of the cursor's line into a comment.

    This happens before the end of a header without a block: only a line with its own block completes that.
    """
    session, rest = found.session, found.right.partition("\n")[0]
    if not text or not rest.strip() or session.inside is not None:
        return False
    state = session.start()
    state.advance(text)
    return state.inside == "comment"


def leaves_string(session: Session, text: str) -> bool:
    """Return whether a text in a string ends the string, and itself ends in another string or in a comment."""
    state = session.start()
    outside = False
    for character in text:
        state.advance(character)
        outside = outside or state.inside != "string"
    return outside and state.inside in ("string", "comment")


def opened(found: Session | Recovered, left: str, right: str, covered: int = 0) -> Opened:
    """Return the opening of two contexts. ``covered``: the number of closers that the right one lacks."""
    if isinstance(found, Session):
        return Opened(found, found.guarantee, left, right, () if covered else tuple(found.diagnostics), covered)
    return Opened(
        found.session,
        found.guarantee,
        found.left,
        found.right,
        tuple(found.diagnostics),
        covered,
        found.ignored,
        left.count("\n"),
        found.covered,
    )
