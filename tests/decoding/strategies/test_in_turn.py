"""Runs in turn on one prompt: the texts of runs that read everything themselves, and nothing read twice."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.in_turn import SharedReading, decode_in_turn
from fim_server.decoding.strategies.outcomes import Task
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.reading import Reading
from support.models.batched_runs import SPLITS, cached_whole, runs_of, together, told, wandering
from support.models.bracket_language import BracketSession, ByteMatcher, ByteVocabulary


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_runs_in_turn_give_the_texts_of_a_batch(seed: int, temperature: float) -> None:
    model = cached_whole(wandering(seed))
    options = DecodeOptions(max_new_tokens=12, temperature=temperature, seed=seed)
    expected = together(model, SPLITS, lambda split: [None, BracketSession(split.left, split.right)], options)
    parted = 0
    for split, wanted in zip(SPLITS, expected, strict=True):
        sessions = [None, BracketSession(split.left, split.right)]
        with ThreadPoolExecutor(1) as worker:
            task = Task(model.format.encode(split.left, split.right, 900), runs_of(model, sessions, worker, options))
            outcomes = decode_in_turn(task, SharedReading(model))
        found = [
            told(run, outcome, place == 1) for place, (run, outcome) in enumerate(zip(task.runs, outcomes, strict=True))
        ]
        assert [one[:2] for one in found] == [one[:2] for one in wanted]
        assert [one[2].tokens for one in found] == [one[2].tokens for one in wanted]
        assert [one[2].middle.points for one in found] == [one[2].middle.points for one in wanted]
        parted += found[0][2].tokens != found[1][2].tokens
    assert parted


def test_the_next_prompt_reuses_what_was_read() -> None:
    model = load_model(None, "cpu", "torch")
    fresh = Reading(model)
    calls: list[int] = []

    class Counting(FimModel):
        def forward(self, token_ids: Sequence[int], cache: Any) -> Any:
            calls.append(len(token_ids))
            return super().forward(token_ids, cache)

    counted = Counting(model.name, model.backend, model.format, model.vocabulary)
    reading = SharedReading(counted)
    prompt = model.format.encode("def f(x):\n    return ", "\n\nprint(f(1))\n", 99)
    first, second = model.vocabulary.encode("x + 1"), model.vocabulary.encode("x + y")

    def read(tokens: list[int]) -> list[float]:
        reading.begin()
        rows = [reading.forward(prompt[reading.resume(prompt) :])]
        return [float(row.max()) for row in [*rows, *(reading.forward([token]) for token in tokens)]]

    whole = read(first)
    assert reading.spared_seconds == 0
    assert sum(calls) == len(prompt) + len(first)
    assert read(first) == whole
    assert reading.spared_seconds > 0
    assert sum(calls) == len(prompt) + len(first)  # nothing new
    other = read(second)
    alike = next(place for place, (one, two) in enumerate(zip(first, second, strict=True)) if one != two)
    assert other[: alike + 1] == whole[: alike + 1]
    assert sum(calls) == len(prompt) + len(first) + len(second) - alike
    fresh.resume(prompt)
    rows = [fresh.forward(prompt), *(fresh.forward([token]) for token in second)]
    assert other == pytest.approx([float(row.max()) for row in rows], abs=1e-3)
    assert read(first) == pytest.approx(whole, abs=1e-3)


def test_a_run_that_raises_does_not_take_the_others_along() -> None:
    class Broken(BracketSession):
        def matcher(self, vocabulary: ByteVocabulary, shape: Any = None, *, healing: bytes = b"") -> ByteMatcher:
            raise OverflowError("too deep")

    model = cached_whole(wandering(1))
    split = SPLITS[3]
    session = Broken(split.left, split.right)
    with ThreadPoolExecutor(1) as worker:
        runs = runs_of(model, [session, None], worker, DecodeOptions(max_new_tokens=5))
        one, other = decode_in_turn(Task(model.format.encode(split.left, split.right, 900), runs), SharedReading(model))
    assert isinstance(one.ending, OverflowError)
    assert isinstance(other.ending, StopReason)
