"""Surroundings of a cursor: its line, and the closers that an editor inserted."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from fim_server.language import Language
    from fim_server.language.spelling import Spelling
    from fim_server.suggest.settings import ServerSettings
    from fim_server.text.document import Split

MOST_CLOSERS = 16
"""Most characters right of the cursor that an editor may have inserted."""

MOST_PLACES = 64
"""Most documents whose last cursor is kept."""


PROSE = ("comment", "string")
"""Kinds of text that are no code."""

BLANKS = " \t"

MOST_BLANK = 8
"""Most lines below the cursor's line that are searched for the next one that is not blank."""


@dataclass(frozen=True, slots=True)
class Place:
    """Line of a cursor.

    Attributes:
        before: Its text left of the cursor.
        after: Its text right of it, without the line break.
    """

    before: str
    after: str

    @classmethod
    def of(cls, split: Split) -> Place:
        start = split.left.rfind("\n") + 1
        end = split.right.find("\n")
        return cls(split.left[start:], split.right if end < 0 else split.right[:end])

    def closers(self, language: Language) -> str:
        """Return the closing brackets and quotes right of the cursor that an editor may have inserted.

        Blanks may stand before each of them, as in `{ ‸ })`.
        """
        written = language.spelling.closers
        count = 0
        for end, character in enumerate(self.after[:MOST_CLOSERS], 1):
            if character in written:
                count = end
            elif character not in BLANKS:
                break
        return self.after[:count]

    @property
    def is_at_line_end(self) -> bool:
        return not self.after.strip()

    @property
    def is_inside_a_word(self) -> bool:
        """Return whether the cursor cuts a name or a number."""
        return is_word(self.before[-1:]) and is_word(self.after[:1])


class Places:
    """Offsets of the last cursor in each document, closed ones included."""

    def __init__(self) -> None:
        self._offsets: OrderedDict[str, int] = OrderedDict()

    def note(self, uri: str, offset: int) -> None:
        self._offsets[uri] = offset
        self._offsets.move_to_end(uri)
        while len(self._offsets) > MOST_PLACES:
            self._offsets.popitem(last=False)

    def of(self, uri: str) -> int | None:
        """Return the last cursor of a document; None if there was none."""
        return self._offsets.get(uri)


def is_fresh(split: Split, spelling: Spelling) -> bool:
    """Return whether a cursor is between empty brackets."""
    return any(split.left.endswith(one) and split.right.startswith(other) for one, other in spelling.brackets)


def wants_single_line(place: Place, settings: ServerSettings, owes_block: bool = False) -> bool:
    """Return whether one line is wanted at a cursor, or as many as the model writes.

    ``owes_block``: no program is complete before a block begins on the next line.
    """
    if settings.multiline != "auto":
        return settings.multiline == "never"
    if owes_block:
        return False
    # After a letter the word may continue, so the line does not end yet.
    return not place.is_at_line_end or is_word(place.before[-1:])


def contains_in_order(text: str, part: str) -> bool:
    """Return whether a text contains the characters of another one in their order.

    VS Code silently hides an item that does not contain the text of its range.

    >>> contains_in_order("left, right)", ")"), contains_in_order("left", ")")
    (True, False)
    """
    rest = iter(text)
    return all(character in rest for character in part)


def line_with(split: Split, text: str) -> str:
    """Return the cursor's line up to the cursor, and the first line of a text after it."""
    return split.left[split.left.rfind("\n") + 1 :] + text.partition("\n")[0]


def around(split: Split) -> tuple[int, str, int]:
    """Return the offset of the cursor's line, the document without it, and the number of lines above it."""
    start, end = split.left.rfind("\n") + 1, split.right.find("\n")
    source = split.left[:start] + ("" if end < 0 else split.right[end:])
    return start, source, split.left.count("\n", 0, start)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
