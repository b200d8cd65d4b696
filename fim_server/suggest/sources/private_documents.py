"""Documents whose text stays out of other documents: files that git ignores, and files with names of secrets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fim_server.memory.ignoring import is_ignored, is_made_for_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOOK_AGAIN_SECONDS, MOST_KNOWN = 5.0, 256
"""Time for which a verdict on a file is kept, and the most files to keep."""


class PrivateDocuments:
    """Test for private documents, for use on any thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, tuple[Path, ...]], tuple[bool, float]] = {}

    def contains(self, path: Path | None, folders: Sequence[Path]) -> bool:
        """Return whether a document is private.

        Args:
            path: The path of the document; None where it is no file.
            folders: The client's folders, whose rules apply to the files in them.
        """
        if path is None:
            return False
        if is_made_for_secrets(path.name):
            return True
        key, now = (path, tuple(folders)), time.monotonic()
        known = self._known.get(key)
        if known is None or now - known[1] > LOOK_AGAIN_SECONDS:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = (
                is_ignored(path, [folder for folder in folders if path.is_relative_to(folder)]),
                now,
            )
        return known[0]
