"""Confidence of the beginnings of a continuation: weighed one by one, and with shared parts weighed once."""

from __future__ import annotations

import random
from math import isclose
from types import SimpleNamespace
from typing import Any

from fim_server.memory.continuations import scored
from fim_server.memory.features import NAMES, VARYING, features
from fim_server.memory.weights import Weights, confidence, fitted_weights


def drawn(draw: random.Random) -> Any:
    candidates = draw.randint(1, 9)
    shares = sorted((draw.random() for _ in range(draw.randint(0, 6))), reverse=True)
    return SimpleNamespace(
        text="",
        matched=draw.randint(0, 40),
        matched_characters=draw.randint(0, 300),
        agreeing=draw.randint(1, 9),
        agreeing_longest=draw.randint(1, candidates),
        candidates_longest=candidates,
        first_share=draw.random(),
        share=draw.choice([0.0, 1.0, draw.random()]),
        longest=40 + draw.randint(0, 9),
        documents=draw.randint(1, 5),
        place=draw.choice(["document", "folder", "elsewhere"]),
        distance=draw.choice([None, draw.randint(0, 500)]),
        edits_ago=draw.choice([None, draw.randint(0, 9)]),
        prefix=draw.randint(0, 5),
        right_agreement=draw.randint(0, 50),
        meets_right=draw.random() < 0.5,
        shares=[(3 * number + draw.randint(1, 3), share) for number, share in enumerate(shares)],
    )


def one_by_one(one: Any, weights: Weights) -> list[tuple[int, float]]:
    """:attr:`ScoredContinuation.beginnings`, plainly."""
    sure, found = 1.0, []
    for words, (length, share) in enumerate(one.shares, 1):
        sure = min(sure, confidence(weights.beginning, features(one, share, length, words)))
        found.append((length, sure))
    return found


def test_shared_features_of_beginnings_are_weighed_once() -> None:
    draw = random.Random(5)
    weights = [fitted_weights()]
    for _ in range(9):
        beginning, whole = (tuple(draw.uniform(-2, 2) for _ in NAMES) for _ in range(2))
        weights.append(Weights(beginning, whole, (0.0, 0.0)))
    several = 0
    for _ in range(300):
        one, some = drawn(draw), draw.choice(weights)
        rated = scored(one, some)
        plain, found = one_by_one(one, some), rated.beginnings
        assert [length for length, _ in plain] == [length for length, _ in found]
        assert all(isclose(a, b, rel_tol=1e-9) for (_, a), (_, b) in zip(plain, found, strict=True))
        length = one.shares[-1][0] if one.shares else 0
        sure = confidence(some.whole, features(one, one.share, length, len(one.shares)))
        assert isclose(rated.whole, min([sure, *(last for _, last in plain[-1:])]), rel_tol=1e-9)
        several += len(found) > 1
    assert several > 100


def test_only_the_named_features_vary() -> None:
    draw = random.Random(6)
    for _ in range(50):
        one = drawn(draw)
        some, other = (features(one, draw.random(), draw.randint(1, 80), draw.randint(1, 9)) for _ in range(2))
        assert {name for name, a, b in zip(NAMES, some, other, strict=True) if a != b} <= set(VARYING)
