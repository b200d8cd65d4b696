"""Lock of an open file, by which one process keeps others from writing it."""

from __future__ import annotations

import sys
from typing import IO

WINDOWS_OFFSET = (1 << 31) - 2
"""Offset of the byte that is locked on Windows, which forbids others to read it: far behind what journals hold."""


def lock(file: IO[bytes]) -> None:
    """Lock a file until it is closed. Raises OSError if another open file has the lock."""
    if sys.platform == "win32":
        import msvcrt

        at = file.tell()
        file.seek(WINDOWS_OFFSET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(at)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
