"""Stuck threads that open texts in the background, or load the model, hold up no other work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from lsprotocol import types

from fim_server.errors import ModelError, StoppedError
from fim_server.language import Language, Session, Stop
from fim_server.models.model import FimModel
from fim_server.server.app import create_server
from fim_server.server.handlers.documents import on_changed, on_closed
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.loading import load, reload
from fim_server.server.status import STATUS, send_status
from fim_server.suggest.context import background_open
from fim_server.suggest.context.background_open import Finisher, Unfinished
from fim_server.suggest.context.sessions import DocumentSessions, Opened
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.settings import ServerSettings
from fim_server.system.watched_threads import SILENT_LOOKS, WatchedThread
from fim_server.text.reuse import Sessions
from fim_server.workers import shared_models, supervisor, worker
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.worker import CompletionWorker
from support.editors.watched import PATIENCE, SETTINGS, Blocked, Gated, give_model, loaded, model_on, request, until

URI = "file:///a%20b.py"
PYTHON = Language.load("python")


class Stuck(Sessions):
    """Sessions that look at no stop while they open a blocked text."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[str, Blocked] = {}

    def open(self, language: Language, left: str, right: str) -> Session:
        self.at.get(right, lambda: None)()
        return super().open(language, left, right)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    sessions = Stuck()
    yield sessions
    for one in sessions.at.values():
        one.gate.set()


def begun(sessions: Stuck, finisher: Finisher, right: str, uri: str = URI) -> Blocked:
    """Let a thread get stuck at a text."""
    blocked = sessions.at[right] = Blocked()
    finisher.finish(uri, PYTHON, "x = ", right)
    assert blocked.begun.wait(PATIENCE)
    return blocked


def looks(worker: CompletionWorker, count: int = SILENT_LOOKS) -> list[tuple[str, bool]]:
    """Look once, which begins the count of silent looks, then ``count`` times; return the replaced threads."""
    return [(one.uri, one.in_background) for _ in range(count + 1) for one in worker.replace_stuck()]


def test_closing_a_thread_stops_its_work_and_its_queue() -> None:
    thread, blocked, stops = WatchedThread("closed"), Blocked(), [Stop(), Stop()]
    for stop in stops:
        thread.submit(stop, blocked)
    thread.close()
    try:
        assert [stop.is_set() for stop in stops] == [True, True]
    finally:
        blocked.gate.set()


# --- texts that are finished in the background ----------------------------------------------------------------------


def test_a_thread_stuck_at_a_text_is_replaced_by_another(stuck: Stuck) -> None:
    watched = CompletionWorker(SETTINGS)
    finisher = Finisher(stuck, 10**9, watched.unfinished)
    blocked = begun(stuck, finisher, "\none\n")
    finisher.finish("file:///other.py", PYTHON, "x = ", "\ntwo\n")
    assert watched.is_at_work
    assert looks(watched, SILENT_LOOKS - 1) == []
    assert looks(watched, 0) == [(URI, True)]
    until(lambda: stuck.knows(PYTHON, "\ntwo\n"))
    assert watched.given_up == 1
    assert looks(watched) == []
    blocked.gate.set()
    until(lambda: not watched.given_up)
    until(lambda: not watched.is_at_work)
    finisher.close()
    watched.close()


def test_a_stuck_text_is_opened_again_only_after_a_change(stuck: Stuck) -> None:
    watched = CompletionWorker(SETTINGS)
    finisher = Finisher(stuck, 10**9, watched.unfinished)
    begun(stuck, finisher, "\none\n")
    looks(watched)
    assert watched.unfinished.documents == [URI]
    finisher.finish(URI, PYTHON, "x = ", "\none\n")
    finisher.finish(URI, PYTHON, "x = ", "\nwhere the cursor was moved to\n")
    Finisher(stuck, 10**9, watched.unfinished).finish(URI, PYTHON, "x = ", "\none\n")  # a later finisher
    assert not finisher.is_busy
    watched.unfinished.changed(URI)
    assert watched.unfinished.documents == []
    finisher.finish(URI, PYTHON, "x = a", "\none\n")  # a key was typed before it
    assert not finisher.is_busy
    finisher.finish(URI, PYTHON, "x = ", "\nmended\n")
    until(lambda: stuck.knows(PYTHON, "\nmended\n"))
    watched.close()


def test_a_newer_text_behind_a_stuck_one_is_opened(stuck: Stuck) -> None:
    """The text at which the thread hangs is outdated; the current one must not suffer for it."""
    watched = CompletionWorker(SETTINGS)
    finisher = Finisher(stuck, 10**9, watched.unfinished)
    begun(stuck, finisher, "\none\n")
    finisher.finish(URI, PYTHON, "x = ", "\nmended\n")
    assert looks(watched) == [(URI, True)]
    assert watched.unfinished.documents == []
    until(lambda: stuck.knows(PYTHON, "\nmended\n"))
    watched.close()


