"""A middle in progress: its tokens, their probabilities and its complete points."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class CompletePoint:
    """A length, in tokens, at which the middle was complete."""

    tokens: int
    end_probability: float

    @property
    def score(self) -> float:
        """Return the length-weighted probability of an end token (:mod:`.conclusion`)."""
        return self.tokens * self.end_probability


class Middle:
    """Tokens of a middle, after those that write the healed text again.

    Attributes:
        tokens: All tokens so far, those of the healed text included.
        probabilities: One for each token, as :attr:`.choice.Choice.probability`.
        points: Complete points, shortest first.
        healing: Bytes of the healed text still to be written.
        healed_tokens: Tokens that hold nothing but healed text.
    """

    def __init__(self, vocabulary: Vocabulary, healing: bytes) -> None:
        self._vocabulary = vocabulary
        self.tokens: list[int] = []
        self.probabilities: list[float] = []
        self.points: list[CompletePoint] = []
        self.healing = self._healed = healing
        self.healed_tokens = 0

    @property
    def is_empty(self) -> bool:
        """Return whether no token holds anything of the middle."""
        return len(self.tokens) <= self.healed_tokens

    @property
    def begins_line(self) -> bool:
        """Return whether the next token begins a line, or the middle."""
        text = self.text()
        return not text or text.endswith(b"\n")

    def text(self) -> bytes:
        """Return the bytes written so far, without the healed text."""
        return b"".join(map(self._vocabulary.token_bytes, self.tokens))[len(self._healed) :]

    def likelihood(self) -> float:
        return prod(self.probabilities[self.healed_tokens :])

    def append(self, token: int, probability: float) -> None:
        self.tokens.append(token)
        self.probabilities.append(probability)
        if self.healing:
            self._take_healed(token)

    def extend(self, forced: Sequence[int]) -> None:
        """Append tokens that every continuation begins with, after the healed text."""
        self.tokens += forced
        self.probabilities += [1.0] * len(forced)

    def cut(self, length: int) -> None:
        """Go back to a length in tokens, from before the choice that was made there."""
        del self.tokens[length:], self.probabilities[length:]
        self.points = [point for point in self.points if point.tokens < length]
        self.healing, self.healed_tokens = self._healed, 0
        for token in self.tokens:
            if not self.healing:
                break
            self._take_healed(token)

    def _take_healed(self, token: int) -> None:
        text = self._vocabulary.token_bytes(token)
        self.healed_tokens += len(text) <= len(self.healing)
        self.healing = self.healing[len(text) :]
