"""Several clients of one port, who may connect, and what is refused before it is read."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from fim_server.errors import ModelError
from fim_server.models.load import load_model as load
from fim_server.models.model import FimModel
from fim_server.models.pace import Pace
from fim_server.server.app import create_server
from fim_server.server.connection.hangups import SENDS_NO_MORE
from fim_server.server.connection.listening import BoundedWriter, Endpoint, Listener
from fim_server.server.connection.wire import LARGE_BYTES, MOST_FIRST_BYTES, MOST_HEADER_BYTES, MOST_MESSAGE_BYTES
from fim_server.server.documents.protocol import DocumentProtocol
from fim_server.suggest.settings import ServerSettings
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.worker import CompletionWorker
from support.editors.connected import Connected
from support.editors.editor import INVALID_PARAMS, PATIENCE, STATUS, Server, Wire, patiently, wired
from support.editors.listening import connect, listening

pytestmark = pytest.mark.asyncio(loop_scope="module")

INLINE = "textDocument/inlineCompletion"
INVALID_REQUEST, NOT_INITIALIZED = -32600, -32002
TOKEN = "correct-horse-battery-staple"
STATISTICS = {"command": "fim-server.statistics", "arguments": []}
CAPABILITIES: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}


async def has_ended(wire: Wire, seconds: float = 20) -> bool:
    """Return whether the server closes the connection, after any messages."""
    try:
        async with asyncio.timeout(seconds):
            while await wire.reader.read(65536):
                pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


async def first_error(wire: Wire) -> dict[str, Any]:
    """The error of the next message."""
    async with asyncio.timeout(20):
        message = await wire.read()
    assert message["id"] is None
    error: dict[str, Any] = message["error"]
    return error


# --- several clients -----------------------------------------------------------------------------------------------


async def test_clients_are_separate() -> None:
    """A second connection neither gets the answers of the first nor takes its place, and one that ends leaves it."""
    async with listening() as (server, port):
        first = await connect(port)
        await first.initialize()
        await first.is_ready()
        await first.open("file:///first/secret_of_first.py", "def f(a):\n    return \n")
        second = await connect(port)
        await second.initialize()
        await second.is_ready()
        ours, theirs = "file:///first/secret_of_first.py", "file:///second/secret_of_second.py"
        await second.open(theirs, "def g(b):\n    return \n")
        await first.send(Wire.request("own", INLINE, Wire.completion(ours, 1, 11)))
        await second.send(Wire.request("own", INLINE, Wire.completion(theirs, 1, 11)))
        for wire in (first, second):
            assert len((await wire.answer("own"))["result"]["items"]) > 0
            counted = await wire.ask("counted", "workspace/executeCommand", STATISTICS)
            assert counted["result"]["requests"] == 1
        assert "secret_of_second" not in json.dumps(first.notes)
        assert "secret_of_first" not in json.dumps(second.notes)
        others = await first.ask("others", INLINE, Wire.completion(theirs, 1, 11))
        assert others["result"]["items"] == []
        second.writer.close()
        await asyncio.sleep(0.2)
        answered = await first.ask("still here", INLINE, Wire.completion(ours, 1, 11))
        assert len(answered["result"]["items"]) > 0
        await first.ask("bye", "shutdown", None)
        await first.send(Wire.note("exit", None))
        assert await server.ended(PATIENCE) == 0
        assert "Traceback" not in server.errors.decode()


async def test_the_exit_of_one_client_is_not_the_end_of_another() -> None:
    async with listening() as (server, port):
        first, second = await connect(port), await connect(port)
        for wire in (first, second):
            await wire.initialize()
        await first.ask("bye", "shutdown", None)
        await first.send(Wire.note("exit", None))
        assert await has_ended(first)
        await second.is_ready()
        assert server.process.returncode is None
        second.writer.transport.abort()
        assert await server.ended(PATIENCE) == 0


# --- the token -----------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[tuple[Server, int]]:
    """A server that wants a token; one client has shown it, and so it lives as long as the tests."""
    async with listening(FIM_SERVER_TOKEN=TOKEN) as (server, port):
        keeper = await connect(port)
        answer = await keeper.ask("initialize", "initialize", initialization(token=TOKEN))
        assert "capabilities" in answer["result"]
        yield server, port
        assert TOKEN not in server.errors.decode()
        keeper.writer.transport.abort()


def initialization(**options: Any) -> dict[str, Any]:
    return {"processId": None, "rootUri": None, "capabilities": CAPABILITIES, "initializationOptions": options}


@pytest.mark.parametrize(
    "options", [{}, {"token": "wrong" * 5}, {"token": 17}, {"token": TOKEN + "x"}, {"token": None}]
)
async def test_without_the_token_nothing_is_answered(guarded: tuple[Server, int], options: dict[str, Any]) -> None:
    wire = await connect(guarded[1])
    refused = await wire.ask("too early", "workspace/executeCommand", STATISTICS)
    assert refused["error"]["code"] == NOT_INITIALIZED
    refused = await wire.ask("initialize", "initialize", initialization(**options))
    assert refused["error"] == {"code": INVALID_REQUEST, "message": "the token is missing or wrong"}
    assert await has_ended(wire)
    assert wire.notes == []


@pytest.mark.parametrize("options", [{"token": TOKEN}, {"fim-server": {"token": TOKEN, "alternatives": 2}}])
async def test_with_the_token_all_is_as_without_one(guarded: tuple[Server, int], options: dict[str, Any]) -> None:
    wire = await connect(guarded[1])
    assert "capabilities" in (await wire.ask("initialize", "initialize", initialization(**options)))["result"]
    await wire.send(Wire.note("initialized", {}))
    await wire.is_ready()
    assert "unknown setting" not in json.dumps(wire.notes)
    wire.writer.close()


async def test_before_the_token_is_shown_little_is_read(guarded: tuple[Server, int]) -> None:
    wire = await connect(guarded[1])
    wire.writer.write(b"Content-Length: %d\r\n\r\n" % (MOST_FIRST_BYTES + 1))
    assert f"larger than {MOST_FIRST_BYTES} bytes" in (await first_error(wire))["message"]
    assert await has_ended(wire)


async def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n", encoding="utf-8")
    async with listening("--token-file", str(path)) as (_, port):
        wire = await connect(port)
        assert "error" in await wire.ask("initialize", "initialize", initialization())
        wire = await connect(port)
        assert "result" in await wire.ask("initialize", "initialize", initialization(token=TOKEN))


# --- messages ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def either(way: str) -> AsyncIterator[tuple[Server, Wire]]:
    """A server by its way to be reached: on standard input and output, or a port."""
    if way == "stdio":
        async with wired() as (server, wire):
            yield server, wire
    else:
        async with listening() as (server, port):
            yield server, await connect(port)


@pytest.mark.parametrize("way", ["stdio", "tcp"])
@pytest.mark.parametrize("length", [b"%d" % (MOST_MESSAGE_BYTES + 1), b"1000000000000", b"9" * 3000])
async def test_a_message_that_is_too_large_is_refused_before_it_is_sent(way: str, length: bytes) -> None:
    """The client announces it and sends nothing: a server that wanted to read it would wait."""
    async with either(way) as (server, wire):
        await wire.ask("initialize", "initialize", initialization())
        wire.writer.write(b"Content-Length: " + length + b"\r\n\r\n")
        error = await first_error(wire)
        assert error["code"] == INVALID_REQUEST
        assert f"is larger than {MOST_MESSAGE_BYTES} bytes" in error["message"]
        assert await has_ended(wire)
        assert await server.ended(PATIENCE) == 0
        assert "Traceback" not in server.errors.decode()


async def test_a_refused_client_that_goes_on_sending_gets_to_read_why() -> None:
    async with either("tcp") as (_, wire):
        await wire.ask("initialize", "initialize", initialization())
        wire.writer.write(b"Content-Length: %d\r\n\r\n" % 10**9 + bytes(2**20))
        await asyncio.sleep(0.3)
        assert (await first_error(wire))["code"] == INVALID_REQUEST


@pytest.mark.parametrize("way", ["stdio", "tcp"])
async def test_a_header_without_an_end_is_refused(way: str) -> None:
    async with either(way) as (_, wire):
        await wire.ask("initialize", "initialize", initialization())
        wire.writer.write(b"x" * (MOST_HEADER_BYTES + 1))
        assert "a line of a header has more than" in (await first_error(wire))["message"]
        assert await has_ended(wire)


@pytest.mark.parametrize("length", [b"-5", b"0x10", b"", "\u0663".encode()])
async def test_invalid_lengths_are_refused(length: bytes) -> None:
    async with either("tcp") as (server, wire):
        await wire.ask("initialize", "initialize", initialization())
        wire.writer.write(b"Content-Length: " + length + b"\r\n\r\n{}")
        await first_error(wire)
        assert await has_ended(wire)
        assert await server.ended(PATIENCE) == 0
        assert "Traceback" not in server.errors.decode()


@pytest.mark.parametrize("way", ["stdio", "tcp"])
@pytest.mark.parametrize("header", [b"content-length: %d\r\n", b"CONTENT-LENGTH:%d\r\n", b"Content-length: %d \r\n"])
async def test_headers_are_read_in_any_case(way: str, header: bytes) -> None:
    async with either(way) as (_, wire):
        body = json.dumps(Wire.request("initialize", "initialize", initialization())).encode()
        wire.writer.write(b"content-type: application/vscode-jsonrpc; charset=utf-8\r\n" + header % len(body))
        wire.writer.write(b"\r\n" + body)
        assert "capabilities" in (await wire.answer("initialize", 30))["result"]


@pytest.mark.parametrize("way", ["stdio", "tcp"])
async def test_a_second_initialize_is_an_error_and_changes_nothing(way: str) -> None:
    async with either(way) as (_, wire):
        await wire.initialize()
        await wire.open("file:///project/kept.py", "def f(a):\n    return \n")
        again = await wire.ask("again", "initialize", initialization())
        assert again["error"] == {"code": INVALID_REQUEST, "message": "initialize may be sent only once"}
        await wire.is_ready()
        answered = await wire.ask("kept", INLINE, Wire.completion("file:///project/kept.py", 1, 11))
        assert len(answered["result"]["items"]) > 0


async def test_requests_before_initialize_are_refused() -> None:
    async with either("stdio") as (_, wire):
        await wire.open("file:///project/early.py", "x = \n")
        answer = await wire.ask("early", INLINE, Wire.completion("file:///project/early.py", 0, 4))
        assert answer["error"] == {"code": NOT_INITIALIZED, "message": "initialize comes first"}
        assert "result" in await wire.ask("initialize", "initialize", initialization())


async def test_a_request_of_a_browser_is_no_message() -> None:
    """A page can have its browser post a body to the port, and the body could be a message."""
    async with either("tcp") as (_, wire):
        body = json.dumps(Wire.request("initialize", "initialize", initialization())).encode()
        wire.writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert (await first_error(wire))["message"].startswith("not a message")
        assert await has_ended(wire)


# --- limits --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening_here(token: str | None, create: Callable[[], Any] | None = None) -> AsyncIterator[int]:
    """A port that is listened on in this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    make = create or (lambda: create_server(ServerSettings()))
    listener = Listener(Endpoint("127.0.0.1", port, token, is_public=True), make)
    task = asyncio.create_task(listener.run(["127.0.0.1"]))
    try:
        yield port
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def let_in(port: int, token: str | None = None) -> tuple[Wire, dict[str, Any]]:
    """A connection that has sent its `initialize`, and the answer."""
    wire = await connect(port)
    options = {} if token is None else {"token": token}
    return wire, await wire.ask("initialize", "initialize", initialization(**options))


