"""The server on a model behind an endpoint: items, an endpoint that fails and comes back, one that is not there."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
from types import SimpleNamespace

import pytest

from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.source import locate
from fim_server.server.models import loading
from support.editors.editor import Client, Editor, assert_parses, serving, written
from support.engine.corpus import cuts
from support.models import endpoints
from support.models.endpoints import Endpoint

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def local() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


async def offered(client: Client, name: str) -> int:
    """Count the holes that get items, and check that each item fits."""
    found = 0
    for index, cut in enumerate(itertools.islice(cuts(random.Random(1), 5_000, 2), 3)):
        editor = Editor(client, f"{name}-{index}.py", cut.left + cut.right)
        items = await editor.ask(len(cut.left))
        found += bool(items)
        for item in items:
            if client.last["guarantee"] == "exact":
                assert_parses(editor.applied(item, len(cut.left)), written(item))
    return found


@pytest.mark.parametrize(("kind", "mode"), [("llama.cpp", "exact"), ("ollama", "checked")])
async def test_items_come_from_an_endpoint(local: FimModel, kind: str, mode: str) -> None:
    endpoint = Endpoint(local, kind)
    with endpoints.serving(endpoint) as address:
        arguments = ["--model", address, *(["--tokenizer", locate("embedded")] if kind == "llama.cpp" else [])]
        async with serving(None, *arguments) as client:
            await client.is_ready()
            await client.use(alternatives=1, deadlineMs=30_000)  # however busy the machine is
            model = client.statuses[-1]["model"]
            assert (model["runtime"], model["mode"]) == ("remote", mode)
            assert address in model["device"]
            before = await offered(client, "before")
            assert before
            asked = len(endpoint.asked)
            assert asked
            endpoint.faults = ["500"] * 400
            editor = Editor(client, "broken.py", "def f(values):\n    return \n")
            await editor.ask(26)
            assert "HTTP 500" in str(client.last["reason"])
            endpoint.faults = []
            assert await offered(client, "after") == before


async def test_an_endpoint_that_starts_later_is_used(local: FimModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with serving(None, "--model", f"http://127.0.0.1:{port}", "--tokenizer", locate("embedded")) as client:
        await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
        editor = Editor(client, "a.py", "def f(values):\n    return \n")
        assert await editor.ask(26) == []
        with endpoints.serving(Endpoint(local, "llama.cpp"), port):
            await client.is_ready()
            assert await editor.ask(26)
        assert len([message for message in client.messages if "ConnectError" in message.message]) == 1


async def test_a_missing_endpoint_is_reported(local: FimModel) -> None:
    async with serving(None, "--model", "http://127.0.0.1:9") as client:
        await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
        assert "http://127.0.0.1:9: ConnectError" in client.statuses[-1]["message"]
        assert await Editor(client, "a.py", "a = \n").ask(4) == []


async def test_an_unready_endpoint_is_tried_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    looks: list[int] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def answers(settings: object) -> bool:
        return True

    async def load(ls: object, look: int) -> None:
        looks.append(look)

    server = SimpleNamespace(settings=None, worker=SimpleNamespace(is_closed=False, reload=lambda settings: None))
    monkeypatch.setattr(loading, "is_there_now", answers)
    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    for look in (0, 1, 2, 50):
        await loading.load_once_there(server, asyncio.Event(), look)  # type: ignore[arg-type]
    assert waited == [5.0, 10.0, 20.0, 60.0]
    assert looks == [1, 2, 3, 51]
