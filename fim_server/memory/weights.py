"""Logistic models of a continuation's confidence, with their weights from ``weights.toml``."""

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
    """Weights of three models, one for each of :data:`.features.NAMES`.

    Attributes:
        beginning: For the question whether a beginning of a continuation is right as far as it goes.
        whole: For the question whether it is right up to its line's end, and the line ends there.
        further: For the question whether a further line is right if those before it are; for
            :data:`.features.FURTHER_NAMES`.
    """

    beginning: tuple[float, ...]
    whole: tuple[float, ...]
    further: tuple[float, ...]

    @cached_property
    def of_beginnings(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the weights of beginnings in the form of :func:`split_weights`."""
        return split_weights(self.beginning)


def confidence(weights: Sequence[float], features: Sequence[float]) -> float:
    """Return the probability by a logistic model with some weights."""
    return logistic(dot(weights, features))


def dot(weights: Sequence[float], features: Sequence[float]) -> float:
    return sum(weight * feature for weight, feature in zip(weights, features, strict=True))


def logistic(logit: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, logit))))


def split_weights(weights: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the weights with 0 in place of those of :data:`.features.VARYING`, and the latter in its order."""
    fixed = tuple(0.0 if name in VARYING else weight for name, weight in zip(NAMES, weights, strict=True))
    return fixed, tuple(weights[NAMES.index(name)] for name in VARYING)


@cache
def fitted_weights() -> Weights:
    """Return the package's weights (``python -m benchmarks.index.weights`` fits them)."""
    file = resources.files("fim_server.memory").joinpath("weights.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8"))

    def weights(question: str, names: Sequence[str]) -> tuple[float, ...]:
        return tuple(float(tables[question][name]) for name in names)

    return Weights(weights("beginning", NAMES), weights("whole", NAMES), weights("further", FURTHER_NAMES))
