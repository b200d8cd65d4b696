"""Middles under loops that go back and jump: against matchers that only go on, and within their budgets."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Vocabulary
from fim_server.integrations.holes import Hole
from fim_server.integrations.middles import Middle, begin
from fim_server.models.load import load_model
from fim_server.models.masking import contains, word_count

HOLES = (
    Hole("def f(x):\n    return ", "\n"),
    Hole("value = call(a, [1, ", "\nprint(value)\n"),
    Hole('{"a": [1, ', "}\n", "json"),
    Hole("class A:\n    def f(self):\n        ", "\n\n    def g(self):\n        pass\n"),
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_model("embedded").vocabulary


def filled(middle: Middle, vocabulary: Vocabulary) -> NDArray[np.uint32]:
    words = np.zeros(word_count(vocabulary.size), dtype=np.uint32)
    middle.fill(words)
    return words


def allowed(words: NDArray[np.uint32]) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
    return found


def afresh(hole: Hole, vocabulary: Vocabulary, tokens: list[int]) -> NDArray[np.uint32]:
    """The plain twin: a matcher that was only ever moved forwards, and the walk with nothing kept."""
    matcher = hole.open().matcher(vocabulary, shape=hole.shape)
    for token in tokens:
        matcher.commit(token)
    words = np.zeros(word_count(vocabulary.size), dtype=np.uint32)
    matcher.fill_mask_plain(words)
    return words


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.left[-12:])
def test_a_middle_that_jumps_has_the_masks_of_one_that_goes_on(hole: Hole, vocabulary: Vocabulary) -> None:
    drawn = random.Random(hole.left)
    middle = begin(hole.open(), hole, vocabulary)
    histories: list[list[int]] = [[]]
    for _ in range(40):
        history = drawn.choice(histories)
        assert middle.move_to(history)
        words = filled(middle, vocabulary)
        assert middle.tokens == history
        assert np.array_equal(words, afresh(hole, vocabulary, history))
        texts = [token for token in allowed(words) if token not in vocabulary.end_token_ids]
        histories.append([*history, drawn.choice(texts)])


def test_an_ended_middle_has_end_tokens_alone_and_takes_nothing(vocabulary: Vocabulary) -> None:
    hole = HOLES[0]
    middle = begin(hole.open(), hole, vocabulary)
    end = vocabulary.end_token_ids[0]
    body = vocabulary.encode("x + 1")
    assert middle.move_to([*body, end, 7, 7])
    assert middle.ended
    assert middle.is_complete
    assert middle.tokens == [*body, end]
    assert allowed(filled(middle, vocabulary)) == vocabulary.end_token_ids
    assert not middle.take(body[0])
    middle.rollback(1)
    assert middle.tokens == body
    other = begin(HOLES[1].open(), HOLES[1], vocabulary)
    assert not other.take(end)  # its brackets are open
    assert other.tokens == []


def test_drafts_are_checked_without_a_trace(vocabulary: Vocabulary) -> None:
    hole = HOLES[1]
    middle = begin(hole.open(), hole, vocabulary, budget=20)
    good = vocabulary.encode("2], c)")
    before = filled(middle, vocabulary).copy()
    assert middle.valid(good) == len(good)
    bad = vocabulary.encode("2], )")
    closed = middle.valid(bad)
    assert closed == len(bad)
    assert middle.valid([*bad, *vocabulary.encode(") )")]) < len(bad) + 2
    assert middle.valid([vocabulary.size + 5, *good]) == 0
    assert middle.tokens == []
    assert np.array_equal(filled(middle, vocabulary), before)


def test_a_refused_token_stops_a_move(vocabulary: Vocabulary) -> None:
    hole = HOLES[2]
    middle = begin(hole.open(), hole, vocabulary)
    good = vocabulary.encode("2")
    assert not middle.move_to([*good, *vocabulary.encode("}"), *good])
    assert middle.tokens == good
    with pytest.raises(ValueError, match="cannot take back"):
        middle.rollback(5)


@pytest.mark.parametrize("searches", [False, True], ids=["by the plan", "by searching"])
@pytest.mark.parametrize("budget", [12, 24, 60])
def test_middles_end_within_their_budgets(searches: bool, budget: int, vocabulary: Vocabulary) -> None:
    """A writer that prefers what opens something, and never ends by itself, is made to end."""
    openers = {
        token
        for token in range(vocabulary.size)
        if vocabulary.token_bytes(token).strip()[-1:] in b"([{" and vocabulary.token_bytes(token).strip()
    }
    for hole in HOLES:
        for seed in range(3):
            drawn = random.Random(seed)
            middle = begin(hole.open(), hole, vocabulary, budget, searches)
            while len(middle.tokens) < budget:
                tokens = allowed(filled(middle, vocabulary))
                texts = [token for token in tokens if token not in vocabulary.end_token_ids]
                if not texts:
                    break
                opening = [token for token in texts if token in openers]
                assert middle.take(drawn.choice(opening if opening and drawn.random() < 0.6 else texts))
            assert middle.is_complete, (hole, seed, len(middle.tokens))
            assert len(middle.tokens) <= budget
            assert any(contains(filled(middle, vocabulary), end) for end in vocabulary.end_token_ids)


@pytest.mark.parametrize("budget", [0, 1, 2])
@pytest.mark.parametrize("searches", [False, True])
def test_a_middle_beyond_its_budget_has_the_masks_of_one_without(
    budget: int, searches: bool, vocabulary: Vocabulary
) -> None:
    hole = HOLES[1]
    over, free = begin(hole.open(), hole, vocabulary, budget, searches), begin(hole.open(), hole, vocabulary)
    for token in vocabulary.encode("2, 3, 4"):
        assert over.take(token)
        assert free.take(token)
        if len(over.tokens) > budget:
            assert np.array_equal(filled(over, vocabulary), filled(free, vocabulary))


def test_a_budget_that_is_far_changes_nothing(vocabulary: Vocabulary) -> None:
    for hole in HOLES:
        near, free = (begin(hole.open(), hole, vocabulary, budget) for budget in (200, None))
        drawn = random.Random(1)
        for _ in range(20):
            words = filled(free, vocabulary)
            assert np.array_equal(filled(near, vocabulary), words)
            texts = [token for token in allowed(words) if token not in vocabulary.end_token_ids]
            token = drawn.choice(texts)
            assert near.take(token)
            assert free.take(token)
