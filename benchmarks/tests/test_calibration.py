"""Recipe of a suggestion's confidence: its requests, its observations and its fit."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.server.played_editor import Editor
from benchmarks.suggestions.calibration import (
    FIRST,
    TEXTS,
    TYPED,
    Example,
    examples_of,
    fit,
    followed,
    places,
    report,
    shift_of,
)
from benchmarks.suggestions.judge import Truth
from benchmarks.suggestions.projects import Task
from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.suggest.suggestion import Ends, Likelihoods, Origin, Suggestion

BEFORE, WANTED, AFTER = "def f(a):\n    ", "return g(a, [1])", "\n\n\nf(1)\n"
TASK = Task("project", "a.py", 2, BEFORE, WANTED, AFTER)


def test_places_are_on_the_way_to_the_line() -> None:
    for seed in range(20):
        for editor in places(TASK, random.Random(seed)):
            written = editor.text[len(BEFORE) : editor.cursor]
            assert WANTED.startswith(written)
            assert written != WANTED
            assert editor.text == BEFORE + written + editor.closers + AFTER


def test_an_offer_teaches_its_first_cut_its_whole_and_its_first_lexeme() -> None:
    text = "g(a, [2])"
    tokens = (Written(1, 0.9), Written(9, 0.5))
    completion = Completion(text, "exact", StopReason.END_TOKEN, None)
    ends, likelihoods = Ends((1, 4, 9), (1, 2, 4, 5, 7, 8, 9)), Likelihoods(tokens, (7,))
    offer = Suggestion("1", text, 0, Origin(completion, "exact"), ends=ends, likelihoods=likelihoods)
    editor = Editor(BEFORE + "return " + AFTER, len(BEFORE) + 7)
    found = list(examples_of(offer, editor, Truth(BEFORE + WANTED + AFTER, len(BEFORE + WANTED))))
    assert [(what, one.unknown, one.right) for what, one in found] == [
        (TEXTS, False, True),
        (TEXTS, True, False),
        (FIRST, False, True),
    ]
    assert [one.odds for _, one in found] == pytest.approx([math.log(9), math.log(0.45 / 0.55), math.log(9)])


def test_the_fit_finds_what_made_the_answers() -> None:
    draw = np.random.default_rng(1)
    odds, unknown = draw.normal(0, 2, 20_000), draw.random(20_000) < 0.2
    inputs = np.stack([np.ones(20_000), odds, unknown], axis=1)
    wanted = np.array([0.5, 0.9, -1.5])
    answers = (draw.random(20_000) < 1 / (1 + np.exp(-inputs @ wanted))).astype(float)
    assert fit(inputs, answers) == pytest.approx(wanted, abs=0.15)
    told = report(
        FIRST,
        [
            Example(float(one), bool(two), False, bool(three))
            for one, two, three in zip(odds, unknown, answers, strict=True)
        ],
    )
    assert told.startswith("20000 examples")
    assert "first_intercept, first_per_log_odds, first_per_unknown_name, first_per_new_word = 0." in told
    assert "shift in python: " in told


def test_a_suggestion_is_followed_while_the_keys_agree() -> None:
    task = Task("project", "a.py", 2, BEFORE, "return ab + cd", AFTER)
    text = "ab + c"
    completion = Completion(text, "exact", StopReason.END_TOKEN, None)
    tokens = tuple(Written(end, 0.9) for end in (2, 4, 6))
    ends, likelihoods = Ends((2, 6), (2, 4, 6)), Likelihoods(tokens)
    offer = Suggestion("1", text, 0, Origin(completion, "exact"), ends=ends, likelihoods=likelihoods)
    editor = Editor(BEFORE + "return " + AFTER, len(BEFORE) + 7)
    found = list(followed(offer, editor, task, Truth(BEFORE + task.wanted + AFTER, len(BEFORE + task.wanted))))
    assert {what for what, _ in found} == {TYPED}
    assert [one.right for _, one in found] == [True, True, True, False, False]  # `c` is not the wanted lexeme
    assert "typed_shift = " in report(TYPED, [one for _, one in found])


def drawn(shift: float, files: int, each: int) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Return log odds that lack a shift, what was right, and the files."""
    draw = np.random.default_rng(3)
    odds = draw.normal(1, 1.5, files * each)
    right = draw.random(files * each) < 1 / (1 + np.exp(-odds - shift))
    return odds, right.astype(float), [f"{at // each}" for at in range(files * each)]


@pytest.mark.parametrize("shift", [-0.8, 0.0, 0.6])
def test_the_shift_of_a_language_is_found_in_many_files(shift: float) -> None:
    found, error = shift_of(*drawn(shift, 100, 40))
    assert found == pytest.approx(shift, abs=0.1)
    assert error < 0.1


def test_the_shift_of_a_language_in_few_files_is_small() -> None:
    found, error = shift_of(*drawn(1.5, 4, 5))
    assert error > 0.3
    assert 0 < found < 1.2
