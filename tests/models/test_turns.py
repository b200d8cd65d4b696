"""Threads that share a model: they take turns, leave a pass that no caller needs, and give up one that does not end."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fim_server.errors import StoppedError
from fim_server.language import Stop
from fim_server.language.stop import heed, on_stop, watch_also, watching
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.reading import Reading
from fim_server.models.turn import Turn
from support.editors.watched import PATIENCE, Gated, model_on


@pytest.fixture(scope="module")
def exported() -> FimModel:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime is not installed")
    return load_model(None, "cpu", "onnx")


def in_thread(work: Any) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:  # noqa: BLE001  # whatever it is, the test looks at it
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


# --- what watches a thread -----------------------------------------------------------------------------------------


def test_threads_can_share_a_stop() -> None:
    outer, inner = Stop(), Stop()
    with outer, inner, outer:
        assert list(watching()) == [outer, inner, outer]

        def watched() -> list[Stop]:
            watch_also((outer,))
            return list(watching())

        thread, found = in_thread(watched)
        thread.join(PATIENCE)
        assert found == [[outer]]
    assert not watching()
    heed()
    inner.set()
    with outer, inner, pytest.raises(StoppedError):
        heed()


def test_a_stop_counts_the_checks_of_its_thread() -> None:
    stop = Stop()
    assert (stop.is_set(), stop.looks) == (False, 0)
    with stop:
        heed()
        assert (stop.is_set(), stop.looks) == (False, 2)


def test_a_callback_runs_once_when_a_stop_is_set() -> None:
    told: list[str] = []
    stop = Stop()
    with stop:
        with on_stop(lambda: told.append("too late")):
            pass
        with on_stop(lambda: told.append("now")):
            thread, _ = in_thread(stop.set)
            thread.join(PATIENCE)
        with on_stop(lambda: told.append("at once")):
            pass
    assert told == ["now", "at once"]


# --- turns ----------------------------------------------------------------------------------------------------------


def test_a_waiting_thread_can_be_stopped_without_ending_the_pass() -> None:
    backend, stop = Gated(), Stop()
    model = model_on(backend)
    first, answered = in_thread(lambda: model.forward([1], None))
    assert backend.begun.wait(PATIENCE)

    def wait() -> object:
        with stop:
            return model.forward([2], None)

    second, left = in_thread(wait)
    stop.set()
    second.join(PATIENCE)
    assert isinstance(left[0], StoppedError)
    backend.gate.set()
    first.join(PATIENCE)
    assert answered == ["logits"]
    assert model.forward([3], None) == "logits"


def test_each_pass_checks_its_thread_s_stops() -> None:
    """Whatever the runtime does: who reads a long prompt on a slow one is not stuck."""
    backend, stop = Gated(), Stop()
    backend.gate.set()
    model = model_on(backend)
    with stop:
        looks = []
        for _ in range(3):
            model.forward([1], None)
            looks.append(stop.looks)
        assert looks == sorted(set(looks))
        stop.set()
        backend.begun.clear()
        with pytest.raises(StoppedError):
            model.forward([1], None)
    assert not backend.begun.is_set()


def test_an_abandoned_model_keeps_no_thread_waiting() -> None:
    backend, stop = Gated(), Stop()
    model = model_on(backend)

    def read() -> object:
        with stop:
            return model.forward([1], None)

    first, _ = in_thread(read)
    assert backend.begun.wait(PATIENCE)
    assert model.turn.is_watched_by(stop)
    assert not model.turn.is_watched_by(Stop())
    second, found = in_thread(lambda: model.forward([2], None))
    model.turn.lose()
    second.join(PATIENCE)
    backend.gate.set()
    first.join(PATIENCE)
    assert isinstance(found[0], RuntimeError)
    assert not model.turn.is_watched_by(stop)
    with pytest.raises(RuntimeError, match="given up"):
        model.forward([3], None)


def are_waiting(turn: Turn, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(turn._waiting) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_turns_are_first_come_first_served() -> None:
    """A thread that reads a long prompt does not have all its passes before another has one."""
    turn, had = Turn(), list[int]()
    others = 4

    def take(number: int, times: int) -> None:
        for _ in range(times):
            with turn:
                had.append(number)

    with turn:
        threads = []
        for number in range(others):
            threads.append(in_thread(lambda number=number: take(number, 5))[0])
            are_waiting(turn, number + 1)
    for thread in threads:
        thread.join(PATIENCE)
    # How they go on depends on when each asks again.
    assert had[:others] == [*range(others)]
    assert sorted(had) == sorted([*range(others)] * 5)
    assert turn._waiting == deque()


def test_a_thread_that_stops_waiting_passes_the_turn_on() -> None:
    """Also where the turn comes at the moment at which it is wanted no more."""
    turn = Turn()
    for _ in range(20):
        stop = Stop()

        def wait(stop: Stop = stop) -> None:
            with stop, turn:
                pass

        with turn:
            waiting, found = in_thread(wait)
            are_waiting(turn, 1)
            behind, had = in_thread(turn.__enter__)
            are_waiting(turn, 2)
            stop.set()
        for thread in (waiting, behind):
            thread.join(PATIENCE)
        assert had == [None]  # the turn is that thread's
        assert found == [None] or isinstance(found[0], StoppedError)
        turn.__exit__(None, None, None)
    assert not turn._is_taken


def test_copies_of_a_model_share_its_turn() -> None:
    model = model_on(Gated())
    copy = replace(model, name="other")
    assert copy.turn is model.turn
    assert replace(copy, name="fake") == model == FimModel("fake", model.backend, model.format, model.vocabulary)
    assert "turn=" not in repr(model)
    assert isinstance(vars(model)["turn"], Turn)


# --- leaving a pass -------------------------------------------------------------------------------------------------


def test_a_cancelled_pass_keeps_the_tokens_read_before(exported: FimModel) -> None:
    prompt, rest = [*range(100, 164)], [*range(300, 500)]
    whole = Reading(exported, 512)
    whole.forward(prompt)
    wanted = whole.forward(rest)
    reading = Reading(exported, 512)
    reading.forward(prompt)
    stop = Stop()
    stop.set()
    with stop, pytest.raises(StoppedError):
        reading.forward(rest)
    assert len(reading) == len(prompt)
    for seconds in (0.0, 0.001, 0.003, 0.01):
        stop = Stop()
        timer = threading.Timer(seconds, stop.set)
        timer.start()
        try:
            with stop:
                reading.forward(rest)
        except StoppedError:
            pass
        else:
            reading.rewind(len(rest))
        timer.join()
    assert np.array_equal(reading.forward(rest), wanted)
