"""Prefetch of prompts: its places, its limits, and requests that find the prompt read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from fim_server.errors import StoppedError
from fim_server.language import Stop
from fim_server.server.constants import SERVER
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.documents.spellings import Spellings
from fim_server.server.requests import prompt_prefetch
from fim_server.server.requests.dismissals import Dismissals
from fim_server.server.state import RequestState
from fim_server.server.usage import Usage
from fim_server.suggest.answer_cache import Answer, AnswerCache
from fim_server.suggest.context import stage
from fim_server.suggest.context.cursor import MOST_PLACES, Places
from fim_server.suggest.context.prompts import LEAST_AHEAD
from fim_server.suggest.context.stage import ContextStage
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.read_ahead import between_pair
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.text.document import PositionEncoding, Split
from fim_server.workers.worker import CompletionWorker
from support.editors.editor import AUTOMATIC, PATIENCE, Client, Editor, serving
from support.editors.watched import until

TEXT = "import os\n\n\ndef names(path, count):\n    return sorted(os.listdir(path))[:count]\n"
URI = "file:///a.py"


# --- what is read ---------------------------------------------------------------------------------------------------


class Asked:
    """A server that notes what it is to read."""

    def __init__(self, text: str, **settings: Any) -> None:
        self.settings = ServerSettings(**settings)
        self.cursors, self.answers, self.usage = Places(), AnswerCache(), Usage(requests=1)
        self.learnt, self.dismissals = None, Dismissals()
        self.client = SimpleNamespace(fallback=None)
        self.requests = RequestState()
        self.protocol = SimpleNamespace(spellings=Spellings(), owner_of=lambda uri: uri)
        self.folders: list[str] = []
        self.file_of = lambda uri: ""
        self.described = lambda uri, language: None
        self.secrets = SimpleNamespace(known=lambda *of: False, reason=None)
        self.spawned: list[Any] = []
        self.spawn = self.spawned.append
        self.project = SimpleNamespace(drop=lambda uri: None)
        self.supervisor = SimpleNamespace(begin=lambda: None)
        self.checkers = SimpleNamespace(checker=lambda language, uri: None)
        self.prompts: list[tuple[Request, bool]] = []
        self.rests: list[Request] = []
        self.log_once = lambda *said: None
        self.worker = SimpleNamespace(
            prefetch_prompt=lambda request, pair: self.prompts.append((request, pair)),
            prefetch_at_rest=self.rests.append,
            model=object(),
        )
        self.document = OpenDocument(URI, source=text, encoding=PositionEncoding.UTF16, version=1, language_id="python")

    def open_document(self, uri: str) -> OpenDocument | None:
        return self.document if uri == URI else None

    def change(self, start: int, end: int, text: str, times: int = 1) -> None:
        """Make an edit, by offsets, and tell of it."""
        source = self.document.document

        def position(offset: int) -> types.Position:
            before = source.text[:offset]
            return types.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)

        change = types.TextDocumentContentChangePartial(range=types.Range(position(start), position(end)), text=text)
        self.document.apply_change(change)
        identifier = types.VersionedTextDocumentIdentifier(uri=URI, version=2)
        server: Any = self
        prompt_prefetch.read_after_change(server, types.DidChangeTextDocumentParams(identifier, [change] * times))

    def rest(self, line: Any, character: Any, uri: str = URI) -> None:
        """Tell that the cursor rests."""
        server: Any = self
        prompt_prefetch.read_at_rest(
            server, {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        )

    @property
    def cuts(self) -> list[str]:
        return [request.split.left.rpartition("\n")[2] for request, _ in self.prompts]


AT = TEXT.index("sorted")


@pytest.mark.parametrize(
    ("start", "end", "text", "left"),
    [
        (AT, AT, "x", "    return x"),
        (AT, AT + 7, "", "    return "),
        (AT - 8, AT - 8, "a = 1\r\n  b", "  b"),
        (AT, AT, "\n        \n    ", "        "),  # between brackets
    ],
)
def test_the_prefetch_is_at_the_end_of_the_edit(start: int, end: int, text: str, left: str) -> None:
    asked = Asked(TEXT)
    asked.change(start, end, text)
    assert asked.cuts == [left]
    ((request, pair),) = asked.prompts
    assert request.split.left + request.split.right == asked.document.document.text
    assert not request.invoked
    assert not pair
    assert asked.cursors.of(URI) == len(request.split.left)


def test_a_suspended_document_is_not_prefetched() -> None:
    asked = Asked(TEXT)
    asked.requests.suspended[URI] = "its worker was replaced"
    asked.change(AT, AT, "x")
    assert asked.prompts == []


def test_a_pair_may_have_the_cursor_between_it() -> None:
    asked = Asked(TEXT)
    asked.change(AT, AT, "()")
    ((request, pair),) = asked.prompts
    assert pair
    moved = between_pair(request)
    assert moved.split.left.endswith("return (")
    assert moved.split.right.startswith(")sorted")
    assert moved.split.left + moved.split.right == request.split.left + request.split.right
    assert moved.single_line


@pytest.mark.parametrize(
    "settings",
    [
        {"enabled": False},
        {"trigger": "manual"},
        {"prefetch": False},
        {"languages": {"python": "off"}},
        {"max_file_characters": 10},
    ],
)
def test_a_declined_place_is_not_prefetched(settings: dict[str, Any]) -> None:
    asked = Asked(TEXT, **settings)
    asked.change(AT, AT, "x")
    assert asked.prompts == []


def test_several_edits_and_huge_documents_are_not_prefetched() -> None:
    asked = Asked(TEXT)
    asked.change(AT, AT, "x", times=2)
    assert asked.prompts == []
    huge = Asked("x = 1\n" * (SERVER.prefetch_characters // 6 + 1))
    huge.change(0, 0, "y")
    assert huge.prompts == []


def test_an_editor_without_requests_gets_no_prefetch() -> None:
    asked = Asked(TEXT)
    asked.usage.requests = 0
    asked.change(AT, AT, "x")
    assert asked.prompts == []


def test_known_answers_are_not_prefetched() -> None:
    asked = Asked(TEXT)
    asked.change(AT, AT, "x")
    (request, _), *_ = asked.prompts
    asked.document.apply_change(types.TextDocumentContentChangeWholeDocument(text=TEXT))
    asked.answers.add(
        Answer(request.key, request.split.left, request.split.right, request.single_line, (), complete=False)
    )
    asked.change(AT, AT, "x")
    assert len(asked.prompts) == 1
    asked.answers.clear()
    asked.document.apply_change(types.TextDocumentContentChangeWholeDocument(text=TEXT))
    asked.requests.prefetch = SimpleNamespace(request=request)  # type: ignore[assignment]
    asked.change(AT, AT, "x")
    assert len(asked.prompts) == 1


@pytest.mark.asyncio
async def test_files_of_secrets_are_not_prefetched() -> None:
    async def says(*of: Any) -> str | None:
        return reason

    asked = Asked(TEXT)
    asked.secrets = SimpleNamespace(known=lambda *of: True, reason=says)
    asked.change(AT, AT, "x")
    assert (asked.prompts, asked.spawned) == ([], [])
    reason: str | None
    for reason in ("it may hold secrets", None):
        verdict = iter((None, reason is not None))
        asked.secrets.known = lambda *of, verdict=verdict: next(verdict)
        asked.change(AT + 1, AT + 1, "y")
        assert asked.prompts == []
        await asked.spawned.pop()
    assert len(asked.prompts) == 1


def test_a_reopened_document_is_prefetched_at_its_last_cursor() -> None:
    asked = Asked(TEXT)
    server: Any = asked
    item = types.TextDocumentItem(uri=URI, language_id="python", version=1, text=TEXT)
    prompt_prefetch.read_after_opening(server, types.DidOpenTextDocumentParams(item))
    assert asked.prompts == []
    asked.cursors.note(URI, AT)
    prompt_prefetch.read_after_opening(server, types.DidOpenTextDocumentParams(item))
    asked.cursors.note(URI, 10_000)
    prompt_prefetch.read_after_opening(server, types.DidOpenTextDocumentParams(item))
    assert [len(request.split.left) for request, _ in asked.prompts] == [AT, len(TEXT)]


def test_a_resting_cursor_is_prefetched_before_any_request() -> None:
    asked = Asked(TEXT)
    asked.usage.requests = 0
    asked.rest(4, 11)
    (request,) = asked.rests
    assert (request.split.left, request.split.right) == (TEXT[:AT], TEXT[AT:])
    assert not request.invoked
    asked.rest(4, 11)
    assert len(asked.rests) == 1, "it rests where it did"
    asked.rest(0, 9)
    assert asked.cursors.of(URI) == 9
    assert len(asked.rests) == 2
    assert asked.prompts == []


def test_a_cursor_that_rests_where_the_user_types_changes_nothing() -> None:
    asked = Asked(TEXT)
    asked.change(AT, AT, "x")
    asked.rest(4, 12)
    assert asked.rests == []


def test_a_rest_before_the_model_is_loaded_counts_afterwards() -> None:
    asked = Asked(TEXT)
    asked.worker.model = None
    asked.rest(0, 9)
    assert (asked.rests, asked.cursors.of(URI)) == ([], None)
    asked.worker.model = object()
    asked.rest(0, 9)
    assert len(asked.rests) == 1


def test_without_a_model_a_resting_cursor_opens_the_session() -> None:
    asked = Asked(TEXT, ask_model=False)
    asked.change(AT, AT, "x")
    asked.rest(0, 9)
    assert len(asked.rests) == 1
    assert asked.prompts == []


@pytest.mark.parametrize("settings", [{"enabled": False}, {"prefetch": False}, {"trigger": "manual"}])
def test_a_rest_at_a_declined_place_is_not_prefetched(settings: dict[str, Any]) -> None:
    asked = Asked(TEXT, **settings)
    asked.rest(0, 9)
    assert asked.rests == []


def test_rests_outside_open_texts_are_ignored_and_invalid_ones_refused() -> None:
    asked = Asked(TEXT)
    asked.rest(0, 9, "file:///closed.py")
    asked.rest(99, 0)
    assert [len(request.split.left) for request in asked.rests] == [len(TEXT)], "behind its end is at it"
    for line, character in (("3", 0), (-1, 0), (0, 1.5), (True, 0), (0, None), (1 << 31, 0), (0, 10**30)):
        with pytest.raises(JsonRpcInvalidParams):
            asked.rest(line, character)


def test_old_cursors_are_forgotten() -> None:
    places = Places()
    for number in range(MOST_PLACES + 1):
        places.note(str(number), number)
    assert (places.of("0"), places.of("1"), places.of(str(MOST_PLACES))) == (None, 1, MOST_PLACES)


# --- the worker -----------------------------------------------------------------------------------------------------


def ready() -> CompletionWorker:
    worker, loaded = CompletionWorker(ServerSettings()), Future[Any]()
    loaded.set_result(SimpleNamespace(model=SimpleNamespace()))
    worker._loading = loaded
    return worker


def finish(worker: CompletionWorker) -> None:
    for thread in tuple(worker._threads.values()):
        thread.submit(Stop(), lambda: None).result(PATIENCE)


def test_only_the_last_place_is_prefetched_until_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, gate, found = ready(), threading.Event(), []

    def note(self: Completer, loaded: object, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        assert gate.wait(PATIENCE)
        found.append((request.uri, cancelled))

    monkeypatch.setattr(Completer, "read_ahead", note)
    monkeypatch.setattr(Completer, "answer", lambda *arguments: None)

    def request(uri: str) -> Request:
        return Request(uri, Split("", ""), "python", "", False, False, ServerSettings(prefetch=False))

    for uri in ("a", "b", "c"):
        worker.prefetch_prompt(request(uri))
    gate.set()
    finish(worker)
    assert sorted((uri, cancelled.is_set()) for uri, cancelled in found) == [("a", True), ("b", True), ("c", False)]
    last = next(cancelled for uri, cancelled in found if uri == "c")
    worker.submit(request("d")).future.result(PATIENCE)
    assert last.is_set()
    worker._loading = None
    worker.prefetch_prompt(request("e"))
    finish(worker)
    assert len(found) == 3
    worker.close()


def test_a_request_to_the_projects_memory_pauses_a_prefetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, stops, recalled = ready(), list[Stop](), threading.Event()
    worker._project = Project()

    def read(self: Completer, loaded: object, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        stops.append(cancelled)
        end = time.monotonic() + PATIENCE
        while not cancelled.is_set():
            assert time.monotonic() < end
            time.sleep(0.001)

    monkeypatch.setattr(Completer, "read_ahead", read)
    monkeypatch.setattr(Completer, "recall", lambda *arguments: recalled.set())
    monkeypatch.setattr(Completer, "answer", lambda *arguments: None)

    def request(uri: str) -> Request:
        return Request(uri, Split("", ""), "python", "", False, False, ServerSettings(prefetch=False))

    def recall(uri: str) -> None:
        job = worker.recall(request(uri))
        assert job is not None
        job.future.result(PATIENCE)

    worker.prefetch_prompt(request("a"))
    until(lambda: len(stops) == 1)
    recall("a")
    until(lambda: len(stops) == 2)
    assert [stop.is_set() for stop in stops] == [True, False]
    recall("b")
    assert not stops[1].is_set()
    worker.submit(request("a")).future.result(PATIENCE)
    assert stops[1].is_set()
    recall("a")  # what a request has stopped is not begun again
    finish(worker)
    assert len(stops) == 2
    worker.close()
    worker._project.close()


def test_an_answered_request_prefetches_the_next_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, gate, found = ready(), threading.Event(), list[str]()

    def note(self: Completer, loaded: object, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        found.append(request.split.left)

    def work(*arguments: object) -> None:
        gate.wait(PATIENCE)

    monkeypatch.setattr(Completer, "read_ahead", note)
    monkeypatch.setattr(Completer, "answer", work)

    def request(left: str, prefetch: bool) -> Request:
        return Request("a", Split(left, ""), "python", "", False, False, ServerSettings(prefetch=prefetch))

    worker.submit(request("overtaken", True))
    worker.submit(request("answered", True))
    gate.set()
    finish(worker)
    worker.submit(request("not ahead", False))
    finish(worker)
    assert found == ["answered"]
    worker.close()


def test_requests_of_other_documents_hold_up_a_prefetch(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, gate, begun, opened = ready(), threading.Event(), threading.Event(), list[str]()

    def work(*arguments: object) -> None:
        begun.set()
        assert gate.wait(PATIENCE)

    def note(self: Completer, loaded: object) -> Any:
        opened.append("read")
        raise StoppedError

    monkeypatch.setattr(Completer, "answer", work)
    monkeypatch.setattr(ContextStage, "prompts", note)
    monkeypatch.setattr(stage, "prepared", lambda request, loaded: request.language())

    def request(uri: str) -> Request:
        return Request(uri, Split("", ""), "python", "", False, False, ServerSettings(prefetch=False))

    job = worker.submit(request("waits"))
    assert begun.wait(PATIENCE)
    worker.prefetch_prompt(request("other"))
    worker._threads["other"].submit(Stop(), lambda: None).result(PATIENCE)
    assert opened == []
    gate.set()
    job.future.result(PATIENCE)
    finish(worker)
    worker.prefetch_prompt(request("other"))
    finish(worker)
    assert opened == ["read"]
    worker.close()


# --- the whole server -----------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[Client]:
    async with serving() as served:
        await served.is_ready()
        await served.use(maxTokens=16, maxLineTokens=8, promptTokens=256)
        yield served


async def tokens(client: Client) -> dict[str, int]:
    found: dict[str, int] = (await client.run("statistics"))["promptTokens"]
    return found


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_after_an_edit_finds_its_prompt_read(client: Client) -> None:
    text = "".join(f"value_{n} = compute({n}, name='n{n}')\n" for n in range(60))
    middle = text.index("value_30")
    editor = Editor(client, "ahead.py", text)
    await editor.ask(len(text), kind=AUTOMATIC)
    before = await tokens(client)
    editor.change(middle, middle, "total = ")
    end = time.monotonic() + PATIENCE
    while (await tokens(client))["ahead"] < before["ahead"] + 100:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    await editor.ask(middle + 8, kind=AUTOMATIC)
    after = await tokens(client)
    assert 0 < after["ahead"] - before["ahead"] <= 256
    assert after["reused"] > before["reused"]
    assert after["read"] + after["ahead"] - before["read"] - before["ahead"] < 256 + LEAST_AHEAD
    assert (await client.run("statistics"))["failed"] == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_at_a_resting_cursor_finds_its_prompt_read(client: Client) -> None:
    text = "".join(f"other_{n} = measure({n}, size='m{n}')\n" for n in range(60))
    editor = Editor(client, "resting.py", text)
    before = await tokens(client)
    client.protocol.notify(
        "fim-server/cursor", {"textDocument": {"uri": editor.uri}, "position": {"line": 0, "character": "0"}}
    )
    line, end = 30, time.monotonic() + PATIENCE
    while (await tokens(client))["ahead"] < before["ahead"] + 100:
        assert time.monotonic() < end
        line = 31 + line % 25  # another place, for nothing is read at rest while another document is at work
        place = {"line": line, "character": 0}
        client.protocol.notify("fim-server/cursor", {"textDocument": {"uri": editor.uri}, "position": place})
        await asyncio.sleep(0.3)
    await editor.ask(text.index(f"other_{line} "), kind=AUTOMATIC)
    after = await tokens(client)
    assert after["reused"] >= before["reused"] + 100
    assert (await client.run("statistics"))["failed"] == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "told", [None, [], {}, {"textDocument": 3, "position": 4}, {"textDocument": {"uri": None}, "position": [0, 0]}]
)
async def test_an_invalid_place_leaves_the_server_alive(client: Client, told: Any) -> None:
    client.protocol.notify("fim-server/cursor", told)
    editor = Editor(client, "as_before.py", "def double(x):\n    return \n")
    await editor.ask(26, kind=AUTOMATIC)
    assert (await client.run("statistics"))["failed"] == 0
    editor.close()
