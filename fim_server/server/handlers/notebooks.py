"""Handlers of notebooks that are opened, changed, saved and closed."""

from __future__ import annotations

from lsprotocol import types

from fim_server.server.handlers.documents import forget, stop_outdated
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import read_project
from fim_server.server.requests.prompt_prefetch import read_after_change


def on_notebook_opened(ls: FimLanguageServer, params: types.DidOpenNotebookDocumentParams) -> None:
    ls.project.opened(params.notebook_document.uri)


def on_notebook_changed(ls: FimLanguageServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Stop the work for outdated cells; executing a cell changes nothing."""
    cells = params.change.cells
    if cells is None:
        return
    texts, uri = list(cells.text_content or ()), params.notebook_document.uri
    if cells.structure is not None:
        for work in ls.requests.of(uri):
            work.job.cancelled.set()
    for text in texts:
        stop_outdated(ls, text.document.uri)
    if len(texts) == 1 and cells.structure is None:
        read_after_change(ls, types.DidChangeTextDocumentParams(texts[0].document, texts[0].changes))


def on_notebook_saved(ls: FimLanguageServer, params: types.DidSaveNotebookDocumentParams) -> None:
    """Read the files that changed on the disk."""
    read_project(ls)


def on_notebook_closed(ls: FimLanguageServer, params: types.DidCloseNotebookDocumentParams) -> None:
    forget(ls, params.notebook_document.uri)
