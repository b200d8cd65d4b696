"""Documents that are files of secrets, over the real protocol: no items, a reason, and no text of them elsewhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fim_server.server.documents.secret_documents import IS_SECRET
from support.editors.editor import INVALID_PARAMS, SETTINGS, STATUS, Wire, wired

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "def total(rows):\n    return \n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Wire, Path]]:
    """A server of one folder."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "private").mkdir()
    (folder / ".aiignore").write_text("private/\n")
    for name in ("secrets.py", ".env", "private/a.py"):
        (folder / name).write_text(TEXT)
    (folder / "link.py").symlink_to(".env")
    async with wired("--model=embedded") as (_, wire):
        capabilities = {"textDocument": {"inlineCompletion": {}}, "workspace": {"workspaceFolders": True}}
        options = {**SETTINGS, "projectMemory": True}
        folders = [{"uri": folder.as_uri(), "name": "workspace"}]
        params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": capabilities}
        params |= {"initializationOptions": options, "workspaceFolders": folders}
        await wire.ask("initialize", "initialize", params)
        await wire.send(wire.note("initialized", {}))
        await wire.is_ready()
        yield wire, folder


async def items_of(wire: Wire, uri: str, text: str = TEXT, invoked: bool = True) -> tuple[list[Any], dict[str, Any]]:
    """Open a document, request items at the end of its second line, close it; return the items and the status."""
    await wire.open(uri, text)
    await wire.send(
        wire.note("fim-server/cursor", {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 11}})
    )
    wire.notes.clear()
    answer = await wire.ask("asked", "textDocument/inlineCompletion", wire.completion(uri, 1, 11, invoked))
    status = await wire.note_of(STATUS, lambda status: status.get("last", {}).get("uri") == uri)
    await wire.send(wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))
    return answer["result"]["items"], status["last"]


SECRET = ["secrets.py", "Secrets.PY", "private/a.py", "private/new.py", "link.py", "sub/secrets.h.py", ".env.py"]


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("invoked", [True, False])
async def test_a_file_of_secrets_gets_no_items(served: tuple[Wire, Path], name: str, invoked: bool) -> None:
    wire, folder = served
    items, last = await items_of(wire, (folder / name).as_uri(), invoked=invoked)
    assert items == []
    assert last["reason"] == IS_SECRET
    assert last["origin"] == "none"


@pytest.mark.parametrize("uri", ["untitled:secrets.py", "vscode-vfs://host/a/.env", "vscode-remote:/x/id_rsa?a=1"])
async def test_documents_that_are_no_files_count_by_their_names(served: tuple[Wire, Path], uri: str) -> None:
    items, last = await items_of(served[0], uri)
    assert (items, last["reason"]) == ([], IS_SECRET)


@pytest.mark.parametrize("name", ["plain.py", "sub/keys.py", "privately/a.py"])
async def test_other_files_are_completed(served: tuple[Wire, Path], name: str) -> None:
    wire, folder = served
    items, last = await items_of(wire, (folder / name).as_uri())
    assert items
    assert last["reason"] is None


async def test_the_log_says_it_once(served: tuple[Wire, Path]) -> None:
    wire, folder = served
    uri = (folder / "secrets.py").as_uri()
    await wire.open(uri, TEXT)
    wire.notes.clear()
    for number in range(3):
        await wire.ask(number, "textDocument/inlineCompletion", wire.completion(uri, 1, 11))
    await wire.ask("statistics", "workspace/executeCommand", {"command": "fim-server.statistics", "arguments": []})
    logged = [one["params"]["message"] for one in wire.notes if one["method"] == "window/logMessage"]
    assert len([one for one in logged if IS_SECRET in one]) == 1
    assert all("total(rows)" not in one for one in logged)
    await wire.send(wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))


async def test_it_is_not_explained(served: tuple[Wire, Path]) -> None:
    wire, folder = served
    uri = (folder / "link.py").as_uri()
    await wire.open(uri, TEXT)
    argument = {"uri": uri, "position": {"line": 1, "character": 11}}
    params = {"command": "fim-server.explainAt", "arguments": [argument]}
    answer = await wire.ask("explained", "workspace/executeCommand", params)
    assert (answer["error"]["code"], answer["error"]["message"]) == (INVALID_PARAMS, f"Invalid Params: {IS_SECRET}")
    await wire.send(wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))


async def test_the_setting_adds_and_takes_out_files(served: tuple[Wire, Path]) -> None:
    wire, folder = served

    async def use(**more: Any) -> None:
        values = {"fim-server": {**SETTINGS, "projectMemory": True, **more}}
        await wire.send(wire.note("workspace/didChangeConfiguration", {"settings": values}))

    await use(secretFiles=["plain.*", "!secrets.py", "!private/a.py"])
    try:
        found = [bool((await items_of(wire, (folder / name).as_uri()))[0]) for name in ("plain.py", *SECRET[:5])]
        assert found == [False, True, True, True, False, False]
        wire.notes.clear()
        await use(secretFiles=["#"])
        (await items_of(wire, (folder / "a.py").as_uri()))
        assert "setting 'secretFiles': a glob expected" in json.dumps(wire.notes)
    finally:
        await use()
    assert (await items_of(wire, (folder / "secrets.py").as_uri()))[0] == []


async def test_its_text_is_suggested_nowhere(served: tuple[Wire, Path]) -> None:
    wire, folder = served
    line = "    answer = quite_an_unusual_name(rows, of_three, parts)\n"
    block = f"def one(rows):\n    begin(rows)\n{line}\n\n"
    hidden, shown = (folder / "private" / "b.py").as_uri(), (folder / "open.py").as_uri()
    recalled = []
    for uri in (hidden, shown):
        text = block * 3 + "x = \n"
        await wire.open(uri, text)
        await wire.ask("asked", "textDocument/inlineCompletion", wire.completion(uri, text.count("\n") - 1, 4))
        other = (folder / "third.py").as_uri()
        await wire.open(other, "def two(rows):\n    begin(rows)\n    \n")
        answer = await wire.ask("recalled", "textDocument/inlineCompletion", wire.completion(other, 2, 4, False))
        recalled.append("quite_an_unusual_name" in json.dumps(answer["result"]["items"]))
        for closed in (uri, other):
            await wire.send(wire.note("textDocument/didClose", {"textDocument": {"uri": closed}}))
    assert recalled == [False, True]
