"""Handlers of files that change on the disk, and of the workspace's folders."""

from __future__ import annotations

import asyncio

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from fim_server.language import Language
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import read_project

READ_SECONDS = 1.0
"""Delay between a change on the disk and its reading."""


async def register_watchers(ls: FimLanguageServer) -> None:
    """Ask the client to report changed files, if it can. Without that, saving a document reads changed files."""
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
        ls.log(types.MessageType.Warning, f"the editor does not report changed files ({type(error).__name__})")


async def on_files_changed(ls: FimLanguageServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Read changed files, once for all changes of a moment: a checkout changes many."""
    if not ls.index.is_queued:
        ls.index.is_queued = True
        await asyncio.sleep(READ_SECONDS)
        ls.index.is_queued = False
        read_project(ls)


def on_folders_changed(ls: FimLanguageServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Forget removed folders and read new ones."""
    ls.index.folders_changed = True
    ls.project.leave([folder.uri for folder in params.event.removed])
    ls.checkers.reconsider()
    read_project(ls)
