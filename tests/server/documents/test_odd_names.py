"""Names that no file, variable or device can have, in commands, settings and URIs: one short line each."""

from __future__ import annotations

from typing import Any

import pytest

from support.editors.editor import INVALID_PARAMS, STATUS, Wire, wired

pytestmark = pytest.mark.asyncio

MOST_SAID = 900
TEXT = "def f(a):\n    return \n"

NAMES = {
    "100,000 characters": "x" * 100_000,
    "a path of 100,000 characters": "/" + "x" * 100_000,
    "a GGUF file of 100,000 characters": "/" + "x" * 100_000 + ".gguf",
    "many folders": "/a" * 50_000,
    "a part of 300 characters": "/tmp/" + "y" * 300,
    "a GGUF file of 300 characters": "/tmp/" + "y" * 300 + ".gguf",
    "a NUL": "/tmp/a\0b",
    "a NUL in a GGUF file": "/tmp/a\0b.gguf",
    "a NUL in a user": "~a\0b",
    "a user of 300 characters": "~" + "q" * 300,
    "half of a surrogate pair": "/tmp/\ud800",
    "half of a surrogate pair in a GGUF file": "/tmp/\ud800.gguf",
    "a repository of 300 characters": "a/" + "b" * 300,
    "an address of 100,000 characters": "http://" + "h" * 100_000,
    "a NUL in an address": "http://127.0.0.1\0:9",
    "half of a surrogate pair in an address": "https://\ud800.example",
    "an escape sequence": "\x1b[31m\u202e",
    "two lines": "a\nb",
}


def expect_short(text: str) -> None:
    assert text
    assert len(text) < MOST_SAID, text[:2000]
    assert text.isprintable(), ascii(text)


async def test_commands_answer_odd_names_with_a_short_line() -> None:
    async with wired("--model=embedded") as (server, wire):
        await wire.initialize()
        await wire.is_ready()
        for case, name in NAMES.items():
            for command in ("removeModel", "getModel"):
                params = {"command": f"fim-server.{command}", "arguments": [{"name": name}]}
                answer = await wire.ask(f"{case}, {command}", "workspace/executeCommand", params)
                if "error" in answer:
                    assert answer["error"]["code"] == INVALID_PARAMS, (case, command, str(answer)[:500])
                    expect_short(answer["error"]["message"])
                else:
                    assert answer["result"]["name"] == name
                    assert answer["result"]["done"] is False
                    expect_short(answer["result"]["problem"])
        assert b"Traceback" not in server.errors


async def test_documents_of_odd_names_are_completed() -> None:
    async with wired("--model=embedded") as (server, wire):
        await wire.initialize(projectMemory=True)
        await wire.is_ready()
        for case, name in NAMES.items():
            path = name.replace("\0", "%00")
            for uri in (f"file:///{path.lstrip('/')}", f"untitled:{name}", f"vscode-notebook-cell:/{name}#a"):
                await wire.open(uri, TEXT)
                answer = await wire.ask(
                    f"{case} {uri[:9]}", "textDocument/inlineCompletion", wire.completion(uri, 1, 11)
                )
                assert answer["result"]["items"], (case, uri[:80])
                named: Any = {"textDocument": {"uri": uri}}
                await wire.send(
                    Wire.note("textDocument/didSave", named),
                    Wire.note("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 1}]}),
                    Wire.note("textDocument/didClose", named),
                )
            folders = {"added": [{"uri": f"file://{path}", "name": "x"}], "removed": []}
            await wire.send(Wire.note("workspace/didChangeWorkspaceFolders", {"event": folders}))
        await wire.ask("last", "workspace/executeCommand", {"command": "fim-server.statistics", "arguments": []})
        assert b"Traceback" not in server.errors, server.errors.decode()[-3000:]


@pytest.mark.parametrize("field", ["model", "tokenizer", "apiKeyEnv", "adapter", "device"])
async def test_settings_with_odd_names_are_reported_in_a_short_line(field: str) -> None:
    async with wired() as (server, wire):
        await wire.initialize(model="embedded")
        await wire.is_ready()
        usual = {"adapter": "/tmp/none.gguf", "device": "embedded"}.get(field, "http://127.0.0.1:9")
        for case, name in NAMES.items():
            wire.notes.clear()
            settings = {"fim-server": {"model": usual, field: name}}
            await wire.send(Wire.note("workspace/didChangeConfiguration", {"settings": settings}))
            status = await wire.note_of(STATUS, lambda status: status["state"] in ("error", "ready"))
            said = [note["params"]["message"] for note in wire.notes if note["method"] == "window/logMessage"]
            assert said or field == "device", case
            for line in (status["message"], *said):
                expect_short(line)
                assert "Error: " not in line or "ConnectError" in line, (case, line)
        answer = await wire.ask("last", "workspace/executeCommand", {"command": "fim-server.models", "arguments": []})
        assert answer["result"]
        assert b"Traceback" not in server.errors, server.errors.decode()[-3000:]