async def test_one_client_too_many_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.MOST_CLIENTS", 1)
    monkeypatch.setattr("fim_server.server.connection.listening.PLACE_SECONDS", 0.05)
    async with listening_here(None) as port:
        first, _ = await let_in(port)
        second, answer = await let_in(port)
        assert answer["error"]["message"] == "1 clients are served already: connect again later"
        assert await has_ended(second)
        assert "result" in await first.ask("still here", "workspace/executeCommand", STATISTICS)
        await first.ask("bye", "shutdown", None)
        await first.send(Wire.note("exit", None))
        assert await has_ended(first)
        assert "result" in (await let_in(port))[1]


async def test_a_client_waits_for_the_place_of_one_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.MOST_CLIENTS", 2)
    monkeypatch.setattr("fim_server.server.connection.listening.PLACE_SECONDS", 3600.0)
    async with listening_here(TOKEN) as port:
        first, _ = await let_in(port, TOKEN)
        await let_in(port, TOKEN)
        third = await connect(port)
        await third.send(Wire.request("initialize", "initialize", initialization(token=TOKEN)))
        statistics = await first.ask("statistics", "workspace/executeCommand", STATISTICS)
        assert "result" in statistics
        assert "initialize" not in third.answers
        first.writer.close()
        assert "result" in await third.answer("initialize")


