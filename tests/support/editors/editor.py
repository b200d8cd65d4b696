"""An editor that talks to the language server in a process of its own, and what every test of it needs."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import os
import re
import socket
import sys
import time
import tokenize
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient as PlainClient
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features

from fim_server import Language

SERVE = [sys.executable, "-m", "fim_server", "serve"]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python that judges the results, whose grammar a server is told to keep to."""
F_STRING = re.compile(r"(?i)f[rb]?['\"]")
SETTINGS = {
    "pythonVersion": PYTHON,
    "debounceMs": 0,
    "promptTokens": 512,
    "minConfidence": 0,
    "insideStrings": False,
    "projectMemory": False,
    "personalThreshold": False,
}
"""A Python of our own, no pauses, and prompts that do not depend on how fast the machine is: nor do the texts, then.
Nor on what other tests have written."""
PATIENCE = 120
"""Seconds after which a silent server fails a test; loading the model is part of it."""

STATUS = "fim-server/status"
REQUEST_CANCELLED, INVALID_PARAMS = -32800, -32602
AUTOMATIC, INVOKED = types.InlineCompletionTriggerKind.Automatic, types.InlineCompletionTriggerKind.Invoked

LINE_BREAK = re.compile("\r\n|\r|\n")
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

CLOSERS = ")]}\"'"


# --- a client ----------------------------------------------------------------------------------------------------


class Client(LanguageClient):
    """A client that keeps the status notifications and what the server wrote to standard error."""

    initialized_with: types.InitializeResult

    def __init__(self, configuration: dict[str, Any] | None = None) -> None:
        super().__init__(converter_factory=default_converter, configuration={"": configuration or {}})
        register_lsp_features(self)
        self.statuses: list[dict[str, Any]] = []
        self.stderr = bytearray()
        self.feature(STATUS)(lambda params: self.statuses.append(plain(params)))

    async def start_io(self, cmd: str, *args: str, **settings: Any) -> None:
        await PlainClient.start_io(self, cmd, *args, **settings)
        self._stderr_forwarder = asyncio.create_task(self._keep_stderr())

    def kill(self) -> None:
        """End the server, whatever it does."""
        if self._server is not None and self._server.returncode is None:
            self._server.kill()

    async def stop(self) -> None:
        await super().stop()  # type: ignore[no-untyped-call]

    async def _keep_stderr(self) -> None:
        assert self._server is not None
        assert self._server.stderr is not None
        while data := await self._server.stderr.read(65536):
            self.stderr += data

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._server is not None
        return self._server

    @property
    def encoding(self) -> str:
        return str(self.initialized_with.capabilities.position_encoding or "utf-16")

    @property
    def logged(self) -> list[str]:
        return [entry.message for entry in self.log_messages]

    @property
    def last(self) -> dict[str, Any]:
        """The server's last status of an answered request."""
        found: dict[str, Any] = next(status["last"] for status in reversed(self.statuses) if "last" in status)
        return found

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait for something that notifications bring about."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not within {seconds} s: {self.statuses[-1:]}, {self.logged[-3:]}"
            await asyncio.sleep(0.005)

    async def is_ready(self) -> None:
        await self.until(lambda: self.statuses and self.statuses[-1]["state"] == "ready")

    async def run(self, command: str, *arguments: Any) -> Any:
        """Run a command; an error raises JsonRpcException."""
        params = types.ExecuteCommandParams(f"fim-server.{command}", list(arguments))
        return plain(await asyncio.wait_for(self.workspace_execute_command_async(params), PATIENCE))

    async def use(self, **settings: Any) -> None:
        """Change the settings, and with that forget what was answered; :data:`SETTINGS` stand."""
        count = len(self.statuses)
        values = {**SETTINGS, **settings}
        self.workspace_did_change_configuration(types.DidChangeConfigurationParams({"fim-server": values}))
        await self.until(lambda: len(self.statuses) > count and self.statuses[-1]["state"] != "loading")


