"""Cuts of a middle out of a text, and the order in which the parts are shown.

Cuts are made in characters, before tokenization, as a cursor does (Bavarian et al. 2022,
"Efficient Training of Language Models to Fill in the Middle", section 3); the share of
suffix-first order is high because that is the order served.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

# Longest middle, in characters.
MAX_MIDDLE = 600


class Order(Enum):
    """Layout of an example."""

    SUFFIX_FIRST = "spm"
    PREFIX_FIRST = "psm"
    PLAIN = "plain"


class Hole(NamedTuple):
    """A text cut in three; joined, the parts are the text."""

    left: str
    middle: str
    right: str


@dataclass(frozen=True)
class Mixture:
    """Shares of the orders and of the kinds of middle; the remainders are what is left out.

    `blank_kept`: chance that a middle without a visible character is not drawn again;
    `middle_weight`: the loss of a middle's tokens counts this many times.
    """

    suffix_first: float = 0.75
    plain: float = 0.08
    rest_of_line: float = 0.40
    lines: float = 0.25
    block: float = 0.15
    blank_kept: float = 0.1
    middle_weight: float = 2.0

    def order(self, generator: random.Random) -> Order:
        """Draw an order; the remainder is prefix-first."""
        drawn = generator.random()
        if drawn < self.suffix_first:
            return Order.SUFFIX_FIRST
        return Order.PLAIN if drawn < self.suffix_first + self.plain else Order.PREFIX_FIRST


def cut(text: str, mixture: Mixture, generator: random.Random) -> Hole:
    """Cut a middle out of `text`, at characters: rest of a line, some lines, a block, a span.

    Blank middles are mostly drawn again: the end token alone is too easy an answer to teach.
    """
    hole = _cut_once(text, mixture, generator)
    for _ in range(8):
        if hole.middle.strip() or generator.random() < mixture.blank_kept:
            break
        hole = _cut_once(text, mixture, generator)
    return hole


def _cut_once(text: str, mixture: Mixture, generator: random.Random) -> Hole:
    start = _cursor(text, generator)
    drawn = generator.random()
    if drawn < mixture.rest_of_line:
        end = line_end(text, start)
    elif drawn < mixture.rest_of_line + mixture.lines:
        end = line_end(text, start)
        while generator.random() < 0.6 and end < len(text):
            end = line_end(text, end + 1)
    elif drawn < mixture.rest_of_line + mixture.lines + mixture.block:
        start = code_start(text, start)
        end = _block_end(text, start)
    else:
        end = min(len(text), start + int(2 ** generator.uniform(0, 8)))
    if end - start > MAX_MIDDLE:
        # Rather a line's end than the midst of a word.
        line_break = text.rfind("\n", start, start + MAX_MIDDLE)
        end = line_break if line_break > start else start + MAX_MIDDLE
    return Hole(text[:start], text[start:end], text[end:])


def _cursor(text: str, generator: random.Random) -> int:
    """Draw a place, half of the time at the start of a line's code or at its end."""
    place = min(len(text), int(len(text) * generator.betavariate(2.0, 1.3)))
    drawn = generator.random()
    if drawn < 0.35:
        return code_start(text, place)
    if drawn < 0.5:
        return line_end(text, place)
    return place


def code_start(text: str, place: int) -> int:
    """The first character of the line at `place` that is no blank, or the line's end."""
    start = text.rfind("\n", 0, place) + 1
    while start < len(text) and text[start] in " \t":
        start += 1
    return start


def line_end(text: str, place: int) -> int:
    """The line break at or after `place`, or the end of the text."""
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _block_end(text: str, start: int) -> int:
    """The end of the last line after `start` that is indented at least as deep.

    Other than :func:`.fim.cuts.block_end` it takes the text's last line breaks into an outermost block: the embedded
    model has learned so.
    """
    column = start - (text.rfind("\n", 0, start) + 1)
    end = line_end(text, start)
    while end < len(text):
        following = code_start(text, end + 1)
        following_end = line_end(text, end + 1)
        if following < following_end:
            if following - (end + 1) < column:
                break
            end = following_end
        else:
            blank_end = following_end
            while blank_end < len(text) and text[blank_end] == "\n":
                blank_end += 1
            line_start = text.rfind("\n", 0, blank_end) + 1
            if code_start(text, blank_end) - line_start < column:
                break
            end = line_end(text, blank_end)
    return end
