"""Detection of repetition at the end of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

REPEATED_TOKENS, REPEATED_TIMES = 24, 4
"""Fewest tokens of equal stretches in a row, and fewest stretches, that are a repetition."""


def before_repetition(tokens: Sequence[int]) -> int | None:
    """Return the number of tokens before the second of the equal stretches that end a text; None without any."""
    for period in range(1, REPEATED_TOKENS // REPEATED_TIMES + 1):
        length = 0
        while length + period < len(tokens) and tokens[-1 - length] == tokens[-1 - length - period]:
            length += 1
        repeated = length + period
        if length and repeated >= max(REPEATED_TOKENS, REPEATED_TIMES * period):
            return len(tokens) - repeated + period
    return None
