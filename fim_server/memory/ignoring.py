"""Files that git ignores: which open documents no other document learns of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fim_server import _core

MOST_FOLDERS = 64
"""Folders from a file upward that are looked into."""


def is_ignored(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether git ignores a file.

    Where a file of rules cannot be read, all that is below its folder counts as ignored.

    Args:
        path: The file's, without a link in it.
        folders: The workspace's folders that it is in. Rules are looked for up to the uppermost of them, and up to the
            folder of the repository.
    """
    above = list(path.parents)[:MOST_FOLDERS]
    tops = [folder for folder in above if folder in folders or (folder / ".git").exists()]
    return bool(tops) and _core.is_ignored(tops[-1], path)
