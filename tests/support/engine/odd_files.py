"""Unreadable things that may stand in the place of a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.unix import make_pipe


def huge(path: Path) -> None:
    """A file that says it has 64 GiB, and takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 36)


KINDS: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "pipe": make_pipe,
    "loop": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere/at/all"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "huge": huge,
    "nothing": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "nested": lambda path: path.write_bytes(b"[" * 200_000),
    "nested objects": lambda path: path.write_bytes(b'{"a":' * 200_000),
}

odd = pytest.mark.parametrize("kind", KINDS)
worst = pytest.mark.parametrize("kind", ["folder", "pipe", "device", "huge", "nested"])
posix = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and links")


def put(kind: str, path: Path) -> None:
    """Put one of them in a file's place."""
    if path.exists() or path.is_symlink():
        path.unlink()
    KINDS[kind](path)
