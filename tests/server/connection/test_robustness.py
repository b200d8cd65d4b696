"""Invalid messages, clients that disappear, many documents, and logs without code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support.editors.editor import (
    AUTOMATIC,
    INVALID_PARAMS,
    PATIENCE,
    PYTHON,
    STATUS,
    Client,
    Editor,
    Server,
    Wire,
    parses,
    serving,
    wired,
    wired_tcp,
    written,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INLINE = "textDocument/inlineCompletion"
SECRET = "xyzzy_plugh_secret"
"""A name that stands in documents and nowhere else."""

GOOD_URI = "file:///project/good.py"
GOOD_TEXT = f"def {SECRET}(a):\n    return \n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[tuple[Server, Wire]]:
    """A server at its most talkative."""
    async with wired("--log-level", "debug") as (server, wire):
        await wire.initialize()
        await wire.is_ready()
        await wire.open(GOOD_URI, GOOD_TEXT)
        yield server, wire


async def lives(wire: Wire, number: str) -> None:
    """A good request is still served."""
    answer = await wire.ask(number, INLINE, Wire.completion(GOOD_URI, 1, 11))
    for item in answer["result"]["items"]:
        assert parses(GOOD_TEXT[:-1] + item["insertText"] + "\n")


# --- malformed messages ------------------------------------------------------------------------------------------


MALFORMED: list[tuple[str, Any]] = [
    ("no position", {"textDocument": {"uri": GOOD_URI}, "context": {"triggerKind": 1}}),
    ("no context", {"textDocument": {"uri": GOOD_URI}, "position": {"line": 0, "character": 0}}),
    ("no document", {"position": {"line": 0, "character": 0}, "context": {"triggerKind": 1}}),
    ("line is a text", {**Wire.completion(GOOD_URI, 0, 0), "position": {"line": "0", "character": "x"}}),
    ("no character", {**Wire.completion(GOOD_URI, 0, 0), "position": {"line": 0}}),
    ("position is a list", {**Wire.completion(GOOD_URI, 0, 0), "position": [0, 0]}),
    ("unknown kind of trigger", {**Wire.completion(GOOD_URI, 0, 0), "context": {"triggerKind": 17}}),
    ("uri is a number", {**Wire.completion(GOOD_URI, 0, 0), "textDocument": {"uri": 17}}),
    ("a list", [1, 2, 3]),
    ("a number", 17),
    ("nothing", None),
    ("negative line", Wire.completion(GOOD_URI, -1, 0)),
    ("negative character", Wire.completion(GOOD_URI, 0, -5)),
    ("huge line", Wire.completion(GOOD_URI, 2**31 - 1, 0)),
    ("huge character", Wire.completion(GOOD_URI, 1, 2**31 - 1)),
    ("line beyond the protocol", Wire.completion(GOOD_URI, 2**80, 2**80)),
    ("line with a fraction", Wire.completion(GOOD_URI, 0, 0) | {"position": {"line": 0.5, "character": 0}}),
]


async def test_malformed_requests_are_answered_and_leave_the_server_alive(wire: tuple[Server, Wire]) -> None:
    """Each is answered, with an error or with items; what follows is served."""
    _, connection = wire
    await connection.send(*(Wire.request(name, INLINE, params) for name, params in MALFORMED))
    await lives(connection, "after the malformed")
    unanswered: list[str] = []
    for name, _ in MALFORMED:
        try:
            answer = await connection.answer(name, 2 if not unanswered else 0.1)
        except TimeoutError:
            unanswered.append(name)
        else:
            assert "error" in answer or isinstance(answer["result"]["items"], list)
    assert unanswered == []


HALF_A_CHARACTER = (
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": "file:///s.py", '
    b'"languageId": "python", "version": 1, "text": "a = \'\\ud800\'\\u0000"}}}'
)


@pytest.mark.parametrize(
    "message",
    [
        b"this is no JSON {{{",
        b'"a text"',
        b"[]",
        b"17",
        b"\xff\xfe\x00 no UTF-8",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}',
        b'{"id": 5, "method": "textDocument/inlineCompletion", "params": {}}',
        b'{"jsonrpc": "2.0", "id": 99999, "result": null}',
        b'{"jsonrpc": "2.0", "id": 99998, "error": {"code": 1, "message": "no"}}',
        b'{"jsonrpc": "2.0", "id": null, "method": "textDocument/inlineCompletion"}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "never sent"}}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {}}',
        b'{"jsonrpc": "2.0", "method": "$/nobodyKnows", "params": {"a": 1}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": 5}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///no.py"}}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///never.py"}}}',
        b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": [1, 2]}}',
        b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": {"fim-server": 5}}}',
        b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": 5}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"jsonrpc": "2.0", "id": 7, "method": ' + b"9" * 5000 + b"}",
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "shutdown"}',
        b'{"jsonrpc": "2.0", "id": 1e999, "method": "textDocument/inlineCompletion", "params": NaN}',
        b'{"jsonrpc": "2.0", "id": true, "method": {}, "params": {}}',
        HALF_A_CHARACTER,
        b"\0" * 1000,
    ],
    ids=lambda message: ascii(message[:60])[2:-1],
)
async def test_garbage_leaves_the_server_alive(wire: tuple[Server, Wire], message: bytes) -> None:
    _, connection = wire
    await connection.send(message)
    await lives(connection, f"after {message!r}")


@pytest.mark.parametrize(
    ("message", "code", "number"),
    [
        (b"this is no JSON {{{", PARSE_ERROR, None),
        (b"\xff\xfe\x00 no UTF-8", PARSE_ERROR, None),
        (b"[" * 200_000, PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b"17", INVALID_REQUEST, None),
        (b'{"id": 5, "method": "shutdown"}', INVALID_REQUEST, 5),
        (b'{"jsonrpc": "1.0", "id": "six", "method": "shutdown"}', INVALID_REQUEST, "six"),
    ],
    ids=lambda value: ascii(value)[:40],
)
async def test_invalid_messages_are_answered(
    wire: tuple[Server, Wire], message: bytes, code: int, number: int | str | None
) -> None:
    """JSON-RPC 2.0 asks for an error, so that the sender need not wait."""
    _, connection = wire
    connection.answers.pop(number, None)
    await connection.send(message)
    assert (await connection.answer(number))["error"]["code"] == code
    await lives(connection, f"after {message[:30]!r}")


async def test_a_version_that_goes_backwards_and_ranges_outside_the_text(wire: tuple[Server, Wire]) -> None:
    _, connection = wire
    uri = "file:///project/ranges.py"
    await connection.open(uri, "a = 1\n")

    def change(version: int, first: tuple[int, int], last: tuple[int, int], text: str) -> dict[str, Any]:
        span = [{"line": line, "character": character} for line, character in (first, last)]
        content = {"range": {"start": span[0], "end": span[1]}, "text": text}
        document = {"uri": uri, "version": version}
        return Wire.note("textDocument/didChange", {"textDocument": document, "contentChanges": [content]})

    await connection.send(
        change(5, (40, 40), (50, 50), "b = 2\n"),
        change(3, (0, 2**31), (0, 2**31), "  # c"),
        change(4, (1, 0), (0, 0), ""),  # ends before it begins
        change(6, (-1, -1), (0, 0), "\n"),
    )
    await connection.ask("outside", INLINE, Wire.completion(uri, 1, 0))
    await lives(connection, "after ranges")


@pytest.mark.parametrize(
    "uri",
    [
        *("", ":", "file:", "file:///", "file:////", "file:///dev/zero", "file:///proc/self/mem", "file:///%00.py"),
        *("file:///%ff%fe.py", "file:///%zz.py", "file://nobody/share/a.py", "file:///" + "a/" * 50_000 + "a.py"),
        *(
            "file:///../../../../etc/passwd",
            "untitled:\x1b[2J\0",
            "data:,a.py",
            "file:///" + "%2e%2e/" * 50 + "a.py",
            "\ud800",
        ),
    ],
    ids=lambda uri: ascii(uri[:30]),
)
async def test_unusual_names_of_documents_are_harmless(wire: tuple[Server, Wire], uri: str) -> None:
    """Nothing is read from where a name points to: the text is what the editor sent."""
    _, connection = wire
    await connection.open(uri, "def f(a):\n    return \n")
    answer = await connection.ask(f"in {uri[:30]}", INLINE, Wire.completion(uri, 1, 11))
    assert "error" in answer or isinstance(answer["result"]["items"], list)
    await lives(connection, "after a name")


async def test_unknown_methods_and_commands_are_refused(wire: tuple[Server, Wire]) -> None:
    _, connection = wire
    answer = await connection.ask("unknown", "textDocument/makeCoffee", {"cups": 2})
    assert answer["error"]["code"] == METHOD_NOT_FOUND
    answer = await connection.ask("command", "workspace/executeCommand", {"command": "fim-server.coffee"})
    assert answer["error"]["code"] == INVALID_PARAMS
    await lives(connection, "after unknown")


async def test_a_number_of_a_request_may_be_used_again(wire: tuple[Server, Wire]) -> None:
    _, connection = wire
    for _ in range(3):
        await lives(connection, "the same")


async def test_logs_hold_no_code(wire: tuple[Server, Wire]) -> None:
    """Runs last: everything above is in the log by now, which is at its most talkative."""
    server, connection = wire
    uri = f"file:///project/{SECRET[:5]}.py"
    await connection.open(uri, f"class {SECRET}(:\n    x = '{SECRET}\n    def {SECRET}(self):\n        return ]\n")
    for number, (line, character) in enumerate([(1, 8), (2, 8), (3, 15)]):
        await connection.ask(f"broken {number}", INLINE, Wire.completion(uri, line, character))
        argument = {"uri": uri, "position": {"line": line, "character": character}, "text": f"{SECRET})"}
        command = {"command": "fim-server.explainAt", "arguments": [argument]}
        await connection.ask(f"explain {number}", "workspace/executeCommand", command)
    wrong = {"command": "fim-server.explainAt", "arguments": [{"uri": SECRET, "text": SECRET}]}
    await connection.ask("wrong", "workspace/executeCommand", wrong)
    await connection.send(Wire.note("textDocument/didOpen", {"textDocument": {"uri": 3, "text": SECRET}}))
    await connection.send(
        Wire.note("textDocument/didChange", {"textDocument": {"uri": uri, "version": SECRET}, "contentChanges": SECRET})
    )
    await lives(connection, "last")
    said = [message["params"] for message in connection.notes if message["method"] in ("window/logMessage", STATUS)]
    assert said
    assert SECRET not in str(said)
    assert SECRET not in server.errors.decode()
    assert "Traceback" not in server.errors.decode()


# --- many documents, large documents -----------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with serving(
        options={
            "debounceMs": 0,
            "maxLineTokens": 12,
            "maxTokens": 12,
            "minConfidence": 0,
            "prefetch": False,
            "pythonVersion": PYTHON,
        }
    ) as client:
        yield client


async def test_two_hundred_documents(client: Client) -> None:
    await client.is_ready()
    texts = [f"import os\n\n\ndef function_{number}(path, count):\n    return \n" for number in range(200)]
    editors = [Editor(client, f"many{number}.py", text) for number, text in enumerate(texts)]
    started = time.monotonic()
    shown = 0
    for editor in editors:
        offset = editor.text.index("return ") + 7
        for item in await editor.ask(offset, kind=AUTOMATIC):
            assert parses(editor.applied(item, offset))
            shown += 1
    asked = time.monotonic() - started
    started = time.monotonic()
    for editor in editors[::-4]:
        offset = editor.text.index("return ") + 7
        editor.change(offset, offset, "x")
        await editor.ask(offset + 1, kind=AUTOMATIC)
    again = time.monotonic() - started
    print(f"200 documents: {shown} items, {5 * asked:.0f} ms a request, {20 * again:.0f} ms after a keystroke")
    assert shown > 100
    for editor in editors:
        editor.close()
    assert await editors[0].ask(0) == []


async def test_documents_over_the_limit_are_declined(client: Client) -> None:
    await client.use(maxFileCharacters=1000)
    editor = Editor(client, "large.py", "a = 1\n" * 200)
    for _ in range(3):
        assert await editor.ask(0) == []
        editor.change(0, 0, "b")
    logged = [line for line in client.logged if "large.py" in line]
    assert ["no suggestion (the document has more than 1,000 characters" in line for line in logged] == [True]
    assert "maxFileCharacters" in client.last["reason"]
    editor.change(0, 603, "")
    await editor.ask(600)
    assert client.last["reason"] is None or "maxFileCharacters" not in client.last["reason"]
    editor.change(0, 0, "a = 1\n" * 200)
    assert await editor.ask(0) == []
    await client.until(lambda: sum("has more than 1,000 characters" in line for line in client.logged) == 2)
    await client.use(maxFileCharacters=None)


async def test_code_is_logged_only_if_wanted(client: Client) -> None:
    await client.use(logCode=False)
    editor = Editor(client, "code.py", f"{SECRET} = [\n")
    for item in await editor.ask(len(editor.text)):
        written(item)
    assert not any(SECRET in line for line in client.logged)
    assert SECRET not in client.stderr.decode()


# --- clients that disappear --------------------------------------------------------------------------------------


def busy(wire: Wire) -> Any:
    """A request that takes the model long."""
    return wire.request("long", INLINE, Wire.completion("file:///project/long.py", 1999, 4))


LONG = "value = compute(left, right)\n" * 1999 + "def "


@pytest.mark.parametrize("moment", ["busy", "loading"])
async def test_a_client_that_vanishes_ends_the_server(moment: str) -> None:
    async with wired() as (server, wire):
        await wire.initialize()
        if moment != "loading":
            await wire.is_ready()
        await wire.open("file:///project/long.py", LONG)
        await wire.send(busy(wire))
        await asyncio.sleep(0.1)
        assert server.process.stdin is not None
        started = time.monotonic()
        server.process.stdin.close()
        server.process.stdin.transport.close()
        stdout: Any = wire.reader
        stdout._transport.close()
        await server.ended(20)
        print(f"stdio, {moment}: ended after {time.monotonic() - started:.2f} s")
        assert "Traceback" not in server.errors.decode()


async def test_a_tcp_client_that_vanishes_ends_the_server() -> None:
    async with wired_tcp() as (server, wire):
        await wire.initialize()
        await wire.is_ready()
        await wire.open("file:///project/long.py", LONG)
        await wire.send(busy(wire))
        await asyncio.sleep(0.05)
        started = time.monotonic()
        wire.writer.transport.abort()
        await server.ended(20)
        print(f"TCP: ended after {time.monotonic() - started:.2f} s")
        assert "Traceback" not in server.errors.decode()


async def test_shutting_down_in_the_middle_of_a_request() -> None:
    async with wired() as (server, wire):
        await wire.initialize()
        await wire.is_ready()
        await wire.open("file:///project/long.py", LONG)
        await wire.send(busy(wire), wire.request("bye", "shutdown", None))
        answer = await wire.answer("bye", 20)
        assert answer.get("result") is None
        await wire.send(wire.note("exit", None))
        assert await server.ended(PATIENCE) == 0
        assert "Traceback" not in server.errors.decode()
