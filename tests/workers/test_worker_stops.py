"""A cancelled request leaves the worker at any point; a slow one holds up no other document."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.errors import StoppedError
from fim_server.language import Language, Stop
from fim_server.models.load import load_model
from fim_server.models.reading import Reading
from fim_server.models.turn import Turn
from fim_server.recovery.budget import Budget
from fim_server.suggest import limits
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.postprocess import stage
from fim_server.suggest.ranking.red_flags import NO_FLAG
from fim_server.suggest.request import Request
from fim_server.system.watched_threads import Step
from fim_server.workers import worker as workers
from fim_server.workers.document_thread import DocumentThread
from fim_server.workers.worker import CompletionWorker
from support.editors.watched import PATIENCE, SETTINGS, Blocked, loaded, request, until

LONG = "1," * 3_000_000 + "]\n"
"""Right of the cursor: its opening takes longer than these tests wait, and there is no time to open a part of it."""


def ready(model: Any = None) -> CompletionWorker:
    """Return a worker with a loaded model, by default one that does nothing."""
    worker = CompletionWorker(SETTINGS)
    worker._loading = loaded(model or SimpleNamespace(turn=Turn()))
    return worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[CompletionWorker]:
    """Worker whose model reads and writes nothing."""

    def answer(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Any:
        opened = None
        with Stop(limits.ENGINE_SECONDS):
            opened = self.contexts.open(request.uri, self.context.language(request, None), request.split)
        assert opened is not None
        return None if cancelled.is_set() else Work(request.answered(()))

    monkeypatch.setattr(Completer, "_answer", answer)
    worker = ready()
    worker.make_contexts = lambda: DocumentSessions(Budget(seconds=0.0))
    yield worker
    worker.close()


def begun(worker: CompletionWorker, uri: str) -> None:
    """Wait until a document's thread is at work."""
    deadline = time.monotonic() + PATIENCE
    while worker._threads[uri].step is None and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)


