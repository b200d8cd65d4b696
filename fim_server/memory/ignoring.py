"""Files that git ignores or that are made for secrets: as open documents they stay out of other documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fim_server import _core

MOST_FOLDERS = 64
"""Most folders to look into, from a file upward."""


def is_ignored(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether git ignores a file.

    Where a file of rules cannot be read, everything below its folder counts as ignored.

    Args:
        path: The file's path, without links in it.
        folders: The workspace's folders that it is in. Rules are looked for up to the uppermost of them, and up to the
            folder of the repository.
    """
    above = path.parents[:MOST_FOLDERS]
    tops = [folder for folder in above if folder in folders or is_there(folder / ".git")]
    return bool(tops) and _core.is_ignored(tops[-1], path)


def is_made_for_secrets(name: str) -> bool:
    """Return whether a file is made for secrets, by its name."""
    return _core.is_made_for_secrets(name.encode(errors="replace").decode())


def is_there(path: Path) -> bool:
    """Return whether a path is that of anything; false for a name that is too long."""
    try:
        return path.exists()
    except OSError:
        return False
