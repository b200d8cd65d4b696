"""Prompts that are read beside the opening of a session, against prompts that are read after it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fim_server.decoding import concurrent_prefill as module
from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import alternatives, candidates
from fim_server.errors import StoppedError
from fim_server.language import Language, Stop
from fim_server.language.stop import watching
from fim_server.models.model import FimModel
from fim_server.models.reading import KEPT_TOKENS, MOST_READINGS, Lent, Reading, Readings, passes
from fim_server.text.document import Split
from support.models.scripted_models import Counted
from support.models.tiny_models import small_model

PATIENCE = 20.0

LEFT = "import os\n\n\ndef load(path):\n    with open(path) as file:\n        return "
SPLIT = Split(LEFT, "\n\n\nload(os.sep)\n" * 30)
OPTIONS = DecodeOptions(max_new_tokens=8, max_prompt_tokens=150, prefill_chunk=24, single_line=True)


@pytest.fixture(scope="module", params=["torch", "onnx"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    return small_model(request.param, tmp_path_factory.mktemp("tiny") / "model")


def test_a_thread_is_watched_by_nothing_of_the_prompt_before(model: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "THREADS", ThreadPoolExecutor(1))
    found = []
    for _ in range(2):
        with Stop() as stop:
            beside = ConcurrentPrefill(model, SPLIT, OPTIONS, Readings(model))
            found.append(beside.logits(beside.prompt))
            beside.close()
        stop.set()
    first, second = found
    assert first is not None
    assert second is not None
    assert np.array_equal(np.asarray(first), np.asarray(second))
    assert module.THREADS.submit(watching).result(PATIENCE) == ()


def test_the_logits_are_those_of_the_same_passes(model: FimModel) -> None:
    beside = ConcurrentPrefill(model, SPLIT, OPTIONS, Readings(model))
    logits = beside.logits(beside.prompt)
    twin = Reading(model, 256)
    for part in passes(beside.prompt, 0, OPTIONS.prefill_chunk):
        wanted = twin.forward(part)
    assert np.array_equal(np.asarray(logits), np.asarray(wanted))
    assert (beside.tokens, beside.reused) == (len(beside.prompt), 0)
    assert beside.seconds_before(float("inf")) == beside.seconds > 0
    assert beside.seconds_before(0.0) == 0


def test_completions_are_the_same_with_a_concurrent_prefill(model: FimModel) -> None:
    language = Language.load("python")
    session: Any = language.open(SPLIT.left, SPLIT.right)
    after = [one.text for one in alternatives(model, session, SPLIT, 3, OPTIONS, readings=Readings(model))]
    readings = Readings(model)
    beside = ConcurrentPrefill(model, SPLIT, OPTIONS, readings)
    while beside.ended is None:  # without the session, which is opened only now
        threading.Event().wait(0.001)
    session = language.open(SPLIT.left, SPLIT.right)
    found = list(alternatives(model, session, SPLIT, 3, OPTIONS, readings=readings, prefill=beside))
    assert [one.text for one in found] == after
    first = found[0].statistics
    assert (first.prefilled_tokens, first.reused_tokens) == (len(beside.prompt), 0)
    assert first.prefill_ms == 1000 * beside.seconds


def test_of_a_prompt_that_is_known_the_last_token_is_read(model: FimModel) -> None:
    readings = Readings(model)
    wanted = ConcurrentPrefill(model, SPLIT, OPTIONS, readings)
    row = np.asarray(wanted.logits(wanted.prompt))
    again = ConcurrentPrefill(model, SPLIT, OPTIONS, readings)
    assert np.allclose(np.asarray(again.logits(again.prompt)), row, atol=1e-3)
    assert (again.tokens, again.reused) == (1, len(again.prompt) - 1)


def test_a_closed_prefill_stops_and_keeps_its_passes(model: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = threading.Event(), threading.Event()
    forward = Reading.forward

    def slow(self: Reading, tokens: Any) -> Any:
        found = forward(self, tokens)
        begun.set()
        assert gate.wait(PATIENCE)
        return found

    monkeypatch.setattr(Reading, "forward", slow)
    outer = Stop()
    with outer:
        beside = ConcurrentPrefill(model, SPLIT, OPTIONS, Readings(model))
    assert begun.wait(PATIENCE)
    threading.Timer(0.05, gate.set).start()
    beside.close()
    assert beside.ended is not None
    assert 0 < len(beside.reading) < len(beside.prompt)
    assert beside.logits(beside.prompt) is None


def test_an_error_of_the_model_reaches_the_caller(model: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Reading, tokens: Any) -> Any:
        raise StoppedError("left")

    monkeypatch.setattr(Reading, "forward", fails)
    beside = ConcurrentPrefill(model, SPLIT, OPTIONS, Readings(model))
    with pytest.raises(StoppedError):
        beside.logits(beside.prompt)


# --- readings that threads share -----------------------------------------------------------------------------------


def test_concurrent_requests_never_share_a_reading(model: FimModel) -> None:
    readings = Readings(model)
    prompt = [*range(100)]
    one, other = Lent(readings), Lent(readings)
    first = one.nearest(prompt)
    first.forward(prompt)
    assert other.shared(prompt) == 0
    assert one.shared(prompt) == len(prompt) - 1
    assert other.nearest(prompt) is not first
    one.give_back()
    assert other.shared(prompt) == len(prompt) - 1
    assert other.nearest(prompt) is first
    readings.clear()
    other.give_back()
    assert readings.nearest(prompt) is first


def test_readings_that_were_lent_at_a_time_hold_no_more_when_they_are_back(model: FimModel) -> None:
    readings = Readings(model)
    room = KEPT_TOKENS // 2
    prompts = [[number] * 32 for number in range(MOST_READINGS)]
    lent = [Lent(readings) for _ in prompts]
    for one, prompt in zip(lent, prompts, strict=True):
        taken = one.nearest(prompt)
        taken.room = room  # of a model with a large window
        taken.forward(prompt)
    for one in lent:
        one.give_back()
    assert [readings.shared(prompt) > 0 for prompt in prompts] == [False, False, True, True]


def test_candidates_end_at_the_deadline_and_on_cancellation(model: FimModel) -> None:
    session: Any = Language.load("python").open(SPLIT.left, SPLIT.right)
    readings = Readings(model)
    assert candidates(model, session, SPLIT, 3, OPTIONS, readings, Counted(2)) == []
    read = len(readings.nearest([]))
    assert read <= 2 * OPTIONS.prefill_chunk
    late = DecodeOptions(max_prompt_tokens=150, prefill_chunk=24, deadline_ms=0)
    assert candidates(model, session, SPLIT, 3, late, Readings(model)) == []
    assert len(candidates(model, session, SPLIT, 3, OPTIONS, Readings(model))) == 3
