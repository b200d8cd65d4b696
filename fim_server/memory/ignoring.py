"""Files that git ignores or that hold secrets by their name: as open documents they stay out of other documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fim_server import _core

MOST_FOLDERS = 64
"""Most folders to look into, from a file upward."""


def is_ignored(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether git ignores a file.

    If a file of rules cannot be read, everything below its folder counts as ignored.

    Args:
        path: The file's path, with links resolved.
        folders: Workspace folders that it is in. Rules apply from the uppermost of them, or from the repository's
            folder.
    """
    above = path.parents[:MOST_FOLDERS]
    tops = [folder for folder in above if folder in folders or is_there(folder / ".git")]
    return bool(tops) and _core.is_ignored(tops[-1], path)


def is_made_for_secrets(name: str) -> bool:
    return _core.is_made_for_secrets(name.encode(errors="replace").decode())


def is_there(path: Path) -> bool:
    """Return whether a path exists; False for a name that is too long."""
    try:
        return path.exists()
    except OSError:
        return False
