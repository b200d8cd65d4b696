"""Features of a continuation for a logistic model.

Three models answer a question each. The first asks if a beginning of the continuation is right, by the share of matches
that agree up to there; the second, if all of its first line is. The third asks if the next line is right, given those
before it.
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
"""Names of the features, in their order."""

FURTHER_NAMES = ("bias", "matched")
"""Names of the features of a further line. The number of agreeing places and the confidence in the first line add
nothing in packages that the weights were not fitted to."""

FEW = 3
"""Lexemes of a match that may be chance."""

NEAR_LINES = 30.0
"""Distance in lines at which nearness has half of its weight."""


def log_odds(share: float) -> float:
    """Return the log odds of a share, bounded at 0 and 1."""
    bounded = min(max(share, 0.001), 0.999)
    return log(bounded / (1 - bounded))


def features(one: Continuation, share: float, length: int, words: int) -> list[float]:
    """Return the features of a beginning of a continuation, one for each of :data:`NAMES`.

    Args:
        one: The continuation.
        share: Share of the weight of all matches that agree up to the beginning's end.
        length: Characters of the beginning.
        words: Lexemes of the beginning.
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
"""Features in which the beginnings of one continuation differ, in the order of `split_weights`."""


def further_features(one: Continuation) -> list[float]:
    """Return the features of each further line of a continuation, one for each of :data:`FURTHER_NAMES`."""
    return [1.0, log1p(one.matched)]
