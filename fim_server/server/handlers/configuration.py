"""The editor's settings: asked for when it begins, taken whenever they change."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import read_project
from fim_server.server.models.loading import reload
from fim_server.server.status import tell_status
from fim_server.suggest.settings import SECTION, own_fields


async def ask_for_settings(ls: FimLanguageServer) -> None:
    """Ask the client for its configuration, where it can be asked."""
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    items = [types.ConfigurationItem(section=SECTION)]
    try:
        answer = await asyncio.wait_for(
            ls.workspace_configuration_async(types.ConfigurationParams(items=items)), timeout=5
        )
    except Exception as error:  # noqa: BLE001  # a client that does not answer, or answers with an error
        ls.log(types.MessageType.Warning, f"the editor did not send its settings ({type(error).__name__})")
        return
    if answer and answer[0]:
        take_settings(ls, answer[0])


async def on_settings_changed(ls: FimLanguageServer, params: types.DidChangeConfigurationParams) -> None:
    """Take changed settings: those that were sent, or, where none were, those that the client has."""
    before = ls.settings
    if params.settings:
        take_settings(ls, params.settings)
    else:
        await ask_for_settings(ls)
    if ls.settings != before:
        read_project(ls)
    if not ls.settings.loads_like(before):
        await reload(ls)
    else:
        tell_status(ls)


def take_settings(ls: FimLanguageServer, values: object) -> None:
    """Put an editor's settings over those it began with, and these over the command line's.

    What is wrong with them is logged. Settings of other servers, and what is set already, change nothing, so that what
    was switched for the moment stays.
    """
    if values is None:
        return
    sent = own_fields(values)
    merged = ls.initial_settings | (sent or {})
    settings, problems = ls.started_with.with_client(merged if sent is not None else values)
    for problem in problems:
        ls.log_once(types.MessageType.Warning, problem)
    if sent is None or merged == ls.client_settings:
        return
    ls.client_settings = merged
    if settings != ls.settings:
        ls.memory.clear()
    ls.settings = settings
    ls.worker.use(settings)
