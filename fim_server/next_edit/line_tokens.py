"""Tokens and shapes of lines, for the comparison of code of any language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fim_server.language.texts import is_word
from fim_server.next_edit.signs import SIGNS
from fim_server.text.lined_text import LinedText

TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\n|[^\w\s]")
"""A word, a number, a line break, or one other character."""

LINE_BREAK = "\n"

LONGEST_LINE = 1000
"""Longest line with a shape, in characters."""

LINES_KEPT = 20_000
"""Lines whose tokens are kept."""


@dataclass(frozen=True, slots=True)
class Token:
    """Token of a text, and its offsets there."""

    text: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Return whether the token may differ in code alike: a name or a number."""
        return is_word(self.text[0]) and self.text not in SIGNS.keywords


def tokens_of(text: str) -> tuple[Token, ...]:
    return tuple(Token(found[0], *found.span()) for found in TOKEN.finditer(text))


@lru_cache(LINES_KEPT)
def shape_of(line: str) -> str:
    """Return a line's tokens without blanks, with a letter for each name and a digit for each number.

    Lines without tokens and very long ones have none.
    """
    if len(line) > LONGEST_LINE:
        return ""
    return " ".join(
        ("0" if token.text[0].isdigit() else "a") if token.is_word else token.text for token in tokens_of(line)
    )


class Lines(LinedText):
    """Lines of a text, and their shapes."""

    @cached_property
    def by_shape(self) -> dict[str, list[int]]:
        """Numbers of the lines of each shape."""
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            found.setdefault(shape_of(line), []).append(number)
        return found
