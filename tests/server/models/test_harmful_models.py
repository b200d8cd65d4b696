"""The server on models that are damaged, that end processes, and that lie: it lives, and says why in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fim_server.models.gguf import library
from fim_server.models.smollm2.build import build
from support.editors.editor import Client, Editor, serving
from support.models.gguf_mutations import mutated, sound_file
from support.models.hostile_endpoint import answering, whole
from support.models.tiny_base import tiny_weights, write_tiny_base

pytestmark = pytest.mark.asyncio

HOW = "run `fim-server models get smollm2`"
TEXT = "import os\n\n\ndef names(path, count):\n    return \n"
HERE = TEXT.index("return ") + 7
FATAL_SEED = 14


def silent(line: str) -> None:
    """Say nothing."""


def built(cache: Path) -> Path:
    """A small model in a cache, as it is after it was got."""
    base = write_tiny_base(cache / "tiny.gguf", tiny_weights())
    build(base, cache / "models" / "smollm2", silent, cache / "no adapter")
    return cache / "models" / "smollm2"


async def fails(client: Client) -> str:
    """Return the server's message about the missing model; requests are answered all the same."""
    await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
    assert await Editor(client, "a.py", TEXT).ask(HERE) == []
    message: str = client.statuses[-1]["message"]
    assert "\n" not in message
    return message


@pytest.mark.parametrize("named", [[], ["--model", "smollm2"]])
@pytest.mark.parametrize("has_manifest", [True, False])
async def test_the_embedded_model_serves_while_another_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: list[str], has_manifest: bool
) -> None:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    folder = built(tmp_path)
    os.truncate(folder / "onnx" / "model.onnx", 1000)
    if not has_manifest:  # an older version has built it
        (folder / "manifest.json").unlink()
    async with serving(None, *named) as client:
        await client.is_ready()
        status = client.statuses[-1]
        assert status["model"]["name"] == "embedded"
        assert status["offer"]["state"] == "damaged"
        assert status["offer"]["how"] in HOW
        assert status["message"].endswith(f"smollm2 is damaged, the embedded model is used instead: {HOW}")
        assert len([line for line in client.logged if "smollm2 is damaged (" in line and HOW in line]) == 1
        await client.use(alternatives=1, deadlineMs=30_000)
        assert await Editor(client, "a.py", TEXT).ask(HERE)


@pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")
async def test_a_file_that_ends_processes_does_not_end_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    path = tmp_path / "fatal.gguf"
    path.write_bytes(mutated(sound_file(path).read_bytes(), FATAL_SEED)[0])
    async with serving(None, "--model", str(path)) as client:
        assert "llama.cpp ends the process that loads it" in await fails(client)


async def test_an_endpoint_that_lies_does_not_end_the_server() -> None:
    with answering("llama.cpp", whole({}), tokenize=whole({"tokens": [10**9]})) as address:
        async with serving(None, "--model", address) as client:
            assert "encodes a text as tokens unknown to its model" in await fails(client)
