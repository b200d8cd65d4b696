"""Editor's end of the Language Server Protocol, with a server process at the other end.

pygls reads and writes the messages. Their content stays plain JSON data, as in an editor. Times are taken at the pipes:
a request counts from the moment it is written to the moment its answer is read. So pygls' work at this end is not
measured.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCProtocol,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    default_converter,
)

from fim_server.errors import BenchError

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.server import JsonRPCServer

ANSWER_SECONDS, LOADING_SECONDS = 60.0, 900.0

STATUS = "fim-server/status"
CANCELLED = -32800
INVOKED, AUTOMATIC = 1, 2
ERROR = 1
"""The type of a message for the log."""

CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"configuration": True},
    "textDocument": {"inlineCompletion": {}, "synchronization": {"dynamicRegistration": True}},
}


@dataclass(eq=False)
class Asked:
    """A request under way or answered; times in seconds."""

    number: int
    sent: float
    answer: asyncio.Future[dict[str, Any]]
    received: float = 0.0
    cancelled: float | None = None
    """Time at which its cancellation was sent."""
    last: dict[str, Any] | None = None
    """The server's report on the request, from its status."""


def plain_converter() -> Any:
    """Pygls' converter, but for the contents of messages, which stay as JSON has them."""
    converter = default_converter()
    for kind in (JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage):
        converter.register_structure_hook(kind, lambda message, kind: kind(**message))
        names = list(kind.__annotations__)
        converter.register_unstructure_hook(
            kind, lambda message, names=names: {name: getattr(message, name) for name in names}
        )
    return converter


