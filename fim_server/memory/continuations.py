"""Continuations with the confidence that the user would type them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

from fim_server._core import Continuation
from fim_server.memory.features import features, further_features, log_odds
from fim_server.memory.weights import Weights, confidence, dot, logistic


@dataclass(frozen=True, slots=True)
class ScoredContinuation:
    """Continuation with its confidence.

    Attributes:
        text: Text to insert at the cursor; empty where the line would end there.
        beginnings: For each lexeme of the first line: characters up to its end, and the probability that the text is
            right up to there. The probabilities never rise.
        whole: Probability that the first line is right to its end, and ends there.
        lines: For each further line: characters of the text up to its end, and the probability that all is right up to
            there. The probabilities fall.
        continuation: Its matches in the project.
    """

    text: str
    beginnings: tuple[tuple[int, float], ...]
    whole: float
    lines: tuple[tuple[int, float], ...]
    continuation: Continuation

    @property
    def first(self) -> float:
        """Return the probability that the first word or character is right."""
        return next((sure for end, sure in self.beginnings if self.text[:end].strip()), 0.0)

    def until(self, confidence: float) -> str:
        """Return the longest beginning of that confidence, of whole lexemes, or of whole lines beyond the first."""
        if self.whole >= confidence:
            return self.text[: self.end_of_lines(confidence)]
        ends = [end for end, sure in self.beginnings if sure >= confidence]
        return self.text[: max(ends, default=0)].rstrip(" \t")

    def end_of_lines(self, confidence: float) -> int:
        """Return the offset after the last line of that confidence, at least after the first line."""
        end = self.text.find("\n")
        return max((at for at, sure in self.lines if sure >= confidence), default=len(self.text) if end < 0 else end)


def scored(one: Continuation, weights: Weights) -> ScoredContinuation:
    """Return a continuation with its confidence by a model's weights."""
    shares = one.shares
    length = shares[-1][0] if shares else 0
    numbers = features(one, one.share, length, len(shares))
    beginnings = beginnings_of(one, weights, shares, numbers)
    sure = beginnings[-1][1] if beginnings else 1.0
    whole = min(confidence(weights.whole, numbers), sure)
    return ScoredContinuation(one.text, beginnings, whole, lines_of(one, whole, weights), one)


def lines_of(one: Continuation, whole: float, weights: Weights) -> tuple[tuple[int, float], ...]:
    """Return :attr:`ScoredContinuation.lines`; ``whole``: the confidence in the first line."""
    text = one.text
    at, sure, lines = text.find("\n"), whole, []
    going_on = confidence(weights.further, further_features(one)) if at >= 0 else 1.0
    while at >= 0:
        following = text.find("\n", at + 1)
        sure *= going_on
        lines.append((len(text) if following < 0 else following, sure))
        at = following
    return tuple(lines)


def beginnings_of(
    one: Continuation, weights: Weights, shares: Sequence[tuple[int, float]], numbers: Sequence[float]
) -> tuple[tuple[int, float], ...]:
    """Return :attr:`ScoredContinuation.beginnings`, with one list of features for all of them.

    ``shares``: the continuation's; ``numbers``: the features of any of its beginnings.
    """
    fixed, (per_share, per_odds, per_matched, per_length, per_words) = weights.of_beginnings
    shared, per_odds = dot(fixed, numbers), per_odds + per_matched * log1p(one.matched)
    sure, found = 1.0, []
    for words, (length, share) in enumerate(shares, 1):
        odds = log_odds(share)
        logit = shared + per_share * share + per_odds * odds + per_length * log1p(length) + per_words * log1p(words)
        sure = min(sure, logistic(logit))
        found.append((length, sure))
    return tuple(found)


def ranked(found: list[Continuation], weights: Weights) -> list[ScoredContinuation]:
    """Return continuations with their confidence, the best first.

    A user gains the first word if it is right and the rest if all of it is, so the order counts both.
    """
    return sorted((scored(one, weights) for one in found), key=lambda one: -(one.first + one.whole))
