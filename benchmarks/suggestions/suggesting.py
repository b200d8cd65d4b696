"""Sources of suggestions: a server in its own process, or a rule that copies text after the longest earlier match."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.server.lsp_client import AUTOMATIC, CAPABILITIES, Client
from benchmarks.server.played_editor import QUOTES, Edit, Editor, position, span
from benchmarks.server.scenarios import Item, Request, note
from benchmarks.suggestions.projects import Project, Task
from fim_server.server.handlers.documents import CURSOR

SERVER, COPYING = "server", "copying rule"

KEY_SECONDS = (0.15, 0.25)
"""Seconds between two keys of a user who waits for nothing."""

PAUSE_SECONDS, REST_SECONDS = 1.0, 0.3
"""Seconds that the cursor rests before the first key of a user who waits for nothing.

The editor notifies the server after `REST_SECONDS` of them.
"""

FORGETTING_SECONDS = 0.3
"""Seconds before the first key of a user who waits for answers.

Meanwhile the server forgets the closed file: an index that still has it suggests the line itself.
"""

OVERTAKEN = "overtaken"
"""The outcome of a request that the next key came before."""

TOLD = ("confidence", "probability", "source", "match", "match_length")
"""Names of further data on a suggestion, in the item, its command or the status."""


@dataclass(frozen=True)
class Answer:
    """Screen after a key."""

    request: Request
    item: Item | None
    told: Mapping[str, Any] = field(default_factory=dict)


UNTAUGHT = {"personalThreshold": False}
"""Settings of a server that learns nothing of what is accepted, and leaves nothing on the machine."""


class Suggester(Protocol):
    """Source of suggestions at a cursor."""

    name: str

    def open(self, task: Task) -> None:
        """A document is opened, in which the task's text is missing."""

    def edited(self, editor: Editor, edit: Edit) -> None:
        """An edit was just made."""

    async def rest(self, editor: Editor) -> None:
        """The cursor rests before the first key."""

    async def ask(self, editor: Editor) -> Answer:
        """Ask at the cursor, and wait until the next key comes."""

    def accepted(self, item: Item) -> None:
        """An offer was accepted whole."""

    def close(self) -> None:
        """The document is closed."""


# --- the server ---------------------------------------------------------------------------------------------------


class Served:
    """A language server, asked after each key.

    Args:
        client: The editor's end.
        folder: The workspace's.
        draw: Decides the time between two keys; None waits for every answer.
        tells_cursor: Whether the editor tells where a cursor comes to rest.
    """

    name = SERVER

    def __init__(self, client: Client, folder: Path, draw: random.Random | None, tells_cursor: bool = True) -> None:
        self.client = client
        self._folder = folder
        self._draw = draw
        self._tells_cursor = tells_cursor
        self._uri = ""
        self._version = 0

    def open(self, task: Task) -> None:
        self._uri, self._version = (self._folder / task.file).as_uri(), 1
        document = {"uri": self._uri, "languageId": task.language, "version": 1, "text": task.before + task.after}
        self.client.notify("textDocument/didOpen", {"textDocument": document})

    async def rest(self, editor: Editor) -> None:
        if self._draw is None:
            await asyncio.sleep(FORGETTING_SECONDS)
            return
        await asyncio.sleep(REST_SECONDS)
        if self._tells_cursor:
            at = position(editor.text, editor.cursor)
            self.client.notify(CURSOR, {"textDocument": {"uri": self._uri}, "position": at})
        await asyncio.sleep(PAUSE_SECONDS - REST_SECONDS)

    def edited(self, editor: Editor, edit: Edit) -> None:
        self._version += 1
        changes = [{"range": span(editor.before, edit.start, edit.end), "text": edit.text}]
        document = {"uri": self._uri, "version": self._version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    async def ask(self, editor: Editor) -> Answer:
        request = Request(SERVER, "key")
        asked = self.client.ask(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self._uri},
                "position": position(editor.text, editor.cursor),
                "context": {"triggerKind": AUTOMATIC},
            },
        )
        if self._draw is None:
            await self.client.answer_to(asked)
        else:
            due = time.perf_counter() + self._draw.uniform(*KEY_SECONDS)
            try:
                await asyncio.wait_for(asyncio.shield(asked.answer), due - time.perf_counter())
            except TimeoutError:
                self.client.cancel(asked)
                request.outcome = OVERTAKEN
                return Answer(request, None)
            await asyncio.sleep(due - time.perf_counter())
        message = asked.answer.result()
        items = note(request, asked, message)
        return Answer(request, items[0] if items else None, told(message, asked.last) if items else {})

    def accepted(self, item: Item) -> None:
        if item.command is not None:
            command = {name: item.command.get(name) for name in ("command", "arguments")}
            self.client.ask("workspace/executeCommand", command)

    def close(self) -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self._uri}})


