"""Confidence of a suggestion: the share of such texts that were right in held-out files.

A logistic map gives it from the probabilities of the tokens, before the grammar refused any, and from the loaded names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fim_server.suggest.constants import RANKING
from fim_server.suggest.suggestion import likelihood

if TYPE_CHECKING:
    from fim_server.suggest.request import Request
    from fim_server.suggest.suggestion import Suggestion

LEAST_LIKELY = 1e-6
"""Least probability, and least distance from 1: nothing is impossible or certain."""


def least_likelihood(request: Request, is_fresh: bool, owes_block: bool = False, is_header: bool = False) -> float:
    """Return ``DecodeOptions.least_likelihood`` of a request.

    ``is_fresh``, ``owes_block``, ``is_header``: as in :class:`.Display`.
    """
    if not request.settings.min_confidence:
        return 0.0
    if request.invoked:
        return RANKING.written_likelihood_requested
    if owes_block:
        return RANKING.written_likelihood_block
    return RANKING.written_likelihood_fresh if is_fresh or is_header else RANKING.written_likelihood


def confidence(suggestion: Suggestion, end: int) -> float:
    """Return the confidence of the first ``end`` characters of a suggestion; 1 if its tokens are unknown."""
    return mapped(suggestion, end, RANKING.intercept, RANKING.per_log_odds, RANKING.per_unknown_name)


def first_confidence(suggestion: Suggestion) -> float:
    """Return the confidence of the first lexeme of a suggestion; 1 if its tokens are unknown."""
    end = first_lexeme(suggestion)
    is_new = any(word <= end for word in suggestion.likelihoods.new_words)
    intercept = RANKING.first_intercept + RANKING.first_per_new_word * is_new + suggestion.likelihoods.shift
    return mapped(suggestion, end, intercept, RANKING.first_per_log_odds, RANKING.first_per_unknown_name)


def first_lexeme(suggestion: Suggestion) -> int:
    """Return the length of the first lexeme of a suggestion, in characters."""
    return next(iter(suggestion.ends.lexemes), len(suggestion.text))


def possible(probability: float) -> float:
    """Return a probability that is neither 0 nor 1."""
    return min(max(probability, LEAST_LIKELY), 1 - LEAST_LIKELY)


def mapped(suggestion: Suggestion, end: int, intercept: float, per_log_odds: float, per_unknown_name: float) -> float:
    """Return the confidence of the first ``end`` characters of a suggestion by a logistic map."""
    likelihoods = suggestion.likelihoods
    if not likelihoods.tokens:
        return 1.0
    if 0 < likelihoods.flag.end <= end:
        return likelihoods.flag.confidence
    share = possible(likelihood(likelihoods.tokens, end))
    if likelihoods.is_calibrated:
        return share
    unknown = any(name <= end for name in likelihoods.unknown)
    odds = intercept + per_log_odds * math.log(share / (1 - share)) + per_unknown_name * unknown
    return 1 / (1 + math.exp(-odds))