async def test_the_queue_for_places_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.MOST_CLIENTS", 1)
    monkeypatch.setattr("fim_server.server.connection.listening.MOST_WAITING", 0)
    monkeypatch.setattr("fim_server.server.connection.listening.PLACE_SECONDS", 3600.0)
    async with listening_here(TOKEN) as port:
        await let_in(port, TOKEN)
        assert "error" in (await let_in(port, TOKEN))[1]


def all_at_once(port: int) -> socket.socket:
    """Return a connection of a client that has sent all that it has to say."""
    text = {
        "uri": "file:///a.py",
        "languageId": "python",
        "version": 1,
        "text": "def f(a):\n    return \n" + "x = 1\n" * 9000,
    }
    messages = (
        Wire.request("initialize", "initialize", initialization(token=TOKEN)),
        Wire.note("initialized", {}),
        Wire.request("statistics", "workspace/executeCommand", STATISTICS),
        Wire.note("textDocument/didOpen", {"textDocument": text}),
        Wire.request("complete", INLINE, Wire.completion("file:///a.py", 1, 11)),
    )
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"".join(map(Wire.frame, messages)))
    return connection


@pytest.mark.skipif(not SENDS_NO_MORE, reason="the system does not tell")
async def test_no_work_begins_for_clients_that_have_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []

    def load_model(*arguments: Any) -> Any:
        loads.append(arguments)
        raise ModelError("there is no model")

    monkeypatch.setattr("fim_server.models.load.load_model", load_model)
    made: list[Any] = []

    def create() -> Any:
        made.append(create_server(ServerSettings()))
        return made[-1]

    async with listening_here(TOKEN, create) as port:
        await let_in(port, TOKEN)
        while len(made) < 41:
            before = len(made)
            all_at_once(port).close()  # on the server's own thread, so that the client has hung up before it is read
            await Connected.until(lambda: len(made) > before)  # noqa: B023  # asked before the next round
        assert "result" in (await let_in(port, TOKEN))[1]
        await Connected.until(lambda: len(made) == 42 and all(not server.tasks for server in made))
        assert loads == []
        assert [len(server.protocol.workspace.text_documents) for server in made[1:41]] == [0] * 40


