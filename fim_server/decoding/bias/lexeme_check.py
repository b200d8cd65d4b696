"""Whether a lexeme that is foretold can stand in a middle as that lexeme.

Where the grammar refuses the keyword `except`, it allows the letters all the same, as the beginning of a longer name.
So a foretold word has to be followed by something that ends it.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.decoding.protocols import MiddleState

WORD_ENDS = tuple(mark.encode() for mark in " \n" + string.punctuation.replace("_", ""))
"""What may end a word; a blank, which nearly always may, is tried first."""


class LexemeCheck:
    """A state of the engine that follows a middle, to ask what can stand at its end."""

    def __init__(self, state: MiddleState) -> None:
        """``state``: before the middle's first byte, and nobody else's."""
        self._state = state
        self._middle = b""

    def allows(self, middle: bytes, text: bytes) -> bool:
        """Whether a text that ends with a lexeme can follow a middle, with that lexeme's end at its end.

        True after a middle that is itself refused: nothing is known there.
        """
        if not self._follow(middle):
            return True
        ends = WORD_ENDS if is_word(text[-1:]) else (b"",)
        stands = self._takes(text) and any(self._takes(end) for end in ends)
        self._state.rollback(len(self._state) - len(middle))
        return stands

    def _follow(self, middle: bytes) -> bool:
        """Go to a middle, or as far as it is possible; returns whether all of it is."""
        kept = len(self._middle) if middle.startswith(self._middle) else 0
        self._state.rollback(len(self._middle) - kept)
        self._middle = middle[: kept + self._state.advance(middle[kept:])]
        return self._middle == middle

    def _takes(self, text: bytes) -> bool:
        """Append a text; returns whether all of it is possible. What is not leaves nothing of a single character."""
        return self._state.advance(text) == len(text)


def is_word(byte: bytes) -> bool:
    """Whether a byte is of a character that may stand in a word."""
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"
