"""Tokens and shapes of lines, for the comparison of code of any language."""

from __future__ import annotations

import re
from contextlib import suppress
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
"""Lines whose shapes are kept."""

TEXTS_KEPT = 4
"""Texts whose lines are kept."""

NO_SIGNS = {ord(one): None for one in map(chr, range(128)) if is_word(one) or (one.isspace() and one != "\n")} | {
    ord("."): None
}
"""Characters of words, numbers and blanks, for ``str.translate``."""


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
    def signatures(self) -> list[str] | None:
        """Signs of each line, which lines of one shape share; None for a text with characters beyond ASCII."""
        return self.text.translate(NO_SIGNS).split("\n") if self.text.isascii() else None

    def of_shape(self, shape: str) -> list[int]:
        """Return the numbers of the lines of a shape that has tokens."""
        known = self._of_shape.get(shape)
        if known is None:
            signs = shape.translate(NO_SIGNS)
            of_lines = self.signatures
            if of_lines is None:
                of_lines = [line.translate(NO_SIGNS) if line.isascii() else signs for line in self.lines]
            alike = [number for number, found in enumerate(of_lines) if found == signs]
            known = [number for number in alike if shape_of(self.lines[number]) == shape]
            self._of_shape[shape] = known
        return known

    @cached_property
    def _of_shape(self) -> dict[str, list[int]]:
        return {}

    def same_as(self, line: str) -> list[int]:
        """Return the numbers of the lines with a text."""
        found: list[int] = []
        at = -1
        with suppress(ValueError):
            while True:
                at = self.lines.index(line, at + 1)
                found.append(at)
        return found


@lru_cache(TEXTS_KEPT)
def lines_of(text: str) -> Lines:
    """Return the lines of a text."""
    return Lines(text)
