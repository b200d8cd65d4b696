"""Files of HTML and its relatives in a server, with a model that writes given texts into their code."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from support.editors import editor
from support.editors.editor import STATUS, Wire, wired
from support.editors.notebooks import Cell

PROGRAM = [sys.executable, str(Path(__file__).with_name("served_program.py"))]
CURSOR = "‸"
AUTOMATIC = dict.fromkeys(("javascript", "jsx", "typescript", "tsx", "json"), "automatic")


class HostFile:
    """A file with a cursor, as an editor has it."""

    def __init__(self, wire: Wire, name: str, marked: str, language: str) -> None:
        """``marked``: the text, with :data:`CURSOR` at the cursor."""
        self.wire, self.number = wire, 0
        self.left, self.right = marked.split(CURSOR)
        self.document = Cell(f"file:///regions/{name}", self.left + self.right, language)
        self.last: dict[str, Any] = {}

    @property
    def position(self) -> dict[str, int]:
        return self.document.position(len(self.left))

    async def ask(self, *texts: str, invoked: bool = True) -> list[dict[str, Any]]:
        """Open the file, have the model write one of some texts, and return the items at the cursor."""
        wanted = [[self.left[-60:].replace("\r\n", "\n"), text] for text in texts]
        await self.wire.ask("writes", "test/writes", {"wanted": wanted, "seed": 1})
        await self.wire.send(Wire.note("textDocument/didOpen", {"textDocument": self.document.item}))
        at = self.position
        params = Wire.completion(self.document.uri, at["line"], at["character"], invoked)
        self.wire.notes.clear()
        answer = await self.wire.ask("asked", "textDocument/inlineCompletion", params)
        assert "error" not in answer, answer
        status = await self.wire.note_of(STATUS, lambda status: "last" in status)
        self.last = status["last"]
        items: list[dict[str, Any]] = answer["result"]["items"]
        return items

    async def explain(self, text: str | None = None) -> dict[str, Any]:
        """Return the explanation at the cursor, or the error."""
        argument = {"uri": self.document.uri, "position": self.position, "text": text}
        params = {"command": "fim-server.explainAt", "arguments": [argument]}
        answer = await self.wire.ask("explained", "workspace/executeCommand", params)
        found: dict[str, Any] = answer.get("result") or answer["error"]
        return found

    async def close(self) -> None:
        await self.wire.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": self.document.uri}}))


@asynccontextmanager
async def region_server(languages: Mapping[str, str] = AUTOMATIC) -> AsyncIterator[Wire]:
    """A server with a setting `languages`."""
    options = {
        "languages": dict(languages),
        "insideStrings": True,
        "promptTokens": 256,
        "maxTokens": 32,
        "deadlineMs": 0,
        "invokedDeadlineMs": 0,
        "prefetch": False,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(editor, "SERVE", PROGRAM)
        async with wired("--model=texts") as (_, wire):
            await wire.initialize(**options)
            await wire.is_ready()
            yield wire


def parses(language: str, text: str) -> bool:
    return Language.load(language).open("", "").check(text).complete
