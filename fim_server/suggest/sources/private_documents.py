"""Documents whose text stays out of other documents: files that git ignores, and files with names of secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.memory.ignoring import is_ignored, is_made_for_secrets
from fim_server.memory.recent_verdicts import RecentVerdicts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class PrivateDocuments:
    """Test for private documents, for use on any thread."""

    def __init__(self) -> None:
        self._verdicts: RecentVerdicts[tuple[Path, tuple[Path, ...]]] = RecentVerdicts()

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
        key = path, tuple(folders)
        known = self._verdicts.get(key)
        if known is not None:
            return known
        return self._verdicts.keep(key, is_ignored(path, [one for one in folders if path.is_relative_to(one)]))
