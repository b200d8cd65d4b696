"""What stands right of the cursor on its line: where a model that writes it means that the middle ends.

Somebody who types in the middle of a line has the rest of it there already. A model that reads the left context above
all writes that rest again and goes on; the grammar lets it, since `a = b = c` is as good a program as `a = c`. So a
token that writes what the rest of the line begins with, a whole lexeme at least, counts as an end token where the
middle may end, as a closer does (:mod:`.closing`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.decoding.closing import ClosedSession

FIRST_LEXEME = re.compile(r"[ \t]*(?:\w+|[-=<>!+*/%&|^~:@?]+|[^\w\s])")
"""Blanks, and a word, a run of operators' signs, or another sign."""


@dataclass(frozen=True, slots=True)
class Following:
    """The rest of a cursor's line."""

    text: bytes
    lexeme: bytes
    """What it begins with, the blanks before it too."""

    @classmethod
    def of(cls, session: ClosedSession, right: str) -> Following | None:
        """That of a session's right context; None where nothing is right of the cursor, or no code.

        None where the right context begins with a closer, or a string of its own: the first quote of one is that of
        any.
        """
        rest = right.partition("\n")[0].rstrip()
        first = FIRST_LEXEME.match(rest)
        if session.guarantee == "none" or first is None or session.inside is not None:
            return None
        brackets = "".join(bracket for pair in session.spelling.brackets for bracket in pair)
        sign = first[0][-1]
        if sign in session.spelling.closers and (sign not in brackets or first[0] == sign):
            return None
        return cls(rest.encode(), first[0].encode())

    def is_written_by(self, token: bytes) -> bool:
        """Whether a token's text is the beginning of the rest, or more than all of it."""
        return token.startswith(self.lexeme) and (self.text.startswith(token) or token.startswith(self.text))
