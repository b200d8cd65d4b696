"""Client of one checker's process. The content of messages stays plain JSON data."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from cattrs import Converter
from lsprotocol.types import ResponseErrorMessage
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async
from pygls.protocol import JsonRPCNotification, JsonRPCProtocol, JsonRPCRequestMessage, JsonRPCResponseMessage

from fim_server.system.process import resident_bytes
from fim_server.text.document import PositionEncoding

if TYPE_CHECKING:
    from fim_server.server.checking.catalogue import Entry

START_SECONDS, ANSWER_SECONDS = 30.0, 60.0
"""Longest wait for the start, and for an answer; the first one takes as long as the project's files. A checker without
an answer by then counts as crashed."""

MOST_DOCUMENTS = 32
"""Most other documents that a checker is shown."""

Diagnostics = Sequence[Mapping[str, Any]]

quiet = logging.getLogger(f"{__name__}.messages")
"""Log of a checker's own protocol errors, which are no errors of this server."""
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


class LostCheckerError(Exception):
    """The checker's process has ended, does not answer, or does not speak the protocol."""


@cache
def plain_converter() -> Converter:
    """Return a converter of messages that leaves their contents as they are; a missing member is None."""
    converter = Converter()
    for kind in (JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage, ResponseErrorMessage):
        converter.register_structure_hook(
            kind, lambda message, kind: kind(**{name: message.get(name) for name in kind.__annotations__})
        )
    return converter


class CheckerProtocol(JsonRPCProtocol):
    """Protocol that answers every request of the checker by itself."""

    settings: Mapping[str, Any] = {}

    def __init__(self, server: Any, converter: Converter) -> None:
        super().__init__(server, converter)
        self.published: dict[tuple[str, int], asyncio.Future[Diagnostics]] = {}
        """Diagnostics that are awaited, by document and version."""

    def handle_message(self, message: Any) -> None:
        method: str | None = getattr(message, "method", None)
        params: Any = getattr(message, "params", None)
        if method is None:
            self._take_response(message)
        elif isinstance(message, JsonRPCRequestMessage):
            answer: Any = None
            if method == "workspace/configuration":
                answer = [self.settings for _ in params["items"]]
            elif method == "workspace/applyEdit":
                answer = {"applied": False}
            self._send_response(message.id, answer)
        elif method == "textDocument/publishDiagnostics":
            awaited = self.published.pop((unquote(params["uri"]), params.get("version")), None)
            if awaited is not None and not awaited.done():
                awaited.set_result(params["diagnostics"])

    def _take_response(self, message: Any) -> None:
        future = self._request_futures.pop(message.id, None)
        if future is None or future.cancelled():
            return
        if isinstance(message, ResponseErrorMessage):
            future.set_exception(JsonRpcException(str(message.error)))
        else:
            future.set_result(message.result)


