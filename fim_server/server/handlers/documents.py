"""Handlers of documents that are opened, changed, saved and closed, and of resting cursors."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.server.documents.cut import text_of
from fim_server.server.handlers.language_data import judge
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import read_project
from fim_server.server.models.preparing import prepare_language
from fim_server.server.requests.prompt_prefetch import read_after_change, read_after_opening, read_at_rest
from fim_server.server.requests.secret_files import secret_reason
from fim_server.server.requests.type_through import may_go_on

CURSOR = "fim-server/cursor"
"""Notification of a resting cursor."""


def on_opened(ls: FimLanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Prefetch the prompt at the cursor's last place, if the document was open before."""
    owner = ls.protocol.owner_of(params.text_document.uri)
    ls.project.opened(owner)
    ls.spawn(secret_reason(ls, owner))  # known before the first request
    document = ls.open_document(params.text_document.uri)
    ls.spawn(judge(ls, document))
    if document is not None:
        prepare_language(ls, document)
    read_after_opening(ls, params)


def on_changed(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Stop work that the new text does not continue, and prefetch the prompt at the change."""
    stop_outdated(ls, params.text_document.uri)
    read_after_change(ls, params)


def on_saved(ls: FimLanguageServer, params: types.DidSaveTextDocumentParams) -> None:
    """Read the files that changed on the disk."""
    read_project(ls)
    ls.spawn(judge(ls, ls.open_document(params.text_document.uri)))


def on_closed(ls: FimLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget a document: if it is opened again, it is another one, whatever its version."""
    for uri in ls.protocol.closed_with(params.text_document.uri):
        forget(ls, uri)


def on_cursor(ls: FimLanguageServer, params: Any) -> None:
    """Prefetch the prompt at a resting cursor."""
    read_at_rest(ls, params)


def stop_outdated(ls: FimLanguageServer, uri: str) -> None:
    """Stop a changed document's work, unless the change may be typing along; for a cell, its notebook's work."""
    owner, document = ls.protocol.owner_of(uri), ls.open_document(uri)
    ls.requests.suspended.pop(owner, None)
    ls.worker.unfinished.changed(owner)
    under_way = ls.requests.of(owner)
    text = None if document is None or not under_way else text_of(document)
    for work in under_way:
        if text is None or not may_go_on(work, text):
            work.job.cancelled.set()


def forget(ls: FimLanguageServer, uri: str) -> None:
    superseded = ls.requests.superseded.get(uri)
    if superseded is not None:
        superseded.set()
    ls.worker.forget(uri)
    ls.project.forget(uri)
    ls.answers.forget(uri)
    ls.dismissals.forget(uri)
    ls.checkers.forget(uri)
    ls.editor_languages.forget(uri)
    ls.requests.suspended.pop(uri, None)
    ls.requests.held = None
    ls.worker.unfinished.changed(uri)
