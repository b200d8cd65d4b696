"""Handlers of the server's life, from the editor's first message to its last, and of its documents' changes."""

from __future__ import annotations

import asyncio
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from fim_server.language import Language
from fim_server.server.documents.notebooks import text_of
from fim_server.server.handlers.completion import on_completion
from fim_server.server.handlers.configuration import ask_for_settings, take_settings
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.messages import FallbackKinds
from fim_server.server.models.fetching import stop_and_wait
from fim_server.server.models.indexing import read_project
from fim_server.server.models.loading import load, reload
from fim_server.server.prefetch import read_after_change, read_after_opening, read_at_rest
from fim_server.server.type_through import may_go_on

READ_SECONDS = 1.0
"""How long after a change on the disk it is read."""


def on_initialize(ls: FimLanguageServer, params: types.InitializeParams) -> None:
    """Keep documents by our own positions; pygls has made its workspace just before.

    Clients without inline completion get the suggestion list instead, and only they.
    """
    ls.protocol.replace_workspace()
    ls.watch_client_process(params.process_id)
    take_settings(ls, params.initialization_options)
    ls.initial_settings = ls.client_settings
    text_document = params.capabilities.text_document
    if text_document is None or text_document.inline_completion is None:
        ls.fallback = FallbackKinds(params.capabilities)
        ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(on_completion)


async def on_initialized(ls: FimLanguageServer, params: types.InitializedParams) -> None:
    """Take the client's settings, then load the model in the background."""
    await ask_for_settings(ls)
    read_project(ls)
    ls.spawn(watch_files(ls))
    if ls.worker.loads_like(ls.settings):
        await load(ls)
    else:  # somebody asked for completions before, and it has begun with other settings
        await reload(ls)


def on_saved(ls: FimLanguageServer, params: types.DidSaveTextDocumentParams) -> None:
    """Read what has changed on the disk."""
    read_project(ls)


def on_folders_changed(ls: FimLanguageServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget the folders that went, and read those that came."""
    ls.folders_changed = True
    ls.project.leave([folder.uri for folder in params.event.removed])
    read_project(ls)


async def watch_files(ls: FimLanguageServer) -> None:
    """Ask to be told of files that change on the disk, where the client can tell; else saving a document is the time.

    Where nothing of the project is remembered, what is told changes nothing.
    """
    workspace = ls.client_capabilities.workspace
    watching = None if workspace is None else workspace.did_change_watched_files
    if watching is None or not watching.dynamic_registration:
        return
    suffixes = sorted({suffix for name in Language.names() for suffix in Language.suffixes_of(name)})
    watchers = [types.FileSystemWatcher(f"**/*{{{','.join(suffixes)}}}")]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    try:
        await ls.client_register_capability_async(
            types.RegistrationParams([types.Registration(method, method, options)])
        )
    except JsonRpcException as error:
        ls.log(types.MessageType.Warning, f"the editor watches no files ({type(error).__name__})")


async def on_files_changed(ls: FimLanguageServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Read what has changed on the disk, once for all that changes within a moment: a checkout changes many."""
    if not ls.reads_soon:
        ls.reads_soon = True
        await asyncio.sleep(READ_SECONDS)
        ls.reads_soon = False
        read_project(ls)


async def on_shutdown(ls: FimLanguageServer, params: None) -> None:
    """Stop what is under way."""
    ls.worker.close()
    ls.project.close()
    await stop_and_wait(ls)


def on_changed(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Stop what is under way for the text as it was, but what may be just what was typed.

    What is being prepared may still come true.
    """
    take_change(ls, params.text_document.uri)
    read_after_change(ls, params)


def take_change(ls: FimLanguageServer, uri: str) -> None:
    """Stop the work for an outdated text; that of a cell for its notebook."""
    owner, document = ls.protocol.owner_of(uri), ls.open_document(uri)
    ls.set_aside.pop(owner, None)
    ls.worker.unfinished.changed(owner)
    at_work = [found for found in (ls.running.get(owner), ls.left.get(owner)) if found is not None]
    text = None if document is None or not at_work else text_of(document)
    for under_way in at_work:
        if text is None or not may_go_on(under_way, text):
            under_way.job.cancelled.set()


def on_cursor(ls: FimLanguageServer, params: Any) -> None:
    """Read where a cursor came to rest."""
    read_at_rest(ls, params)


def on_opened(ls: FimLanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Read where somebody was when the document was open before."""
    ls.project.opened(ls.protocol.owner_of(params.text_document.uri))
    read_after_opening(ls, params)


def on_closed(ls: FimLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget what is known of a document. What is opened under its name again is another, whatever its version."""
    for uri in ls.protocol.closed_with(params.text_document.uri):
        forget(ls, uri)


def on_notebook_opened(ls: FimLanguageServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """Note that a notebook was opened."""
    ls.project.opened(params.notebook_document.uri)


def on_notebook_changed(ls: FimLanguageServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Stop the work for outdated cells; executing a cell changes nothing."""
    cells = params.change.cells
    if cells is None:
        return
    texts, uri = list(cells.text_content or ()), params.notebook_document.uri
    if cells.structure is not None:
        for under_way in (ls.running.get(uri), ls.left.get(uri)):
            if under_way is not None:
                under_way.job.cancelled.set()
    for text in texts:
        take_change(ls, text.document.uri)
    if len(texts) == 1 and cells.structure is None:
        read_after_change(ls, types.DidChangeTextDocumentParams(texts[0].document, texts[0].changes))


def on_notebook_closed(ls: FimLanguageServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """Forget a closed notebook."""
    forget(ls, params.notebook_document.uri)


def on_notebook_saved(ls: FimLanguageServer, params: types.DidSaveNotebookDocumentParams) -> None:
    """Read the files that changed on the disk."""
    read_project(ls)


def forget(ls: FimLanguageServer, uri: str) -> None:
    """Forget a closed document."""
    overtaken = ls.overtaken.get(uri)
    if overtaken is not None:
        overtaken.set()
    ls.worker.forget(uri)
    ls.project.forget(uri)
    ls.memory.forget(uri)
    ls.set_aside.pop(uri, None)
    ls.worker.unfinished.changed(uri)