class CheckerClient:
    """A checker's process and its open documents. Used by the event loop's thread.

    Its methods raise LostCheckerError once the process is lost.
    """

    def __init__(self, entry: Entry, process: asyncio.subprocess.Process) -> None:
        """Use :meth:`start`."""
        self._entry, self._process = entry, process
        client = JsonRPCClient(CheckerProtocol, plain_converter)
        assert isinstance(client.protocol, CheckerProtocol)
        self._protocol = client.protocol
        self._protocol.settings = entry.settings
        assert process.stdin is not None
        self._protocol.set_writer(process.stdin)
        self._texts: dict[str, tuple[int, str]] = {}
        """Version and text of each open document."""
        self._pulls = False
        self.encoding = PositionEncoding.UTF16
        """Unit of the checker's positions."""
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, entry: Entry, program: str, folders: Sequence[str]) -> CheckerClient:
        """Start a checker in the workspace's folders, which are URIs. Raises OSError if the program does not start."""
        process = await asyncio.create_subprocess_exec(
            program,
            *entry.command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | entry.variables,
        )
        client = cls(entry, process)
        try:
            await client._initialize(folders)
        except LostCheckerError:
            client.end()
            raise
        return client

    @property
    def is_lost(self) -> bool:
        return self._reader.done()

    @property
    def resident_bytes(self) -> int:
        """Return the bytes of memory that the process holds; 0 if unknown."""
        return 0 if self.is_lost else resident_bytes(self._process.pid) or 0

    async def diagnostics(self, uri: str, language: str, text: str) -> Diagnostics:
        """Return the diagnostics of a document with this text."""
        version = self._send(uri, language, text)
        if self._pulls:
            report = await self._ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            found = (report or {}).get("items", ()) if isinstance(report, Mapping | None) else ()
            return found if isinstance(found, list) else ()
        awaited: asyncio.Future[Diagnostics] = asyncio.get_running_loop().create_future()
        self._protocol.published = {(unquote(uri), version): awaited}
        published: Diagnostics = await self._within(awaited, ANSWER_SECONDS)
        return published

    def show(self, others: Mapping[str, str], language: str, most_characters: int) -> None:
        """Show the checker the editor's texts of some other documents."""
        for uri, text in islice(others.items(), MOST_DOCUMENTS):
            if len(text) <= most_characters and self._texts.get(uri, (0, None))[1] != text:
                self._send(uri, language, text)

    def close(self, uri: str) -> None:
        """Have the checker read a document from the disk again."""
        if self._texts.pop(uri, None) is not None and not self.is_lost:
            self._protocol.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def end(self) -> None:
        """End the process."""
        self._reader.cancel()
        with suppress(ProcessLookupError):
            self._process.kill()

    def _send(self, uri: str, language: str, text: str) -> int:
        """Send a document's text if it is new; return its version."""
        if self.is_lost:
            raise LostCheckerError
        version, known = self._texts.get(uri, (0, None))
        if known == text and self._pulls:
            return version
        version += 1
        self._texts[uri] = version, text
        document: dict[str, Any] = {"uri": uri, "version": version}
        if known is None:
            opened = {"textDocument": {**document, "languageId": language, "text": text}}
            self._protocol.notify("textDocument/didOpen", opened)
        else:
            change = {"textDocument": document, "contentChanges": [{"text": text}]}
            self._protocol.notify("textDocument/didChange", change)
        return version

    async def _initialize(self, folders: Sequence[str]) -> None:
        named = [{"uri": folder, "name": Path(folder).name} for folder in folders]
        parameters = {
            "processId": os.getpid(),
            "rootUri": folders[0] if folders else None,
            "workspaceFolders": named,
            "initializationOptions": self._entry.settings,
            "capabilities": {
                "general": {"positionEncodings": [str(unit) for unit in reversed(PositionEncoding)]},
                "workspace": {"configuration": True, "workspaceFolders": True},
                "textDocument": {"diagnostic": {}, "publishDiagnostics": {"versionSupport": True}},
            },
        }
        result = await self._ask("initialize", parameters, START_SECONDS)
        if not isinstance(result, Mapping) or not isinstance(found := result.get("capabilities"), Mapping):
            raise LostCheckerError
        self._pulls = found.get("diagnosticProvider") not in (None, False)
        with suppress(ValueError):
            self.encoding = PositionEncoding(found.get("positionEncoding", PositionEncoding.UTF16))
        self._protocol.notify("initialized", {})

    async def _ask(self, method: str, parameters: object, seconds: float = ANSWER_SECONDS) -> Any:
        """Return the answer to a request; None if it is an error."""
        try:
            return await self._within(asyncio.wrap_future(self._protocol.send_request(method, parameters)), seconds)
        except JsonRpcException:
            return None

    async def _within(self, awaited: asyncio.Future[Any], seconds: float) -> Any:
        """Return the result of a future, unless the process is lost before."""
        await asyncio.wait((awaited, self._reader), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not awaited.done():
            awaited.cancel()
            raise LostCheckerError
        return awaited.result()

    async def _read(self) -> None:
        """Read messages until the process closes its output."""
        assert self._process.stdout is not None
        with suppress(asyncio.IncompleteReadError, ValueError):  # what it writes is no message
            await run_async(threading.Event(), self._process.stdout, self._protocol, quiet, lambda *_: None)
