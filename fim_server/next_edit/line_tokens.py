"""Tokens and shapes of lines, for the comparison of code of any language."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import NamedTuple

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

SHORT, TOKENS_KEPT = 160, 2048
"""Longest text whose tokens are kept, in characters, and number of such texts: mostly 3 MB, at most 40."""

TEXTS_KEPT = 4
"""Texts whose lines are kept."""

NO_SIGNS = bytes(
    one
    for one in range(256)
    if one != ord("\n") and (one >= 128 or chr(one) == "." or chr(one).isspace() or is_word(chr(one)))
)
"""Bytes of UTF-8 that are no signs by themselves: of words, numbers, blanks and characters beyond ASCII."""


class Token(NamedTuple):
    """Token of a text, and its offsets there."""

    text: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Return whether the token may differ in code alike: a name or a number."""
        return is_word(self.text[0]) and self.text not in SIGNS.keywords


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, which are kept if it is about as short as a line."""
    return kept_tokens(text) if len(text) <= SHORT else read_tokens(text)


def read_tokens(text: str) -> tuple[Token, ...]:
    return tuple([Token(found[0], *found.span()) for found in TOKEN.finditer(text)])


kept_tokens = lru_cache(TOKENS_KEPT)(read_tokens)


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


def signs_of(text: str) -> bytes:
    """Return the signs of a text and its line breaks, without full stops, which numbers may have."""
    return text.encode("utf-8", "surrogatepass").translate(None, NO_SIGNS)


class Lines(LinedText):
    """Lines of a text, and their shapes."""

    @cached_property
    def signatures(self) -> list[bytes]:
        """Signs of each line, which lines of one shape share."""
        return signs_of(self.text).split(b"\n")

    def of_shape(self, shape: str) -> list[int]:
        """Return the numbers of the lines of a shape that has tokens."""
        known = self._of_shape.get(shape)
        if known is None:
            signs = signs_of(shape)
            alike = [number for number, found in enumerate(self.signatures) if found == signs]
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
