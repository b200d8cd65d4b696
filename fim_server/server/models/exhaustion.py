"""Lack of memory or threads: the server of one editor reports it and ends.

Otherwise it could not load its model, or would lose a thread in the middle of its work, and report `loading` for ever.
The editor may restart it with more memory. The server of a port continues, since other clients may have enough.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from lsprotocol import types

from fim_server.errors import EXHAUSTED, is_exhaustion
from fim_server.server.status import send_status

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer

MESSAGE = "too little memory, or no thread available: the server ends; choose a smaller model or give the process more"
LINE = f"fim-server: {MESSAGE}\n".encode()
"""The message as a line of bytes, built while there is memory for it."""


class Exhaustion:
    """End of one server's process after an error that reports a lack of memory or threads."""

    def __init__(self, server: FimLanguageServer, leave: Callable[[int], object] = os._exit) -> None:
        self._server, self._leave = server, leave

    def ends(self, error: BaseException) -> bool:
        """End the process after such an error; return whether it is one, for tests."""
        if not is_exhaustion(error):
            return False
        self.write_message()
        with suppress(Exception):  # the message to the editor may need more memory than there is
            self._server.model.failure = MESSAGE
            self._server.log(types.MessageType.Error, MESSAGE)
            send_status(self._server)
        self._leave(EXHAUSTED)
        return True

    @staticmethod
    def write_message() -> None:
        """Write the message to standard error without allocating anything for it."""
        with suppress(OSError):
            os.write(2, LINE)

    def heed(self) -> None:
        """Handle uncaught errors of the event loop and of all threads."""
        loop, in_threads = asyncio.get_running_loop(), threading.excepthook

        def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if not isinstance(error, BaseException) or not self.ends(error):
                loop.default_exception_handler(context)

        def handle_thread_error(raised: threading.ExceptHookArgs) -> None:
            if is_exhaustion(raised.exc_value):
                self.write_message()
                self._leave(EXHAUSTED)
            in_threads(raised)

        loop.set_exception_handler(handle_loop_error)
        threading.excepthook = handle_thread_error


def leave_exhausted() -> NoReturn:
    """End the process where the event loop itself cannot continue."""
    Exhaustion.write_message()
    os._exit(EXHAUSTED)
