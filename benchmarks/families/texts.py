"""Families: texts that repeat one construct as often as they are asked to, and where a cursor stands in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

SIZE_TOLERANCE = 0.1
"""Most relative difference between a text's size and the one asked for; with few repetitions it may be larger."""


class Placement(StrEnum):
    """Place of the cursor in a text."""

    LEFT = "left"
    """At its end."""
    RIGHT = "right"
    """At its beginning."""
    CUT_RIGHT = "cut right"
    """Right after the construct's beginning: all repetitions are at the right."""
    AROUND = "around"
    """In the middle: half of the repetitions at each side, or all openings at the left and all ends at the right."""
    CUT_LEFT = "cut left"
    """After the last repetition, with nothing at the right: whatever is open has to be closed by the middle."""
    GAP = "gap"
    """In the middle, and the symbol after the cursor is left out: the middle has to say it."""


@dataclass(frozen=True)
class Written:
    """A text, and places in it. Offsets are in characters.

    Attributes:
        text: The text.
        opening: The end of the first symbol of what is repeated.
        middle: Between two repetitions, or between all openings and all ends.
        beyond: The end of the symbol after the middle.
        end: The end of the last repetition, or, of one with two sides, of what is innermost.
    """

    text: str
    opening: int
    middle: int
    beyond: int
    end: int

    def split(self, placement: Placement) -> tuple[str, str]:
        """Left and right of a cursor."""
        match placement:
            case Placement.LEFT:
                return self.text, ""
            case Placement.RIGHT:
                return "", self.text
            case Placement.CUT_RIGHT:
                return self.text[: self.opening], self.text[self.opening :]
            case Placement.AROUND:
                return self.text[: self.middle], self.text[self.middle :]
            case Placement.CUT_LEFT:
                return self.text[: self.end], ""
            case Placement.GAP:
                return self.text[: self.middle], self.text[self.beyond :]


class Family(Protocol):
    """Texts of one construct, by how often it is repeated."""

    @property
    def name(self) -> str:
        """Repeated part, in words of the grammar."""

    @property
    def parses(self) -> bool:
        """Return whether its texts are in the language."""

    def written(self, repetitions: int) -> Written:
        """The text with so many repetitions, or as many as it can have.

        Raises:
            CannotGrowError: It cannot have so many.
        """


class CannotGrowError(Exception):
    """Repetitions that the language's limits do not allow."""


def of_size(write: Callable[[int], Written], size: int) -> Written:
    """The text of about so many characters.

    Args:
        write: `Family.written`.
        size: In characters.

    Raises:
        CannotGrowError: There is none.
    """
    repetitions = 8
    best = write(repetitions)
    for _ in range(8):  # a text's length is next to proportional to its repetitions, so that two rounds mostly do
        if abs(len(best.text) - size) <= SIZE_TOLERANCE * size:
            break
        wanted = max(1, round(repetitions * size / len(best.text)))
        if wanted == repetitions:
            break
        repetitions = wanted
        best = write(repetitions)
    return best
