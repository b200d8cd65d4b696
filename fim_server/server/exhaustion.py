"""Lack of memory or threads: the server of one editor says so and ends.

It could not load its model, or lost a thread in the middle of its work, and would say that it is loading for ever. An
editor starts it again where there may be more. A port's server goes on, since others may have what they need.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from lsprotocol import types

from fim_server.errors import is_exhaustion
from fim_server.server.status import tell_status

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer

EXHAUSTED = 4
"""Exit status of a process that ends because of that."""

SAID = "too little memory, or no thread to be had: the server ends; choose a smaller model or allow the process more"
LINE = f"fim-server: {SAID}\n".encode()
"""Made before there is too little memory for it."""


class Exhaustion:
    """Ends the process of one server where an error says that memory or threads are lacking."""

    def __init__(self, server: FimLanguageServer, leave: Callable[[int], object] = os._exit) -> None:
        self._server, self._leave = server, leave

    def ends(self, error: BaseException) -> bool:
        """Whether an error is the end; the process has ended by then, but in tests."""
        if not is_exhaustion(error):
            return False
        self.say()
        with suppress(Exception):  # telling the editor may want more than there is
            self._server.failure = SAID
            self._server.log(types.MessageType.Error, SAID)
            tell_status(self._server)
        self._leave(EXHAUSTED)
        return True

    @staticmethod
    def say() -> None:
        """Write it to standard error, with nothing that has to be made for it."""
        with suppress(OSError):
            os.write(2, LINE)

    def heed(self) -> None:
        """Heed errors that no handler has caught, of the event loop and of all threads."""
        loop, in_threads = asyncio.get_running_loop(), threading.excepthook

        def of_the_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if not isinstance(error, BaseException) or not self.ends(error):
                loop.default_exception_handler(context)

        def of_threads(raised: threading.ExceptHookArgs) -> None:
            if is_exhaustion(raised.exc_value):
                self.say()
                self._leave(EXHAUSTED)
            in_threads(raised)

        loop.set_exception_handler(of_the_loop)
        threading.excepthook = of_threads


def leave_exhausted() -> NoReturn:
    """End the process where the event loop itself could not go on."""
    Exhaustion.say()
    os._exit(EXHAUSTED)
