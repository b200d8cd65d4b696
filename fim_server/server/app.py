"""The server put together: its handlers registered, and run on standard input and output or on a TCP address."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import BinaryIO

from lsprotocol import types
from pygls.io_ import StdoutWriter

from fim_server.server import commands, completions, configuration, lifecycle, watching
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.listening import Endpoint, Listener
from fim_server.server.logs import configure_logging
from fim_server.server.messages import ACCEPTED, CURSOR
from fim_server.server.settings import ServerSettings
from fim_server.server.shared_models import SharedModels
from fim_server.server.wire import StandardInput, answer_messages

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def create_server(settings: ServerSettings, version: str = "", models: SharedModels | None = None) -> FimLanguageServer:
    """A server of one client with all handlers registered; ``models``: shared with the process's other servers."""
    server = FimLanguageServer(settings, version, models)
    server.begin_watch = lambda: watching.look_after(server)
    server.feature(types.INITIALIZE)(lifecycle.on_initialize)
    server.feature(types.INITIALIZED)(lifecycle.on_initialized)
    server.feature(types.SHUTDOWN)(lifecycle.on_shutdown)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configuration.on_settings_changed)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(lifecycle.on_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(lifecycle.on_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(lifecycle.on_closed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(lifecycle.on_saved)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(lifecycle.on_files_changed)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(lifecycle.on_folders_changed)
    server.feature(CURSOR)(lifecycle.on_cursor)
    # Without options pygls does not advertise the feature.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(
        completions.on_inline_completion
    )
    server.command(ACCEPTED)(commands.on_accepted)
    server.command(commands.EXPLAIN)(commands.on_explain)
    server.command(commands.STATISTICS)(commands.on_statistics)
    server.command(commands.SET_ENABLED)(commands.on_set_enabled)
    server.command(commands.RELOAD)(commands.on_reload)
    server.command(commands.GET_MODEL)(commands.on_get_model)
    server.command(commands.MODELS)(commands.on_models)
    server.command(commands.REMOVE_MODEL)(commands.on_remove_model)
    return server


def serve(settings: ServerSettings, endpoint: Endpoint | None = None, version: str = "") -> int:
    """Run a server on standard input and output, or servers for those who connect, and end the process with it.

    Returns an exit status only where it could not start.
    """
    status = DONE
    try:
        asyncio.run(serve_editor(settings, version) if endpoint is None else listen(settings, endpoint, version))
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        where = "" if endpoint is None else f"{endpoint.host}:{endpoint.port}: "
        print(f"{SERVER_NAME}: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return BAD_INPUT
    # Unloading torch takes seconds, and neither a model that is being loaded nor a read of standard input can be
    # stopped: nobody waits for any of them.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)


async def serve_editor(settings: ServerSettings, version: str) -> None:
    """Serve the editor that started the process. Raises OSError without standard input or output."""
    output: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if sys.stdin is None or output is None:
        raise OSError("standard input or output is closed")
    server = create_server(settings, version)
    configure_logging(settings.log_level, lambda: server.settings.log_code)
    sys.stdout = sys.stderr  # a library's print would break the protocol's frames
    try:
        await answer_messages(server, StandardInput(sys.stdin.buffer, server), StdoutWriter(output))
    finally:
        server.close()


async def listen(settings: ServerSettings, endpoint: Endpoint, version: str) -> None:
    """Serve those who connect. Raises OSError where nobody can."""
    models = SharedModels()
    listener = Listener(endpoint, lambda: create_server(settings, version, models))
    # One client's wish to have its code in the log is not another's.
    configure_logging(
        settings.log_level,
        lambda: bool(listener.servers) and all(one.settings.log_code for one in tuple(listener.servers)),
    )
    await listener.run(endpoint.addresses())
