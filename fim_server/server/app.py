"""Creation of servers with their handlers, and their run for one client or on a TCP port."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.io_ import StdoutWriter

from fim_server.errors import is_exhaustion, problem_of_system
from fim_server.models.resources.attempts import forget_all
from fim_server.server.connection.calling import ListeningClient
from fim_server.server.connection.client_process import ClientProcesses
from fim_server.server.connection.listening import BoundedWriter, Endpoint, Listener
from fim_server.server.connection.wire import Bytes, Connection, StandardInput, answer_messages
from fim_server.server.handlers import (
    commands,
    configuration,
    documents,
    files,
    initialize,
    inline_completion,
    language_data,
    next_edit,
    notebooks,
)
from fim_server.server.items import ACCEPTED
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.logs import configure_logging
from fim_server.server.models.exhaustion import Exhaustion, leave_exhausted
from fim_server.server.status import MOST_OF_NAME
from fim_server.server.supervision import ServerReports
from fim_server.suggest.settings import ServerSettings
from fim_server.text.hidden import on_one_line
from fim_server.workers.shared_models import SharedModels

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def create_server(
    settings: ServerSettings, version: str = "", models: SharedModels | None = None, covers: bool = True
) -> FimLanguageServer:
    """Return a server of one client with all handlers. Arguments as of :class:`.FimLanguageServer`."""
    server = FimLanguageServer(settings, version, models, covers)
    server.supervisor.reports = ServerReports(server)
    server.feature(types.INITIALIZE)(initialize.on_initialize)
    server.feature(types.INITIALIZED)(initialize.on_initialized)
    server.feature(types.SHUTDOWN)(initialize.on_shutdown)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configuration.on_settings_changed)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(documents.on_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(documents.on_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(documents.on_closed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(documents.on_saved)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(files.on_files_changed)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(files.on_folders_changed)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebooks.on_notebook_opened)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebooks.on_notebook_changed)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(notebooks.on_notebook_saved)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebooks.on_notebook_closed)
    server.feature(documents.CURSOR)(documents.on_cursor)
    server.feature(language_data.LANGUAGE_DATA)(language_data.on_language_data)
    # Without options pygls does not advertise the feature.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(
        inline_completion.on_inline_completion
    )
    server.feature(next_edit.NEXT_EDIT)(next_edit.on_next_edit)
    server.feature(next_edit.SHOWN)(next_edit.on_told)
    server.feature(next_edit.FOCUSED)(next_edit.on_told)
    server.command(next_edit.EDIT_ACCEPTED)(next_edit.on_edit_accepted)
    server.command(next_edit.EDIT_DISMISSED)(next_edit.on_edit_dismissed)
    server.command(ACCEPTED)(commands.on_accepted)
    server.command(commands.DISMISSED)(commands.on_dismissed)
    server.command(commands.RESET_THRESHOLD)(commands.on_reset_threshold)
    server.command(commands.EXPLAIN)(commands.on_explain)
    server.command(commands.LANGUAGES)(commands.on_languages)
    server.command(commands.STATISTICS)(commands.on_statistics)
    server.command(commands.SET_ENABLED)(commands.on_set_enabled)
    server.command(commands.RELOAD)(commands.on_reload)
    server.command(commands.GET_MODEL)(commands.on_get_model)
    server.command(commands.MODELS)(commands.on_models)
    server.command(commands.REMOVE_MODEL)(commands.on_remove_model)
    return server


def serve(
    settings: ServerSettings,
    place: Endpoint | ListeningClient | None = None,
    version: str = "",
    client_process: int | None = None,
    speaks_http: bool = False,
) -> int:
    """Run a server for one client, or one for each client of a port, and end the process afterwards.

    Return an exit status only if the server cannot start.

    Args:
        settings: Settings of the command line.
        place: Address to listen on or to connect to; None for standard input and output.
        version: Version of the program.
        client_process: Number of a process with which this one ends.
        speaks_http: Serve HTTP at the address instead of the Language Server Protocol.
    """
    status = DONE
    try:
        asyncio.run(run_at(place, settings, version, client_process, speaks_http))
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        where = "" if place is None else f"{on_one_line(str(place), MOST_OF_NAME)}: "
        print(f"{SERVER_NAME}: {where}{problem_of_system(error)}", file=sys.stderr)
        return BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        if not is_exhaustion(error):
            raise
        leave_exhausted()
    # Do not wait: unloading torch takes seconds, and neither the loading of a model nor a read of standard input can be
    # stopped.
    forget_all()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)


async def run_at(
    place: Endpoint | ListeningClient | None,
    settings: ServerSettings,
    version: str,
    client_process: int | None,
    speaks_http: bool = False,
) -> None:
    """Run the server until it or the client's process ends. Raises OSError if it cannot start."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None

    def end() -> None:
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(this.cancel)

    processes = ClientProcesses(end)
    processes.watch(client_process)
    running: Coroutine[Any, Any, None]
    if isinstance(place, Endpoint) and speaks_http:
        running = listen_by_http(settings, place, version)
    elif isinstance(place, Endpoint):
        running = listen(settings, place, version)
    elif place is None:
        running = serve_editor(settings, version, processes)
    else:
        running = serve_listening_client(settings, place, version, processes)
    try:
        await running
    except asyncio.CancelledError:
        if not processes.has_ended:
            raise


async def serve_editor(settings: ServerSettings, version: str, processes: ClientProcesses) -> None:
    """Serve the editor that started this process. Raises OSError without standard input or output."""
    output: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if sys.stdin is None or output is None:
        raise OSError("standard input or output is closed")
    server = create_server(settings, version)
    sys.stdout = sys.stderr  # a library's print would break the protocol's frames
    await serve_client(server, StandardInput(sys.stdin.buffer, server), StdoutWriter(output), processes)


async def serve_listening_client(
    settings: ServerSettings, place: ListeningClient, version: str, processes: ClientProcesses
) -> None:
    """Connect to a listening client, and serve it. Raises OSError if the connection fails."""
    reader, writer = await place.connect()
    await serve_client(create_server(settings, version), Connection(reader), BoundedWriter(writer), processes)


async def serve_client(
    server: FimLanguageServer, source: Bytes, writer: StdoutWriter | BoundedWriter, processes: ClientProcesses
) -> None:
    """Serve the one client of the process, and end with it or its process."""
    configure_logging(server.settings.log_level, lambda: server.settings.log_code)
    server.watch_client_process = processes.watch
    exhaustion = Exhaustion(server)
    server.ends_by = exhaustion.ends
    exhaustion.heed()
    try:
        await answer_messages(server, source, writer)
    finally:
        server.close()


async def listen(settings: ServerSettings, endpoint: Endpoint, version: str) -> None:
    """Serve the clients that connect. Raises OSError if the server cannot listen."""
    models = SharedModels()
    listener = Listener(endpoint, lambda: create_server(settings, version, models))
    # The log may hold code only if all clients allow it.
    configure_logging(
        settings.log_level,
        lambda: bool(listener.servers) and all(one.settings.log_code for one in tuple(listener.servers)),
    )
    await listener.run(endpoint.addresses())


async def listen_by_http(settings: ServerSettings, endpoint: Endpoint, version: str) -> None:
    """Serve HTTP clients. Raises OSError if the server cannot listen, and MissingLibrary without its libraries."""
    from fim_server.server.http.app import listen_http

    models = SharedModels()
    configure_logging(settings.log_level, lambda: settings.log_code)
    await listen_http(settings, endpoint, lambda of_client: create_server(of_client, version, models, covers=False))