def test_a_stuck_thread_is_given_up_though_its_document_was_closed(stuck: Stuck) -> None:
    watched = CompletionWorker(SETTINGS)
    finisher = Finisher(stuck, 10**9, watched.unfinished)
    begun(stuck, finisher, "\none\n")
    finisher.close()
    watched.close()
    assert watched.is_at_work
    assert looks(watched) == [(URI, True)]
    assert watched.given_up == 1
    assert watched.unfinished.documents == []


def test_the_memory_of_stuck_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_open, "MOST_GIVEN_UP", 2)
    unfinished = Unfinished()
    keys = [(PYTHON, number, number) for number in range(3)]
    for key in keys:
        unfinished.give_up("a", key, left=True)
    assert [unfinished.may_begin("a", key) for key in keys] == [True, False, False]


# --- the server -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FimLanguageServer]:
    """Server that sends its messages to a list, and looks often."""
    server = create_server(SETTINGS)
    messages: list[Any] = []
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr("fim_server.server.models.loading.to_be_got", lambda wanted: None)
    monkeypatch.setattr("fim_server.server.models.loading.begin_progress", nothing)
    monkeypatch.setattr(server, "log", lambda kind, message: messages.append(message))
    monkeypatch.setattr(server, "window_show_message", messages.append)
    monkeypatch.setattr(server.protocol, "notify", lambda method, status: messages.append((method, status)))
    monkeypatch.setattr(server.supervisor, "end_process", lambda status: messages.append(("ended", status)))
    server.messages = messages  # type: ignore[attr-defined]
    yield server
    server.worker.close()


async def nothing(*arguments: object) -> None:
    pass


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # other threads bring it about
            await asyncio.sleep(0.005)


def messages_of(server: FimLanguageServer) -> str:
    return str(server.messages)  # type: ignore[attr-defined]


def status_of(server: FimLanguageServer) -> dict[str, Any]:
    send_status(server)
    messages: list[Any] = server.messages  # type: ignore[attr-defined]
    status: dict[str, Any] = next(one[1] for one in reversed(messages) if one[0] == STATUS)
    return status