def test_a_slow_document_holds_up_no_other_and_finishes(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    whole = Completer._answer

    def answer(self: Completer, loading: Any, asked: Request, *rest: Any) -> Any:
        if asked.uri == "slow":
            assert gate.wait(PATIENCE)
        return whole(self, loading, asked, *rest)

    monkeypatch.setattr(Completer, "_answer", answer)
    slow = worker.submit(request("slow", "x = ", "\n"))
    begun(worker, "slow")
    for number in range(3):
        assert worker.submit(request("other", f"x{number} = ", "\n")).future.result(PATIENCE) is not None
    assert not slow.future.done()
    assert not slow.cancelled.is_set()
    gate.set()
    assert slow.future.result(PATIENCE) is not None


def test_a_busy_engine_holds_up_no_other_document(worker: CompletionWorker) -> None:
    slow = worker.submit(request("slow", "x = [", LONG))
    begun(worker, "slow")
    assert worker.submit(request("other", "x = ", "\n")).future.result(PATIENCE) is not None
    assert not slow.cancelled.is_set()


def test_a_document_has_one_request_at_a_time(worker: CompletionWorker) -> None:
    slow = worker.submit(request("slow", "x = [", LONG))
    begun(worker, "slow")
    other = worker.submit(request("slow", "x = ", "\n"))
    assert other.future.result(PATIENCE) is not None
    assert slow.future.result(0) is None


def test_a_cancelled_request_ends(worker: CompletionWorker) -> None:
    slow = worker.submit(request("slow", "x = [", LONG))
    begun(worker, "slow")
    slow.cancelled.set()
    assert slow.future.result(PATIENCE) is None


def test_a_request_cancelled_during_loading_ends() -> None:
    worker = CompletionWorker(SETTINGS)
    worker._loading = Future()
    waiting = worker.submit(request("a", "x = ", "\n"))
    waiting.cancelled.set()
    assert waiting.future.result(PATIENCE) is None
    worker.close()


def test_a_request_for_a_slowly_loaded_language_can_be_cancelled(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk or a large token table delays the language; the thread still looks at its stop."""
    begun, gate = threading.Event(), threading.Event()

    def language(self: Request) -> Language:
        begun.set()
        assert gate.wait(PATIENCE)
        return Language.load("python")

    monkeypatch.setattr(Request, "language", language)
    waiting = worker.submit(request("a", "x = ", "\n"))
    assert begun.wait(PATIENCE)
    step = worker._threads["a"].step
    assert step is not None
    for _ in range(3):
        looks, deadline = step.stop.looks, time.monotonic() + PATIENCE
        while step.stop.looks == looks:
            assert time.monotonic() < deadline
    assert not waiting.future.done()
    waiting.cancelled.set()
    assert waiting.future.result(PATIENCE) is None
    gate.set()


def test_the_number_of_threads_is_bounded(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_AT_WORK", 2)
    monkeypatch.setattr(workers, "MOST_THREADS", 3)
    jobs = []
    for number in range(3):
        jobs.append(worker.submit(request(str(number), "x = [", LONG)))
        begun(worker, str(number))
    assert jobs[0].future.result(PATIENCE) is None
    assert not jobs[1].future.done()
    for job in jobs:
        job.cancelled.set()
        job.future.result(PATIENCE)
    for number in range(10):
        assert worker.submit(request(f"short {number}", "x = ", "\n")).future.result(PATIENCE) is not None
    assert len(worker._threads) <= 4


def at_work(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch, count: int) -> dict[str, Blocked]:
    """Allow ``count`` documents at work; return the blocked work of each document, by name."""
    work = {str(number): Blocked() for number in range(count)}
    read = {"ahead": Blocked()}
    monkeypatch.setattr(workers, "MOST_AT_WORK", count)
    monkeypatch.setattr(Completer, "_answer", lambda self, loading, request, *rest: work[request.uri]())
    monkeypatch.setattr(Completer, "read_ahead", lambda self, loaded, request, *rest: read[request.uri]())
    return work | read


def test_a_prefetch_stops_no_request(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    work = at_work(worker, monkeypatch, 3)
    jobs = []
    for uri in ("0", "1", "2"):
        jobs.append(worker.submit(request(uri)))
        assert work[uri].begun.wait(PATIENCE)
    worker.prefetch_prompt(request("ahead"))
    assert not any(job.cancelled.is_set() for job in jobs)
    assert "ahead" not in worker._threads
    work["0"].gate.set()
    until(lambda: worker._threads["0"].step is None)
    worker.prefetch_prompt(request("ahead"))
    assert work["ahead"].begun.wait(PATIENCE)
    for one in work.values():
        one.gate.set()


def test_work_without_a_request_is_stopped_first(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the request has waited for longer."""
    work = at_work(worker, monkeypatch, 3)
    jobs = {}
    for uri in ("0", "1", "ahead", "2"):
        if uri == "ahead":
            worker.prefetch_prompt(request(uri))
        else:
            jobs[uri] = worker.submit(request(uri))
        assert work[uri].begun.wait(PATIENCE)
    assert not any(job.cancelled.is_set() for job in jobs.values())
    assert "ahead" not in worker._threads
    for one in work.values():
        one.gate.set()


def test_work_that_ends_during_the_count_is_not_counted(worker: CompletionWorker) -> None:
    worker.submit(request("a", "x = ", "\n")).future.result(PATIENCE)
    at_work = Step(Stop(), True, 0.0)

    class Ending(DocumentThread):
        steps = iter([at_work])

        @property
        def step(self) -> Step | None:
            return next(self.steps, None)

    worker._threads["a"].__class__ = Ending
    assert worker.submit(request("b", "x = ", "\n")).future.result(PATIENCE) is not None


def test_opening_a_text_too_slowly_is_reported(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENGINE_SECONDS", 0.05)
    work = worker.submit(request("slow", "x = [", LONG)).future.result(PATIENCE)
    assert work is not None
    assert work.answer.suggestions == ()
    assert work.answer.reason == "the file takes more than 0.05 s to read"
    monkeypatch.setattr(limits, "ENGINE_SECONDS", PATIENCE)
    after = worker.submit(request("slow", "x = ", "\n")).future.result(PATIENCE)
    assert after is not None
    assert after.answer.reason is None


def test_a_slow_explanation_is_reported(worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker._loading = None
    monkeypatch.setattr(limits, "ENGINE_SECONDS", 0.05)
    asked, _ = worker.explain(request("slow", "x = [", LONG), lambda explained: explained)
    with pytest.raises(StoppedError, match=r"the file takes more than 0\.05 s to read"):
        asked.result(PATIENCE)
    monkeypatch.setattr(limits, "ENGINE_SECONDS", PATIENCE)
    answer, _ = worker.explain(request("other", "x = ", "\n"), lambda explained: explained.opened.guarantee)
    assert answer.result(PATIENCE) == "exact"


def test_a_cancelled_explanation_ends(worker: CompletionWorker) -> None:
    worker._loading = None
    asked, cancelled = worker.explain(request("slow", "x = [", LONG), lambda explained: explained)
    begun(worker, "slow")
    cancelled.set()
    with pytest.raises(StoppedError):
        asked.result(PATIENCE)


def test_a_request_stops_a_prefetch(worker: CompletionWorker) -> None:
    worker.prefetch_prompt(request("slow", "x = [", LONG))
    begun(worker, "slow")
    assert worker.submit(request("slow", "x = ", "\n")).future.result(PATIENCE) is not None


# --- opening beside reading -----------------------------------------------------------------------------------------


def test_the_prompt_is_read_while_the_session_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the session waits here until the model has read a part of the prompt."""
    worker = ready(load_model(None, "cpu"))
    read, forward, opens = threading.Event(), Reading.forward, DocumentSessions.open

    def note(self: Reading, tokens: Any) -> Any:
        read.set()
        return forward(self, tokens)

    def late(self: DocumentSessions, *arguments: Any) -> Any:
        assert read.wait(PATIENCE)
        return opens(self, *arguments)

    monkeypatch.setattr(Reading, "forward", note)
    monkeypatch.setattr(DocumentSessions, "open", late)
    text = "import os\n\n\ndef load(path):\n    with open(path) as file:\n        return "
    unhurried = SETTINGS.having("deadline_ms", None)
    found = worker.submit(request("a", text, "\n\n\nload(os.sep)\n", unhurried)).future.result(PATIENCE)
    assert found is not None
    assert found.completions[0].statistics.prefilled_tokens > 0
    worker.close()


LINES = [
    ("import os\n", "\n\ndef f():\n    return 1\n"),
    ("class Point:\n    def __init__(self, x, y):\n        self.x = x\n        ", "\n"),
]
"""Cursors where the embedded model writes several lines."""


@pytest.mark.parametrize(("left", "right"), LINES)
def test_a_model_told_to_end_the_line_stops_there(left: str, right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "flag_of", lambda *about: NO_FLAG)  # else it writes another text
    worker = ready(load_model(None, "cpu"))
    asked = replace(
        request("a", left, right, SETTINGS.having("deadline_ms", None).having("min_confidence", 0.0)), single_line=False
    )
    whole = worker.submit(asked).future.result(PATIENCE)
    job = worker.submit(asked)
    job.end_line(0)
    line = job.future.result(PATIENCE)
    assert whole is not None
    assert line is not None
    (longer,), (shorter,) = whole.answer.suggestions, line.answer.suggestions
    assert shorter.text == longer.text.partition("\n")[0]
    assert line.completions[0].statistics.tokens < whole.completions[0].statistics.tokens
    assert (whole.answer.single_line, line.answer.single_line) == (False, True)
    assert line.answer.lasting
    worker.close()


def test_a_declined_place_stops_the_prompts_reading() -> None:
    worker = ready(load_model(None, "cpu"))
    found = worker.submit(request("a", "x = 1  # a comment that is long enough " * 3, "\n")).future.result(PATIENCE)
    assert found is not None
    assert found.answer.reason is not None
    assert "comment" in found.answer.reason
    assert found.completions == []
    worker.close()


def test_no_prompt_is_read_inside_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = ready(load_model(None, "cpu"))
    monkeypatch.setattr(Reading, "forward", lambda *arguments: pytest.fail("something was read"))
    found = worker.submit(request("a", "import os\n" * 40 + "val", "ue = 1\n")).future.result(PATIENCE)
    assert found is not None
    assert found.answer.reason == "inside a word"
    worker.close()