def plain(value: Any) -> Any:
    """A JSON value from what pygls makes of it."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(member) for name, member in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return value


def capabilities(*encodings: types.PositionEncodingKind, inline: bool = True, **more: Any) -> types.ClientCapabilities:
    """Capabilities of an editor with inline completion."""
    text_document = types.TextDocumentClientCapabilities(
        inline_completion=types.InlineCompletionClientCapabilities() if inline else None, **more
    )
    return types.ClientCapabilities(
        text_document=text_document,
        general=types.GeneralClientCapabilities(
            position_encodings=list(encodings) or [types.PositionEncodingKind.Utf16]
        ),
    )


@asynccontextmanager
async def serving(
    offered: types.ClientCapabilities | None = None,
    *arguments: str,
    options: dict[str, Any] | None = None,
    configuration: dict[str, Any] | None = None,
    folder: Path | None = None,
    cache: Path | None = None,
) -> AsyncIterator[Client]:
    """A server on standard input and output, initialised, and shut down in the end.

    ``folder``: the workspace's; ``cache``: its cache, instead of the user's.
    """
    client = Client(configuration)
    environment: dict[str, Any] = {} if cache is None else {"env": {**os.environ, "FIM_SERVER_CACHE": str(cache)}}
    await client.start_io(*SERVE, *arguments, **environment)
    try:
        values = SETTINGS if options is None else options
        params = types.InitializeParams(
            offered or capabilities(),
            initialization_options=values,
            workspace_folders=None if folder is None else [types.WorkspaceFolder(folder.as_uri(), folder.name)],
        )
        client.initialized_with = await client.initialize_session(params)
        yield client
        await asyncio.wait_for(client.shutdown_session(), PATIENCE)
    except BaseException:
        client.kill()  # it would go on until its input ends, and the client waits for it
        raise
    finally:
        await client.stop()


# --- an open document --------------------------------------------------------------------------------------------


class Editor:
    """An open document, its text and version, kept as an editor keeps them."""

    def __init__(self, client: Client, name: str, text: str, language_id: str = "python") -> None:
        """``name``: a file's name, or a whole URI."""
        self.client, self.text, self.version = client, text, 1
        self.uri = name if re.match(r"[a-z-]+:", name) else f"file:///project/{name}"
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(self.uri, language_id, 1, text))
        )

    def position(self, offset: int) -> types.Position:
        """A position in the client's units, written without the code under test."""
        lines = LINE_BREAK.split(self.text[:offset])
        name, width = UNITS[self.client.encoding]
        return types.Position(len(lines) - 1, len(lines[-1].encode(name)) // width)

    def offset(self, position: types.Position) -> int:
        """The inverse; columns beyond a line's end mean the end."""
        starts = [0, *(found.end() for found in LINE_BREAK.finditer(self.text))]
        if position.line >= len(starts):
            return len(self.text)
        name, width = UNITS[self.client.encoding]
        line = LINE_BREAK.split(self.text[starts[position.line] :], maxsplit=1)[0]
        return starts[position.line] + len(line.encode(name)[: position.character * width].decode(name))

    def change(self, start: int, end: int, text: str) -> None:
        """Replace characters, telling the server of the range alone."""
        change_range = types.Range(self.position(start), self.position(end))
        self.text = self.text[:start] + text + self.text[end:]
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangePartial(range=change_range, text=text)],
            )
        )

    def close(self) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri)))

    def params(
        self,
        offset: int,
        selected: types.SelectedCompletionInfo | None = None,
        kind: types.InlineCompletionTriggerKind = INVOKED,
    ) -> types.InlineCompletionParams:
        context = types.InlineCompletionContext(kind, selected)
        return types.InlineCompletionParams(context, types.TextDocumentIdentifier(self.uri), self.position(offset))

    async def ask(
        self,
        offset: int,
        selected: types.SelectedCompletionInfo | None = None,
        kind: types.InlineCompletionTriggerKind = INVOKED,
    ) -> list[types.InlineCompletionItem]:
        request = self.client.text_document_inline_completion_async(self.params(offset, selected, kind))
        return items(await asyncio.wait_for(request, PATIENCE))

    async def explain(self, offset: int, **more: Any) -> dict[str, Any]:
        at = self.position(offset)
        position = {"line": at.line, "character": at.character}
        answer: dict[str, Any] = await self.client.run("explainAt", {"uri": self.uri, "position": position, **more})
        return answer

    def span(self, item: types.InlineCompletionItem) -> tuple[int, int]:
        """Return the offsets of the text that an item replaces.

        VS Code hides an item whose text lacks the replaced part right of the cursor.
        """
        assert item.range is not None
        assert item.range.start.line == item.range.end.line
        return self.offset(item.range.start), self.offset(item.range.end)

    def applied(self, item: types.InlineCompletionItem, cursor: int) -> str:
        """The text after the item, offered at ``cursor``, was accepted."""
        start, end = self.span(item)
        assert start <= cursor <= end
        covered = self.text[cursor:end]
        assert set(covered) <= set(CLOSERS)
        assert is_subsequence(covered, written(item))
        return self.text[:start] + written(item) + self.text[end:]

    def accept(self, item: types.InlineCompletionItem) -> int:
        """Put an item into the document; returns where the cursor is then."""
        start, end = self.span(item)
        self.change(start, end, written(item))
        return start + len(written(item))


def items(answer: Any) -> list[types.InlineCompletionItem]:
    assert isinstance(answer, types.InlineCompletionList)
    for item in answer.items:
        assert item.range is not None, "Neovim fails on items without a range"
    return list(answer.items)


def written(item: types.InlineCompletionItem) -> str:
    assert isinstance(item.insert_text, str)
    return item.insert_text


def guarantee_of(item: types.InlineCompletionItem) -> str:
    """Return the data in an item's command."""
    assert item.command is not None
    assert item.command.command == "fim-server.accepted"
    (argument,) = item.command.arguments or ()
    return str(plain(argument)["guarantee"])


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(character in rest for character in part)


