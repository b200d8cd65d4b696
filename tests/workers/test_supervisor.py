"""Workers that do not answer are replaced, and memory over the budget is given back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from fim_server.errors import StoppedError
from fim_server.language import Language, Stop
from fim_server.models.model import FimModel
from fim_server.models.options import LoadOptions
from fim_server.recovery.budget import Budget
from fim_server.server import supervision
from fim_server.server.app import create_server
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.handlers.commands import on_explain
from fim_server.server.handlers.documents import on_closed
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.answer import SUPERSEDED, answer
from fim_server.server.requests.request import IncomingRequest
from fim_server.server.requests.work import run
from fim_server.server.status import STATUS, send_status
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.system import process
from fim_server.system.watched_threads import SILENT_LOOKS
from fim_server.text.document import PositionEncoding, Split
from fim_server.workers import budget as budgets
from fim_server.workers import supervisor
from fim_server.workers.budget import BUDGET, MEGABYTE, STEPS, MemoryBudget, Step
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.worker import CompletionWorker
from support.editors.watched import PATIENCE, SETTINGS, Blocked, Gated, give_model, loaded, model_on, request, until


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the work for a request before its answer, by document."""
    todo: dict[str, Any] = {}

    def answer(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Any:
        todo.get(request.uri, lambda: None)()
        return None if cancelled.is_set() else Work(request.answered(()))

    monkeypatch.setattr(Completer, "_answer", answer)
    return todo


@pytest.fixture
def server(work: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[FimLanguageServer]:
    """Server that loads nothing, never asks its model, and sends its messages to a list."""
    server = create_server(SETTINGS)
    give_model(server.worker)
    messages: list[Any] = []
    monkeypatch.setattr(server, "log", lambda kind, message: messages.append(message))
    monkeypatch.setattr(server.protocol, "notify", lambda method, status: messages.append((method, status)))
    monkeypatch.setattr(server.supervisor, "end_process", lambda status: messages.append(("ended", status)))
    server.messages = messages  # type: ignore[attr-defined]
    yield server
    server.worker.close()


def messages_of(server: FimLanguageServer) -> list[Any]:
    messages: list[Any] = server.messages  # type: ignore[attr-defined]
    return messages


def status_of(server: FimLanguageServer) -> dict[str, Any]:
    send_status(server)
    status: dict[str, Any] = next(one[1] for one in reversed(messages_of(server)) if one[0] == STATUS)
    return status


def looks(worker: CompletionWorker, count: int = SILENT_LOOKS) -> list[tuple[str, bool]]:
    """Look once, which begins the count of silent looks, then ``count`` times; return the replaced threads."""
    found = []
    for _ in range(count + 1):
        time.sleep(0.02)  # a thread that waits for the model shows several signs of life meanwhile
        found += [(one.uri, one.model) for one in worker.replace_stuck()]
    return found


# --- the watchdog ---------------------------------------------------------------------------------------------------


def test_a_stuck_thread_is_replaced(work: dict[str, Any]) -> None:
    worker = CompletionWorker(SETTINGS)
    give_model(worker)
    stuck = work["stuck"] = Blocked()
    job = worker.submit(request("stuck"))
    assert stuck.begun.wait(PATIENCE)
    assert looks(worker, SILENT_LOOKS - 1) == []
    assert [(one.uri, one.model) for one in worker.replace_stuck()] == [("stuck", False)]
    with pytest.raises(StoppedError):
        job.future.result(0)
    assert job.cancelled.is_set()
    assert worker.given_up == 1
    del work["stuck"]
    for uri in ("stuck", "other"):
        assert worker.submit(request(uri)).future.result(PATIENCE) is not None
    assert looks(worker) == []
    stuck.gate.set()
    assert stuck.left.wait(PATIENCE)
    until(lambda: not worker.given_up)
    assert worker.model is not None
    worker.close()


def test_a_slow_thread_with_signs_of_life_is_kept(work: dict[str, Any]) -> None:
    worker = CompletionWorker(SETTINGS)
    give_model(worker)
    job, begun = None, threading.Event()

    def in_the_engine() -> None:
        begun.set()
        Language.load("python").open("x = [", "1," * 3_000_000 + "]\n")

    work["slow"] = in_the_engine
    job = worker.submit(request("slow"))
    assert begun.wait(PATIENCE)
    step = worker._threads["slow"].step
    assert step is not None
    for _ in range(3 * SILENT_LOOKS):
        before = step.stop.looks
        while step.stop.looks == before and not job.future.done():
            pass
        assert worker.replace_stuck() == []
    assert not job.future.done()
    job.cancelled.set()
    assert job.future.result(PATIENCE) is None
    worker.close()


def test_a_model_with_an_endless_pass_is_given_up(work: dict[str, Any]) -> None:
    worker = CompletionWorker(SETTINGS)
    backend = give_model(worker)
    model = worker.model
    assert model is not None
    work["in a pass"] = work["waits"] = lambda: model.forward([1], None)
    stuck = worker.submit(request("in a pass"))
    assert backend.begun.wait(PATIENCE)
    waiting = worker.submit(request("waits"))
    assert looks(worker) == [("in a pass", True)]
    assert worker.was_lost
    assert worker.model is None
    with pytest.raises(StoppedError):
        stuck.future.result(0)
    assert waiting.cancelled.is_set()
    assert isinstance(waiting.future.exception(PATIENCE), RuntimeError | None)  # given up, or stopped as well
    backend.gate.set()
    give_model(worker)
    work.clear()
    assert worker.submit(request("waits")).future.result(PATIENCE) is not None
    worker.close()


def test_an_endless_pass_of_a_closed_client_is_given_up(work: dict[str, Any]) -> None:
    """Other clients share the model. Their threads would wait for it for ever, because each shows signs of life."""
    models = SharedModels()
    gone, other = CompletionWorker(SETTINGS, models), CompletionWorker(SETTINGS, models)
    backend = give_model(gone)
    other._loading = gone._loading
    model = gone.model
    assert model is not None
    work["a"] = work["b"] = lambda: model.forward([1], None)
    gone.submit(request("a"))
    assert backend.begun.wait(PATIENCE)
    gone.close()
    assert gone.is_at_work
    waiting = other.submit(request("b"))
    assert looks(gone) == [("a", True)]
    assert isinstance(waiting.future.exception(PATIENCE), RuntimeError)
    assert looks(other) == []
    assert other.was_lost
    assert not gone.was_lost  # no client needs it again
    assert (gone.given_up, other.given_up) == (1, 1)  # stuck threads are counted for the process
    backend.gate.set()
    until(lambda: not other.given_up)
    other.close()


@pytest.mark.asyncio
async def test_a_closed_server_watches_its_threads(
    server: FimLanguageServer, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(ls: object) -> None:
        pytest.fail("no client is there that needs a model")

    monkeypatch.setattr(supervision, "load", load)
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    backend = give_model(server.worker)
    model = server.worker.model
    assert model is not None
    work["a"] = lambda: model.forward([1], None)
    job = server.worker.submit(request("a"))
    server.supervisor.begin()
    watch = server.supervisor.task
    assert watch is not None
    assert backend.begun.wait(PATIENCE)
    server.close()
    await asyncio.wait_for(watch, PATIENCE)
    assert job.future.done()
    assert model.turn.is_lost
    backend.gate.set()


@pytest.mark.asyncio
async def test_the_watch_of_an_idle_server_ends_with_its_client(server: FimLanguageServer) -> None:
    server.supervisor.begin()
    watch = server.supervisor.task
    assert watch is not None
    server.close()
    with pytest.raises(asyncio.CancelledError):
        await watch


def test_a_reload_during_an_endless_pass_loads_another_model(
    work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loading thread waits for a turn of its model."""
    models = SharedModels()
    worker = CompletionWorker(SETTINGS, models)
    backend = give_model(worker)
    stuck, other = worker.model, model_on(Gated())
    assert stuck is not None
    other.backend.gate.set()  # type: ignore[attr-defined]
    models._loaded[None, None, None, LoadOptions()] = stuck
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *key: other)

    def prepare(self: CompletionWorker, model: FimModel, *rest: object) -> Loaded:
        model.forward([1], None)
        return loaded(model).result()

    monkeypatch.setattr(CompletionWorker, "_prepare", prepare)
    work["a"] = lambda: stuck.forward([1], None)
    worker.submit(request("a"))
    assert backend.begun.wait(PATIENCE)
    worker.lose()  # as where there is too little memory
    loading = worker.load()
    assert looks(worker) == [("a", True)]
    assert loading.result(PATIENCE) is other
    assert worker.model is other
    backend.gate.set()
    worker.close()


def test_a_slow_loading_does_not_block_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network or disk does not answer, and the user chooses another model."""
    gate, slow, swift = threading.Event(), model_on(Gated()), model_on(Gated())

    def get(self: SharedModels, settings: ServerSettings, *rest: object) -> FimModel:
        return swift if settings.model == "swift" or not gate.wait(PATIENCE) else slow

    monkeypatch.setattr(SharedModels, "get", get)
    monkeypatch.setattr(CompletionWorker, "_prepare", lambda self, model, *rest: loaded(model).result())
    worker = CompletionWorker(SETTINGS)
    first = worker.load()
    worker.reload(SETTINGS.having("model", "swift"))
    second = worker.load()
    assert second.result(PATIENCE) is swift
    assert not first.done()
    worker.close()
    assert worker.model is swift
    gate.set()
    assert first.result(PATIENCE) is slow
    assert worker.model is swift


def test_a_closed_worker_starts_no_loading_but_finishes_those_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, begun = threading.Event(), []

    def get(self: SharedModels, *rest: object) -> FimModel:
        begun.append(rest)
        assert gate.wait(PATIENCE)
        return model_on(Gated())

    monkeypatch.setattr(SharedModels, "get", get)
    monkeypatch.setattr(CompletionWorker, "_prepare", lambda self, model, *rest: loaded(model).result())
    worker = CompletionWorker(SETTINGS)
    loads = []
    for _ in range(2):  # each reload replaces a loading under way
        loads.append(worker.load())
        worker.reload(SETTINGS)
    loads.append(worker.load())
    until(lambda: len(begun) == len(loads))
    worker.close()
    assert worker.model is None
    gate.set()
    for one in loads:
        assert one.result(PATIENCE).name == "fake"
    worker.reload(SETTINGS)
    with pytest.raises(RuntimeError, match="closed"):
        worker.load()


def test_a_loading_may_be_awaited_no_more(caplog: pytest.LogCaptureFixture) -> None:
    worker = CompletionWorker(SETTINGS)
    loading: Future[Loaded] = Future()
    worker._loading = loading
    asked = worker.load()
    assert asked.cancel()
    loading.set_result(loaded(model_on(Gated())).result())
    assert worker.model is not None
    assert not caplog.records  # a future logs the errors of its callbacks


@pytest.mark.asyncio
@pytest.mark.parametrize("is_open", [False, True])
async def test_the_thread_of_a_closed_document_is_watched_until_it_returns(
    server: FimLanguageServer, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    """The thread may hold the model, for which all other threads would wait for ever."""

    async def load(ls: object) -> None:
        pass

    monkeypatch.setattr(supervision, "load", load)
    monkeypatch.setattr(server, "open_document", lambda uri: object() if is_open else None)
    backend = give_model(server.worker)
    model = server.worker.model
    assert model is not None
    work["left"] = work["other"] = lambda: model.forward([1], None)
    job = server.worker.submit(request("left"))
    assert backend.begun.wait(PATIENCE)
    server.worker.forget("left")
    assert server.worker.is_at_work
    waiting = server.worker.submit(request("other"))
    deadline = time.monotonic() + PATIENCE
    while not server.usage.replaced:
        server.supervisor.look()
        await asyncio.sleep(0.01)
        assert time.monotonic() < deadline
    assert model.turn.is_lost
    with pytest.raises(StoppedError):
        job.future.result(0)
    assert isinstance(waiting.future.exception(PATIENCE), RuntimeError | None)
    assert (
        list(server.requests.suspended) == ["left"] * is_open
    )  # a closed document may be opened again with another text
    backend.gate.set()


def test_closing_a_thread_stops_its_queued_questions(work: dict[str, Any]) -> None:
    worker = CompletionWorker(SETTINGS)
    give_model(worker)
    blocked = work["a"] = Blocked()
    worker.submit(request("a"))
    assert blocked.begun.wait(PATIENCE)
    _, cancelled = worker.explain(request("a"), lambda explained: explained)
    worker.forget("a")
    assert cancelled.is_set()
    blocked.gate.set()


@pytest.mark.asyncio
async def test_the_document_of_a_stuck_thread_is_suspended(server: FimLanguageServer, work: dict[str, Any]) -> None:
    stuck = work["file:///a%20b.py"] = Blocked()
    job = server.worker.submit(request("file:///a%20b.py"))
    assert stuck.begun.wait(PATIENCE)
    while not server.supervisor.look():
        pass
    assert job.future.done()
    assert list(server.requests.suspended) == ["file:///a%20b.py"]
    assert any("did not respond for 5 s" in str(one) for one in messages_of(server))
    status = status_of(server)
    assert status["setAside"] == ["file:///a%20b.py"]
    assert "a b.py" in status["message"]
    assert server.usage.as_json()["replaced"] == 1
    stuck.gate.set()


@pytest.mark.asyncio
async def test_a_suspended_document_is_not_explained(
    server: FimLanguageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each explanation would cost a thread, and three stuck threads end the process."""
    monkeypatch.setattr(server, "open_document", document)
    server.requests.suspended["a"] = "its worker was replaced"
    with pytest.raises(JsonRpcInvalidParams) as refusal:
        await on_explain(server, {"uri": "a", "position": {"line": 0, "character": 4}})
    assert "its worker was replaced" in str(refusal.value)
    assert not server.worker._threads


def document(uri: str) -> OpenDocument:
    return OpenDocument(uri, source="x = \n", encoding=PositionEncoding.UTF16, version=1, language_id="python")


def asked(uri: str) -> IncomingRequest:
    return IncomingRequest(uri, types.Position(0, 4), False, None, True, 0.0, document(uri), 1)


@pytest.mark.asyncio
async def test_closing_a_document_ends_the_debounce_of_its_request(server: FimLanguageServer) -> None:
    server.settings = server.settings.having("debounce_ms", 60_000.0)
    answering = asyncio.ensure_future(answer(server, asked("a")))
    await asyncio.sleep(0)
    assert "a" in server.requests.superseded
    on_closed(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier("a")))
    assert await asyncio.wait_for(answering, PATIENCE) is SUPERSEDED
    assert not server.worker._threads


@pytest.mark.asyncio
async def test_closing_a_document_drops_its_finished_answer(
    server: FimLanguageServer, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that is opened again has version 1 again."""
    monkeypatch.setattr(server, "open_document", document)
    plain = server.settings.having("debounce_ms", 0.0).having("project_memory", False)
    monkeypatch.setattr(server, "settings", plain)
    answering = asyncio.ensure_future(answer(server, asked("a")))
    await asyncio.sleep(0)
    assert server.requests.running["a"].job.future.result(PATIENCE) is not None  # no handler has taken it yet
    on_closed(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier("a")))
    assert await asyncio.wait_for(answering, PATIENCE) is SUPERSEDED


@pytest.mark.asyncio
async def test_a_request_whose_thread_was_given_up_is_answered(
    server: FimLanguageServer, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = work["a"] = Blocked()

    async def ask() -> Any:
        return await run(server, request("a"))

    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    found = await asyncio.wait_for(ask(), PATIENCE)
    assert found.answer.reason == server.requests.suspended["a"]
    assert server.supervisor.task is not None
    await asyncio.wait_for(server.supervisor.task, PATIENCE)  # it ends when no work is left
    stuck.gate.set()


@pytest.mark.asyncio
async def test_a_process_with_too_many_stuck_threads_ends(server: FimLanguageServer, work: dict[str, Any]) -> None:
    stuck = [Blocked() for _ in range(supervisor.MOST_GIVEN_UP + 1)]
    for number, one in enumerate(stuck):
        work[str(number)] = one
        server.worker.submit(request(str(number)))
        assert one.begun.wait(PATIENCE)
    while not server.supervisor.look():
        pass
    assert server.supervisor.is_ending
    assert status_of(server)["state"] == "error"
    for _ in range(200):
        if ("ended", supervisor.STUCK) in messages_of(server):
            break
        await asyncio.sleep(0.01)
    assert ("ended", supervisor.STUCK) in messages_of(server)
    for one in stuck:
        one.gate.set()


# --- the memory budget ----------------------------------------------------------------------------------------------


def test_memory_steps_follow_one_another() -> None:
    budget = MemoryBudget()
    assert budget.next_step(None, 1) is None
    assert budget.next_step(1, None) is None
    assert budget.next_step(11, 10, has_checkers=True) is Step.CHECKERS
    assert [budget.next_step(11, 10) for _ in range(5)] == [*STEPS, None]
    assert budget.last is Step.WORKER
    assert budget.next_step(10, 10) is None
    assert budget.next_step(11, 10) is Step.CACHES


def test_the_budget_is_the_machines_and_leaves_room_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = MemoryBudget()
    monkeypatch.setattr(budgets, "machine_bytes", lambda: 64 * 1024 * MEGABYTE)
    assert budget.bytes_for(None) == 16 * 1024 * MEGABYTE
    monkeypatch.setattr(budgets, "machine_bytes", lambda: 1024 * MEGABYTE)
    assert budget.bytes_for(None) == BUDGET.least_memory_mb * MEGABYTE
    monkeypatch.setattr(budgets, "machine_bytes", lambda: None)
    assert budget.bytes_for(None) is None
    assert budget.bytes_for(700) == 700 * MEGABYTE
    budget.note_loaded(8000 * MEGABYTE)
    assert budget.bytes_for(700) == (8000 + BUDGET.room_mb) * MEGABYTE


def test_a_model_that_is_loaded_again_allows_no_more_than_before() -> None:
    """A server over its budget loads its model again. Memory that is not released by then does not raise the budget."""
    loaded: dict[object, int] = {}
    budget = MemoryBudget(loaded)
    budget.note_loaded(600 * MEGABYTE, "small")
    allowed = budget.bytes_for(700)
    assert allowed == (600 + BUDGET.room_mb) * MEGABYTE
    for resident in (5000 * MEGABYTE, None):
        budget.note_loaded(resident, "small")
        assert budget.bytes_for(700) == allowed
    other = MemoryBudget(loaded)  # of another client: the process has the first one's memory, too
    other.note_loaded(5000 * MEGABYTE, "small")
    assert other.bytes_for(700) == allowed
    budget.note_loaded(8000 * MEGABYTE, "large")
    assert budget.bytes_for(700) == (8000 + BUDGET.room_mb) * MEGABYTE
    budget.note_loaded(550 * MEGABYTE, "small")
    assert budget.bytes_for(700) == (550 + BUDGET.room_mb) * MEGABYTE


@pytest.mark.asyncio
async def test_sessions_may_hold_a_part_of_the_budget(
    server: FimLanguageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "machine_bytes", lambda: None)
    worker = CompletionWorker(SETTINGS)
    assert worker.session_memory.most == BUDGET.least_memory_mb * MEGABYTE // BUDGET.sessions_share
    worker = server.worker
    monkeypatch.setattr(supervisor, "resident_bytes", lambda: 1)
    server.settings = server.settings.having("memory_mb", 2000)
    server.supervisor.look()
    assert worker.session_memory.most == 2000 * MEGABYTE // BUDGET.sessions_share
    # The sessions of all threads are counted together; those that are not in use make room.
    contexts = worker.make_contexts(), worker.make_contexts()
    for number, one in enumerate(contexts):
        one.open(f"file:///{number}.py", Language.load("python"), Split("x = ", "\ny = 1\n"))
    both = worker.session_memory.held
    worker.session_memory.most = 1
    assert worker.session_memory.held == both, "both are in use"
    contexts[0].rest()
    assert 0 < worker.session_memory.held < both


def test_finished_work_releases_its_session() -> None:
    worker = CompletionWorker(SETTINGS)
    worker.session_memory.most = 1
    python = Language.load("python")
    for uri in ("a", "b", "c"):
        thread = worker._thread_of(uri)
        thread.submit(Stop(), partial(thread.completer.contexts.open, uri, python, Split("x = ", "\n"))).result(
            PATIENCE
        )
        while worker.is_at_work:
            pass
    kept = [thread.completer.contexts._sessions.knows(python, "\n") for thread in worker._threads.values()]
    worker.close()
    assert kept == [False, False, True]


@pytest.mark.asyncio
async def test_a_server_over_its_budget_drops_memory_step_by_step(
    server: FimLanguageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.settings = server.settings.having("memory_mb", 600)
    monkeypatch.setattr(supervisor, "resident_bytes", lambda: 601 * MEGABYTE)
    loads: list[object] = []

    async def load(ls: object) -> None:
        loads.append(ls)

    monkeypatch.setattr(supervision, "load", load)
    worker = server.worker
    readings = worker._loaded()
    assert readings is not None
    readings.readings.short.nearest([1], 1)
    for uri in ("a", "b"):
        worker.submit(request(uri)).future.result(PATIENCE)
    while worker.is_at_work:
        pass
    assert server.supervisor.look()
    assert not worker._threads
    assert readings.readings.short._known == []
    assert status_of(server)["memory"]["dropped"] == "caches"
    assert status_of(server)["memory"]["budgetMb"] == 600
    worker.submit(request("a")).future.result(PATIENCE)
    assert server.supervisor.look()
    assert not worker._threads
    assert status_of(server)["memory"]["dropped"] == "sessions"
    assert worker.model is not None
    server.project.opened("a")
    server.project.send("a", Split("first = 1\n" * 1000, ""))
    assert server.project.memory.settle()
    assert server.project.memory.sizes()["bytes"] > 10_000
    known = server.project.memory
    assert server.supervisor.look()
    assert server.project.size < 10_000
    assert server.project.memory is not known
    assert status_of(server)["memory"]["dropped"] == "project"
    assert worker.model is not None
    assert server.supervisor.look()
    assert worker._loading is None
    assert status_of(server)["memory"]["dropped"] == "worker"
    for task in tuple(server.tasks):
        await task
    assert loads == [server]
    assert not server.supervisor.look()
    assert sum("setting memoryMb" in str(one) for one in messages_of(server)) == 4


@pytest.mark.skipif(process.resident_bytes() is None, reason="the system does not tell")
def test_closing_a_document_releases_its_large_session(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = CompletionWorker(SETTINGS)
    give_model(worker)
    worker.make_contexts = lambda: DocumentSessions(Budget(seconds=PATIENCE, memory=1 << 30))
    large = "1," * 100_000 + "]\n"

    def answer(self: Completer, loading: Any, request: Request, cancelled: Stop, *rest: object) -> Any:
        self.contexts.open(request.uri, Language.load("python"), Split("x = [", large))
        return Work(request.answered(()))

    monkeypatch.setattr(Completer, "_answer", answer)
    Language.load("python").open("x = ", "\n")
    process.release_memory()
    before = process.resident_bytes() or 0
    worker.submit(request("a")).future.result(10 * PATIENCE)
    thread = worker._threads["a"]
    grown = (process.resident_bytes() or 0) - before
    assert grown > 10 * MEGABYTE
    worker.forget("a")
    thread._executor.shutdown(wait=True)
    left = (process.resident_bytes() or 0) - before
    assert left < grown / 3


@pytest.mark.skipif(process.resident_bytes() is None, reason="the system does not tell")
def test_memory_stays_flat_over_two_hundred_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = CompletionWorker(SETTINGS)
    give_model(worker)
    text = "".join(f"    'key {number}': [{number}, 'a', (b, c)],\n" for number in range(150)) + "}\n"

    def answer(self: Completer, loading: Any, request: Request, cancelled: Stop, *rest: object) -> Any:
        self.contexts.open(request.uri, Language.load("python"), request.split)
        return Work(request.answered(()))

    monkeypatch.setattr(Completer, "_answer", answer)
    resident = []
    for number in range(200):
        split = Split(f"x{number} = {{\n", f"    'own': {number},\n" + text)
        asked = Request(f"{number}.py", split, "python", "", False, True, SETTINGS)
        assert worker.submit(asked).future.result(PATIENCE) is not None
        resident.append(process.resident_bytes() or 0)
    worker.close()
    early, late = max(resident[30:60]), max(resident[-30:])
    assert late - early < 30 * MEGABYTE, f"{early // MEGABYTE} to {late // MEGABYTE} MB"