async def test_a_client_that_sends_no_more_is_answered() -> None:
    async with listening_here(TOKEN) as port:
        connection = await patiently(lambda: asyncio.to_thread(all_at_once, port))
        connection.shutdown(socket.SHUT_WR)
        reader, writer = await asyncio.open_connection(sock=connection, limit=2**24)
        wire = Wire(reader, writer)
        assert "result" in await wire.answer("initialize")
        assert "result" in await wire.answer("statistics")


async def test_clients_share_what_is_compiled_for_their_messages() -> None:
    """With a converter of its own, each client delays all others by 70 ms."""
    first, second = create_server(ServerSettings()), create_server(ServerSettings())
    assert first.protocol.fm.converter is second.protocol.fm.converter


async def test_a_client_that_shows_no_token_in_time_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.TOKEN_SECONDS", 0.05)
    async with listening_here(TOKEN) as port:
        assert await has_ended(await connect(port))


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("begun", [b"", b"Content-Length: 100\r\n\r\n{", b"Content-Le"])
async def test_strangers_take_no_clients_place(
    token: str | None, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 connections that send nothing, or never end a message, and stay: there are 32 places."""
    monkeypatch.setattr("fim_server.server.connection.listening.TOKEN_SECONDS", 3600.0)
    async with listening_here(token) as port:
        strangers = [await connect(port) for _ in range(40)]
        for stranger in strangers:
            stranger.writer.write(begun)
        assert "result" in (await let_in(port, token))[1]
        for stranger in strangers[:8]:  # those that came first make room
            assert await has_ended(stranger)
        for stranger in strangers[-20:]:
            assert not stranger.reader.at_eof()


async def test_a_message_sent_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, the token does not."""
    monkeypatch.setattr("fim_server.server.connection.listening.TOKEN_SECONDS", 0.2)
    async with listening_here(TOKEN) as port:
        wire = await connect(port)
        ended = asyncio.create_task(has_ended(wire))
        with suppress(ConnectionError):
            for byte in Wire.frame(Wire.request(1, "initialize", initialization(token=TOKEN))):
                wire.writer.write(bytes([byte]))
                await wire.writer.drain()
                if ended.done():
                    break
                await asyncio.sleep(0.02)
        assert await ended


async def test_a_stranger_makes_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages before the token cost a connection and no more."""
    made: list[object] = []

    def create() -> Any:
        made.append(create_server(ServerSettings()))
        return made[-1]

    async with listening_here(TOKEN, create) as port:
        wire = await connect(port)
        await wire.send(*(Wire.request(number, "workspace/executeCommand", STATISTICS) for number in range(500)))
        codes = {(await wire.answer(number))["error"]["code"] for number in range(500)}
        assert codes == {NOT_INITIALIZED}
        _, refused = await let_in(port, "another token than that")
        assert refused["error"]["code"] == INVALID_REQUEST
        assert made == []
        assert "result" in (await let_in(port, TOKEN))[1]
        assert len(made) == 1


async def test_requests_right_after_the_token_are_answered() -> None:
    async with listening_here(TOKEN) as port:
        wire = await connect(port)
        first = Wire.request("initialize", "initialize", initialization(token=TOKEN))
        requests = [Wire.request(number, "workspace/executeCommand", STATISTICS) for number in range(300)]
        await wire.send(first, Wire.note("initialized", {}), *requests)
        assert "result" in await wire.answer("initialize")
        for number in range(300):
            assert "result" in await wire.answer(number)


async def test_the_work_of_clients_that_vanish_ends_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them had a thread that waited for the model which another one loads, and then warmed it up once more."""
    may_load, loads = threading.Event(), []

    def load_model(*arguments: Any) -> Any:
        loads.append(arguments)
        may_load.wait(PATIENCE)
        raise ModelError("there is no model")

    def waiting() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("fim-load")]

    monkeypatch.setattr("fim_server.models.load.load_model", load_model)
    models, before = SharedModels(), len(waiting())
    try:
        async with listening_here(TOKEN, lambda: create_server(ServerSettings(), models=models)) as port:
            for _ in range(3):
                wires = [(await let_in(port, TOKEN))[0] for _ in range(10)]
                for wire in wires:
                    await wire.send(Wire.note("initialized", {}))
                    await wire.note_of(STATUS, lambda status: status["state"] == "loading")
                for wire in wires:
                    wire.writer.transport.abort()
            # Those that are in the library's hands alone.
            await Connected.until(lambda: len(waiting()) <= before + len(loads))
            assert len(loads) <= 3
    finally:
        may_load.set()


