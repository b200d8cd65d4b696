"""Messages about notebooks in forms that clients send all the same, and names that they spell in several ways."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from fim_server.server.documents.workspace import OpenDocuments
from support.editors.connected import Connected
from support.editors.editor import Wire

pytestmark = pytest.mark.asyncio

NOTEBOOK = "file:///c%3A/a%20b.ipynb"
CELLS = [f"vscode-notebook-cell:/c%3A/a%20b.ipynb#W{at}sZmlsZQ%3D%3D" for at in range(3)]
TEXTS = ["x = 1", "print(x)", "y = 2"]


@pytest_asyncio.fixture
async def connected(monkeypatch: pytest.MonkeyPatch) -> Connected:
    connected = Connected()
    await connected.begin(monkeypatch)
    return connected


def send(connected: Connected, method: str, params: dict[str, Any]) -> None:
    connected.receive(Wire.note(f"notebookDocument/{method}", params))


def opening(version: Any = 1) -> dict[str, Any]:
    cells = [{"kind": 2, "document": uri} for uri in CELLS]
    texts = [
        {"uri": uri, "languageId": "python", "version": version, "text": text}
        for uri, text in zip(CELLS, TEXTS, strict=True)
    ]
    notebook = {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": version, "cells": cells}
    return {"notebookDocument": notebook, "cellTextDocuments": texts}


def change(uri: str = NOTEBOOK, **cells: Any) -> dict[str, Any]:
    return {"notebookDocument": {"uri": uri, "version": 2}, "change": {"cells": cells}}


def content(uri: str, *changes: Any, version: Any = 2) -> dict[str, Any]:
    return {"document": {"uri": uri, "version": version}, "changes": list(changes)}


def texts_of(connected: Connected) -> list[str]:
    workspace = connected.server.protocol.workspace
    assert isinstance(workspace, OpenDocuments)
    notebook = workspace.synchronized(NOTEBOOK)
    return [] if notebook is None else [cell.text for cell in notebook.cells]


@pytest.mark.parametrize("version", [1, None, 0, -3])
async def test_cells_with_and_without_versions_are_opened_and_changed(connected: Connected, version: Any) -> None:
    send(connected, "didOpen", opening(version))
    assert texts_of(connected) == TEXTS
    span = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    send(connected, "didChange", change(textContent=[content(CELLS[0], {"range": span, "text": "3"}, version=version)]))
    send(connected, "didChange", change(textContent=[content(CELLS[1], {"range": None, "text": "z"}, version=version)]))
    assert texts_of(connected) == ["x = 3", "z", "y = 2"]


@pytest.mark.parametrize(
    "cells",
    [
        {"textContent": [content(CELLS[0], {"text": None})]},
        {"textContent": [content(CELLS[0], {"text": 5})]},
        {"textContent": [None]},
        {"textContent": {"document": CELLS[0]}},
        {"textContent": [{"document": None, "changes": []}]},
        {"structure": {"didOpen": [{"uri": CELLS[0], "languageId": "python", "version": 1}]}},
        {"structure": []},
        {"data": [{"kind": "code", "document": 5}]},
        {"textContent": [content("vscode-notebook-cell:/none", {"text": "lost"})]},
        {"structure": {"array": {"start": 50, "deleteCount": 3, "cells": []}}},
        {"structure": {"array": {"start": 1, "deleteCount": 0, "cells": [{"kind": 2, "document": "cell:lost"}]}}},
        {},
        None,
    ],
)
async def test_invalid_changes_change_nothing(connected: Connected, cells: Any) -> None:
    send(connected, "didOpen", opening())
    params = change()
    params["change"]["cells"] = cells
    send(connected, "didChange", params)
    assert texts_of(connected) == TEXTS
    send(connected, "didChange", change(textContent=[content(CELLS[2], {"text": "goes on"})]))
    assert texts_of(connected) == [*TEXTS[:2], "goes on"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notebookDocument": None, "cellTextDocuments": []},
        {"notebookDocument": {"uri": NOTEBOOK, "notebookType": "a", "version": 1}, "cellTextDocuments": []},
        {**opening(), "cellTextDocuments": [{"uri": CELLS[0], "languageId": "python", "version": 1, "text": None}]},
    ],
)
async def test_invalid_notebooks_leave_the_server_alive(connected: Connected, params: Any) -> None:
    send(connected, "didOpen", params)
    assert texts_of(connected) == []
    send(connected, "didOpen", opening())
    assert texts_of(connected) == TEXTS


async def test_every_message_may_spell_names_in_its_own_way(connected: Connected) -> None:
    def plain(uri: str) -> str:
        return uri.replace("c%3A", "C:").replace("%3D", "=")

    send(connected, "didOpen", opening())
    told = change(plain(NOTEBOOK), textContent=[content(plain(CELLS[0]), {"text": "changed"})])
    send(connected, "didChange", told)
    assert texts_of(connected)[0] == "changed"
    array = {"start": 0, "deleteCount": 2, "cells": [{"kind": 2, "document": plain(CELLS[1])}]}
    structure = {"array": array, "didClose": [{"uri": plain(CELLS[0])}]}
    send(connected, "didChange", change(plain(NOTEBOOK), structure=structure))
    assert texts_of(connected) == TEXTS[1:]
    assert connected.server.protocol.owner_of(plain(CELLS[1])) == NOTEBOOK
    closing = {"notebookDocument": {"uri": plain(NOTEBOOK)}, "cellTextDocuments": [{"uri": plain(CELLS[1])}]}
    send(connected, "didClose", closing)
    assert texts_of(connected) == []
    assert connected.server.protocol.opened(CELLS[2]) is None  # also where the message does not name it


async def test_changes_of_a_notebook_that_is_not_open_are_passed_over(connected: Connected) -> None:
    send(connected, "didChange", change(textContent=[content(CELLS[0], {"text": "lost"})]))
    send(connected, "didSave", {"notebookDocument": {"uri": NOTEBOOK}})
    send(connected, "didClose", {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": CELLS[0]}]})
    send(connected, "didOpen", opening())
    assert texts_of(connected) == TEXTS
