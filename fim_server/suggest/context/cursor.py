"""Where in a text a cursor is: whether to speak there, how much, and which brackets an editor closed by itself."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from collections.abc import Collection

    from fim_server.language import Language
    from fim_server.language.spelling import Spelling
    from fim_server.suggest.settings import ServerSettings
    from fim_server.text.document import Split

MOST_CLOSERS = 16
"""Characters right of the cursor that an editor may have put there."""

MOST_PLACES = 64
"""Documents of which it is known where the cursor was last."""


PROSE = ("comment", "string")
"""What a cursor may be inside of that is no code."""

BLANKS = " \t"

MOST_BLANK = 8
"""Lines below the cursor's in which the next one that is not blank is looked for."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor's surroundings in its line."""

    before: str
    """The line left of the cursor."""
    after: str
    """The line right of it, without its break."""

    @classmethod
    def of(cls, split: Split) -> Place:
        """The place of a cut."""
        start = split.left.rfind("\n") + 1
        end = split.right.find("\n")
        return cls(split.left[start:], split.right if end < 0 else split.right[:end])

    def closers(self, language: Language) -> str:
        """Return the closing brackets and quotes right of the cursor that an editor may have put there.

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
        """Whether nothing but blanks stands right of the cursor."""
        return not self.after.strip()

    @property
    def is_inside_a_word(self) -> bool:
        """Whether the cursor cuts a name or a number."""
        return is_word(self.before[-1:]) and is_word(self.after[:1])


class Places:
    """Where in each document somebody was last, by offset; of documents that were closed, too."""

    def __init__(self) -> None:
        self._offsets: OrderedDict[str, int] = OrderedDict()

    def note(self, uri: str, offset: int) -> None:
        """Somebody was there."""
        self._offsets[uri] = offset
        self._offsets.move_to_end(uri)
        while len(self._offsets) > MOST_PLACES:
            self._offsets.popitem(last=False)

    def of(self, uri: str) -> int | None:
        """Where somebody was last, if anywhere."""
        return self._offsets.get(uri)


def silent(language: str, invoked: bool, settings: ServerSettings, learnt: Collection[str] | None = None) -> str | None:
    """Why nothing is offered in a language at all, in words, or None.

    ``invoked``: somebody asked; ``learnt``: the languages that the model has learnt, None for all.
    """
    match settings.trigger_of(language, learnt):
        case "off":
            return f"switched off for {language}" if settings.enabled else "switched off"
        case "manual" if not invoked:
            if settings.trigger_of(language) != "manual":
                return f"only when asked: the model has not learnt {language} (setting languages)"
            return "only when asked (setting trigger)"
        case _:
            return None


def quiet(place: Place, inside: str | None, invoked: bool, settings: ServerSettings) -> str | None:
    """Why nothing is offered at a place, in words, or None.

    ``inside``: `comment`, `string` or None, what the cursor is inside of.
    """
    if invoked:
        return None
    if inside == "comment" and not settings.inside_comments:
        return "inside a comment (setting insideComments)"
    if inside == "string" and not settings.inside_strings:
        return "inside a string (setting insideStrings)"
    return "inside a word" if place.is_inside_a_word else None


def is_fresh(split: Split, spelling: Spelling) -> bool:
    """Whether a cursor is in a pair of brackets with nothing in it."""
    return any(split.left.endswith(one) and split.right.startswith(other) for one, other in spelling.brackets)


def wants_single_line(place: Place, settings: ServerSettings, owes_block: bool = False) -> bool:
    """Whether one line is wanted at a place, or as many as the model writes.

    ``owes_block``: no program is complete before a block was begun on the next line.
    """
    if settings.multiline != "auto":
        return settings.multiline == "never"
    if owes_block:
        return False
    # After a letter the word may go on, and nobody has come to the line's end yet.
    return not place.is_at_line_end or is_word(place.before[-1:])


def contains_in_order(text: str, part: str) -> bool:
    """Whether a text holds the characters of another in their order.

    VS Code shows an item only if it holds what its range covers, and hides it without a word otherwise.

    >>> contains_in_order("left, right)", ")"), contains_in_order("left", ")")
    (True, False)
    """
    rest = iter(text)
    return all(character in rest for character in part)


def indentation(line: str) -> int:
    """Blanks that a line begins with."""
    return len(line) - len(line.lstrip())
