"""Listening on a TCP port: which addresses may be listened on, and a server object for each client that connects."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.server.wire import MOST_HEADER_BYTES, MOST_MESSAGE_BYTES, Connection, answer_messages

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer

logger = logging.getLogger(__name__)

MOST_CLIENTS = 32
"""Connections at a time; more are closed at once."""

TOKEN_SECONDS = 10.0
"""How long a connection may take to show its token."""

LINGER_SECONDS = 1.0
"""How long what a refused client goes on sending is thrown away: closed before, it might not get to read why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and to whom.

    Attributes:
        host: A name or an address.
        token: What a client has to show; None: nothing.
        is_public: Whether the address may be one that other machines reach. The server then stays when its last client
            has gone; one on loopback belongs to the editors that started it, and ends with them.
    """

    host: str
    port: int
    token: str | None = None
    is_public: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def addresses(self) -> list[str]:
        """The addresses to listen on.

        Raises OSError where there are none, or others than loopback though the endpoint is not public.
        """
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except UnicodeError:  # a part that is empty, too long, or of half characters
            raise OSError("not the name of a host") from None
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        if not self.is_public and not all(map(is_loopback, addresses)):
            raise OSError("not a loopback address: name it with --host, and have clients show a token")
        return addresses


def is_loopback(address: str) -> bool:
    """Whether an IP address is of the machine itself and reached from nowhere else."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


class Listener:
    """The clients of one port: each has a server object of its own, and nothing of one reaches another."""

    def __init__(self, endpoint: Endpoint, create: Callable[[], FimLanguageServer]) -> None:
        """``create``: makes the server object of a client."""
        self._endpoint = endpoint
        self._create = create
        self.servers: set[FimLanguageServer] = set()
        """Those of the clients that are connected."""
        self._has_served = False
        self._done = asyncio.Event()

    async def run(self, addresses: Sequence[str]) -> None:
        """Listen until the last client has gone, or for ever where the endpoint is public. Raises OSError."""
        port = self._endpoint.port
        listening = await asyncio.start_server(self._connected, addresses, port, limit=MOST_HEADER_BYTES)
        logger.info("listening on %s", ", ".join(str(one.getsockname()) for one in listening.sockets))
        try:
            await self._done.wait()
        finally:
            listening.close()
            for server in list(self.servers):
                server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.servers) >= MOST_CLIENTS:
            logger.warning("a client was turned away: there are %d already", MOST_CLIENTS)
            writer.transport.abort()
            return
        server = self._create()
        protocol = server.protocol
        protocol.token = self._endpoint.token
        self.servers.add(server)
        if protocol.token is not None:
            asyncio.get_running_loop().call_later(TOKEN_SECONDS, turn_away_late, server, writer)
        try:
            await answer_messages(server, Connection(reader), BoundedWriter(writer), strict=True)
        finally:
            self.servers.discard(server)
            server.close()
            if protocol.refused:
                await linger(reader, writer)
            writer.close()
            self._has_served = self._has_served or protocol.initialized
            if self._has_served and not self.servers and not self._endpoint.is_public:
                self._done.set()


class BoundedWriter:
    """Writes to a client; one that does not read what it is sent is cut off before it fills the memory."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Send, without waiting."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        self._writer.write(data)
        if transport.get_write_buffer_size() > MOST_MESSAGE_BYTES:
            logger.warning("a client was cut off: it does not read what it is sent")
            transport.abort()

    def close(self) -> None:
        """Send what is left, and nothing more."""
        self._writer.close()


def turn_away_late(server: FimLanguageServer, writer: asyncio.StreamWriter) -> None:
    """Close a connection that has not shown its token."""
    if not server.protocol.initialized and not writer.is_closing():
        logger.warning("a client was turned away: it has shown no token")
        writer.transport.abort()


async def linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Throw away what a client goes on sending, for a moment: with bytes unread, closing would reset the connection."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            writer.write_eof()
            while await reader.read(MOST_HEADER_BYTES):
                pass
