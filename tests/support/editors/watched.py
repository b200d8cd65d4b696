"""Workers whose threads do what a test says, and models whose passes last until they are let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from fim_server.models.model import FimModel
from fim_server.models.pace import Pace
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.job import Loaded
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker

PATIENCE = 20.0

SETTINGS = ServerSettings(prefetch=False)


class Gated:
    """A backend whose passes last until they are let go."""

    name, device, size, window = "fake", "cpu", 1, 1

    def __init__(self) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()

    def forward(self, tokens: object, cache: object) -> str:
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        return "logits"


class Blocked:
    """Work that hears of nothing until it is let go."""

    def __init__(self) -> None:
        self.begun, self.gate, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        self.left.set()


def model_on(backend: Any, family: str = "none") -> FimModel:
    """A model of which only the backend is asked."""
    parts: Any = {"format": SimpleNamespace(family=family, sees_suffix=True, languages=None), "vocabulary": None}
    return FimModel("fake", backend, **parts)


def loaded(model: Any) -> Future[Loaded]:
    """State of a worker once a model is loaded."""
    done: Future[Loaded] = Future()
    done.set_result(Loaded(model, Pace(), KeptReadings(model)))
    return done


def give_model(worker: CompletionWorker) -> Gated:
    """Have a worker be done with loading a model; returns its backend."""
    backend = Gated()
    worker._loading = loaded(model_on(backend))
    return backend


def request(uri: str, left: str = "x = ", right: str = "\n", settings: ServerSettings = SETTINGS) -> Request:
    """An automatic request for a single line of Python."""
    return Request(uri, Split(left, right), "python", "", False, True, settings)


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread brings about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
