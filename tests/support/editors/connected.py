"""A server in this process, whose editor is a test: what it sends is read from a list."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from fim_server.server.app import create_server
from support.editors.editor import Wire
from support.editors.watched import PATIENCE, SETTINGS, give_model

INLINE, COMMAND = "textDocument/inlineCompletion", "workspace/executeCommand"
URI = "file:///a.py"
TEXT = "x = \n"


class Connected:
    """A server, initialised, with one document open; its model is loaded and never asked."""

    def __init__(self) -> None:
        self.server = create_server(SETTINGS.having("debounce_ms", 0.0))
        self.sent: list[dict[str, Any]] = []
        self.server.protocol.set_writer(self)
        self.backend = give_model(self.server.worker)

    def write(self, data: bytes) -> None:
        while data:
            head, _, rest = data.partition(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", head)[1])  # type: ignore[index]
            self.sent.append(json.loads(rest[:length]))
            data = rest[length:]

    def send(self, *messages: dict[str, Any]) -> None:
        protocol = self.server.protocol
        for message in messages:
            protocol.handle_message(protocol.structure_message(json.loads(json.dumps(message))))

    def receive(self, message: dict[str, Any]) -> None:
        """Send like :meth:`send`, and log an unreadable message as a connection does."""
        try:
            self.send(message)
        except JsonRpcException as error:
            self.server.report_server_error(error, type(error))

    def change(self, version: int, text: str) -> None:
        document = {"uri": URI, "version": version}
        self.send(Wire.note("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))

    async def begin(self, monkeypatch: pytest.MonkeyPatch, **parameters: Any) -> None:
        """Initialise; nothing is loaded."""

        async def load(ls: object) -> None:
            pass

        monkeypatch.setattr("fim_server.server.handlers.initialize.load", load)
        monkeypatch.setattr("fim_server.server.requests.answer.report_answered", lambda *arguments: None)
        told = {"processId": None, "rootUri": None, "capabilities": {}, **parameters}
        self.send(Wire.request("initialize", "initialize", told))
        await self.answer("initialize")
        self.server.client.fallback = None
        self.open()

    def open(self, uri: str = URI) -> None:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": TEXT}
        self.send(Wire.note("textDocument/didOpen", {"textDocument": document}))

    def close(self) -> None:
        self.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": URI}}))

    def ask(self, number: str, invoked: bool = True, uri: str = URI, at: int = 4) -> None:
        self.send(Wire.request(number, INLINE, Wire.completion(uri, 0, at, invoked)))

    async def texts(self, number: str) -> list[str]:
        """Return the texts of an answer."""
        items = (await self.answer(number))["result"]["items"]
        return [item["insertText"] for item in items]

    def explain(self, number: str) -> None:
        question = {"uri": URI, "position": {"line": 0, "character": 4}}
        self.send(Wire.request(number, COMMAND, {"command": "fim-server.explainAt", "arguments": [question]}))

    def cancel(self, number: str) -> None:
        self.send(Wire.note("$/cancelRequest", {"id": number}))

    def answers(self, number: str) -> list[dict[str, Any]]:
        return [message for message in self.sent if message.get("id") == number]

    async def answer(self, number: str) -> dict[str, Any]:
        await self.until(lambda: self.answers(number))
        return self.answers(number)[0]

    @staticmethod
    async def until(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.002)
