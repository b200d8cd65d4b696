"""Handlers of the editor's settings."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import read_project
from fim_server.server.models.loading import reload
from fim_server.server.status import send_status
from fim_server.suggest.settings import SECTION, own_fields

SETTINGS_SECONDS = 5.0
"""Longest wait for the editor's settings."""


async def ask_for_settings(ls: FimLanguageServer) -> None:
    """Ask the client for its settings, if it can send them."""
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    items = [types.ConfigurationItem(section=SECTION)]
    try:
        answer = await asyncio.wait_for(
            ls.workspace_configuration_async(types.ConfigurationParams(items=items)), SETTINGS_SECONDS
        )
    except Exception as error:  # noqa: BLE001  # a client that does not answer, or answers with an error
        ls.log(types.MessageType.Warning, f"the editor did not send its settings ({type(error).__name__})")
        return
    if answer and answer[0]:
        take_settings(ls, answer[0])


async def on_settings_changed(ls: FimLanguageServer, params: types.DidChangeConfigurationParams) -> None:
    """Take the settings that were sent; if there are none, ask for them."""
    before = ls.settings
    if params.settings:
        take_settings(ls, params.settings)
    else:
        await ask_for_settings(ls)
    if ls.settings.secret_files != before.secret_files and ls.project.is_begun:
        ls.project.clear()
    if ls.settings != before:
        read_project(ls)
    if not ls.settings.loads_like(before):
        await reload(ls)
    else:
        send_status(ls)


def take_settings(ls: FimLanguageServer, values: object) -> None:
    """Take an editor's settings: they override its initial ones. The command line decides the model and its device.

    Invalid settings are logged. Settings of other servers and unchanged settings have no effect, so that a temporary
    switch (`fim-server.setEnabled`) stays.
    """
    if values is None:
        return
    sent = own_fields(values)
    merged = ls.client.initial_settings | (sent or {})
    settings, problems = ls.client.command_line.with_client(merged if sent is not None else values)
    for problem in problems:
        ls.log_once(types.MessageType.Warning, problem)
    if sent is None or merged == ls.client.settings:
        return
    ls.client.settings = merged
    if settings != ls.settings:
        ls.answers.clear()
    if settings.checker != ls.settings.checker or settings.secret_files != ls.settings.secret_files:
        ls.checkers.reconsider()
    ls.settings = settings
    ls.worker.use(settings)
