"""Memory of the latest edits of a session, put together from the changes that an editor reports.

It is in memory only. Its reader leaves out the edits of files of secrets.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_EDITS = 100
"""Edits that are remembered, of all documents."""

MOST_LINES, MOST_CHARACTERS = 12, 2000
"""Most lines and characters of an edit, before and after it. A larger one is not remembered."""

MOST_OPEN = 32
"""Documents whose latest edit may go on."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Change of whole lines.

    Attributes:
        uri: The document.
        line: Number of the first changed line, from 0, when the edit was made.
        old: The lines before, without the last line break.
        new: The lines after, without the last line break.
    """

    uri: str
    line: int
    old: str
    new: str


@dataclass(slots=True)
class OpenEdit:
    """Edit that the next change may continue.

    Attributes:
        base: The document before it.
        start: Offset of its first character.
        old_end: Offset of its end in ``base``.
        new_end: Offset of its end now.
        latest: Number of the latest change in it, among all changes.
    """

    base: str
    start: int
    old_end: int
    new_end: int
    latest: int = 0

    def takes(self, text: str, start: int, end: int) -> bool:
        """Return whether a change of ``text`` between two offsets touches the lines of this edit."""
        first, last = line_start(text, self.start), line_end(text, self.new_end)
        return start <= last and end >= first

    def grow(self, start: int, end: int, length: int) -> None:
        """Take in a change of the text between two offsets, which becomes ``length`` characters."""
        self.start = min(self.start, start)
        if end > self.new_end:
            self.old_end += end - self.new_end
            self.new_end = end
        self.new_end += length - (end - start)

    def done(self, uri: str, text: str) -> Edit | None:
        """Return the edit, given the text now; None if it changes nothing, or is too large."""
        if self.old_end - self.start > MOST_CHARACTERS or self.new_end - self.start > MOST_CHARACTERS:
            return None
        first = line_start(self.base, self.start)
        old = self.base[first : line_end(self.base, self.old_end)]
        new = text[first : line_end(text, self.new_end)]
        if old == new or is_large(old) or is_large(new):
            return None
        return Edit(uri, self.base.count("\n", 0, first), old, new)


class EditMemory:
    """Latest edits of a client. Used on one thread."""

    def __init__(self, text_of: Callable[[str], str | None]) -> None:
        """``text_of``: return the text of an open document."""
        self._text_of = text_of
        self._changes = 0
        self._done: deque[tuple[int, Edit]] = deque(maxlen=MOST_EDITS)
        self._open: OrderedDict[str, OpenEdit] = OrderedDict()

    def change(self, uri: str, before: str, start: int, end: int, text: str) -> None:
        """Note that ``text`` replaces a part of a document, ``before``, between two offsets."""
        known = self._open.get(uri)
        if known is None or not known.takes(before, start, end):
            self._finish(uri, before)
            known = self._open[uri] = OpenEdit(before, start, start, start)
        self._open.move_to_end(uri)
        known.grow(start, end, len(text))
        self._changes += 1
        known.latest = self._changes
        while len(self._open) > MOST_OPEN:
            oldest = next(iter(self._open))
            self._finish(oldest, self._text_of(oldest))

    def latest(self) -> list[Edit]:
        """Return the edits, the latest last."""
        found = list(self._done)
        for uri, edit in self._open.items():
            text = self._text_of(uri)
            if text is not None and (done := edit.done(uri, text)) is not None:
                found.append((edit.latest, done))
        return [edit for _, edit in sorted(found, key=itemgetter(0))][-MOST_EDITS:]

    def close(self, uri: str, text: str) -> None:
        """Finish the open edit of a document that is closed with ``text``."""
        self._finish(uri, text)

    def forget(self, uri: str) -> None:
        """Forget all edits of a document."""
        self._open.pop(uri, None)
        self._done = deque((done for done in self._done if done[1].uri != uri), MOST_EDITS)

    def _finish(self, uri: str, text: str | None) -> None:
        known = self._open.pop(uri, None)
        if known is not None and text is not None and (done := known.done(uri, text)) is not None:
            self._done.append((known.latest, done))


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def is_large(text: str) -> bool:
    return len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES
