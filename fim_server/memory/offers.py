"""Continuations with the confidence that they are what somebody would type."""

from __future__ import annotations

from dataclasses import dataclass

from fim_server._core import Continuation
from fim_server.memory.features import features, further_features, varying_features
from fim_server.memory.weights import Weights, confidence, dot, logistic


@dataclass(frozen=True, slots=True)
class Offer:
    """A continuation, and how sure it is.

    Attributes:
        text: What to insert at the cursor; empty where the line would end there.
        beginnings: For each lexeme of the text's first line: characters up to its end, and the probability that the
            text is right up to there. These never rise.
        whole: The probability that the first line is right to its end, and ends there.
        lines: For each further line: characters of the text up to its end, and the probability that all is right up to
            there. These fall.
        continuation: What it was made of, and where it was found.
    """

    text: str
    beginnings: tuple[tuple[int, float], ...]
    whole: float
    lines: tuple[tuple[int, float], ...]
    continuation: Continuation

    @property
    def first(self) -> float:
        """The probability that the first word or character is right."""
        return next((sure for end, sure in self.beginnings if self.text[:end].strip()), 0.0)

    def until(self, confidence: float) -> str:
        """The longest beginning that is at least so sure, of whole lexemes, or of whole lines beyond the first."""
        if self.whole >= confidence:
            return self.text[: self.end_of_lines(confidence)]
        ends = [end for end, sure in self.beginnings if sure >= confidence]
        return self.text[: max(ends, default=0)].rstrip(" \t")

    def end_of_lines(self, confidence: float) -> int:
        """Where the last of its lines ends up to which it is at least so sure; the first in any case."""
        end = self.text.find("\n")
        return max((at for at, sure in self.lines if sure >= confidence), default=len(self.text) if end < 0 else end)


def offer_of(one: Continuation, weights: Weights) -> Offer:
    """A continuation with its confidence.

    Args:
        one: The continuation.
        weights: Of the models that are asked.
    """
    beginnings = beginnings_of(one, weights)
    sure = beginnings[-1][1] if beginnings else 1.0
    length = one.shares[-1][0] if one.shares else 0
    whole = confidence(weights.whole, features(one, one.share, length, len(one.shares)))
    whole = min(whole, sure)
    going_on = confidence(weights.further, further_features(one))
    lines, at, sure = [], one.text.find("\n"), whole
    while at >= 0:
        following = one.text.find("\n", at + 1)
        sure *= going_on
        lines.append((len(one.text) if following < 0 else following, sure))
        at = following
    return Offer(one.text, tuple(beginnings), whole, tuple(lines), one)


def beginnings_of(one: Continuation, weights: Weights) -> list[tuple[int, float]]:
    """:attr:`Offer.beginnings`: what all of them share is weighed once."""
    if not one.shares:
        return []
    fixed, varying = weights.of_beginnings
    length, share = one.shares[0]
    shared = dot(fixed, features(one, share, length, 1))
    sure, found = 1.0, []
    for words, (length, share) in enumerate(one.shares, 1):
        sure = min(sure, logistic(shared + dot(varying, varying_features(one, share, length, words))))
        found.append((length, sure))
    return found


def ranked(found: list[Continuation], weights: Weights) -> list[Offer]:
    """Continuations with their confidence, the best first.

    What somebody gains is the first word where that is right, and the rest where all of it is: so both count.
    """
    offers = [offer_of(one, weights) for one in found]
    return sorted(offers, key=lambda offer: -(offer.first + offer.whole))
