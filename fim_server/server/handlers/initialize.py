"""Handlers of `initialize`, `initialized` and `shutdown`."""

from __future__ import annotations

import re

from lsprotocol import types

from fim_server.server.handlers.completion import on_completion
from fim_server.server.handlers.configuration import ask_for_settings, take_settings
from fim_server.server.handlers.files import register_watchers
from fim_server.server.items import FallbackKinds
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.fetching import stop_and_wait
from fim_server.server.models.indexing import read_project
from fim_server.server.models.loading import load, reload

ONLY_INSERTS = re.compile(r"\(build [A-Z]+-\d")
"""Version that LSP4IJ sends, such as `PyCharm (build PY-252.23892.439)`. LSP4IJ draws and inserts a text behind the
characters right of the cursor that its range replaces."""


def on_initialize(ls: FimLanguageServer, params: types.InitializeParams) -> None:
    """Replace pygls' workspace by ours; register the suggestion list for clients without inline completion."""
    ls.protocol.replace_workspace()
    ls.watch_client_process(params.process_id)
    if params.client_info is not None and ONLY_INSERTS.search(params.client_info.version or ""):
        ls.only_insert()
    take_settings(ls, params.initialization_options)
    ls.client.initial_settings = ls.client.settings
    text_document = params.capabilities.text_document
    if text_document is None or text_document.inline_completion is None:
        ls.client.fallback = FallbackKinds(params.capabilities)
        ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(on_completion)


async def on_initialized(ls: FimLanguageServer, params: types.InitializedParams) -> None:
    """Take the client's settings, then load the model in the background."""
    await ask_for_settings(ls)
    ls.habits.update()
    read_project(ls)
    ls.spawn(register_watchers(ls))
    if ls.worker.loads_like(ls.settings):
        await load(ls)
    else:  # an earlier request has begun to load the model of other settings
        await reload(ls)


async def on_shutdown(ls: FimLanguageServer, params: None) -> None:
    """Stop all work."""
    ls.worker.close()
    ls.project.close()
    ls.checkers.close()
    await stop_and_wait(ls)
