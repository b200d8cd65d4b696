"""Recipe of a suggestion's confidence: its requests, its observations and its fit."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from benchmarks.server.played_editor import Editor
from benchmarks.suggestions.calibration import FIRST, TEXTS, examples_of, fit, places, report
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
    assert [(what, unknown, right) for what, (_, unknown, right) in found] == [
        (TEXTS, False, True),
        (TEXTS, True, False),
        (FIRST, False, True),
    ]
    assert [odds for _, (odds, _, _) in found] == pytest.approx([math.log(9), math.log(0.45 / 0.55), math.log(9)])


def test_the_fit_finds_what_made_the_answers() -> None:
    draw = np.random.default_rng(1)
    odds, unknown = draw.normal(0, 2, 20_000), draw.random(20_000) < 0.2
    inputs = np.stack([np.ones(20_000), odds, unknown], axis=1)
    wanted = np.array([0.5, 0.9, -1.5])
    answers = (draw.random(20_000) < 1 / (1 + np.exp(-inputs @ wanted))).astype(float)
    assert fit(inputs, answers) == pytest.approx(wanted, abs=0.15)
    told = report(
        FIRST,
        [(float(one), bool(two), bool(three)) for one, two, three in zip(odds, unknown, answers, strict=True)],
    )
    assert told.startswith("20000 examples")
    assert "first_intercept, first_per_log_odds, first_per_unknown_name = 0." in told
