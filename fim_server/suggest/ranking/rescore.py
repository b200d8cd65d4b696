"""How likely what the project's memory says is, once a model has written at the same place."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.suggest.ranking.display import first_confidence, first_lexeme, likelihood, possible
from fim_server.suggest.ranking.red_flags import NO_DOUBT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.suggest.answer_cache import Suggestion


def given_written(recalled: Suggestion, written: Sequence[Suggestion]) -> Suggestion:
    """What the memory says, as likely as it is once a model has written.

    The model has been told what the memory foretells, so that where both begin with the same lexeme it knows better how
    likely that is; where they do not, only one of them is right. The tokens as they were are kept beside
    (`Suggestion.alone`), for when what is typed rules the model's text out.

    Args:
        recalled: A suggestion of the memory.
        written: The model's: one, or a doubted one and what the model wrote once it knew that, which alone counts then.
    """
    end = first_lexeme(recalled)
    if not recalled.written or 0 < recalled.doubt.end <= end:
        return recalled
    known = [suggestion for suggestion in written if 0 < likelihood(suggestion.written, first_lexeme(suggestion)) < 1]
    if not known:
        return recalled  # the model does not say how likely its text is
    suggestion = known[-1]
    # A doubt of more than the first lexeme is none of that.
    sure = first_confidence(
        suggestion if suggestion.doubt.whole <= first_lexeme(suggestion) else replace(suggestion, doubt=NO_DOUBT)
    )
    begin_alike = beginning(suggestion) == beginning(recalled)
    now = possible(sure if begin_alike else (1 - sure) * first_confidence(recalled))
    # The tokens that the first lexeme is in, as `likelihood` counts them.
    tokens = recalled.written
    within = next((at for at, token in enumerate(tokens, 1) if token.end >= end), len(tokens))
    shares = [possible(token.probability) for token in tokens[:within]]
    power = math.log(now) / sum(map(math.log, shares))
    first = (replace(token, probability=share**power) for token, share in zip(tokens, shares, strict=False))
    return replace(recalled, written=(*first, *tokens[within:]), alone=tokens)


def beginning(suggestion: Suggestion) -> str:
    """The first lexeme of a suggestion, without the blanks before it."""
    return suggestion.text[: first_lexeme(suggestion)].lstrip(" \t")
