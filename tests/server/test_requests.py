"""Requests that end in the middle of something, in a server in this process: what it sends is read from a list."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import pytest
import pytest_asyncio

from fim_server.language import Stop
from fim_server.language.stop import heed
from fim_server.server import supervision
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models import loading
from fim_server.server.models.loading import look_for_better
from fim_server.suggest import pipeline
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from fim_server.suggest.suggestion import Origin, Suggestion
from fim_server.system import blocking_pool
from fim_server.workers import supervisor
from fim_server.workers.worker import CompletionWorker
from support.editors.connected import URI, Connected
from support.editors.editor import INVALID_PARAMS, REQUEST_CANCELLED, Wire
from support.editors.watched import PATIENCE, SETTINGS, Blocked

INVALID_REQUEST = -32600


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work by document, before a request or a question is answered."""
    todo: dict[str, Any] = {}

    def answer(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Any:
        todo.get("request", lambda stop: None)(cancelled)
        return None if cancelled.is_set() else Work(request.answered((offer("1"),), lasting=False))

    def explain(context: object, loading: object, request: Request, cancelled: Stop) -> Any:
        todo["question"](cancelled)

    monkeypatch.setattr(Completer, "_answer", answer)
    monkeypatch.setattr(pipeline, "explain", explain)
    return todo


def offer(text: str) -> Suggestion:
    completion: Any = None
    return Suggestion(text, text, 0, Origin(completion, "exact"))


def engine(stop: Stop) -> None:
    """Work that goes on until its stop is set."""
    deadline = time.monotonic() + 2 * PATIENCE  # who waits for its end gives up before
    while not stop.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest_asyncio.fixture
async def client(work: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connected]:
    connected = Connected()
    await connected.begin(monkeypatch)
    yield connected
    connected.server.close()


# --- cancelled, and overtaken ---------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_cancelled_explanation_leaves_its_thread(client: Connected, work: dict[str, Any]) -> None:
    """pygls tells a command's handler nothing of that."""
    begun = threading.Event()

    def question(stop: Stop) -> None:
        begun.set()
        engine(stop)

    work["question"] = question
    client.explain("why")
    await client.until(begun.is_set)
    client.cancel("why")
    assert (await client.answer("why"))["error"]["code"] == REQUEST_CANCELLED
    await client.until(lambda: not client.server.worker.is_at_work)
    assert len(client.answers("why")) == 1


@pytest.mark.asyncio
async def test_an_explanation_of_a_closed_document_is_refused(client: Connected, work: dict[str, Any]) -> None:
    begun = threading.Event()

    def question(stop: Stop) -> None:
        begun.set()
        engine(stop)
        heed()

    work["question"] = question
    client.explain("why")
    await client.until(begun.is_set)
    client.close()
    error = (await client.answer("why"))["error"]
    assert error["code"] == INVALID_PARAMS
    assert "closed" in error["message"]


@pytest.mark.asyncio
async def test_a_cached_answer_stops_the_older_request(client: Connected, work: dict[str, Any]) -> None:
    """The newer one asks nothing of the worker, which would have stopped the older one."""
    work["request"] = engine
    client.ask("older")
    await client.until(lambda: client.server.requests.running)
    known = Answer((URI, "python"), "x = ", "\n", single_line=True, suggestions=(offer("1"),), complete=True)
    client.server.answers.add(known)
    client.server.settings = client.server.settings.having("multiline", "never")
    client.ask("newer", invoked=False)
    assert len((await client.answer("newer"))["result"]["items"]) == 1
    assert (await client.answer("older"))["result"]["items"] == []
    await client.until(lambda: not client.server.worker.is_at_work)


@pytest.mark.asyncio
async def test_two_requests_of_one_number_are_both_answered(client: Connected, work: dict[str, Any]) -> None:
    client.ask("same")
    client.ask("same")
    await client.until(lambda: len(client.answers("same")) == 2)
    client.cancel("same")
    client.cancel("never asked")
    client.ask("another")
    assert len((await client.answer("another"))["result"]["items"]) == 1
    assert len(client.answers("same")) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("when", ["recalling", "waiting"])
async def test_a_changed_text_is_not_sent_to_the_model(
    client: Connected, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    gate, asked = Blocked(), threading.Event()
    monkeypatch.setattr(Completer, "recall", lambda *arguments: gate())
    work["request"] = lambda stop: asked.set()
    client.server.settings = client.server.settings.having("debounce_ms", 100.0)
    client.ask("before", invoked=False)
    await client.until(gate.begun.is_set)
    if when == "waiting":
        gate.gate.set()
        await client.until(lambda: not client.server.requests.running)
    client.change(2, "y = \n")
    gate.gate.set()
    assert (await client.answer("before"))["result"]["items"] == []
    assert not asked.is_set()
    client.ask("after", invoked=False)
    assert len((await client.answer("after"))["result"]["items"]) == 1


# --- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_document_that_changed_gets_no_answer_whatever_its_version_says(
    client: Connected, work: dict[str, Any], version: int
) -> None:
    """Some clients count backwards, or not at all. The change comes after the work, before its answer."""
    gate = Blocked()
    work["request"] = lambda stop: gate()
    client.ask("before")
    await client.until(gate.begun.is_set)
    job = client.server.requests.running[URI].job
    gate.gate.set()
    assert job.future.result(PATIENCE) is not None
    client.change(version, "y = [1, 2]\n")
    assert (await client.answer("before"))["result"]["items"] == []
    client.ask("after")
    assert len((await client.answer("after"))["result"]["items"]) == 1


@pytest.mark.asyncio
async def test_a_document_that_is_opened_again_is_another(client: Connected, work: dict[str, Any]) -> None:
    work["request"] = engine
    client.ask("of the closed one")
    await client.until(lambda: client.server.requests.running)
    client.close()
    client.open()
    assert (await client.answer("of the closed one"))["result"]["items"] == []
    del work["request"]
    client.ask("of the open one")
    assert len((await client.answer("of the open one"))["result"]["items"]) == 1


# --- settings, and the end ------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_request_under_way_when_settings_change_is_answered(client: Connected, work: dict[str, Any]) -> None:
    gate = Blocked()
    work["request"] = lambda stop: gate()
    client.ask("under way")
    await client.until(gate.begun.is_set)
    client.send(Wire.note("workspace/didChangeConfiguration", {"settings": {"fim-server": {"maxTokens": 7}}}))
    await client.until(lambda: client.server.settings.max_tokens == 7)
    gate.gate.set()
    assert len((await client.answer("under way"))["result"]["items"]) == 1


@pytest.mark.asyncio
async def test_a_server_is_shut_down_in_the_middle_of_questions_and_requests(
    client: Connected, work: dict[str, Any]
) -> None:
    work["question"] = work["request"] = engine
    client.explain("first")
    client.explain("second")
    client.ask("asked")
    await client.until(lambda: client.server.worker.is_at_work)
    client.send(Wire.request("bye", "shutdown", None))
    assert "error" not in await client.answer("bye")
    for number in ("first", "second", "asked"):
        answer = await client.answer(number)
        assert answer.get("error") or answer["result"]["items"] == []
    await client.until(lambda: not client.server.worker.is_at_work)
    client.ask("late")
    assert (await client.answer("late"))["error"]["code"] == INVALID_REQUEST


@pytest.mark.asyncio
async def test_a_server_is_shut_down_while_its_worker_is_replaced(
    client: Connected, work: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed server loads nothing, and nothing fails."""
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(supervision, "load", lambda ls: pytest.fail("a model is loaded"))
    model = client.server.worker.model
    assert model is not None
    work["request"] = lambda stop: model.forward([1], None)
    client.ask("asked")
    await client.until(client.backend.begun.is_set)
    client.send(Wire.request("bye", "shutdown", None))
    assert "error" not in await client.answer("bye")
    watch = client.server.supervisor.task
    assert watch is not None
    await asyncio.wait_for(watch, PATIENCE)
    assert model.turn.is_lost
    assert client.server.worker.given_up == 1
    assert client.server.usage.failed == 0
    client.backend.gate.set()


def test_a_hanging_disk_stops_neither_start_nor_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looking for a better model reads the disk."""
    gate = threading.Event()
    monkeypatch.setattr(loading, "to_be_got", lambda wanted: gate.wait(PATIENCE))
    monkeypatch.setattr(loading, "BETTER_SECONDS", 0.01)
    monkeypatch.setattr(loading, "BLOCKING_POOL", blocking_pool.BlockingPool())
    server = FimLanguageServer(SETTINGS, "")
    done = threading.Event()

    def serve() -> None:
        asyncio.run(look_for_better(server))
        done.set()

    threading.Thread(target=serve, daemon=True).start()
    assert done.wait(PATIENCE / 2)
    assert server.model.better is None
    gate.set()
    assert isinstance(server.worker, CompletionWorker)
