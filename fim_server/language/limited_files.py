"""Files that a user named, read up to a limit: a device or a pipe may never end, and memory does."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from fim_server.errors import LimitError

MOST_FILE_BYTES = 64 * 2**20
"""The largest source file or report that is read, in bytes; a file of source code has some thousands."""

MOST_LINE_BYTES = 64 * 2**20
"""The longest line of a file of samples or results, in bytes: a line holds a whole source file."""


def read_limited(path: str | PathLike[str], limit: int = MOST_FILE_BYTES) -> bytes:
    """A file's bytes.

    Raises OSError where it cannot be read, and LimitError, which does not name it, where it has more than ``limit``.
    """
    with Path(path).open("rb") as file:
        return read_all(file, limit)


def read_all(file: BinaryIO, limit: int = MOST_FILE_BYTES) -> bytes:
    """All that is left of an open file. Raises as :func:`read_limited`."""
    data = file.read(limit + 1)
    if len(data) > limit:
        raise LimitError(f"larger than {limit} bytes", limit=limit)
    return data


def lines_of(file: BinaryIO, limit: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """The lines of an open file, with their ends. Raises LimitError at one that has more than ``limit`` bytes."""
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise LimitError(f"a line is longer than {limit} bytes", limit=limit)
        yield line
