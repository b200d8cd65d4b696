"""The ways in which editors' clients start a server, and that it ends with the editor's process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fim_server.server.connection import client_process
from fim_server.server.connection.client_process import ClientProcesses
from fim_server.system import other_processes
from fim_server.system.other_processes import Handle, Polled, SystemHandle
from support.editors.editor import PATIENCE, SERVE, Ending, Server, Wire, wired, wired_tcp

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
UNUSED = (1 << 31) - 1


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for an editor's."""
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def initialization(number: object) -> dict[str, object]:
    return {"processId": number, "rootUri": None, "capabilities": {}}


# --- how servers are started -----------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "arguments", [["--stdio"], ["--stdio", f"--clientProcessId={os.getpid()}"], ["--clientProcessId", f"{os.getpid()}"]]
)
async def test_arguments_that_clients_add_are_accepted(arguments: list[str]) -> None:
    async with wired(*arguments) as (_, wire):
        assert "capabilities" in (await wire.ask("initialize", "initialize", initialization(None)))["result"]


@asynccontextmanager
async def connecting(way: str, folder: Path) -> AsyncIterator[tuple[Server, Wire]]:
    """A server that connects to a client which listens, as vscode-languageclient does."""
    connected: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set_result(Wire(reader, writer))

    if way.startswith("--socket"):
        listening = await asyncio.start_server(take, "127.0.0.1", 0)
        where = str(listening.sockets[0].getsockname()[1])
    elif sys.platform == "win32":
        pytest.skip("the pipe is a Unix socket here")
    else:
        where = str(folder / "pipe")
        listening = await asyncio.start_unix_server(take, where)
    arguments = [way + where] if way.endswith("=") else [way, where]
    process = await asyncio.create_subprocess_exec(*SERVE, *arguments, stderr=asyncio.subprocess.PIPE)
    server = Server(process)
    async with listening, Ending(server):
        yield server, await asyncio.wait_for(connected, PATIENCE)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "way",
    ["--socket", "--socket=", pytest.param("--pipe=", marks=pytest.mark.skipif(os.name == "nt", reason="sockets"))],
)
async def test_a_client_that_listens_is_connected_to(way: str, tmp_path: Path) -> None:
    async with connecting(way, tmp_path) as (server, wire):
        assert "capabilities" in (await wire.ask("initialize", "initialize", initialization(None)))["result"]
        await wire.ask("bye", "shutdown", None)
        await wire.send(Wire.note("exit", None))
        assert await server.ended(PATIENCE) == 0
        assert "Traceback" not in server.errors.decode()


@pytest.mark.asyncio
@pytest.mark.skipif(os.name == "nt", reason="sockets")
async def test_a_listening_client_that_vanishes_leaves_no_warning(tmp_path: Path) -> None:
    async with connecting("--pipe=", tmp_path) as (server, wire):
        answer = wire.request("initialize", "initialize", initialization(None))
        await wire.send(answer, Wire.note("initialized", {}))
        wire.writer.close()
        await server.ended(PATIENCE)
        assert server.errors.decode() == ""


@pytest.mark.skipif(os.name == "nt", reason="sockets")
@pytest.mark.parametrize("name", ["a\u202eb\x1b[31m", "a" * 5000], ids=["hidden characters", "5,000 characters"])
def test_an_error_names_the_socket_in_a_short_line(name: str) -> None:
    ended = subprocess.run([*SERVE, "--pipe", name], capture_output=True, timeout=PATIENCE, check=False)
    said = ended.stderr.decode()
    assert ended.returncode == 2
    assert said.count("\n") == 1
    assert said[:-1].isprintable()
    assert len(said) < 400


# --- the end of the editor -------------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("told", ["initialize", "argument"])
async def test_the_server_ends_with_the_editors_process(sleeper: subprocess.Popen[bytes], told: str) -> None:
    """The pipe stays open: this process has it, not the one that is killed; nor is that one waited for."""
    arguments = [f"--clientProcessId={sleeper.pid}"] if told == "argument" else []
    async with wired(*arguments) as (server, wire):
        number = sleeper.pid if told == "initialize" else None
        await wire.ask("initialize", "initialize", initialization(number))
        await wire.send(Wire.note("initialized", {}))  # the model is on its way
        sleeper.kill()
        assert await server.ended(PATIENCE) == 0
        assert f"the editor's process, {sleeper.pid}, has ended" in server.errors.decode()
        assert "Traceback" not in server.errors.decode()


