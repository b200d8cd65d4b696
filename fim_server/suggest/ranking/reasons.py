"""Reasons for which a suggestion is not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Reason for suppressing a suggestion, or all suggestions of a place."""

    SWITCHED_OFF = "switched off"
    ONLY_ON_REQUEST = "only on request"
    IN_COMMENT = "inside a comment"
    IN_STRING = "inside a string"
    IN_WORD = "inside a word"
    NO_TEXT = "no text"
    REPEATED_BELOW = "repeats the document"
    REPEATED_LINE = "repeats a near line"
    DEFINED_AGAIN = "defines a name again"
    LOOP = "repeats itself"
    UNDEFINED_NAME = "loads an undefined name"
    UNKNOWN_MEMBER = "loads an unknown attribute"
    FAILS_CHECK = "fails the language's checker"
    NEEDLESS_IMPORT = "imports a needless module"
    HIDDEN_CHARACTER = "has a hidden character"
    MISSING_CLOSER = "lacks a closer right of the cursor"
    LOW_CONFIDENCE = "low confidence"
    DISMISSED = "dismissed"
    ENDS_REGION = "changes the end of a region"
    CHANGES_COMMANDS = "changes the commands of a notebook cell"


@dataclass(frozen=True, slots=True)
class Suppression:
    """A suggestion, or all suggestions of a place, that are not shown.

    Attributes:
        reason: The reason.
        message: The reason for the user, in words.
        confidence: Confidence of the first lexeme, if it was too low.
    """

    reason: Reason
    message: str
    confidence: float | None = None

    def __str__(self) -> str:
        """Return the reason for the log, without code."""
        return str(self.reason) if self.confidence is None else f"{self.reason} ({self.confidence:.3f})"


def reasons_in_words(reason: str | None, suppressed: Sequence[Suppression]) -> str:
    """Return the reasons of an answer for the log, each one once.

    Args:
        reason: The reason for showing nothing, as a rule a suppressed suggestion's message; None if one is shown.
        suppressed: The suppressed suggestions.
    """
    own = [one for one in suppressed if one.message == reason]
    kinds = {one.reason for one in own}
    confidences = ", ".join(f"{one.confidence:.3f}" for one in own if one.confidence is not None)
    others = dict.fromkeys(
        str(one)
        for one in suppressed
        if one.message != reason and (one.confidence is not None or one.reason not in kinds)
    )
    main = f"{reason}: confidence {confidences}" if confidences else reason
    return "; ".join(filter(None, (main, f"suppressed: {', '.join(others)}" if others else None)))
