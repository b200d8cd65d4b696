"""Trust in a foretold token against the model's own probabilities.

A small project repeats itself by chance more than by habit. A model that is certain is mostly right, and so is one that
calls a token impossible. So a token's share of the probability is only a part of the weight that the memory gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log10
from operator import mul
from pathlib import Path

from fim_server.constants import read_constants

USUAL_CHARACTERS = 30_000
"""Characters of a project of the usual size."""

LEAST_CHARACTERS, LEAST_PROBABILITY = 1_000, 1e-6
"""Bounds; smaller values count as these."""


@dataclass(frozen=True, slots=True)
class Belief:
    """Weights of a logistic model: the believed part of a token's weight in the memory.

    Attributes:
        bias: Constant term.
        size: For log10 of the project's characters over :data:`USUAL_CHARACTERS`.
        heaviest: For the log odds of the heaviest foretold token.
        certainty: For the log odds of the model's likeliest token.
        probability: For the logarithm of the token's probability by the model.
    """

    bias: float
    size: float
    heaviest: float
    certainty: float
    probability: float

    def share(self, weight: float, characters: int, heaviest: float, certainty: float, probability: float) -> float:
        """Return the probability that a token gets because it is foretold.

        Args:
            weight: Weight of the token in the memory, 0 to 1.
            characters: Characters of the project.
            heaviest: Greatest weight at this step.
            certainty: Probability of the model's likeliest token.
            probability: Probability of this token by the model.
        """
        numbers = features(characters, heaviest, certainty, probability)
        mine = (self.bias, self.size, self.heaviest, self.certainty, self.probability)
        logit = sum(map(mul, numbers, mine))
        return weight / (1 + exp(-max(-30.0, min(30.0, logit))))


def features(
    characters: int, heaviest: float, certainty: float, probability: float
) -> tuple[float, float, float, float, float]:
    """Return the features of a :class:`Belief` in the order of its attributes; arguments as in :meth:`Belief.share`."""
    return (
        1.0,
        log10(max(characters, LEAST_CHARACTERS) / USUAL_CHARACTERS),
        log_odds(heaviest, 0.02),
        log_odds(certainty, 1e-4),
        log(max(probability, LEAST_PROBABILITY)),
    )


def log_odds(probability: float, bound: float) -> float:
    """Return the log odds of a probability that is kept ``bound`` away from 0 and 1."""
    kept = min(max(probability, bound), 1 - bound)
    return log(kept / (1 - kept))


FITTED = read_constants(Belief, Path(__file__).with_name("belief.toml"))
