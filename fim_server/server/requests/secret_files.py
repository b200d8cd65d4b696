"""Verdicts on the documents of requests: files of secrets are never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer


async def secret_reason(ls: FimLanguageServer, uri: str) -> str | None:
    """Return the reason for which a document is never read, or None. ``uri``: for a cell, its notebook.

    Text that was remembered before the document became a file of secrets is dropped.
    """
    reason = await ls.secrets.reason(uri, ls.folders, ls.settings.secret_files)
    if reason is not None:
        ls.project.drop(uri)
        ls.answers.forget(uri)
        ls.dismissals.forget(uri)
    return reason


def is_readable(ls: FimLanguageServer, uri: str) -> bool | None:
    """Return whether a document may be read; None if the disk has to be asked. ``uri``: as of :func:`secret_reason`."""
    verdict = ls.secrets.known(uri, ls.folders, ls.settings.secret_files)
    return None if verdict is None else not verdict
