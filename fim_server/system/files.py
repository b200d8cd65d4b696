"""Stamps of files, which tell whether a file has changed since it was read."""

from __future__ import annotations

from pathlib import Path

Stamp = list[int]
"""Size, time of modification, time of change, and number of a file: a list, as JSON gives it back."""


def stamp_of(path: Path) -> Stamp:
    """Return a stamp that every write through the file system changes. Raises OSError."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