@pytest.mark.asyncio
async def test_a_client_of_a_port_is_its_connection(sleeper: subprocess.Popen[bytes]) -> None:
    """Its number may be that of another machine's or container's process: it ends nothing here."""
    async with wired_tcp() as (server, wire):
        await wire.ask("initialize", "initialize", initialization(sleeper.pid))
        sleeper.kill()
        sleeper.wait()
        await asyncio.sleep(0.5)
        again = await wire.ask("again", "initialize", initialization(None))
        assert again["error"]["message"] == "initialize may be sent only once"
        assert server.process.returncode is None


class Watched:
    """Processes that are watched in this one."""

    def __init__(self) -> None:
        self.ended, self.left = threading.Event(), threading.Event()
        self.processes = ClientProcesses(self.ended.set, lambda status: self.left.set())


@pytest.mark.parametrize("number", [None, 0, -1, -os.getpid(), os.getpid(), UNUSED, 1 << 40], ids=range(7))
def test_numbers_without_an_editors_process_end_nothing(number: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_process, "GRACE_SECONDS", 0.0)
    watched, before = Watched(), threading.active_count()
    watched.processes.watch(number)
    assert threading.active_count() == before
    assert not watched.processes.has_ended


def test_a_server_started_from_another_namespace_knows_no_numbers(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start the server without a parent, as `docker exec -i` does: its parent's number names another process."""
    monkeypatch.setattr(os, "getppid", lambda: 0)
    before = threading.active_count()
    Watched().processes.watch(sleeper.pid)
    assert threading.active_count() == before


def test_a_server_that_does_not_end_by_itself_is_ended(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_process, "GRACE_SECONDS", 0.0)
    watched = Watched()
    watched.processes.watch(sleeper.pid)
    assert not watched.ended.is_set()
    sleeper.kill()
    assert watched.left.wait(PATIENCE)
    assert watched.ended.is_set()
    assert watched.processes.has_ended


# --- handles --------------------------------------------------------------------------------------------------------


def wait_in_thread(handle: Handle) -> threading.Thread:
    thread = threading.Thread(target=handle.wait, daemon=True)
    thread.start()
    return thread


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system has other handles")


@on_linux
@pytest.mark.parametrize("kind", [SystemHandle, Polled])
@pytest.mark.parametrize("reaped", [False, True])
def test_a_handle_waits_for_the_end(
    sleeper: subprocess.Popen[bytes], kind: type[Handle], reaped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one that its parent has not looked after, which the system lists still."""
    monkeypatch.setattr(other_processes, "LOOK_SECONDS", 0.01)
    thread = wait_in_thread(kind(sleeper.pid))  # type: ignore[call-arg]
    thread.join(0.05)
    assert thread.is_alive()
    sleeper.kill()
    if reaped:
        sleeper.wait()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@on_linux
@pytest.mark.parametrize("kind", [SystemHandle, Polled])
def test_no_handle_is_of_a_process_that_is_not_there(kind: type[Handle]) -> None:
    with pytest.raises(ProcessLookupError):
        kind(UNUSED)  # type: ignore[call-arg]


@on_linux
def test_another_process_of_the_same_number_is_not_the_editors(sleeper: subprocess.Popen[bytes]) -> None:
    handle = Polled(sleeper.pid)
    handle._began = "when another process began"
    wait_in_thread(handle).join(PATIENCE)
    assert sleeper.poll() is None


@on_linux
def test_a_process_of_another_user_is_one(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    thread = wait_in_thread(Polled(sleeper.pid))
    thread.join(0.05)
    assert thread.is_alive()


@on_linux
def test_without_descriptors_processes_are_polled(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int) -> int:
        raise PermissionError("as a container's filter of system calls has it")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert isinstance(other_processes.handle_of(sleeper.pid), Polled)
