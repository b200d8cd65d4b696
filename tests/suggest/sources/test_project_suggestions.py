"""Recalled suggestions that answer without the model, searched while it reads the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
from fim_server.decoding.results import Written
from fim_server.errors import StoppedError
from fim_server.suggest.ranking.confidence import first_confidence
from fim_server.suggest.ranking.rescore import given_written
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project_suggestions import ProjectSuggestions
from fim_server.suggest.suggestion import Suggestion
from fim_server.workers.worker import CompletionWorker
from support.editors.answers import changed, suggestion
from support.editors.watched import request, until

SETTINGS = ServerSettings(model="embedded", prefetch=False)
LINE = "call(first)"
PATIENCE = 60.0


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[ConcurrentPrefill]:
    """Prefills that were ended."""
    ended: list[ConcurrentPrefill] = []
    close = ConcurrentPrefill.close

    def noted(self: ConcurrentPrefill) -> None:
        ended.append(self)
        close(self)

    monkeypatch.setattr(ConcurrentPrefill, "close", noted)
    return ended


@pytest.fixture
def worker() -> Iterator[CompletionWorker]:
    worker = CompletionWorker(SETTINGS)
    yield worker
    worker.close()


def recalled(monkeypatch: pytest.MonkeyPatch, found: tuple[Suggestion, ...]) -> list[ProjectSuggestions]:
    """Have the memory recall given suggestions; return the list of its callers."""
    asked: list[ProjectSuggestions] = []

    def recall(self: ProjectSuggestions, *_: object) -> tuple[Suggestion, ...]:
        asked.append(self)
        return found

    monkeypatch.setattr(ProjectSuggestions, "surest", recall)
    return asked


def test_a_sure_recalled_suggestion_stops_the_prefill(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch, closed: list[ConcurrentPrefill]
) -> None:
    recalled(monkeypatch, (suggestion(LINE),))
    work = worker.submit(request("file:///a.py"), recalls=True).future.result(PATIENCE)
    assert work is not None
    assert (work.origin, [one.text for one in work.answer.suggestions], work.completions) == ("memory", [LINE], [])
    until(lambda: closed and closed[0]._future is None)


def test_a_sure_recalled_suggestion_does_not_wait_for_a_forward_pass(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch, closed: list[ConcurrentPrefill]
) -> None:
    gate, begun, read = Event(), Event(), ConcurrentPrefill._read

    def slow(self: ConcurrentPrefill) -> object:
        begun.set()
        assert gate.wait(PATIENCE)
        return read(self)

    monkeypatch.setattr(ConcurrentPrefill, "_read", slow)
    recalled(monkeypatch, (suggestion(LINE),))
    worker.load().result(PATIENCE)
    asked = request("file:///a.py")
    work = worker.submit(asked, recalls=True).future.result(PATIENCE)
    assert work is not None
    assert work.origin == "memory"
    assert begun.wait(PATIENCE)
    thread = worker._threads[asked.uri]
    assert thread.is_busy, "its reading is waited for before it is used again"
    again = worker.submit(asked).future
    gate.set()
    written = again.result(PATIENCE)
    assert written is not None
    assert written.origin == "model"
    assert closed


@pytest.mark.parametrize("recalls", [True, False])
def test_without_a_sure_recalled_suggestion_the_model_answers(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch, recalls: bool
) -> None:
    asked = recalled(monkeypatch, () if recalls else (suggestion(LINE),))
    work = worker.submit(request("file:///a.py"), recalls=recalls).future.result(PATIENCE)
    assert work is not None
    assert (work.origin, len(work.completions), len(asked)) == ("model", 1, int(recalls))


def test_the_model_answers_if_the_memory_takes_too_long(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: ProjectSuggestions, *_: object) -> tuple[Suggestion, ...]:
        raise StoppedError("too long")

    monkeypatch.setattr(ProjectSuggestions, "surest", stopped)
    work = worker.submit(request("file:///a.py"), recalls=True).future.result(PATIENCE)
    assert work is not None
    assert (work.origin, len(work.completions)) == ("model", 1)


def test_recalled_suggestions_are_rescored_unless_requested(
    worker: CompletionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explicit request shows both as they are."""
    given = changed(
        suggestion("zebra"), lexemes=(5,), cuts=(5,), tokens=(Written(5, 0.9),), is_recalled=True, is_calibrated=True
    )
    recalled(monkeypatch, ())
    monkeypatch.setattr(ProjectSuggestions, "likeliest", lambda *_: [given])
    for invoked in (False, True):
        asked = replace(request("file:///a.py"), invoked=invoked)
        work = worker.submit(asked, recalls=True).future.result(PATIENCE)
        assert work is not None
        written = [one for one in work.answer.suggestions if not one.is_recalled]
        assert written
        (found,) = (one for one in work.answer.suggestions if one.is_recalled)
        assert found == (given if invoked else given_written(given, written))
        assert invoked or first_confidence(found) < 0.9
