"""Files and addresses that the program uses, seen by Python's audit hooks: only its cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.editors.editor import Wire
from support.editors.listening import connect, listening

INLINE = "textDocument/inlineCompletion"

HOOK = """
import os, sys

LOG = os.open(os.environ["AUDITED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
WATCHED = {"socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system", "os.exec",
           "os.posix_spawn", "os.fork", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link",
           "os.symlink", "shutil.move", "shutil.rmtree", "urllib.Request", "http.client.connect", "webbrowser.open"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def hook(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)) or not flags & WRITING or path == os.devnull:
            return
        arguments = (os.fsdecode(path),)
    elif event not in WATCHED:
        return
    os.write(LOG, (event + " " + " ".join(map(str, arguments[:2])) + "\\n").encode("utf-8", "replace"))

sys.addaudithook(hook)
"""


@pytest.fixture
def audited(tmp_path: Path) -> dict[str, str]:
    """An environment in which a process writes down what it reaches for."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    return {
        "PYTHONPATH": str(tmp_path / "hook"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AUDITED": str(tmp_path / "audited"),
        "FIM_SERVER_CACHE": str(tmp_path / "cache"),
        "HOME": str(tmp_path / "home"),
    }


def reached(folder: Path) -> list[str]:
    """Return the events outside the cache folder."""
    events = (folder / "audited").read_text(encoding="utf-8").splitlines()
    return [event for event in events if str(folder / "cache") not in event]


@pytest.mark.parametrize(
    "arguments",
    [
        ["complete", "{hole}", "2:12", "--max-new-tokens", "4"],
        ["check", "{hole}"],
        ["explain", "{hole}", "2:12", "--grammar"],
        ["models", "list"],
    ],
    ids=" ".join,
)
def test_commands_reach_nothing_and_write_nothing_but_the_cache(
    arguments: Sequence[str], tmp_path: Path, audited: dict[str, str]
) -> None:
    hole = tmp_path / "hole.py"
    hole.write_text("def f(x):\n    return \n", encoding="utf-8")
    command = [sys.executable, "-m", "fim_server", *(argument.format(hole=hole) for argument in arguments)]
    done = subprocess.run(command, env={**os.environ, **audited}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert reached(tmp_path) == []
    assert hole.read_text(encoding="utf-8") == "def f(x):\n    return \n"


def test_torch_opens_no_connection(tmp_path: Path, audited: dict[str, str]) -> None:
    """Its libraries ask the linker where others are, and make temporary files of their own."""
    hole = tmp_path / "hole.py"
    hole.write_text("def f(x):\n    return \n", encoding="utf-8")
    command = [sys.executable, "-m", "fim_server", "complete", str(hole), "2:12", "--max-new-tokens", "4"]
    done = subprocess.run(
        [*command, "--runtime", "torch"], env={**os.environ, **audited}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not [event for event in reached(tmp_path) if event.startswith(("socket", "urllib", "http"))]


def test_the_hook_sees_what_it_should(tmp_path: Path, audited: dict[str, str]) -> None:
    code = "import socket\nopen('a', 'w')\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **audited}, cwd=tmp_path, check=True)
    assert [event.split(" ")[0] for event in reached(tmp_path)] == ["open", "socket.getaddrinfo", "socket.connect"]


@pytest.mark.asyncio
async def test_the_server_reaches_nothing_and_changes_no_file(tmp_path: Path, audited: dict[str, str]) -> None:
    document = tmp_path / "hole.py"
    document.write_text("on the disk\n", encoding="utf-8")
    uri = document.as_uri()
    async with listening(**audited) as (server, port):
        wire = await connect(port)
        await wire.initialize()
        await wire.is_ready()
        await wire.open(uri, "def f(x):\n    return \n")
        answer: dict[str, Any] = await wire.ask("asked", INLINE, Wire.completion(uri, 1, 11))
        assert len(answer["result"]["items"]) > 0
        await wire.ask("bye", "shutdown", None)
        await wire.send(Wire.note("exit", None))
        await server.ended(60)
    # The name of the address that it listens on is looked up; no connection is made.
    assert {json.dumps(event) for event in reached(tmp_path) if "127.0.0.1" not in event} == set()
    assert not [event for event in reached(tmp_path) if event.startswith(("socket.connect", "socket.sendto"))]
    assert document.read_text(encoding="utf-8") == "on the disk\n"
