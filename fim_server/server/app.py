"""The server put together: its handlers registered, and run on standard input and output or on a TCP address."""

from __future__ import annotations

import logging
import os
import sys

from lsprotocol import types

from fim_server.server import commands, completions, configuration, lifecycle
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.logs import configure_logging
from fim_server.server.messages import ACCEPTED
from fim_server.server.settings import ServerSettings

BAD_INPUT = 2


def create_server(settings: ServerSettings, version: str = "") -> FimLanguageServer:
    """A server with all handlers registered, not started yet."""
    server = FimLanguageServer(settings, version)
    server.feature(types.INITIALIZE)(lifecycle.on_initialize)
    server.feature(types.INITIALIZED)(lifecycle.on_initialized)
    server.feature(types.SHUTDOWN)(lifecycle.on_shutdown)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configuration.on_settings_changed)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(lifecycle.on_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(lifecycle.on_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(lifecycle.on_closed)
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
    return server


def serve(settings: ServerSettings, address: tuple[str, int] | None = None, version: str = "") -> int:
    """Run a server on standard input and output, or on a TCP address, and end the process with it.

    Returns an exit status only where it could not start.
    """
    server = create_server(settings, version)
    configure_logging(settings.log_level, lambda: server.settings.log_code)
    try:
        if address is None and (sys.stdin is None or sys.stdout is None):
            raise OSError("standard input or output is closed")
        if address is None:
            output = sys.stdout.buffer
            sys.stdout = sys.stderr  # a library's print would break the protocol's frames
            server.start_io(stdout=output)
        else:
            server.start_tcp(*address)
    except OSError as error:
        where = "" if address is None else f"{address[0]}:{address[1]}: "
        print(f"{SERVER_NAME}: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return BAD_INPUT
    finally:
        server.close()
    # Unloading torch takes seconds, and a model that is still being loaded cannot be stopped: nobody waits for either.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)
