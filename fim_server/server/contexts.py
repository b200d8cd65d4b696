"""The sessions of open documents: reused from keystroke to keystroke, and recovered where a document is broken."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fim_server.recovery.recovery import IgnoredLines, Recovered, Recovery
from fim_server.server.place import Place, contains_in_order
from fim_server.server.threads import OneThread
from fim_server.text.reuse import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.language import Language, Session
    from fim_server.text.document import Split

SESSIONS = 16
"""Right contexts whose sessions are kept."""

MOST_COVERED = 4
"""Closers that are left to the middle; trying each costs an opening."""

DOCUMENTS = 64
"""Documents whose broken lines are remembered."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session at a cursor, and what it stands for."""

    session: Session
    guarantee: str
    """`exact`; `partial`: broken lines elsewhere were left out; `none`."""
    left: str
    """The left context as the session has it."""
    right: str
    diagnostics: tuple[str, ...] = ()
    covered: int = 0
    """Closers right of the cursor that the middle has to bring itself, because with them the text does not parse."""
    ignored: tuple[IgnoredLines, ...] = ()
    """Lines left out, if the guarantee is `partial`."""
    cursor_line: int = 0
    """The cursor's line in the document, from 0."""

    def line_in_document(self, line: int) -> int:
        """The line of the document, from 0, that a line of the session's contexts is."""
        for group in self.ignored:
            # Of the cursor's line only what is right of the cursor is ever left out.
            kept = 1 if group.stand_in or group.line <= self.cursor_line < group.line + group.count else 0
            if line >= group.line + kept:
                line += group.count - kept
        return line


class Contexts:
    """Opens sessions. Used by one thread: the worker's."""

    def __init__(self) -> None:
        self._thread = OneThread()
        self._sessions = Sessions(SESSIONS)
        self._recoveries: OrderedDict[tuple[str, Language], Recovery] = OrderedDict()

    def open(self, uri: str, language: Language, split: Split) -> Opened:
        """The session of a cursor.

        Where the text does not parse with the closers right of the cursor, but would without some of them, they are
        left to the middle: an editor put them there for a bracket that is closed already. Otherwise, where the text
        does not parse, the lines that break it are left out.
        """
        assert self._thread.is_current()
        left, right = split.left, split.right
        session = self._sessions.open(language, left, right)
        if session.guarantee == "exact":
            return Opened(session, "exact", left, right)
        for covered in range(1, min(len(Place.of(split).closers(language)), MOST_COVERED) + 1):
            without = self._sessions.open(language, left, right[covered:])
            if without.guarantee == "exact":
                return Opened(without, "exact", left, right[covered:], covered=covered)
        found = self._recovery(uri, language).open(left, right)
        if isinstance(found, Recovered):
            diagnostics = tuple(found.diagnostics)
            line = left.count("\n")
            return Opened(found.session, "partial", found.left, found.right, diagnostics, 0, found.ignored, line)
        return Opened(session, session.guarantee, left, right, tuple(session.diagnostics))

    def forget(self, uri: str) -> None:
        """Forget what is known of a document."""
        assert self._thread.is_current()
        for key in [key for key in self._recoveries if key[0] == uri]:
            del self._recoveries[key]

    def clear(self) -> None:
        """Forget all sessions."""
        assert self._thread.is_current()
        self._sessions = Sessions(SESSIONS)
        self._recoveries.clear()

    def _recovery(self, uri: str, language: Language) -> Recovery:
        """What is remembered of a document's broken lines."""
        found = self._recoveries.pop((uri, language), None)
        if found is None:
            found = Recovery(partial(self._sessions.open, language))
        self._recoveries[uri, language] = found
        while len(self._recoveries) > DOCUMENTS:
            self._recoveries.popitem(last=False)
        return found


def fits(text: str, split: Split, opened: Opened) -> str | None:
    """Why an editor could not show a text, or None: it has to bring the closers that it stands for."""
    closers = split.right[: opened.covered]
    return None if contains_in_order(text, closers) else f"it lacks the {closers} right of the cursor"


def without_repetition(text: str, right: str, is_complete: Callable[[str], bool]) -> str:
    """A text without its last lines, if these stand right of the cursor already and the text may end before them.

    Models like to write what follows once more; no grammar forbids that.
    """
    lines = text.split("\n")
    following = [line for line in right.split("\n", len(lines) + 2)[1:] if line.strip()]
    for kept in range(len(lines)):
        repeated = [line for line in lines[kept:] if line.strip()]
        if repeated and same_lines(repeated, following[: len(repeated)]):
            shortened = "\n".join(lines[:kept])
            if is_complete(shortened):
                return shortened
    return text


def before_unopened(text: str, brackets: Sequence[tuple[str, str]]) -> str:
    """A text up to the first bracket that closes what it has not opened.

    For where no grammar watches: what it closes is mostly closed right of the cursor, and would be twice. ``brackets``:
    opening and closing ones, pairwise.
    """
    texts = sorted({text for pair in brackets for text in pair}, key=len, reverse=True)
    if not texts:
        return text
    closed_by = dict(brackets)
    expected: list[str] = []
    for found in re.finditer("|".join(map(re.escape, texts)), text):
        if found[0] in closed_by:
            expected.append(closed_by[found[0]])
        elif not expected or expected.pop() != found[0]:
            return text[: found.start()]
    return text


def same_lines(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether lines are equal but for blanks at their ends."""
    return [line.rstrip() for line in some] == [line.rstrip() for line in others]