def assert_parses(text: str, middle: str) -> None:
    """The promise, asked of the engine afresh and of Python itself.

    Python before 3.12 looks into the fields of f-strings in a way of its own, which its definition here does not.
    """
    assert Language.load("python", PYTHON).open("", "").check(text.replace("\r\n", "\n").replace("\r", "\n")).complete
    if not (F_STRING.search(middle) and sys.version_info < (3, 12)):
        assert parses(text)


def parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError:
            return False
    return True


def in_comment(text: str, offset: int) -> bool:
    """Return whether a character stands in a comment."""
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset) - 1
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and token.start <= (line, column) < token.end:
                return True
    except (tokenize.TokenError, SyntaxError):  # the text ends in the middle of something
        pass
    return False


# --- a client that may write anything ----------------------------------------------------------------------------


class Wire:
    """The bytes of the protocol, for what no well-behaved client would send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.notes: list[dict[str, Any]] = []
        """Notifications and requests that the server sent."""
        self.answers: dict[int | str | None, dict[str, Any]] = {}

    @staticmethod
    def frame(message: Any) -> bytes:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    @staticmethod
    def request(number: int | str, method: str, params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    @staticmethod
    def note(method: str, params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    async def send(self, *messages: Any) -> None:
        """Write messages in one piece."""
        self.writer.write(b"".join(self.frame(message) for message in messages))
        await self.writer.drain()

    async def read(self) -> dict[str, Any]:
        """The next message."""
        length = 0
        while (line := await self.reader.readline()) != b"\r\n":
            assert line, "the server has closed the connection"
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        return message

    async def answer(self, number: int | str | None, seconds: float = PATIENCE) -> dict[str, Any]:
        """The answer to a request; what comes before it is kept."""
        async with asyncio.timeout(seconds):
            while number not in self.answers:
                message = await self.read()
                if "method" in message:
                    self.notes.append(message)
                else:
                    self.answers[message.get("id")] = message
        return self.answers.pop(number)

    async def ask(self, number: int | str, method: str, params: Any, seconds: float = PATIENCE) -> dict[str, Any]:
        await self.send(self.request(number, method, params))
        return await self.answer(number, seconds)

    async def note_of(self, method: str, condition: Callable[[Any], object] = bool) -> Any:
        """The parameters of the first notification of a method for which something holds."""
        seen = 0
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.notes[seen:]:
                    seen += 1
                    if message["method"] == method and condition(message["params"]):
                        return message["params"]
                message = await self.read()
                if "method" in message:
                    self.notes.append(message)
                else:
                    self.answers[message.get("id")] = message

    async def initialize(self, **options: Any) -> dict[str, Any]:
        """Initialise and wait for the model."""
        offered = {"textDocument": {"inlineCompletion": {}}, "general": {"positionEncodings": ["utf-16"]}}
        settings = {**SETTINGS, **options}
        params = {"processId": os.getpid(), "capabilities": offered, "initializationOptions": settings}
        answer = await self.ask("initialize", "initialize", {**params, "rootUri": None})
        await self.send(self.note("initialized", {}))
        return answer

    async def is_ready(self) -> None:
        await self.note_of(STATUS, lambda status: status["state"] == "ready")

    async def open(self, uri: str, text: str, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        await self.send(self.note("textDocument/didOpen", {"textDocument": document}))

    @staticmethod
    def completion(uri: str, line: int, character: int, invoked: bool = True) -> dict[str, Any]:
        return {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": (INVOKED if invoked else AUTOMATIC).value},
        }


class Server:
    """A server's process, its standard error kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.errors = bytearray()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(65536):
            self.errors += data

    async def ended(self, seconds: float) -> int:
        """The exit status, once all that the process wrote is read."""
        status = await asyncio.wait_for(self.process.wait(), seconds)
        await asyncio.wait_for(self._reading, seconds)
        return status


@asynccontextmanager
async def wired(*arguments: str) -> AsyncIterator[tuple[Server, Wire]]:
    """A server on standard input and output, and the bytes to and from it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*SERVE, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    server = Server(process)
    async with Ending(server):
        yield server, Wire(process.stdout, process.stdin)


@asynccontextmanager
async def wired_tcp(*arguments: str) -> AsyncIterator[tuple[Server, Wire]]:
    """Connect over TCP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *SERVE, "--tcp", f"127.0.0.1:{port}", *arguments, stderr=asyncio.subprocess.PIPE
    )
    server = Server(process)
    async with Ending(server):
        reader, writer = await patiently(lambda: asyncio.open_connection("127.0.0.1", port, limit=2**24))
        yield server, Wire(reader, writer)
        writer.close()


class Ending:
    """Kills what still runs in the end."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        if self._server.process.returncode is None:
            self._server.process.kill()
        await self._server.ended(PATIENCE)


async def patiently(connect: Callable[[], Awaitable[Any]]) -> Any:
    """Retry until a server listens."""
    for _ in range(PATIENCE * 20):
        try:
            return await connect()
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    raise TimeoutError


def offsets_of(text: str, part: str) -> Iterator[int]:
    """Yield all offsets at which a part begins in a text."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
