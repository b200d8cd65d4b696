"""What speaks for a continuation, as numbers that a logistic model weighs.

Two questions are asked of each continuation: whether its first word is what somebody would type, and whether all of its
line is. The first is asked again of each of its beginnings, by the share of the matches that go on alike up to there. A
third is asked where it has further lines: whether the next one is right if those before it are.
"""

from __future__ import annotations

from math import log, log1p

from fim_server._core import Continuation

NAMES = (
    "bias",
    "matched",
    "matched_characters",
    "short",
    "agreeing",
    "agreeing_longest",
    "candidates_longest",
    "share_longest",
    "share",
    "share_logit",
    "first_share",
    "first_logit",
    "share_matched",
    "first_matched",
    "behind",
    "documents",
    "in_document",
    "in_folder",
    "near",
    "edited",
    "prefix",
    "right_agreement",
    "misses_right",
    "length",
    "words",
)
"""The features, in the order of the numbers."""

FURTHER_NAMES = ("bias", "matched")
"""The features of a further line. How many places go on like that, and how sure the first line is, says no more of
lines in packages that the weights were not fitted to."""

FEW = 3
"""Lexemes that a match has by chance."""

NEAR_LINES = 30.0
"""Lines after which being near has lost half of its weight."""


def log_odds(share: float) -> float:
    """The logarithm of the odds of a share, bounded where it is 0 or 1."""
    bounded = min(max(share, 0.001), 0.999)
    return log(bounded / (1 - bounded))


def features(one: Continuation, share: float, length: int, words: int) -> list[float]:
    """The features of a beginning of a continuation.

    Args:
        one: The continuation.
        share: Of the weight of all matches, what goes on alike up to the beginning's end.
        length: Its characters.
        words: Its lexemes.

    Returns:
        A number for each of :data:`NAMES`.
    """
    matched = log1p(one.matched)
    first = one.shares[0][1] if one.shares else one.share
    return [
        1.0,
        matched,
        log1p(one.matched_characters),
        float(one.matched <= FEW),
        log1p(one.agreeing),
        log1p(one.agreeing_longest),
        log1p(one.candidates_longest),
        one.agreeing_longest / one.candidates_longest,
        share,
        log_odds(share),
        one.first_share,
        log_odds(first),
        log_odds(share) * matched,
        log_odds(first) * matched,
        log1p(one.longest - one.matched),
        log1p(one.documents),
        float(one.place == "document"),
        float(one.place == "folder"),
        0.0 if one.distance is None else NEAR_LINES / (NEAR_LINES + one.distance),
        0.0 if one.edits_ago is None else 1 / (1 + one.edits_ago),
        log1p(one.prefix),
        log1p(one.right_agreement),
        float(not one.meets_right),
        log1p(length),
        log1p(words),
    ]


VARYING = ("share", "share_logit", "share_matched", "length", "words")
"""The features that the beginnings of one continuation differ in, in the order of `split_weights`."""


def further_features(one: Continuation) -> list[float]:
    """The features of each further line of a continuation: a number for each of :data:`FURTHER_NAMES`."""
    return [1.0, log1p(one.matched)]
