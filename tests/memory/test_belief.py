"""Weights of the index's tokens beside the model: bounds, and the direction of each fitted number."""

from __future__ import annotations

import math

import pytest

from fim_server.memory.belief import FITTED, USUAL_CHARACTERS, Belief, features

USUAL = (0.6, USUAL_CHARACTERS, 0.6, 0.5, 0.05)


def believed(**others: float) -> float:
    """Features at a usual place, with some of them replaced."""
    known = dict(zip(("weight", "characters", "heaviest", "certainty", "probability"), USUAL, strict=True)) | others
    return FITTED.share(
        known["weight"], int(known["characters"]), known["heaviest"], known["certainty"], known["probability"]
    )


def test_a_share_is_the_weight_times_a_logistic_model() -> None:
    belief = Belief(0.3, 0.5, 0.7, -0.4, 0.2)
    logit = 0.3 + 0.5 * 1 + 0.7 * math.log(4) - 0.4 * math.log(1 / 3) + 0.2 * math.log(0.01)
    share = belief.share(0.5, 10 * USUAL_CHARACTERS, 0.8, 0.25, 0.01)
    assert share == pytest.approx(0.5 / (1 + math.exp(-logit)))
    assert believed(weight=0.3) == pytest.approx(believed() / 2)


def test_trust_grows_with_project_size_weight_and_probability() -> None:
    assert 0 < believed(characters=3_000) < believed() < believed(characters=300_000) < 0.6
    assert believed(heaviest=0.3) < believed() < believed(heaviest=0.9)
    assert believed(certainty=0.95) < believed() < believed(certainty=0.1)
    assert believed(probability=1e-4) < believed() < believed(probability=0.3)


@pytest.mark.parametrize("extreme", [0.0, 1.0])
def test_extreme_features_give_finite_shares(extreme: float) -> None:
    assert all(map(math.isfinite, features(0, extreme, extreme, extreme)))
    share = FITTED.share(0.9, 10**12, extreme, extreme, extreme)
    assert 0 <= share < 0.9