def told(message: Mapping[str, Any], last: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the server's data on its first suggestion besides the text."""
    result = message["result"]
    entry = (result["items"] if isinstance(result, dict) else result)[0]
    arguments = (entry.get("command") or {}).get("arguments") or [None]
    places = (entry, entry.get("data"), arguments[0], last)
    return {
        name: place[name] for place in reversed(places) if isinstance(place, Mapping) for name in TOLD if name in place
    }


def written(project: Project, folder: str) -> Path:
    """Write a project's saved files into a subfolder of its name; return the subfolder."""
    root = Path(folder).resolve() / project.name
    root.mkdir()
    for path, content in project.workspace:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


@asynccontextmanager
async def serving(
    project: Project,
    options: Sequence[str],
    settings: Mapping[str, Any],
    draw: random.Random | None,
    tells_cursor: bool = True,
) -> AsyncIterator[Served]:
    """A server whose workspace is a project without the files that are typed in.

    Args:
        project: Whose other files are written into a folder of its own.
        options: The server's command line.
        settings: Its settings, as an editor has them.
        draw: Decides the time between two keys; None waits for every answer.
        tells_cursor: Whether the editor tells where a cursor comes to rest.

    Raises:
        BenchError: The server does not start, answer or live.
    """
    with tempfile.TemporaryDirectory(prefix="fim-suggestions-") as made, tempfile.TemporaryFile() as errors:
        folder = written(project, made)
        client = await Client.start(options, None, errors)
        try:
            workspace = {"name": project.name, "uri": folder.as_uri()}
            initialize = {
                "processId": os.getpid(),
                "rootUri": workspace["uri"],
                "workspaceFolders": [workspace],
                "capabilities": {
                    **CAPABILITIES,
                    "workspace": {"configuration": True, "workspaceFolders": True},
                },
                "initializationOptions": {**UNTAUGHT, **settings},
            }
            await client.answer_to(client.ask("initialize", initialize))
            client.notify("initialized", {})
            await client.ready()
            yield Served(client, folder, draw, tells_cursor)
        finally:
            await client.end()


# --- the rule -----------------------------------------------------------------------------------------------------

LEAST_MATCH = 4
"""Characters of the shortest match that something is copied after."""


class Copying:
    """The rule that others are measured by: what followed the longest earlier match in the file, to that line's end.

    The match is of the characters left of the cursor; of several the last one counts. Brackets and quotes that the
    editor has closed are covered as far as the text brings them itself.
    """

    name = COPYING

    def open(self, task: Task) -> None:
        """Nothing is kept."""

    def edited(self, editor: Editor, edit: Edit) -> None:
        """Nothing is kept."""

    async def rest(self, editor: Editor) -> None:
        """Nothing is read before it is asked for."""

    async def ask(self, editor: Editor) -> Answer:
        started = time.perf_counter()
        text = copied(editor.text[: editor.cursor])
        item = Item(text, covered_by(text, editor.closers), None) if text else None
        request = Request(COPYING, "key", 1000 * (time.perf_counter() - started), "answered", items=int(bool(text)))
        return Answer(request, item)

    def accepted(self, item: Item) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is kept."""


def copied(left: str) -> str:
    """Return the text after the longest earlier match of a text's end, to the end of that line; empty for no match.

    >>> copied("total = count\\nother = 1\\ntotal =")
    ' count'
    """
    # A match of n characters holds matches of fewer, so the longest is found by halving.
    low, high = 0, len(left)
    while low < high:
        middle = (low + high + 1) // 2
        if left.rfind(left[len(left) - middle :], 0, len(left) - 1) >= 0:
            low = middle
        else:
            high = middle - 1
    if low < LEAST_MATCH:
        return ""
    end = left.rfind(left[len(left) - low :], 0, len(left) - 1) + low
    return left[end:].partition("\n")[0].rstrip()


def covered_by(text: str, closers: str) -> int:
    """Return the number of closers right of the cursor that a text brings itself.

    >>> covered_by("a, f(b))", ")"), covered_by("a", ")")
    (1, 0)
    """
    covered = depth = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif depth and character in ")]}":
            depth -= 1
        elif character in (*QUOTES, *")]}") and closers[covered : covered + 1] == character:
            covered += 1
    return covered
