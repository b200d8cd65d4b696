"""A request that nobody waits for leaves the worker whatever it does, so that others do not wait for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.errors import StoppedError
from fim_server.recovery.budget import Budget
from fim_server.server import worker as workers
from fim_server.server.contexts import Contexts
from fim_server.server.settings import ServerSettings
from fim_server.server.work import Request
from fim_server.server.worker import CompletionWorker
from fim_server.text.document import Split

LONG = "1," * 3_000_000 + "]\n"
"""Right of the cursor: its opening takes longer than these tests wait, and there is no time to open a part of it."""

PATIENCE = 10.0


@pytest.fixture
def worker() -> Iterator[CompletionWorker]:
    """A worker whose model writes nothing."""
    worker = CompletionWorker(ServerSettings(prefetch=False))
    loaded: Future[Any] = Future()
    loaded.set_result(SimpleNamespace())
    worker._model, worker._loading = loaded.result(), loaded
    worker._decode = lambda task, work: None  # type: ignore[method-assign]
    worker._contexts = Contexts(Budget(seconds=0.0))
    yield worker
    worker.close()


def request(uri: str, left: str, right: str) -> Request:
    return Request(uri, Split(left, right), "python", "", False, True, ServerSettings(prefetch=False))


def begun(worker: CompletionWorker) -> None:
    """Wait until the worker's thread has taken its next work."""
    deadline = time.monotonic() + PATIENCE
    while worker._executor._work_queue.qsize() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)


def test_another_document_does_not_wait_for_an_overtaken_request(worker: CompletionWorker) -> None:
    slow = worker.submit(request("slow", "x = [", LONG))
    begun(worker)
    other = worker.submit(request("other", "x = ", "\n"))
    answered = other.future.result(PATIENCE)
    assert answered is not None
    assert slow.future.result(0) is None


def test_a_cancelled_request_ends(worker: CompletionWorker) -> None:
    slow = worker.submit(request("slow", "x = [", LONG))
    begun(worker)
    slow.cancelled.set()
    assert slow.future.result(PATIENCE) is None


def test_what_takes_too_long_is_left_and_says_so(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ENGINE_SECONDS", 0.05)
    work = worker.submit(request("slow", "x = [", LONG)).future.result(PATIENCE)
    assert work is not None
    assert work.answer.offers == ()
    assert work.answer.reason == "the file takes more than 0.05 s to read"
    after = worker.submit(request("other", "x = ", "\n")).future.result(PATIENCE)
    assert after is not None
    assert after.answer.reason is None


def test_a_question_that_takes_too_long_says_so(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ENGINE_SECONDS", 0.05)
    asked = worker.explain(request("slow", "x = [", LONG), lambda explained: explained)
    with pytest.raises(StoppedError, match=r"the file takes more than 0\.05 s to read"):
        asked.result(PATIENCE)
    told = worker.explain(request("other", "x = ", "\n"), lambda explained: explained.opened.guarantee)
    assert told.result(PATIENCE) == "exact"


def test_reading_ahead_leaves_a_file_for_what_is_asked(worker: CompletionWorker) -> None:
    worker._prompts = SimpleNamespace()  # type: ignore[assignment]
    worker.read_ahead(request("slow", "x = [", LONG))
    begun(worker)
    assert worker.submit(request("other", "x = ", "\n")).future.result(PATIENCE) is not None
