"""A model of the hub, downloaded while it is loaded: told of, cancelled, and then serving. The hub is the tests'."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from fim_server.errors import StoppedError
from fim_server.language import Stop
from fim_server.models.load import load_model
from fim_server.models.store.hub_progress import heeding
from support.editors.editor import Client, Editor, capabilities, serving
from support.models import endpoints, hub
from support.models.endpoints import Endpoint
from support.models.hub import Hub

TEXT = "import os\n\n\ndef names(path, count):\n    return \n"
HERE = TEXT.index("return ") + 7


@pytest.fixture
def small_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub for the processes that are started, which know no other and have downloaded nothing."""
    found = Hub()
    with hub.serving(found) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield found


@asynccontextmanager
async def server(model: str) -> AsyncIterator[Client]:
    offered = capabilities()
    offered.window = types.WindowClientCapabilities(work_done_progress=True)
    async with serving(offered, "--model", model) as client:
        yield client


def downloading(client: Client) -> dict[str, Any] | None:
    found: dict[str, Any] | None = client.statuses[-1].get("fetching") if client.statuses else None
    return found


@pytest.mark.asyncio
async def test_a_download_is_reported_until_the_model_is_ready(small_hub: Hub) -> None:
    async with server(hub.NAME) as client:
        await client.until(lambda: downloading(client))
        told = downloading(client)
        assert told is not None
        assert told["name"] == hub.NAME
        assert told["message"].startswith(f"downloading {hub.NAME}: ")
        assert told["message"].endswith(" MB")
        assert 0 <= told["progress"] < 1
        status = client.statuses[-1]
        assert (status["state"], status["message"]) == ("loading", told["message"])
        small_hub.goes_on.set()
        await client.is_ready()
        assert downloading(client) is None
        assert client.statuses[-1]["model"]["name"] == hub.NAME
        (reports,) = client.progress_reports.values()
        assert any(getattr(report, "message", None) == told["message"] for report in reports)
        assert await Editor(client, "a.py", TEXT).ask(HERE)


@pytest.mark.asyncio
async def test_a_cancelled_download_is_not_restarted_by_typing(small_hub: Hub) -> None:
    async with server(hub.NAME) as client:
        await client.until(lambda: downloading(client))
        answer = await client.run("getModel", {"cancel": True})
        assert answer == {"name": hub.NAME, "done": False, "cancelled": True, "problem": None}
        await client.until(lambda: client.statuses[-1]["state"] == "error")
        assert client.statuses[-1]["message"] == f"{hub.NAME}: the download was cancelled"
        assert downloading(client) is None
        assert await Editor(client, "a.py", TEXT).ask(HERE) == []
        assert client.statuses[-1]["state"] == "error"
        assert (await client.run("getModel", {"cancel": True}))["problem"] == "nothing is being fetched"
        small_hub.goes_on.set()
        await client.run("reload")
        await client.is_ready()
        assert client.statuses[-1]["model"]["name"] == hub.NAME


@pytest.mark.asyncio
async def test_an_unknown_name_is_reported_in_one_line(small_hub: Hub) -> None:
    async with server("nobody/nothing") as client:
        await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
        message = "nobody/nothing: no such model, neither a folder here nor on the hub"
        assert client.statuses[-1]["message"] == message
        assert all("fetching" not in status for status in client.statuses)


def test_a_stop_ends_a_download(small_hub: Hub) -> None:
    small_hub.goes_on.set()
    command = [sys.executable, str(Path(hub.__file__).with_name("hub_downloads.py")), hub.NAME, *small_hub.names]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_stop_ends_an_endless_answer_of_the_hub() -> None:
    ended = threading.Event()
    with Stop(0.2), pytest.raises(StoppedError):
        heeding(ended.wait)
    ended.set()
    assert heeding(ended.wait)
    with pytest.raises(ZeroDivisionError):
        heeding(lambda: 1 // 0)


def test_for_an_endpoints_model_only_the_tokenizer_is_fetched(small_hub: Hub, tmp_path: Path) -> None:
    small_hub.goes_on.set()
    file = tmp_path / "names.py"
    file.write_text(TEXT)
    endpoint = Endpoint(load_model("embedded", "cpu", "onnx"), "vllm", file=hub.NAME)

    def completed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fim_server", "complete", str(file), "5:12", "--model", address, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with endpoints.serving(endpoint) as address:
        unknown = completed()
        assert unknown.returncode == 2
        assert f"name --tokenizer; with {hub.NAME} they are fetched from the hub" in unknown.stderr
        assert small_hub.given == []
        known = completed("--tokenizer", hub.NAME)
        assert known.returncode == 0, known.stderr
        assert "tokenizer.json" in small_hub.given
        assert not [name for name in small_hub.given if name.endswith(".safetensors")]
        given = len(small_hub.given)
        assert completed("--tokenizer", hub.NAME).returncode == 0
        assert len(small_hub.given) == given
