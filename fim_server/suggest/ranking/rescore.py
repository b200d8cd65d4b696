"""Rescore suggestions from the project's memory with the model's text at the same place."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.suggest.ranking.confidence import first_confidence, first_lexeme, possible
from fim_server.suggest.ranking.red_flags import NO_FLAG
from fim_server.suggest.suggestion import likelihood

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.suggest.suggestion import Suggestion


def given_written(recalled: Suggestion, written: Sequence[Suggestion]) -> Suggestion:
    """Return a recalled suggestion with the confidence that it has once the model has written.

    The model knew the memory's prediction. So where both begin with the same lexeme, the model's confidence counts;
    where they differ, only one of them is right. The memory's tokens stay in `Likelihoods.recalled`, in case the user
    types something else than the model wrote.

    Args:
        recalled: The recalled suggestion.
        written: The model's suggestions. The last counts: the model wrote it after the others got red flags.
    """
    end = first_lexeme(recalled)
    tokens = recalled.tokens
    if not tokens or 0 < recalled.flag.end <= end:
        return recalled
    known = [one for one in written if 0 < likelihood(one.tokens, first_lexeme(one)) < 1]
    if not known:
        return recalled  # the likelihood of the model's text is unknown
    suggestion = known[-1]
    if suggestion.flag.whole > first_lexeme(suggestion):  # the flag is not about the first lexeme alone
        suggestion = replace(suggestion, likelihoods=replace(suggestion.likelihoods, flag=NO_FLAG))
    sure = first_confidence(suggestion)
    begin_alike = first_text(suggestion) == first_text(recalled)
    now = possible(sure if begin_alike else (1 - sure) * first_confidence(recalled))
    # The tokens of the first lexeme, as `likelihood` counts them.
    within = next((at for at, token in enumerate(tokens, 1) if token.end >= end), len(tokens))
    shares = [possible(token.probability) for token in tokens[:within]]
    power = math.log(now) / sum(map(math.log, shares))
    first = (replace(token, probability=share**power) for token, share in zip(tokens, shares, strict=False))
    rescored = replace(recalled.likelihoods, tokens=(*first, *tokens[within:]), recalled=tokens)
    return replace(recalled, likelihoods=rescored)


def first_text(suggestion: Suggestion) -> str:
    """Return the first lexeme of a suggestion without the blanks before it."""
    return suggestion.text[: first_lexeme(suggestion)].lstrip(" \t")
