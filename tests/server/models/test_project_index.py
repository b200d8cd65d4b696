"""A look at the process while the project's files are read: notes, memory over the budget, and the status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from fim_server.server.app import create_server
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models import indexing
from fim_server.server.status import STATUS
from fim_server.workers import supervisor
from fim_server.workers.budget import MEGABYTE
from support.editors.editor import Wire, wired
from support.editors.watched import SETTINGS, give_model
from support.unix import make_pipe


class Reading:
    """A project that is being read until it is stopped."""

    def __init__(self, notes: list[str]) -> None:
        self.is_reading, self.notes, self.size, self.is_begun = True, notes, 0, True

    def take_notes(self) -> list[str]:
        notes, self.notes = self.notes, []
        return notes

    def stop_reading(self) -> None:
        self.is_reading = False

    def close(self) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FimLanguageServer, list[Any]]]:
    """A server with a model that is never asked, and what it says."""
    server = create_server(SETTINGS)
    give_model(server.worker)
    said: list[Any] = []
    monkeypatch.setattr(server, "log", lambda kind, message: said.append((kind, message)))
    monkeypatch.setattr(server.protocol, "notify", lambda method, status: said.append((method, status)))
    yield server, said
    server.worker.close()


def test_reading_stops_above_the_memory_budget(server: tuple[FimLanguageServer, list[Any]]) -> None:
    ls, said = server
    ls.project = project = Reading(["x is left out"])  # type: ignore[assignment]
    indexing.check_reading(ls, 900 * MEGABYTE, 1000 * MEGABYTE)
    reads = [project.is_reading]
    assert (types.MessageType.Warning, "reading the project: x is left out") in said
    indexing.check_reading(ls, 1001 * MEGABYTE, 1000 * MEGABYTE)
    assert [*reads, project.is_reading] == [True, False]
    assert any("memoryMb" in str(message) and "1,001 MB" in str(message) for _, message in said)


def test_the_status_shows_growing_memory(server: tuple[FimLanguageServer, list[Any]]) -> None:
    ls, said = server
    ls.project = Reading([])  # type: ignore[assignment]
    for resident in (500, 510, 520, 600, 610, 700):
        indexing.check_reading(ls, resident * MEGABYTE, None)
    assert sum(method == STATUS for method, _ in said) == 3


def test_the_supervisor_runs_while_files_are_read(
    server: tuple[FimLanguageServer, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ls, _ = server
    ls.project = ls.supervisor._project = project = Reading([])  # type: ignore[assignment]
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "resident_bytes", lambda: 1 << 50)

    async def looked_after() -> None:
        ls.supervisor.begin()
        assert ls.supervisor.task is not None
        await ls.supervisor.task

    asyncio.run(asyncio.wait_for(looked_after(), 30))
    assert not project.is_reading


@pytest.mark.skipif(sys.platform != "linux", reason="devices and pipes are those of Linux")
def test_a_hostile_folder_is_opened_within_the_budget(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("alpha = 1\n")
    (tmp_path / ".ignore").symlink_to("/dev/zero")
    (tmp_path / "pipe").mkdir()
    make_pipe(tmp_path / "pipe" / ".gitignore")

    async def open_folder() -> int:
        async with wired() as (server, wire):
            folder = {"uri": tmp_path.as_uri(), "name": "hostile"}
            offered: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}
            params = {"processId": None, "capabilities": offered, "rootUri": None, "workspaceFolders": [folder]}
            await wire.ask("initialize", "initialize", {**params, "initializationOptions": {"model": "embedded"}})
            await wire.send(Wire.note("initialized", {}))
            await wire.is_ready()
            for line in (".ignore is a link that leads out of the folder", ".gitignore is not a regular file"):
                await wire.note_of("window/logMessage", partial(names, line))
            return peak_of(server.process.pid)

    assert asyncio.run(asyncio.wait_for(open_folder(), 120)) < 1_500 * MEGABYTE


def names(line: str, note: dict[str, Any]) -> bool:
    """Return whether a logged message holds a line."""
    return line in note["message"]


def peak_of(process: int) -> int:
    """Return the most bytes that a process has held."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) << 10
