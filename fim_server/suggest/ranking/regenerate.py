"""Another text where the first one is doubted: the model is asked what it would write if it knew that.

A doubt (:mod:`.doubts`) says how likely a text is right that goes so far, whatever the model thinks of it. So the model
writes once more, with the probabilities that tokens have where the doubted beginning is ruled out in all other cases: a
token that goes on with it keeps what the other ways on from there have. That is Bayes' rule for the event that the
beginning is not written; how likely it is from each place is told by the first text's probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from fim_server.suggest.ranking.display import likelihood
from fim_server.suggest.ranking.red_flags import DEFINED_AGAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import NameBias
    from fim_server.decoding.results import Completion, Written
    from fim_server.suggest.answer_cache import Suggestion

REPEATED = 0.001
"""Confidence in a text that repeats the lines below the cursor."""

THOUGHTS_ON_REQUEST = 3
"""Most further texts on request, while all texts so far repeat the document; while the user types, one."""

LEAST_SHARE = 1e-9
"""Of a token's probability that is left to it in any case."""


def second_thought(
    suggestions: Sequence[Suggestion], repeats: Sequence[Completion], others: NameBias | None, invoked: bool
) -> Unlike | None:
    """Return the reason for the model to write another text, or None where its first one stays.

    On request there are alternatives already, so only repeats call for another text.

    Args:
        suggestions: The suggestions from the model's texts.
        repeats: The model's texts that are no suggestions, because they stand near the cursor.
        others: Other penalties on tokens.
        invoked: Whether the user asked for a suggestion.
    """
    unlike: Unlike | None = None
    if suggestions and (
        not suggestions[0].doubt.end or (invoked and not all(one.doubt.is_repeat for one in suggestions))
    ):
        return None
    for suggestion in suggestions:
        if suggestion.doubt.end > 0:
            unlike = Unlike.of(suggestion, unlike or others)
    for completion in repeats:
        unlike = Unlike.of_line(completion, unlike or others)
    return unlike


def without_repeats(suggestions: list[Suggestion]) -> list[Suggestion]:
    """Put suggestions that repeat text behind the others, and leave out those that are hardly meant.

    Without others, all stay.
    """
    others = [suggestion for suggestion in suggestions if not suggestion.doubt.is_repeat]
    repeats = [suggestion for suggestion in suggestions if suggestion.doubt.is_repeat]
    return (
        [*others, *(suggestion for suggestion in repeats if suggestion.doubt.confidence > DEFINED_AGAIN)]
        if others
        else suggestions
    )


@dataclass(frozen=True, slots=True)
class Unlike:
    """How much less likely tokens are that go on with a doubted beginning: a `NameBias`.

    Attributes:
        beginning: The text that is doubted.
        written: Its tokens and what they had for probabilities.
        doubt: How likely it is wrong.
        others: What else is thought of tokens.
    """

    beginning: str
    written: tuple[Written, ...]
    doubt: float
    others: NameBias | None

    @classmethod
    def of(cls, suggestion: Suggestion, others: NameBias | None) -> Unlike:
        """What is thought of tokens where a suggestion is doubted."""
        return cls(
            suggestion.text[: suggestion.doubt.whole], suggestion.written, 1 - suggestion.doubt.confidence, others
        )

    @classmethod
    def of_line(cls, completion: Completion, others: NameBias | None) -> Unlike:
        """Make the first line of a completion unlikely, because it stands below the cursor."""
        text = completion.text or ""
        first = next((line for line in text.split("\n") if line.strip()), text)
        return cls(text[: text.find(first) + len(first)], completion.written, 1 - REPEATED, others)

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None]) -> Sequence[float]:
        """What to add to the logarithms of the probabilities of tokens, as in `NameBias`."""
        found = [0.0] * len(texts) if self.others is None else list(self.others(middle, healing, texts))
        if len(middle) >= len(self.beginning) or not self.beginning.startswith(middle):
            return found  # it is decided whether the beginning is written
        for place, text in enumerate(texts):
            if text is not None and len(text) > len(healing):
                found[place] += self._change(middle + text[len(healing) :])
        return found

    def _change(self, text: str) -> float:
        """Of a token with which so much is written."""
        if text.startswith(self.beginning):
            goes_on = 1.0
        elif self.beginning.startswith(text):
            begun = likelihood(self.written, len(text))
            goes_on = likelihood(self.written, len(self.beginning)) / begun if begun else 1.0
        else:
            return 0.0
        return log(max(LEAST_SHARE, 1 - self.doubt * goes_on))
