"""Documents that are files of secrets: they are never completed, prompted or remembered.

Names and globs decide at once. Where links lead, and what ignore files say, is looked up on the disk, beside the event
loop, and kept for some seconds.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fim_server.memory.ignoring import has_secret_name, is_secret
from fim_server.memory.recent_verdicts import RecentVerdicts
from fim_server.suggest.sources.project import path_of
from fim_server.system.blocking_pool import BLOCKING_POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER_SECONDS = 2.0
"""Longest wait for a disk."""

NO_PATH = re.compile(r"\A[\w.+-]+:|[?#].*", re.DOTALL)
"""Parts of a URI besides its host and path."""

IS_SECRET = "the file may hold secrets: it is never read (setting secretFiles)"
"""Reason for a file of secrets."""

IS_SILENT = "the disk does not say whether the file may be read"
"""Reason for a file on a disk that does not answer."""


class SecretDocuments:
    """Verdicts on whether documents are files of secrets. Used by the event loop's thread."""

    def __init__(self) -> None:
        self._verdicts: RecentVerdicts[tuple[str, tuple[str, ...], tuple[str, ...]]] = RecentVerdicts()

    def known(self, uri: str, folders: Sequence[str], globs: tuple[str, ...]) -> bool | None:
        """Return whether a document is a file of secrets; None if the disk has to be asked.

        Args:
            uri: The document; for a cell, its notebook.
            folders: The URIs of the workspace's folders.
            globs: The setting `secretFiles`.
        """
        known = self._verdicts.get((uri, tuple(folders), globs))
        if known is not None:
            return known
        path = path_of(uri)
        if path is None:  # no file of this machine
            return has_secret_name(name_in(uri), globs)
        return True if not globs and has_secret_name(path.name) else None

    async def reason(self, uri: str, folders: Sequence[str], globs: tuple[str, ...]) -> str | None:
        """Return the reason for which a document is never read, or None. Arguments as of :meth:`known`."""
        verdict = self.known(uri, folders, globs)
        if verdict is None:
            try:
                verdict = await asyncio.wait_for(self._look(uri, folders, globs), ANSWER_SECONDS)
            except (TimeoutError, OSError):
                return IS_SILENT
        return IS_SECRET if verdict else None

    async def _look(self, uri: str, folders: Sequence[str], globs: tuple[str, ...]) -> bool:
        path, key = path_of(uri), (uri, tuple(folders), globs)
        assert path is not None, "names decide for other URIs"
        inside = [folder for folder in map(path_of, folders) if folder is not None and path.is_relative_to(folder)]
        begun = BLOCKING_POOL.begin(key, lambda: is_secret(path, inside, globs))
        if begun is None:
            raise TimeoutError("all threads wait for disks")
        return self._verdicts.keep(key, await asyncio.shield(asyncio.wrap_future(begun)))


def name_in(uri: str) -> str:
    """Return the host and path that a URI names."""
    return unquote(NO_PATH.sub("", uri))
