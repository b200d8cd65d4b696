"""Replace the end of a decoded text by one that the engine found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.results import Won, Written

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion


def with_text(completion: Completion, text: str, kept: Sequence[Written], likelihood: float) -> Completion:
    """Return a completion with another text.

    Args:
        completion: The completion.
        text: The text.
        kept: The tokens that it shares with the completion.
        likelihood: The probability of the rest, which no model wrote.
    """
    tokens = (*kept, Written(len(text), likelihood))
    return replace(completion, text=text, reason=None, truncated=True, won=Won.POINT, written=tokens, begun="")


def tokens_within(tokens: Sequence[Written], end: int) -> tuple[Written, ...]:
    """Return the tokens that end within the first ``end`` characters."""
    return tuple(token for token in tokens if token.end <= end)
