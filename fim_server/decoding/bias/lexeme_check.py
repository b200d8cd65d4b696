"""Check that a foretold lexeme can stand in a middle as that lexeme.

Where the grammar refuses the keyword `except`, it still allows the letters as the beginning of a longer name. So a
foretold word has to be followed by a character that ends it.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from fim_server.decoding.ending.rest_of_line import kind_of

if TYPE_CHECKING:
    from fim_server.decoding.protocols import MiddleState

WORD_ENDS = tuple(mark.encode() for mark in " \n" + string.punctuation.replace("_", ""))
"""Characters that may end a word; a blank comes first, because it nearly always may."""


class LexemeCheck:
    """State of the engine that follows a middle."""

    def __init__(self, state: MiddleState) -> None:
        """Take a state before the middle's first byte that no other object uses."""
        self._state = state
        self._middle = b""

    def allows(self, middle: bytes, text: bytes) -> bool:
        """Return whether a text that ends with a lexeme can follow a middle, with that lexeme's end at its end.

        True after a middle that the state itself refuses: nothing is known there.
        """
        if not self._follow(middle):
            return True
        ends = WORD_ENDS if kind_of(text[-1:]) == "word" else (b"",)
        stands = self._takes(text) and any(self._takes(end) for end in ends)
        self._state.rollback(len(self._state) - len(middle))
        return stands

    def _follow(self, middle: bytes) -> bool:
        """Move the state to a middle; return False if it stops before the end."""
        kept = len(self._middle) if middle.startswith(self._middle) else 0
        self._state.rollback(len(self._middle) - kept)
        self._middle = middle[: kept + self._state.advance(middle[kept:])]
        return self._middle == middle

    def _takes(self, text: bytes) -> bool:
        """Append a text; return whether the state takes all of it. A refused single character leaves no byte."""
        return self._state.advance(text) == len(text)
