"""What stands right of the cursor on its line: where a model that writes it means that the middle ends.

Somebody who types in the middle of a line has the rest of it there already. A model that reads the left context above
all writes that rest again and goes on; the grammar lets it, since `a = b = c` is as good a program as `a = c`. So a
token that holds what the rest of the line begins with, a whole lexeme at least, counts as an end token where the middle
may end on the cursor's line, as a closer does (:mod:`.closing`). A lexeme that is written in several tokens is not
noticed.
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
"""Blanks, and a word, a run of operators' signs, or another sign."""

MOST_REST = 256
"""Characters of the rest that are looked at; a token is shorter."""


@dataclass(frozen=True, slots=True)
class RestOfLine:
    """The rest of a cursor's line."""

    text: bytes
    lexeme: bytes
    """What it begins with, the blanks before it too."""

    @classmethod
    def of(cls, session: ClosedSession, right: str) -> RestOfLine | None:
        """That of a session's right context; None where nothing is right of the cursor, or no code.

        None where the right context begins with a closer, or a string of its own: the first quote of one is that of
        any.
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
        """Whether a token's text is the beginning of the rest, or all of it and then a blank or a line break."""
        if not token.startswith(self.lexeme):
            return False
        behind = token[len(self.text) :]
        return self.text.startswith(token) or (token.startswith(self.text) and behind[:1].isspace())

    def is_written_in(self, token: bytes, length: int) -> bool:
        """Whether that can be said of what a token has behind so many bytes, which end with a lexeme there."""
        if not self.is_written_by(token[length:]):
            return False
        before, first = kind_of(token[length - 1 : length]), kind_of(self.lexeme[:1])
        return not first or before != first


def is_on_first_line(vocabulary: Vocabulary, tokens: Sequence[int]) -> bool:
    """Whether a middle of some tokens has no line break yet: below, what the rest begins with says little."""
    return not any(b"\n" in vocabulary.token_bytes(token) for token in tokens)


def kind_of(character: bytes) -> str:
    """What a character joins with, to one lexeme; nothing of one that stands by itself."""
    if character.isalnum() or character == b"_" or character >= b"\x80":
        return "word"
    return "operator" if character in OPERATORS.encode() else ""
