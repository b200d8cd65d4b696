"""Handlers of the server's life, from the editor's first message to its last, and of its documents' changes."""

from __future__ import annotations

from lsprotocol import types

from fim_server.server.ahead import read_after_change, read_after_opening
from fim_server.server.completions import on_completion
from fim_server.server.configuration import ask_for_settings, read_project, take_settings
from fim_server.server.fetching import stop_and_wait
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.loading import load, reload
from fim_server.server.messages import FallbackKinds


def on_initialize(ls: FimLanguageServer, params: types.InitializeParams) -> None:
    """Keep documents by our own positions; pygls has made its workspace just before.

    Clients without inline completion get the suggestion list instead, and only they.
    """
    ls.protocol.replace_workspace()
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
    if ls.worker.loads_like(ls.settings):
        await load(ls)
    else:  # somebody asked for completions before, and it has begun with other settings
        await reload(ls)


def on_saved(ls: FimLanguageServer, params: types.DidSaveTextDocumentParams) -> None:
    """Read what has changed on the disk."""
    read_project(ls)


def on_folders_changed(ls: FimLanguageServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Read the folders that came."""
    read_project(ls)


async def on_shutdown(ls: FimLanguageServer, params: None) -> None:
    """Stop what is under way."""
    ls.worker.close()
    ls.project.close()
    await stop_and_wait(ls)


def on_changed(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Stop what is under way for the text as it was. What is being prepared may still come true."""
    uri = params.text_document.uri
    ls.set_aside.pop(uri, None)
    ls.worker.unfinished.changed(uri)
    running = ls.running.get(uri)
    if running is not None:
        running.job.cancelled.set()
    read_after_change(ls, params)


def on_opened(ls: FimLanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Read where somebody was when the document was open before."""
    ls.project.opened(params.text_document.uri)
    read_after_opening(ls, params)


def on_closed(ls: FimLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget what is known of a document. What is opened under its name again is another, whatever its version."""
    uri = params.text_document.uri
    overtaken = ls.overtaken.get(uri)
    if overtaken is not None:
        overtaken.set()
    ls.worker.forget(uri)
    ls.project.forget(uri)
    ls.memory.forget(uri)
    ls.set_aside.pop(uri, None)
    ls.worker.unfinished.changed(uri)
