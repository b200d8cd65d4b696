"""Rest of the cursor's line: a model that writes it means the end of the middle.

A user who types in the middle of a line has its rest already. A model that follows the left context writes that rest
again and goes on. The grammar allows this, since `a = b = c` is as good a program as `a = c`. So a token that holds at
least the first lexeme of the rest counts as an end token, as a closer does (:mod:`.right_closer`). The middle must be
able to end there, on the cursor's line. A lexeme written in several tokens goes unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.ending.right_closer import ClosedSession
    from fim_server.tokens.vocabulary import Vocabulary

OPERATORS = "-=<>!+*/%&|^~:@?"
FIRST_LEXEME = re.compile(rf"[ \t]*(?:\w+|[{OPERATORS}]+|[^\w\s])")
"""Blanks, and a word, a run of operator signs, or another sign."""

MOST_REST = 256
"""Characters of the rest to look at; a token is shorter."""


@dataclass(frozen=True, slots=True)
class RestOfLine:
    """Rest of a cursor's line."""

    text: bytes
    lexeme: bytes
    """Its first lexeme, with the blanks before it."""

    @classmethod
    def of(cls, session: ClosedSession, right: str) -> RestOfLine | None:
        """Return the rest in a session's right context; None if the line has no rest or the cursor is not in code.

        None as well if the rest begins with a closer, or with a string of its own: the first quote of one string is
        that of any.
        """
        rest = right[:MOST_REST].partition("\n")[0].rstrip()
        first = FIRST_LEXEME.match(rest)
        if session.guarantee == "none" or first is None or session.inside is not None:
            return None
        closing = {bracket for _, bracket in session.spelling.brackets}
        quotes = {*session.spelling.closers} - closing - {*OPERATORS}
        if first[0] in closing or first[0][-1] in quotes or rest[first.end() : first.end() + 1] in quotes:
            return None
        return cls(rest.encode(), first[0].encode())

    def is_written_by(self, token: bytes) -> bool:
        """Return whether a token's text begins the rest, or is all of it and then a blank or a line break."""
        if not token.startswith(self.lexeme):
            return False
        behind = token[len(self.text) :]
        return self.text.startswith(token) or (token.startswith(self.text) and behind[:1].isspace())

    def is_written_in(self, token: bytes, length: int) -> bool:
        """Return whether a token writes the rest after its first bytes, and the rest's first lexeme begins there."""
        if not self.is_written_by(token[length:]):
            return False
        before, first = kind_of(token[length - 1 : length]), kind_of(self.lexeme[:1])
        return not first or before != first


def is_on_first_line(vocabulary: Vocabulary, tokens: Sequence[int]) -> bool:
    """Return whether a middle has no line break yet: on later lines the beginning of the rest means little."""
    return not any(b"\n" in vocabulary.token_bytes(token) for token in tokens)


def kind_of(byte: bytes) -> str:
    """Return the kind of lexeme that a byte belongs to, `word` or `operator`; empty if it is a lexeme by itself."""
    if byte.isalnum() or byte == b"_" or byte >= b"\x80":
        return "word"
    return "operator" if byte in OPERATORS.encode() else ""
