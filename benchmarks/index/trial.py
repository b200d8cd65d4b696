"""Asking a memory at cursors in a package, as a server would, without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.index.cursors import Cursor, draw
from fim_server._core import Continuation, ProjectMemory

SUFFIXES = (".py",)


def asked(
    folder: Path, count: int, seed: int, limit: int, most_lines: int = 1
) -> Iterator[tuple[Cursor, list[Continuation]]]:
    """Cursors in a package's files, with the continuations there; the file without what is typed there is open.

    Args:
        folder: The package.
        count: Cursors.
        seed: Of what is drawn.
        limit: Continuations of each.
        most_lines: Of a continuation; where it is more than one, several lines may be to be typed.
    """
    memory = ProjectMemory()
    memory.index_folder(folder, SUFFIXES)
    last = None
    for cursor in draw(folder, SUFFIXES, count, seed, most_lines > 1):
        if last is not None and last != cursor.key:
            memory.close(last)
        last = cursor.key
        memory.update(cursor.key, cursor.before, cursor.after)
        yield cursor, memory.continuations(cursor.key, cursor.left, cursor.right, most_lines, limit)
