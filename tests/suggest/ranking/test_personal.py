"""The threshold follows what a person accepts and dismisses, slowly and within bounds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from fim_server.suggest.constants import RANKING
from fim_server.suggest.ranking.display import display
from fim_server.suggest.ranking.personal import decided, shifted_threshold
from fim_server.suggest.settings import ServerSettings
from support.editors.answers import suggestion
from support.editors.watched import request


def after(decisions: int, confidence: float, accepted: float, seed: int = 0) -> float:
    """Return the shift after decisions on suggestions of one confidence. ``accepted``: share of accepted ones."""
    draw, shift = random.Random(seed), 0.0
    for _ in range(decisions):
        shift = decided(shift, confidence, draw.random() < accepted)
    return shift


@pytest.mark.parametrize(
    ("confidence", "accepted", "expected"),
    [(0.9, 0.9, 0.0), (0.6, 0.6, 0.0), (0.9, 0.7, 0.05), (0.6, 0.8, -0.05), (0.85, 0.0, 0.1), (0.5, 1.0, -0.1)],
)
def test_the_shift_converges_to_a_share_of_the_difference(confidence: float, accepted: float, expected: float) -> None:
    found = [after(400, confidence, accepted, seed) for seed in range(20)]
    assert sum(found) / len(found) == pytest.approx(expected, abs=0.01)
    assert max(map(abs, found)) <= RANKING.personal_most


def test_one_decision_moves_little_and_many_are_needed_for_the_bound() -> None:
    assert 0 < decided(0.0, 1.0, False) <= 0.005
    assert after(10, 0.9, 0.0) < 0.05 < after(40, 0.9, 0.0)
    assert decided(5.0, 0.9, False) == RANKING.personal_most  # from a file that was written otherwise


def test_sure_dismissals_and_unsure_acceptances_tell_most() -> None:
    assert decided(0, 0.95, False) > decided(0, 0.5, False) > 0 > decided(0, 0.95, True) > decided(0, 0.5, True)


def test_a_threshold_that_shows_all_or_nothing_stays() -> None:
    assert (shifted_threshold(0.0, 0.1), shifted_threshold(1.0, -0.1)) == (0.0, 1.0)
    assert shifted_threshold(0.45, -0.1) == pytest.approx(0.35)


def test_the_shift_decides_what_is_shown() -> None:
    asked = replace(request("file:///a.py"), settings=ServerSettings(min_confidence=0.45))
    answer = asked.answered((suggestion("ab", tokens=(), cuts=(2,), lexemes=(2,)),))
    assert display(answer, asked).suggestions
    assert asked.least == 0.45
    assert replace(asked, shift=0.1).least == pytest.approx(0.55)
