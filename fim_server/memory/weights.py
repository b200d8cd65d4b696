"""The logistic models that say how sure a continuation is: their weights are data, ``weights.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from math import exp

from fim_server.memory.features import FURTHER_NAMES, NAMES, VARYING


@dataclass(frozen=True)
class Weights:
    """A weight for each of :data:`.features.NAMES`, for each question.

    Attributes:
        beginning: Whether a beginning of a continuation is right as far as it goes.
        whole: Whether it is right up to its line's end, and the line ends there.
        further: Whether a further line is right where those before it are; for :data:`.features.FURTHER_NAMES`.
    """

    beginning: tuple[float, ...]
    whole: tuple[float, ...]
    further: tuple[float, ...]

    @cached_property
    def of_beginnings(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Those of beginnings, as :func:`split_weights` gives them."""
        return split_weights(self.beginning)


def confidence(weights: Sequence[float], features: Sequence[float]) -> float:
    """The probability that a logistic model gives.

    Args:
        weights: Its weights.
        features: A number for each.
    """
    return logistic(dot(weights, features))


def dot(weights: Sequence[float], features: Sequence[float]) -> float:
    """The sum of all features, each times its weight."""
    return sum(weight * feature for weight, feature in zip(weights, features, strict=True))


def logistic(logit: float) -> float:
    """The probability of a logit."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, logit))))


def split_weights(weights: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The weights with 0 in place of those of :data:`.features.VARYING`, and these, in its order."""
    fixed = tuple(0.0 if name in VARYING else weight for name, weight in zip(NAMES, weights, strict=True))
    return fixed, tuple(weights[NAMES.index(name)] for name in VARYING)


@cache
def fitted_weights() -> Weights:
    """The weights that come with the package (``python -m benchmarks.memory_weights`` fits them)."""
    file = resources.files("fim_server.memory").joinpath("weights.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8"))

    def weights(question: str, names: Sequence[str]) -> tuple[float, ...]:
        return tuple(float(tables[question][name]) for name in names)

    return Weights(weights("beginning", NAMES), weights("whole", NAMES), weights("further", FURTHER_NAMES))