class Protocol(JsonRPCProtocol):
    """pygls' protocol with a short cut for the server's status.

    One is sent right before each answer, which would otherwise wait until pygls has chosen a handler for it.
    """

    def __init__(self, server: JsonRPCServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.take_status: Callable[[dict[str, Any]], None] = lambda status: None

    def handle_message(self, message: Any) -> None:
        """Handle a message that was read."""
        if getattr(message, "method", "") == STATUS:
            self.take_status(message.params)
        else:
            super().handle_message(message)


class TimedPipes:
    """A process' pipes, and when a message was last written to one and read from the other.

    So what pygls does with a message, before and after, is in no time that is measured.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout
        self.written = 0.0
        self.read = 0.0

    def write(self, message: bytes) -> None:
        self.written = time.perf_counter()
        with suppress(OSError):  # who reads tells of it
            self._writer.write(message)

    def close(self) -> None:
        self._writer.close()

    async def readline(self) -> bytes:
        return await self._reader.readline()

    async def readexactly(self, n: int) -> bytes:
        body = await self._reader.readexactly(n)
        self.read = time.perf_counter()
        return body


class Client:
    """An editor without a screen, as far as its server sees one."""

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes], started: float) -> None:
        self.process = process
        self.started = started
        self.status: dict[str, Any] = {}
        self.errors_logged: list[str] = []
        """Errors in the server's log."""
        self._errors = errors
        self._waiting: dict[int, Asked] = {}
        self._numbers = 0
        self._status_at = 0.0
        self._changed = asyncio.Event()
        self._ended: BenchError | None = None
        logging.getLogger("pygls").addHandler(logging.NullHandler())  # what it ignores is nothing to be warned of
        client = JsonRPCClient(Protocol, plain_converter)
        client.feature("workspace/configuration")(lambda params: [None] * len(params["items"]))
        client.feature("client/registerCapability")(lambda params: None)
        client.feature("window/logMessage")(lambda params: self._take_log(params))
        self._protocol = client.protocol
        assert isinstance(self._protocol, Protocol)
        self._protocol.take_status = self._take_status
        self._pipes = TimedPipes(process)
        self._protocol.set_writer(self._pipes)
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, options: Sequence[str], threads: int | None, errors: IO[bytes]) -> Client:
        """Start a server, which writes its log to a file."""
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "fim_server", "serve", *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
        )
        return cls(process, errors, started)

    def notify(self, method: str, params: object) -> None:
        """Send a notification.

        Raises:
            BenchError: The server has ended.
        """
        self._check_alive()
        self._protocol.notify(method, params)

    def ask(self, method: str, params: object) -> Asked:
        """Send a request.

        Raises:
            BenchError: The server has ended.
        """
        self._check_alive()
        self._numbers += 1
        answered = self._protocol.send_request(method, params, msg_id=self._numbers)
        asked = Asked(self._numbers, self._pipes.written, asyncio.get_running_loop().create_future())
        self._waiting[asked.number] = asked
        answered.add_done_callback(partial(self._take_answer, asked))
        return asked

    def cancel(self, asked: Asked) -> None:
        """Cancel a request that is not answered yet."""
        if not asked.answer.done():
            self.notify("$/cancelRequest", {"id": asked.number})
            asked.cancelled = self._pipes.written

    async def answer_to(self, asked: Asked) -> Any:
        """Wait for an answer; gives its result, None where it is an error.

        Raises:
            BenchError: None came.
        """
        try:
            message = await asyncio.wait_for(asyncio.shield(asked.answer), ANSWER_SECONDS)
        except TimeoutError:
            raise BenchError(f"the server did not answer within {ANSWER_SECONDS:.0f} s") from None
        return message.get("result")

    async def settle(self) -> None:
        """Wait for all answers.

        Raises:
            BenchError: One did not come.
        """
        for asked in list(self._waiting.values()):
            await self.answer_to(asked)

    async def ready(self) -> float:
        """Wait until the model is loaded; gives the seconds since the server was started.

        Raises:
            BenchError: It cannot be loaded.
        """
        end = time.perf_counter() + LOADING_SECONDS
        while self.status.get("state") not in ("ready", "busy"):
            if self._ended is not None:
                raise self._ended
            if self.status.get("state") == "error":
                raise BenchError(str(self.status.get("message")))
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), end - time.perf_counter())
            except TimeoutError:
                raise BenchError(f"the server was not ready after {LOADING_SECONDS:.0f} s") from None
        return self._status_at - self.started

    async def end(self) -> None:
        """Shut the server down, in the protocol's way if it still listens."""
        with suppress(BenchError, TimeoutError, OSError):
            if self._ended is None:
                await asyncio.wait_for(self.answer_to(self.ask("shutdown", None)), 5)
                self.notify("exit", None)
                await asyncio.wait_for(self.process.wait(), 5)
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    def _check_alive(self) -> None:
        if self._ended is not None:
            raise self._ended

    async def _read(self) -> None:
        with suppress(asyncio.IncompleteReadError, ValueError):  # that is no server
            await run_async(threading.Event(), self._pipes, self._protocol)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 5)
        self._ended = BenchError(f"the server ended{self._last_words()}")
        for asked in self._waiting.values():
            asked.answer.set_exception(self._ended)
            asked.answer.exception()  # seen, whether or not it is waited for
        self._changed.set()

    def _take_answer(self, asked: Asked, answered: Future[Any]) -> None:
        asked.received = self._pipes.read
        del self._waiting[asked.number]
        # The status of an answer is sent right before it; where there is none since the request, it has none.
        if self._status_at > asked.sent:
            asked.last = self.status.get("last")
        error = answered.exception()
        if isinstance(error, JsonRpcException):
            asked.answer.set_result({"error": {"code": error.code, "message": error.message}})
        elif error is not None:
            asked.answer.set_exception(error)
        else:
            asked.answer.set_result({"result": answered.result()})

    def _take_status(self, params: dict[str, Any]) -> None:
        self.status, self._status_at = params, self._pipes.read
        self._changed.set()

    def _take_log(self, params: dict[str, Any]) -> None:
        if params.get("type") == ERROR:
            self.errors_logged.append(str(params.get("message")))

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else f" with status {self.process.returncode}"
