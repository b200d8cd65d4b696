"""Files of others: read up to a limit, because a device or a pipe may never end, and memory does."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

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


def read_found(path: str | PathLike[str], limit: int = MOST_FILE_BYTES) -> bytes:
    """The bytes of a file that nobody named, but that stands where one is looked for: a pipe there is not waited for.

    Raises OSError for what cannot be read, is no regular file, or larger than ``limit``.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        try:
            return read_all(file, limit)
        except LimitError as error:
            raise OSError(errno.EFBIG, str(error), os.fspath(path)) from None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_json(text: str | bytes) -> Any:
    """``json.loads``, that raises ValueError alone, for what is nested too deeply as well."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
