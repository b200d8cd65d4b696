"""Several clients of one port, who may connect, and what is refused before it is read."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from editor import PATIENCE, SERVE, Ending, Server, Wire, patiently, wired
from fim_server.server.app import create_server
from fim_server.server.listening import BoundedWriter, Endpoint, Listener
from fim_server.server.settings import ServerSettings
from fim_server.server.wire import MOST_FIRST_BYTES, MOST_HEADER_BYTES, MOST_MESSAGE_BYTES

pytestmark = pytest.mark.asyncio(loop_scope="module")

INLINE = "textDocument/inlineCompletion"
INVALID_REQUEST, NOT_INITIALIZED = -32600, -32002
TOKEN = "correct-horse-battery-staple"
STATISTICS = {"command": "fim-server.statistics", "arguments": []}
CAPABILITIES: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}


@asynccontextmanager
async def listening(*arguments: str, **variables: str) -> AsyncIterator[tuple[Server, int]]:
    """A server that listens on a port, and the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *SERVE,
        "--tcp",
        f"127.0.0.1:{port}",
        "--log-level",
        "debug",
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables},
    )
    server = Server(process)
    async with Ending(server):
        yield server, port


async def connect(port: int) -> Wire:
    return Wire(*await patiently(lambda: asyncio.open_connection("127.0.0.1", port, limit=2**24)))


async def has_ended(wire: Wire, seconds: float = 20) -> bool:
    """Whether the server closes the connection, whatever it says before."""
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


async def test_what_one_client_does_reaches_no_other() -> None:
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
async def test_lengths_that_are_none_are_refused(length: bytes) -> None:
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


async def test_what_comes_before_initialize_is_an_error_of_the_protocols_own() -> None:
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
async def listening_here(token: str | None) -> AsyncIterator[int]:
    """A port that is listened on in this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listener = Listener(Endpoint("127.0.0.1", port, token, is_public=True), lambda: create_server(ServerSettings()))
    task = asyncio.create_task(listener.run(["127.0.0.1"]))
    try:
        yield port
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_one_client_too_many_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.listening.MOST_CLIENTS", 1)
    async with listening_here(None) as port:
        first = await connect(port)
        await first.initialize()
        assert await has_ended(await connect(port))
        assert "result" in await first.ask("still here", "workspace/executeCommand", STATISTICS)
        first.writer.close()


async def test_a_client_that_shows_no_token_in_time_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.listening.TOKEN_SECONDS", 0.05)
    async with listening_here(TOKEN) as port:
        assert await has_ended(await connect(port))


async def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.server.listening.MOST_MESSAGE_BYTES", 10)
    sent: list[bytes] = []
    cut: list[bool] = []

    class Transport:
        def is_closing(self) -> bool:
            return bool(cut)

        def get_write_buffer_size(self) -> int:
            return sum(map(len, sent))

        def abort(self) -> None:
            cut.append(True)

    class Writer:
        transport = Transport()

        def write(self, data: bytes) -> None:
            sent.append(data)

    writer = BoundedWriter(Writer())  # type: ignore[arg-type]
    for data in (b"123456", b"1234", b"1", b"after"):
        writer.write(data)
    assert sent == [b"123456", b"1234", b"1"]
    assert cut == [True]
