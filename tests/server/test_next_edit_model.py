"""The setting `nextEditModel` over the real protocol."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from fim_server.models.source import locate
from support.editors.editor import SETTINGS, Wire, wired


async def messages(wire: Wire, uri: str, method: str, wanted: str) -> list[str]:
    """Ask for edits until the server has sent a message; return all of its kind."""
    for number in range(200):
        asked = {"textDocument": {"uri": uri}}
        answer = await wire.ask(f"{wanted} {number}", "textDocument/copilotInlineEdit", asked)
        assert answer["result"] == {"edits": []}
        found = [one["params"]["message"] for one in wire.notes if one.get("method") == method]
        if any(wanted in one for one in found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"no {method} with {wanted}")


@pytest.mark.asyncio
async def test_a_model_of_a_known_name_is_loaded_and_a_missing_one_is_told_once(tmp_path: Path) -> None:
    model = tmp_path / "sweep-next-edit-tiny"
    shutil.copytree(locate("embedded"), model)
    settings = SETTINGS | {"nextEditModel": str(model)}
    async with wired("--model=embedded") as (_, wire):
        params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": settings}
        await wire.ask("initialize", "initialize", params)
        await wire.send(wire.note("initialized", {}))
        uri = (tmp_path / "a.py").as_uri()
        text = "first = 1\nsecond = 2\n"
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        await wire.send(wire.note("textDocument/didOpen", {"textDocument": document}))
        place = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 9}}
        changed = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"range": place, "text": "3"}]}
        await wire.send(wire.note("textDocument/didChange", changed))
        await messages(wire, uri, "window/logMessage", "ready for next edits (Sweep format)")
        newer = SETTINGS | {"nextEditModel": str(tmp_path / "missing.gguf")}
        await wire.send(wire.note("workspace/didChangeConfiguration", {"settings": newer}))
        found = await messages(wire, uri, "window/showMessage", "missing.gguf")
        assert len(found) == 1
