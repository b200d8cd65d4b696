"""Bounded reading of files, because devices and pipes may never end and memory is limited.

:func:`read_found` reads every file of a workspace that Python reads; the project's memory has its own twin
(`reading.rs`).
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from fim_server.errors import LimitError

MOST_FILE_BYTES = 64 * 2**20
"""Most bytes of a source file or report to read; source code has some thousands."""

MOST_LINE_BYTES = 64 * 2**20
"""Most bytes of a line in a file of samples or results: a line holds a whole source file."""

READ_SECONDS, PIECE_BYTES = 10.0, 1 << 20
"""Most seconds for reading a file, and bytes to read between two checks of the time."""


def read_limited(path: str | PathLike[str], limit: int = MOST_FILE_BYTES) -> bytes:
    """Return a file's bytes.

    Raises OSError if it cannot be read, and LimitError, without its name, if it has more than ``limit`` bytes.
    """
    with Path(path).open("rb") as file:
        return read_all(file, limit)


def read_found(
    path: str | PathLike[str], limit: int = MOST_FILE_BYTES, within: str | PathLike[str] | None = None
) -> bytes:
    """Read a file that was found by its place instead of named by the user, within bounds.

    It opens only regular files, without waiting: a pipe, a socket or a device is refused. A file without a length, such
    as those of virtual file systems, is empty.

    Raises OSError if the file cannot be read, is not a regular file, is outside of ``within``, is larger than
    ``limit``, or is not read within :data:`READ_SECONDS`.

    Args:
        path: Path of the file.
        limit: Most bytes of the file.
        within: Folder that links must not lead out of; None: links may lead anywhere.
    """
    name = os.fspath(path)
    real = os.path.realpath(path, strict=True)
    if within is not None and not Path(real).is_relative_to(os.path.realpath(within, strict=True)):
        raise OSError(errno.EPERM, "a link that leads out of its folder", name)
    # Opening a device can change its state, so that the kind is looked at before and, on the descriptor, after.
    if not stat.S_ISREG(Path(real).stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    with open(real, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", name)
        return b"" if status.st_size == 0 else _read_in_time(file, limit, name)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _read_in_time(file: BinaryIO, limit: int, name: str) -> bytes:
    deadline = time.monotonic() + READ_SECONDS
    pieces, size = [], 0
    while piece := file.read(min(PIECE_BYTES, limit + 1 - size)):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", name)
        if time.monotonic() > deadline:
            raise OSError(errno.ETIMEDOUT, f"not read within {READ_SECONDS:.0f} s", name)
    return b"".join(pieces)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raises only ValueError, also for a text that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_all(file: BinaryIO, limit: int = MOST_FILE_BYTES) -> bytes:
    """Return the rest of an open file. Raises as :func:`read_limited`."""
    data = file.read(limit + 1)
    if len(data) > limit:
        raise LimitError(f"larger than {limit} bytes", limit=limit)
    return data


def lines_of(file: BinaryIO, limit: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of an open file, with their ends. Raises LimitError for a line of more than ``limit`` bytes."""
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise LimitError(f"a line is longer than {limit} bytes", limit=limit)
        yield line
