"""``./dev bench start``: seconds until the server answers and is ready, and of two short commands.

Each run is a process of its own. With ``--beside`` those of another checkout take turns with this one's, since other
work on a machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from fim_server.cli.arguments import positive

ROOT = Path(__file__).parents[2]
CHECKED = ROOT / "fim_server" / "language" / "definition" / "splitting.py"
"""File of some 11 kB that is checked."""

COMPLETED = "def add(a, b):\n    return a"
KINDS = ("initialize", "ready", "complete", "check")

CAPABILITIES = {
    "workspace": {"configuration": True},
    "window": {"workDoneProgress": True},
    "textDocument": {"inlineCompletion": {}},
}


@dataclass(frozen=True)
class StartOptions:
    """Options of ``./dev bench start``."""

    runs: int
    model: str | None
    beside: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=positive(int), default=9, metavar="N", help="runs of each kind (default: 9)")
    parser.add_argument("--model", metavar="NAME", help="as of `fim-server serve`")
    parser.add_argument("--beside", type=Path, metavar="DIR", help="root of another checkout to compare with")


def run(options: StartOptions) -> int:
    """Measure, and print a table of medians."""
    roots = [ROOT] if options.beside is None else [ROOT, options.beside.resolve()]
    model = [] if options.model is None else ["--model", options.model]
    found: dict[tuple[Path, str], list[float]] = {(root, kind): [] for root in roots for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.py").write_text(COMPLETED, encoding="utf-8")
        for number in range(options.runs + 1):  # the first run fills caches
            for root in roots if number % 2 else reversed(roots):
                for kind, seconds in measured(root, Path(folder), model).items():
                    found[root, kind] += [seconds] if number else []
    print(f"{'median, ms':12}", *(f"{name:>8}" for name in ("here", "beside", "ratio")[: 2 * len(roots) - 1]))
    for kind in KINDS:
        here, *beside = (1000 * median(found[root, kind]) for root in roots)
        ratios = [here / other for other in beside]
        print(f"{kind:12} {here:8.0f}", *(f"{other:8.0f}" for other in beside), *(f"{one:8.2f}" for one in ratios))
    return 0


def measured(root: Path, folder: Path, model: list[str]) -> dict[str, float]:
    """Return the seconds of one run of each kind."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    program = [sys.executable, "-m", "fim_server"]
    settings: dict[str, Any] = {"cwd": folder, "env": environment | {"PYTHONPATH": str(root)}}
    found = server_seconds([*program, "serve", *model], folder, settings)
    for kind, arguments in (
        ("complete", ["complete", "a.py", "2:13", "--max-new-tokens", "4", *model]),
        ("check", ["check", str(CHECKED)]),
    ):
        began = time.perf_counter()
        subprocess.run([*program, *arguments], check=True, capture_output=True, **settings)
        found[kind] = time.perf_counter() - began
    return found


def server_seconds(command: list[str], folder: Path, settings: dict[str, Any]) -> dict[str, float]:
    """Return the seconds until a server answers `initialize`, and until its status is `ready`."""
    found: dict[str, float] = {}
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **settings
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        params = {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": CAPABILITIES}
        send(server.stdin, {"id": 1, "method": "initialize", "params": params})
        while "ready" not in found:
            message = received(server.stdout)
            seconds = time.perf_counter() - began
            if message.get("id") == 1 and "method" not in message:
                found["initialize"] = seconds
                send(server.stdin, {"method": "initialized", "params": {}})
            elif "id" in message:
                is_asked = message.get("method") == "workspace/configuration"
                send(server.stdin, {"id": message["id"], "result": [None] if is_asked else None})
            elif message.get("method") == "fim-server/status" and message["params"]["state"] == "ready":
                found["ready"] = seconds
        server.kill()
    return found


def send(to: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    to.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    to.flush()


def received(source: IO[bytes]) -> dict[str, Any]:
    """Return the next message. Raises EOFError at the end."""
    length = 0
    while line := source.readline():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        if not line.strip():
            message: dict[str, Any] = json.loads(source.read(length))
            return message
    raise EOFError("the server has ended")
