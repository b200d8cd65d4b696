"""Lack of memory or threads, and a full disk: the server reports them and ends, also on `exit`."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fim_server.errors import EXHAUSTED, ModelError, is_exhaustion
from fim_server.server.models.exhaustion import MESSAGE
from support.editors.editor import PATIENCE, SERVE, STATUS, Ending, Server, Wire, patiently
from support.interrupts import heed_interrupts

LACKING = [sys.executable, str(Path(__file__).parents[2] / "support" / "servers" / "lacking_server.py")]

if sys.platform != "win32":
    import resource

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system has no such limit")


@asynccontextmanager
async def started(*command: str, **more: Any) -> AsyncIterator[tuple[Server, Wire]]:
    """Start a server by its command, and let it load its model."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, **more)
    assert process.stdin is not None
    assert process.stdout is not None
    server, wire = Server(process), Wire(process.stdout, process.stdin)
    async with Ending(server):
        with suppress(AssertionError, ConnectionError):  # it has ended before
            await initialize(wire)
        yield server, wire


async def initialize(wire: Wire) -> None:
    params: dict[str, Any] = {
        "processId": None,
        "rootUri": None,
        "capabilities": {"textDocument": {"inlineCompletion": {}}},
    }
    await wire.ask("initialize", "initialize", params)
    await wire.send(Wire.note("initialized", {}))


@pytest.mark.asyncio
@pytest.mark.parametrize("what", ["memory", "words", "threads"])
async def test_a_lack_of_memory_or_threads_is_reported_and_ends_the_server(what: str) -> None:
    async with started(*LACKING, what) as (server, wire):
        assert await server.ended(PATIENCE) == EXHAUSTED
        assert MESSAGE in server.errors.decode()
        assert "Traceback" not in server.errors.decode()
        if what == "memory":
            with pytest.raises(AssertionError):  # the end of its messages
                await wire.note_of("no such message")
            last = [note["params"] for note in wire.notes if note["method"] == STATUS][-1]
            assert (last["state"], last["message"]) == ("error", MESSAGE)


@pytest.mark.asyncio
async def test_memory_errors_of_libraries_count() -> None:
    async with started(*LACKING, "library") as (server, _):
        assert await server.ended(PATIENCE) == EXHAUSTED


@on_linux
@pytest.mark.asyncio
@pytest.mark.parametrize("megabytes", [150, 220, 360, 380, 410, 440, 480, 500])
async def test_with_little_memory_a_server_is_ready_or_ends(megabytes: int) -> None:
    """The limit depends on the libraries, but the server never stays in `loading`, and nothing aborts it there."""

    def limit() -> None:
        if sys.platform != "win32":
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    async with started(*SERVE, "--model=embedded", preexec_fn=limit) as (server, wire):
        try:
            await wire.note_of(STATUS, lambda status: status["state"] == "ready")
        except (AssertionError, ConnectionError):  # the end of its messages
            assert await server.ended(PATIENCE) == EXHAUSTED
            said = server.errors.decode()
            assert "fim-server: too little memory" in said
            assert "allocation" not in said
            states = [note["params"]["state"] for note in wire.notes if note["method"] == STATUS]
            assert states[-1:] in ([], ["error"])  # without one, the libraries had no room to be imported


@on_linux
@pytest.mark.asyncio
async def test_a_full_disk_costs_the_cache_alone(tmp_path: Path) -> None:
    def limit() -> None:
        if sys.platform != "win32":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    environment = {**os.environ, "FIM_SERVER_CACHE": str(tmp_path / "cache")}
    async with started(*SERVE, "--model=embedded", preexec_fn=limit, env=environment) as (server, wire):
        await wire.is_ready()
        assert "Traceback" not in server.errors.decode()


@pytest.mark.asyncio
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
async def test_signals_end_a_server_that_loads(number: signal.Signals, status: int) -> None:
    async with started(*LACKING, "end", preexec_fn=heed_interrupts) as (server, wire):
        await wire.note_of(STATUS, lambda told: told.get("message") == "loading the model")
        server.process.send_signal(number)
        assert await server.ended(PATIENCE) == status


@pytest.mark.asyncio
async def test_a_server_of_a_port_continues(unused_tcp_port: int) -> None:
    """One client may name a model that is too large; others have theirs."""
    command = [*LACKING, "memory", "--tcp", f"{unused_tcp_port}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with Ending(Server(process)):
        wire = Wire(*await patiently(lambda: asyncio.open_connection("127.0.0.1", unused_tcp_port)))
        await initialize(wire)
        told = await wire.note_of(STATUS, lambda status: status["state"] == "error")
        assert "MemoryError" in told["message"]
        statistics = {"command": "fim-server.statistics", "arguments": []}
        assert "result" in await wire.ask("lives", "workspace/executeCommand", statistics)


def caused_by(cause: BaseException) -> ModelError:
    error = ModelError("the model cannot be loaded")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOMEM, "cannot allocate memory"), True),
        (ImportError("libopenblas.so: failed to map segment from shared object"), True),
        (caused_by(MemoryError()), True),
        (caused_by(RuntimeError("std::bad_alloc")), True),
        (RuntimeError("the model was given up"), False),
        (OSError(errno.ENOSPC, "no space left on device"), False),
        (ImportError("no module named onnxruntime"), False),
        (ModelError("out of memory.gguf: no such file"), False),
        (None, False),
    ],
)
def test_errors_that_report_a_lack_of_memory(error: BaseException | None, is_one: bool) -> None:
    assert is_exhaustion(error) == is_one
