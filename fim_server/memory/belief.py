"""How far a foretold token is believed beside a model: the numbers are learnt.

A small project repeats itself by chance more than by habit, a model that is certain is mostly right, and what it holds
for impossible mostly is: so of the weight that the memory gives a token, a part becomes its share of the probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log10
from operator import mul

USUAL_CHARACTERS = 30_000
"""Of a project that says neither more nor less than usual."""

LEAST_CHARACTERS, LEAST_PROBABILITY = 1_000, 1e-6
"""Fewer and less make no difference."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The weights of a logistic model: of all that the memory gives a token, the part that is believed.

    Attributes:
        bias: Of everything.
        size: Of the project's characters, the logarithm (base 10) of how many times the usual they are.
        heaviest: Of the logarithm of the odds of the heaviest foretold token.
        certainty: Of the logarithm of the odds of the model's likeliest token.
        probability: Of the logarithm of the token's probability by the model.
    """

    bias: float
    size: float
    heaviest: float
    certainty: float
    probability: float

    def share(self, weight: float, characters: int, heaviest: float, certainty: float, probability: float) -> float:
        """What a token has of the probability because it is foretold.

        Args:
            weight: What the memory gives it, 0 to 1.
            characters: Of the project.
            heaviest: The greatest weight at this step.
            certainty: The probability of the model's likeliest token.
            probability: That of this token, by the model.
        """
        numbers = features(characters, heaviest, certainty, probability)
        mine = (self.bias, self.size, self.heaviest, self.certainty, self.probability)
        logit = sum(map(mul, numbers, mine))
        return weight / (1 + exp(-max(-30.0, min(30.0, logit))))


def features(
    characters: int, heaviest: float, certainty: float, probability: float
) -> tuple[float, float, float, float, float]:
    """What a :class:`Belief` weighs, in the order of its attributes; the arguments are as in :meth:`Belief.share`."""
    return (
        1.0,
        log10(max(characters, LEAST_CHARACTERS) / USUAL_CHARACTERS),
        log_odds(heaviest, 0.02),
        log_odds(certainty, 1e-4),
        log(max(probability, LEAST_PROBABILITY)),
    )


def log_odds(probability: float, bound: float) -> float:
    """The logarithm of the odds of a probability, which is kept so far from 0 and 1."""
    kept = min(max(probability, bound), 1 - bound)
    return log(kept / (1 - kept))


FITTED = Belief(bias=0.93, size=0.52, heaviest=0.56, certainty=-0.51, probability=0.33)
"""Fitted to 700 lines of the packages for tuning, with four projects each (21,408 tokens), by
`benchmarks/suggestions/believing.py`."""
