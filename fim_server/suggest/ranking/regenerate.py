"""Have the model write another text if its first one has a red flag.

A red flag (:mod:`.red_flags`) gives the probability that the flagged beginning is right. The model writes again with
probabilities by Bayes' rule for the event that this beginning is ruled out in all other cases. A token that continues
the beginning keeps the share of the other continuations. The first text's probabilities tell how likely the beginning
is at each position.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from fim_server.suggest.constants import RANKING
from fim_server.suggest.ranking.red_flags import DEFINED_AGAIN
from fim_server.suggest.suggestion import likelihood

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import NameBias
    from fim_server.decoding.results import Completion, Written
    from fim_server.suggest.suggestion import Suggestion

MOST_ON_REQUEST = 3
"""Most further texts for an explicit request while all texts repeat the document; other requests get one."""

LEAST_SHARE = 1e-9
"""Share of a token's probability that it keeps in any case."""


def unlike_flagged(
    suggestions: Sequence[Suggestion], repeats: Sequence[Completion], others: NameBias | None, invoked: bool
) -> Unlike | None:
    """Return the bias against the flagged texts for another text of the model, or None if its first one stays.

    An explicit request has alternatives already, so only repeats call for another text.

    Args:
        suggestions: The suggestions from the model's texts.
        repeats: The model's texts that are no suggestions, because they stand near the cursor.
        others: Other biases.
        invoked: Whether the request is explicit.
    """
    unlike: Unlike | None = None
    if suggestions and (
        not suggestions[0].flag.end or (invoked and not all(one.flag.is_repeat for one in suggestions))
    ):
        return None
    for suggestion in suggestions:
        if suggestion.flag.end > 0:
            unlike = Unlike.of(suggestion, unlike or others)
    for completion in repeats:
        unlike = Unlike.of_line(completion, unlike or others)
    return unlike


def without_repeats(suggestions: list[Suggestion]) -> list[Suggestion]:
    """Put repeats behind the other suggestions, and leave out those that define a name again.

    Without others, all stay.
    """
    others = [one for one in suggestions if not one.flag.is_repeat]
    repeats = [one for one in suggestions if one.flag.is_repeat]
    return [*others, *(one for one in repeats if one.flag.confidence > DEFINED_AGAIN)] if others else suggestions


@dataclass(frozen=True, slots=True)
class Unlike:
    """Bias against tokens that continue a flagged beginning: a `NameBias`.

    Attributes:
        beginning: The flagged beginning.
        tokens: Its tokens with their probabilities.
        doubt: The probability that it is wrong.
        others: Other biases.
    """

    beginning: str
    tokens: tuple[Written, ...]
    doubt: float
    others: NameBias | None

    @classmethod
    def of(cls, suggestion: Suggestion, others: NameBias | None) -> Unlike:
        flag = suggestion.flag
        return cls(suggestion.text[: flag.whole], suggestion.tokens, 1 - flag.confidence, others)

    @classmethod
    def of_line(cls, completion: Completion, others: NameBias | None) -> Unlike:
        """Return the bias against the first line of a completion, because it stands below the cursor."""
        text = completion.text or ""
        first = next((line for line in text.split("\n") if line.strip()), text)
        beginning = text[: text.find(first) + len(first)]
        return cls(beginning, completion.written, 1 - RANKING.repeated_below_confidence, others)

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None]) -> Sequence[float]:
        """Return the changes of the logits of tokens, as in `NameBias`."""
        found = [0.0] * len(texts) if self.others is None else list(self.others(middle, healing, texts))
        if len(middle) >= len(self.beginning) or not self.beginning.startswith(middle):
            return found  # the beginning is written, or ruled out
        for place, text in enumerate(texts):
            if text is not None and len(text) > len(healing):
                found[place] += self._change(middle + text[len(healing) :])
        return found

    def _change(self, text: str) -> float:
        """Return the change for a token after which the middle is a text."""
        if text.startswith(self.beginning):
            share = 1.0
        elif self.beginning.startswith(text):
            begun = likelihood(self.tokens, len(text))
            share = likelihood(self.tokens, len(self.beginning)) / begun if begun else 1.0
        else:
            return 0.0
        return log(max(LEAST_SHARE, 1 - self.doubt * share))