@pytest.mark.asyncio
async def test_the_status_says_which_documents_are_read_in_part(
    server: FimLanguageServer, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is answered; its work in the background hangs, and is watched without further requests."""
    give_model(server.worker)
    finisher = Finisher(stuck, 10**9, server.worker.unfinished)

    def answer(self: Completer, loading: Any, request: Any, *rest: Any) -> Work:
        begun(stuck, finisher, "\none\n")
        return Work(request.answered(()))

    monkeypatch.setattr(Completer, "_answer", answer)
    monkeypatch.setattr(server, "open_document", lambda uri: None)
    server.worker.submit(request(URI))
    server.supervisor.begin()
    await eventually(lambda: server.usage.replaced)
    assert status_of(server)["inPart"] == [URI]
    assert "read in part until they change: a b.py" in status_of(server)["message"]
    assert "setAside" not in status_of(server)
    assert "use a part of the file until it changes" in messages_of(server)
    changed = types.VersionedTextDocumentIdentifier(2, URI)
    on_changed(server, types.DidChangeTextDocumentParams(changed, []))
    assert "inPart" not in status_of(server)
    server.worker.unfinished.give_up(URI, (PYTHON, 1, 1), left=False)
    on_closed(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
    assert "inPart" not in status_of(server)


# --- loading --------------------------------------------------------------------------------------------------------


class Disk:
    """Disk with models, of which the first one waits for its release."""

    def __init__(self) -> None:
        self.gate, self.began = threading.Event(), 0
        self.models: list[FimModel] = []

    def __call__(self, *key: object) -> FimModel:
        self.began += 1
        if self.began == 1:
            assert self.gate.wait(PATIENCE)
        self.models.append(model_on(Gated()))
        return self.models[-1]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    import fim_server.decoding.complete  # noqa: F401  # importing it takes longer than the looks here

    disk = Disk()
    monkeypatch.setattr("fim_server.models.load.load_model", disk)
    monkeypatch.setattr(CompletionWorker, "_prepare", lambda self, model, *rest: loaded(model).result())
    monkeypatch.setattr(worker, "LOADING_LOOKS", 5)
    monkeypatch.setattr(shared_models, "OVERDUE_SECONDS", 0.0)
    yield disk
    disk.gate.set()


@pytest.mark.asyncio
async def test_an_overdue_loading_is_reported_and_can_be_repeated(server: FimLanguageServer, disk: Disk) -> None:
    first = asyncio.ensure_future(load(server))
    await eventually(lambda: server.model.overdue)
    status = status_of(server)
    assert status["state"] == "loading"
    assert status["message"] == "loading the model: no progress for 30 s"
    assert messages_of(server).count("to stop waiting, reload or choose another model") == 1
    assert not first.done()
    await asyncio.wait_for(reload(server), PATIENCE)
    await asyncio.wait_for(first, PATIENCE)  # the replaced load ends, too
    assert server.worker.model is disk.models[0]
    await eventually(lambda: not server.model.overdue)
    assert status_of(server)["state"] == "ready"
    disk.gate.set()
    await eventually(lambda: len(disk.models) == 2)
    assert server.worker.model is disk.models[0]
    assert server.worker.models.get(SETTINGS) is disk.models[0]
    assert server.worker.given_up == 0  # waiting for a disk costs no processor


@pytest.mark.asyncio
async def test_a_session_is_opened_while_the_model_is_loaded(
    server: FimLanguageServer, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens, opened = DocumentSessions.open, threading.Event()

    def open_and_tell(self: DocumentSessions, *arguments: Any) -> Opened:
        try:
            return opens(self, *arguments)
        finally:
            opened.set()

    monkeypatch.setattr(DocumentSessions, "open", open_and_tell)
    server.worker.submit(request(URI))
    await eventually(opened.is_set)
    assert disk.began == 1
    assert not disk.models


@pytest.mark.asyncio
async def test_an_overdue_model_is_used_when_it_comes(server: FimLanguageServer, disk: Disk) -> None:
    loading = asyncio.ensure_future(load(server))
    await eventually(lambda: server.model.overdue)
    disk.gate.set()
    await asyncio.wait_for(loading, PATIENCE)
    await eventually(lambda: not server.model.overdue)
    assert status_of(server)["state"] == "ready"


@pytest.mark.asyncio
async def test_a_closing_server_does_not_wait_for_a_model(server: FimLanguageServer, disk: Disk) -> None:
    loading = asyncio.ensure_future(load(server))
    server.tasks.add(loading)
    await eventually(lambda: disk.began)
    watch = server.supervisor.task
    assert watch is not None
    server.close()
    await asyncio.wait_for(watch, PATIENCE)
    assert not server.worker.is_at_work
    assert "cannot be loaded" not in messages_of(server)


def test_waiting_clients_get_the_model_of_a_repeated_loading(disk: Disk) -> None:
    models = SharedModels()
    gone, waits, comes = (CompletionWorker(SETTINGS, models) for _ in range(3))
    gone.load()
    until(lambda: disk.began)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_models, "OVERDUE_SECONDS", PATIENCE)
        waiting = waits.load()
        until(lambda: any(load.thread.step for load in waits._loads))
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
    assert comes.load().result(PATIENCE) is disk.models[0]
    assert waiting.result(PATIENCE) is disk.models[0]
    assert disk.began == 2
    for one in (gone, waits, comes):
        one.close()


def test_other_settings_do_not_wait_for_an_overdue_model(disk: Disk) -> None:
    watched = CompletionWorker(SETTINGS)
    first = watched.load()
    until(lambda: disk.began)
    watched.reload(ServerSettings(model="other"))
    assert watched.load().result(PATIENCE) is disk.models[0]
    for _ in range(worker.LOADING_LOOKS + 1):
        watched.replace_stuck()
    assert isinstance(first.exception(0), ModelError)  # no client wants it any more
    until(lambda: not watched.is_at_work)
    watched.close()


@pytest.fixture
def warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is warmed up by one pass."""

    def prepare(self: CompletionWorker, model: FimModel, *rest: object) -> Loaded:
        model.forward([1], None)
        return loaded(model).result()

    monkeypatch.setattr(CompletionWorker, "_prepare", prepare)
    monkeypatch.setattr(worker, "LOADING_LOOKS", 2 * SILENT_LOOKS)


@pytest.mark.asyncio
async def test_an_endless_first_pass_is_given_up(
    server: FimLanguageServer, warm_up: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, good = model_on(Gated()), model_on(Gated())
    good.backend.gate.set()  # type: ignore[attr-defined]
    come = iter([stuck, good])
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *key: next(come))
    await asyncio.wait_for(load(server), PATIENCE)
    status = status_of(server)
    assert (status["state"], status["message"]) == ("error", server.model.failure)
    assert "its first passes have not ended" in status["message"]
    assert stuck.turn.is_lost
    assert server.worker.given_up == 1
    await asyncio.wait_for(reload(server), PATIENCE)
    assert status_of(server)["state"] == "ready"
    assert server.worker.model is good
    stuck.backend.gate.set()  # type: ignore[attr-defined]
    await eventually(lambda: not server.worker.given_up)
    assert server.worker.model is good


def test_an_endless_first_pass_of_one_client_frees_the_others(warm_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other client's threads would wait for the turn of the shared model for ever."""
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *key: model_on(Gated()))
    models = SharedModels()
    has, comes = (CompletionWorker(SETTINGS, models) for _ in range(2))
    has.load()
    until(lambda: has._loads[0].model is not None)
    model = has._loads[0].model
    assert model is not None
    backend: Any = model.backend
    backend.gate.set()
    until(lambda: has.model is model)
    backend.gate.clear()
    backend.begun.clear()
    loading = comes.load()
    assert backend.begun.wait(PATIENCE)
    waiting = has._thread_of("b").submit(Stop(), lambda: model.forward([1], None))
    looks(comes)
    assert isinstance(loading.exception(0), ModelError)
    assert isinstance(waiting.exception(PATIENCE), RuntimeError | StoppedError)
    has.replace_stuck()
    assert has.was_lost
    assert has.given_up == 1
    backend.gate.set()
    until(lambda: not has.given_up)
    for one in (has, comes):
        one.close()