async def test_a_model_is_warmed_up_once_for_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    model, warmed_up = load("embedded"), []

    def first_pace(model: FimModel, tokens: int, seconds: float) -> Pace:
        assert tokens > 0
        assert seconds > 0
        warmed_up.append(model)
        return Pace()

    monkeypatch.setattr("fim_server.models.load.load_model", lambda *arguments: model)
    monkeypatch.setattr("fim_server.models.pace.first_pace", first_pace)
    models = SharedModels()
    workers = [CompletionWorker(ServerSettings(), models) for _ in range(3)]
    for future in [worker.load() for worker in workers]:
        assert await asyncio.wait_for(asyncio.wrap_future(future), PATIENCE) is model
    assert warmed_up == [model]
    for worker in workers:
        worker.close()


async def test_a_models_pace_is_measured_between_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    model, waited, measured = load("embedded"), threading.Event(), threading.Event()
    asked = [True, True, True, False]

    def measure(model: FimModel, pace: Pace, wait: Callable[[], object]) -> None:
        assert waited.wait(PATIENCE)
        wait()
        measured.set()

    monkeypatch.setattr("fim_server.models.load.load_model", lambda *arguments: model)
    monkeypatch.setattr("fim_server.models.pace.measure", measure)
    worker = CompletionWorker(ServerSettings(), SharedModels())
    monkeypatch.setattr(worker, "_is_asked_elsewhere", lambda uri: asked.pop(0))
    assert await asyncio.wait_for(asyncio.wrap_future(worker.load()), PATIENCE) is model  # ready before it
    waited.set()
    await Connected.until(measured.is_set)
    assert asked == []
    worker.close()


