"""The server's commands that list the models of the machine and remove one."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fim_server.errors import ModelError
from fim_server.evaluation.model_check.known import Kept, keep_speed, models_here
from fim_server.models.source import locate
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.manifest import write_manifest
from fim_server.models.turn import Turn
from fim_server.server import ServerSettings
from fim_server.server.models import installed as module
from fim_server.server.models.installed import is_in_use, on_disk
from fim_server.workers.shared_models import SharedModels
from support.editors.editor import Client, Editor, serving

TEXT = "import os\n\n\ndef names(path, count):\n    return \n"
HERE = TEXT.index("return ") + 7


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home whose cache has the embedded model under the other's name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    shutil.copytree(locate("embedded"), tmp_path / "cache/models/smollm2")
    write_manifest(tmp_path / "cache/models/smollm2")
    return tmp_path


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[Client]:
    async with serving(None, *arguments) as client:
        await client.is_ready()
        yield client


async def rows_of(client: Client) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in await client.run("models")}


@pytest.mark.asyncio
async def test_the_models_are_listed_with_what_is_known_of_them(machine: Path) -> None:
    file = machine / "models/coder.gguf"
    file.parent.mkdir()
    file.write_bytes(b"x" * 7)
    speeds = {"smollm2": Kept(400.0, 40.0, 600.0), str(file): Kept(50.0, 10.0, 3000.0)}
    for one in models_here():
        if one.name in speeds:
            keep_speed(one, speeds[one.name])
    async with server("--model", "embedded") as client:
        rows = await rows_of(client)
        assert list(rows) == [*catalogue(), "embedded", str(file)]
        smollm2 = rows["smollm2"]
        assert smollm2["bytes"] > 1_000_000
        assert (smollm2["state"], smollm2["default"]) == ("outdated", True)
        assert (smollm2["lineMs"], smollm2["writtenTokensPerSecond"]) == (600, 40)
        assert [name for name, row in rows.items() if row["recommended"]] == ["smollm2"]
        assert [name for name, row in rows.items() if row["inUse"]] == ["embedded"]
        assert [name for name, row in rows.items() if row["removable"]] == ["smollm2"]
        assert (rows[str(file)]["state"], rows[str(file)]["bytes"], rows[str(file)]["lineMs"]) == ("file", 7, 3000)


@pytest.mark.asyncio
async def test_a_model_is_removed_and_completions_go_on(machine: Path) -> None:
    folder = machine / "cache/models/smollm2"
    async with server("--model", "embedded") as client:
        answer = await client.run("removeModel", {"name": "smollm2"})
        assert answer.pop("freedBytes") > 1_000_000
        assert answer == {"name": "smollm2", "done": True, "problem": None}
        assert not folder.exists()
        assert "smollm2 is removed" in client.logged
        assert (await rows_of(client))["smollm2"]["state"] == "missing"
        again = await client.run("removeModel", {"name": "smollm2"})
        assert again == {"name": "smollm2", "done": False, "freedBytes": 0, "problem": "smollm2: not installed"}
        assert await Editor(client, "a.py", TEXT).ask(HERE)


@pytest.mark.asyncio
async def test_the_model_in_use_and_what_is_not_installed_stay(machine: Path) -> None:
    folder, other = machine / "cache/models/smollm2", machine / "models/other.gguf"
    other.parent.mkdir()
    other.write_bytes(b"x")
    async with server() as client:
        for name in ("smollm2", str(folder)):
            problem = (await client.run("removeModel", {"name": name}))["problem"]
            assert problem == f"{name} is in use: choose another model first"
        for name in ("embedded", "owner/name", str(other), str(machine), "../../models/other.gguf"):
            answer = await client.run("removeModel", {"name": name})
            assert answer["problem"] == f"{name}: not an installed model, and no GGUF file in {folder.parent}"
        assert client.messages == []  # who asked has the answer
        assert folder.is_dir()
        assert other.is_file()
        await client.use(model="embedded")
        await client.is_ready()
        assert (await client.run("removeModel", {"name": "smollm2"}))["done"]


def test_a_model_released_a_moment_later_is_not_in_use(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models, held = SharedModels(), [["smollm2"], ["smollm2"], ["smollm2"], []]
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(models, "names", lambda: held.pop(0))
    assert not is_in_use("smollm2", "embedded", models)
    assert held == []


def test_a_model_that_another_client_has_is_in_use(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        turn = Turn()

    monkeypatch.setattr("fim_server.models.load.load_model", lambda *key: Model())
    models = SharedModels()
    assert not is_in_use("smollm2", "embedded", models)
    had = models.get(ServerSettings(model=str(machine / "cache/models/../models/smollm2")))
    assert is_in_use("smollm2", "embedded", models)
    assert not is_in_use("http://localhost:8080", "embedded", models)
    cycle: list[object] = [had]
    cycle.append(cycle)
    del had, cycle
    assert not is_in_use("smollm2", "embedded", models)
    assert is_in_use("smollm2", None, models)


@pytest.mark.asyncio
async def test_a_slow_disk_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def look() -> str:
        assert answers.wait(60)
        return "found"

    looking = asyncio.ensure_future(on_disk(("a disk",), look))
    await asyncio.sleep(0)  # it has begun, and this goes on
    monkeypatch.setattr(module, "DISK_SECONDS", 0.01)
    with pytest.raises(ModelError, match="the disk has not answered"):
        await on_disk(("a disk",), look)
    answers.set()
    assert await looking == "found"
