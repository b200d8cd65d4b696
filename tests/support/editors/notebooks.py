"""An editor of notebooks: cells that are opened, changed and moved, as the protocol has it (LSP 3.17)."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from support.editors.editor import SETTINGS, STATUS, Wire, wired

LINE_BREAK = re.compile("\r\n|\r|\n")
MARKUP, CODE = 1, 2
INLINE = "textDocument/inlineCompletion"
SYNCHRONIZES = {"synchronization": {"dynamicRegistration": True, "executionSummarySupport": True}}


@dataclass
class Cell:
    """A cell as the editor has it."""

    uri: str
    text: str
    language: str = "python"
    version: int = 1

    @property
    def in_notebook(self) -> dict[str, Any]:
        return {"kind": MARKUP if self.language == "markdown" else CODE, "document": self.uri}

    @property
    def item(self) -> dict[str, Any]:
        return {"uri": self.uri, "languageId": self.language, "version": self.version, "text": self.text}

    def position(self, offset: int) -> dict[str, int]:
        lines = LINE_BREAK.split(self.text[:offset])
        return {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}

    def offset(self, position: dict[str, int]) -> int:
        starts = [0, *(found.end() for found in LINE_BREAK.finditer(self.text))]
        start = starts[position["line"]]
        line = LINE_BREAK.split(self.text[start:], maxsplit=1)[0]
        return start + len(line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le"))

    def applied(self, item: dict[str, Any]) -> str:
        """The cell with an item in it."""
        start, end = self.offset(item["range"]["start"]), self.offset(item["range"]["end"])
        return self.text[:start] + str(item["insertText"]) + self.text[end:]


@dataclass
class NotebookEditor:
    """Notebook in an editor, with the server that follows it."""

    wire: Wire
    path: str
    cells: list[Cell] = field(default_factory=list)
    version: int = 1
    made: int = 0
    asked: int = 0

    @property
    def uri(self) -> str:
        return f"file://{self.path}"

    def cell(self, text: str, language: str = "python") -> Cell:
        self.made += 1
        return Cell(f"vscode-notebook-cell:{self.path}#W{self.made}sZmlsZQ%3D%3D", text, language)

    async def open(self, *cells: str | tuple[str, str]) -> None:
        """Open it with cells: texts of Python, or a language and a text."""
        self.cells = [self.cell(one) if isinstance(one, str) else self.cell(one[1], one[0]) for one in cells]
        notebook = {
            "uri": self.uri,
            "notebookType": "jupyter-notebook",
            "version": self.version,
            "cells": [cell.in_notebook for cell in self.cells],
        }
        texts = [cell.item for cell in self.cells]
        await self.note("didOpen", {"notebookDocument": notebook, "cellTextDocuments": texts})

    async def note(self, method: str, params: dict[str, Any]) -> None:
        await self.wire.send(Wire.note(f"notebookDocument/{method}", params))

    async def change(self, **cells: Any) -> None:
        self.version += 1
        identity = {"uri": self.uri, "version": self.version}
        await self.note("didChange", {"notebookDocument": identity, "change": {"cells": cells}})

    def changed(self, cell: Cell, start: int, end: int, text: str) -> dict[str, Any]:
        """Change a cell's text, and return the notification of it."""
        span = {"start": cell.position(start), "end": cell.position(end)}
        cell.text = cell.text[:start] + text + cell.text[end:]
        cell.version += 1
        return {"document": {"uri": cell.uri, "version": cell.version}, "changes": [{"range": span, "text": text}]}

    async def edit(self, at: int, start: int, end: int, text: str) -> None:
        await self.change(textContent=[self.changed(self.cells[at], start, end, text)])

    async def splice(self, start: int, count: int, cells: Iterable[Cell] = ()) -> None:
        """Replace cells by others; the notification has no texts of cells that stay."""
        new = list(cells)
        gone = [cell for cell in self.cells[start : start + count] if cell not in new]
        come = [cell for cell in new if cell not in self.cells]
        self.cells[start : start + count] = new
        structure = {
            "array": {"start": start, "deleteCount": count, "cells": [cell.in_notebook for cell in new]},
            "didOpen": [cell.item for cell in come],
            "didClose": [{"uri": cell.uri} for cell in gone],
        }
        await self.change(structure=structure)

    async def ask(self, at: int, mark: str, invoked: bool = True) -> list[dict[str, Any]]:
        """The items behind the first place of a text in a cell."""
        cell = self.cells[at]
        return await self.ask_at(at, cell.text.index(mark) + len(mark), invoked)

    async def ask_at(self, at: int, offset: int, invoked: bool = True) -> list[dict[str, Any]]:
        self.asked += 1
        place = self.cells[at].position(offset)
        params = Wire.completion(self.cells[at].uri, place["line"], place["character"], invoked)
        answer = await self.wire.ask(f"{self.uri} {self.asked}", INLINE, params)
        assert "error" not in answer, answer
        items: list[dict[str, Any]] = answer["result"]["items"]
        return items

    async def explain(self, at: int, offset: int) -> dict[str, Any]:
        self.asked += 1
        argument = {"uri": self.cells[at].uri, "position": self.cells[at].position(offset)}
        command = {"command": "fim-server.explainAt", "arguments": [argument]}
        return await self.wire.ask(f"{self.uri} {self.asked}", "workspace/executeCommand", command)

    async def close(self) -> None:
        texts = [{"uri": cell.uri} for cell in self.cells]
        await self.note("didClose", {"notebookDocument": {"uri": self.uri}, "cellTextDocuments": texts})

    @property
    def last(self) -> dict[str, Any]:
        """The status of the last answered request."""
        found: dict[str, Any] = next(
            note["params"]["last"]
            for note in reversed(self.wire.notes)
            if note["method"] == STATUS and note["params"].get("last")
        )
        return found


def guarantee(item: dict[str, Any]) -> str:
    return str(item["command"]["arguments"][0]["guarantee"])


def covered(item: dict[str, Any]) -> list[tuple[int, int]]:
    lines = item["command"]["arguments"][0].get("coveredLines", [])
    return [(stretch["line"], stretch["count"]) for stretch in lines]


@asynccontextmanager
async def notebook_server(*arguments: str, **options: Any) -> AsyncIterator[Wire]:
    """A server whose client synchronizes notebooks, ready to answer."""
    async with wired("--model=embedded", *arguments) as (_, wire):
        offered = {
            "textDocument": {"inlineCompletion": {}},
            "general": {"positionEncodings": ["utf-16"]},
            "notebookDocument": SYNCHRONIZES,
        }
        params = {"processId": os.getpid(), "capabilities": offered, "rootUri": None}
        answer = await wire.ask("begin", "initialize", {**params, "initializationOptions": {**SETTINGS, **options}})
        wire.answers["capabilities"] = answer["result"]["capabilities"]
        await wire.send(Wire.note("initialized", {}))
        await wire.is_ready()
        yield wire