async def test_a_large_message_holds_up_no_other_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a thread of its own, a message of 12 MB in small objects delays other clients by 18 s."""
    may_go_on, structure = threading.Event(), DocumentProtocol.structure_message

    def structure_slowly(protocol: DocumentProtocol, data: dict[str, Any]) -> Any:
        if data.get("method") == "textDocument/didSave":
            may_go_on.wait(PATIENCE)
        return structure(protocol, data)

    monkeypatch.setattr(DocumentProtocol, "structure_message", structure_slowly)
    try:
        async with listening_here(TOKEN) as port:
            first, second = (await let_in(port, TOKEN))[0], (await let_in(port, TOKEN))[0]
            params = {"textDocument": {"uri": "file:///a.py"}, "text": "x" * LARGE_BYTES}
            await first.send(Wire.note("textDocument/didSave", params))
            await first.send(Wire.request("after", "workspace/executeCommand", STATISTICS))
            assert "result" in await second.ask("meanwhile", "workspace/executeCommand", STATISTICS)
            assert not first.answers.get("after")
            may_go_on.set()
            assert "result" in await first.answer("after")
    finally:
        may_go_on.set()


@pytest.mark.parametrize("size", [1, LARGE_BYTES])
async def test_a_message_of_too_many_objects_is_passed_over(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("fim_server.server.connection.wire.MOST_OBJECTS", 100)
    async with listening_here(None) as port:
        wire, _ = await let_in(port)
        params = {"textDocument": {"uri": "x" * size}, "contentChanges": [{"text": "x"}] * 200}
        await wire.send(Wire.note("textDocument/didChange", params))
        assert (await first_error(wire))["message"] == "a message of more than 100 objects"
        assert "result" in await wire.ask("after", "workspace/executeCommand", STATISTICS)


async def test_a_large_invalid_request_is_answered() -> None:
    async with listening_here(None) as port:
        wire, _ = await let_in(port)
        refused = await wire.ask("large", INLINE, {"textDocument": {"uri": "x" * LARGE_BYTES}})
        assert refused["error"]["code"] == INVALID_PARAMS


async def test_a_client_that_reads_too_little_for_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.UNREAD_BYTES", 10)
    clock = [0.0]
    monkeypatch.setattr("fim_server.server.connection.listening.time", SimpleNamespace(monotonic=lambda: clock[0]))
    transport = Transport()
    writer = BoundedWriter(transport.writer)
    for now, unread, is_cut in ((0.0, 8, False), (1.0, 11, False), (31.0, 11, False), (31.1, 11, True)):
        clock[0], transport.unread = now, unread
        writer.write(b"")
        assert bool(transport.cut) == is_cut
    transport.cut.clear()
    writer = BoundedWriter(transport.writer)
    for now, unread in ((0.0, 11), (20.0, 10), (40.0, 11), (60.0, 11)):  # it has read in between
        clock[0], transport.unread = now, unread
        writer.write(b"")
        assert not transport.cut


class Transport:
    """A connection whose other end reads nothing by itself."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.cut: list[bool] = []
        self.unread: int | None = None
        self.writer: Any = SimpleNamespace(transport=self, write=self.sent.append)

    def is_closing(self) -> bool:
        return bool(self.cut)

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.sent)) if self.unread is None else self.unread

    def abort(self) -> None:
        self.cut.append(True)


async def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.connection.listening.MOST_MESSAGE_BYTES", 10)
    transport = Transport()
    writer = BoundedWriter(transport.writer)
    for data in (b"123456", b"1234", b"1", b"after"):
        writer.write(data)
    assert transport.sent == [b"123456", b"1234", b"1"]
    assert transport.cut == [True]
