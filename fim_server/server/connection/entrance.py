"""Entrance of a port: the first messages of a connection, read at next to no cost.

Until a connection has sent `initialize`, with the token where one is required, it is a stranger: it has no server
object and no place among the clients. It gets the same answers as from :class:`.HandshakeProtocol`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.server.connection.handshake import (
    INVALID_REQUEST,
    NOT_INITIALIZED,
    PARSE_ERROR,
    is_token,
    without_token,
)
from fim_server.server.connection.wire import MOST_FIRST_BYTES, Bytes, MessageReader, length_of_next

if TYPE_CHECKING:
    import asyncio

SERVER_FULL = -32803
"""Error code of the protocol for a valid request that fails all the same (`RequestFailed`)."""

MOST_UNREAD_BYTES = 1 << 16
"""Most unread bytes of answers to a stranger."""


class Entrance:
    """Messages of a stranger, up to an accepted `initialize`."""

    def __init__(self, source: Bytes, writer: asyncio.StreamWriter, token: str | None) -> None:
        self._writer = writer
        self._token = token
        self._left = MOST_FIRST_BYTES
        self._is_over = False
        self._reader = MessageReader(source, lambda: self._left, self._refuse, strict=True)
        self.number: int | str = 0
        """Id of the accepted `initialize`."""

    async def initialization(self) -> bytes | None:
        """Return the accepted `initialize` as it came; None where the connection ends, or has to end, before it."""
        while not self._is_over:
            length = await length_of_next(self._reader)
            body = await self._reader.readexactly(length) if length else b""
            if not body:
                return None
            self._left = max(0, self._left - len(body))
            if self._lets_in(body):
                return body
        return None

    def answer_full(self, most: int) -> None:
        """Tell an accepted client that there is no place for it."""
        self._send(self.number, SERVER_FULL, f"{most} clients are served already: connect again later")

    def _lets_in(self, body: bytes) -> bool:
        """Return whether a message is an `initialize` with the token; answer any other message."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self._send(None, PARSE_ERROR, "not JSON, or nested too deeply")
            return False
        named = message.get("id") if isinstance(message, dict) else None
        number = named if isinstance(named, int | str) else None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._send(number, INVALID_REQUEST, "not a message of JSON-RPC 2.0")
        elif message.get("method") == types.INITIALIZE and number is not None:
            if self._shows_token(message.get("params")):
                self.number = number
                return True
            self._send(number, INVALID_REQUEST, "the token is missing or wrong")
            self._is_over = True
        elif message.get("method") == types.EXIT:
            self._is_over = True
        elif message.get("method") is not None and number is not None:
            self._send(number, NOT_INITIALIZED, "initialize comes first")
        return False

    def _shows_token(self, params: Any) -> bool:
        options = params.get("initializationOptions") if isinstance(params, dict) else None
        shown = without_token(options)[1] if isinstance(options, Mapping) else None
        return self._token is None or is_token(shown, self._token)

    def _refuse(self, problem: str) -> None:
        self._send(None, INVALID_REQUEST, problem)
        self._is_over = True

    def _send(self, number: int | str | None, code: int, message: str) -> None:
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
        body = json.dumps(answer).encode()
        if not self._writer.transport.is_closing():
            self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        if self._writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self._is_over = True


class Replayed:
    """Bytes of a connection, from the `initialize` that was read already; they end there if the client hangs up."""

    def __init__(self, message: bytes, rest: Bytes, has_ended: Callable[[], Awaitable[bool]]) -> None:
        """``has_ended``: called once `initialize` is answered; returns whether the client has hung up."""
        self._has_ended: Callable[[], Awaitable[bool]] | None = has_ended
        self._lines = [b"Content-Length: %d\r\n" % len(message), b"\r\n"]
        self._message: bytes | None = message
        self._rest = rest

    async def readline(self) -> bytes:
        """Return the next line, from the kept message first."""
        if self._lines:
            return self._lines.pop(0)
        has_ended, self._has_ended = self._has_ended, None
        if has_ended is not None and await has_ended():
            return b""
        return await self._rest.readline()

    async def readexactly(self, n: int) -> bytes:
        """Return the next bytes, from the kept message first."""
        message, self._message = self._message, None
        return await self._rest.readexactly(n) if message is None else message
