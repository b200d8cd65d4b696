"""Listening on a TCP port: allowed addresses, and a server for each client."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.server.connection.entrance import Entrance, Replayed
from fim_server.server.connection.hangups import has_hung_up
from fim_server.server.connection.wire import MOST_HEADER_BYTES, MOST_MESSAGE_BYTES, Connection, answer_messages
from fim_server.system.process import release_memory

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer

logger = logging.getLogger(__name__)

MOST_CLIENTS = 32
"""Most clients at a time; one more waits for a place."""

MOST_WAITING, PLACE_SECONDS = 128, 5.0
"""Most clients that wait for a place, and how long each waits; then it gets an error."""

MOST_STRANGERS = 32
"""Most connections at a time without an accepted `initialize`. For one more, the oldest is closed."""

TOKEN_SECONDS = 5.0
"""Longest time for a connection to send its `initialize`, with the token where one is required."""

UNREAD_BYTES, UNREAD_SECONDS = 1 << 20, 30.0
"""Unread bytes of a client, and the time after which it is cut off with so many when it is sent more."""

SILENT_SECONDS, PROBE_SECONDS, PROBES = 20, 5, 3
"""Seconds of silence before the system probes a client's machine, seconds between probes, and their number."""

RELEASE_SECONDS = 2.0
"""Time after a client's end until its memory is given back: its threads need a moment to end."""

LINGER_SECONDS = 1.0
"""Time in which the rest of a refused client's bytes is read, so that the client can read the reason."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address to listen on.

    Attributes:
        host: A name or an address.
        token: Required token, if any.
        is_public: Whether other machines may reach the address. Such a server stays after its last client; one on
            loopback belongs to the editors that started it, and ends with them.
    """

    host: str
    port: int
    token: str | None = None
    is_public: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def addresses(self) -> list[str]:
        """Return the IP addresses to listen on.

        Raises OSError if there are none, or if an endpoint that is not public has others than loopback.
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
    """Return whether no other machine can reach an IP address."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


class Listener:
    """Listener on one port, with a separate server for each client."""

    def __init__(self, endpoint: Endpoint, create: Callable[[], FimLanguageServer]) -> None:
        """``create``: return a new server for a client."""
        self._endpoint = endpoint
        self._create = create
        self.servers: set[FimLanguageServer] = set()
        """Servers of the connected clients."""
        self._strangers: dict[asyncio.StreamWriter, None] = {}
        """Connections without an accepted `initialize`, the oldest first."""
        self._places = asyncio.Semaphore(MOST_CLIENTS)
        self._waiting = 0
        """Accepted clients that wait for a place."""
        self._releasing: asyncio.Task[None] | None = None
        self._has_served = False
        self._done = asyncio.Event()

    async def run(self, addresses: Sequence[str]) -> None:
        """Listen until the last client has gone, or for ever on a public endpoint. Raises OSError."""
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
        keep_alive(writer)
        source = Connection(reader)
        try:
            entrance = Entrance(source, writer, self._endpoint.token)
            initialization = await self._let_in(entrance, reader, writer)
            if initialization is None:
                return
            if not await self._finds_place():
                logger.warning("a client was rejected: there are %d already", MOST_CLIENTS)
                entrance.answer_full(MOST_CLIENTS)
                await linger(reader, writer)
                return
            try:
                await self._serve(Replayed(initialization, source, lambda: has_hung_up(writer)), reader, writer)
            finally:
                self._places.release()
        finally:
            writer.close()

    async def _finds_place(self) -> bool:
        """Wait for a place among the clients; return whether there is one."""
        if self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.wait_for(self._places.acquire(), PLACE_SECONDS)
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    async def _let_in(
        self, entrance: Entrance, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Return the `initialize` of an accepted client; None for others, after an error if possible."""
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        self._strangers[writer] = None
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                initialization = await entrance.initialization()
            if initialization is not None:
                return initialization
            await linger(reader, writer)
        except TimeoutError:
            wanted = "initialize" if self._endpoint.token is None else "token"
            logger.warning("a client was rejected: it has sent no %s", wanted)
            writer.transport.abort()
        finally:
            self._strangers.pop(writer, None)
        return None

    async def _serve(self, source: Replayed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client until it ends, and end all work for it."""
        server = self._create()
        protocol = server.protocol
        protocol.token = self._endpoint.token
        self.servers.add(server)
        try:
            await answer_messages(server, source, BoundedWriter(writer), strict=True)
        finally:
            self.servers.discard(server)
            server.close()
            self._release_soon()
            if protocol.refused:
                await linger(reader, writer)
            self._has_served = self._has_served or protocol.initialized
            if self._has_served and not self.servers and not self._endpoint.is_public:
                self._done.set()

    def _release_soon(self) -> None:
        """Release the memory of clients that have gone, once for all that leave within a moment."""
        if self._releasing is None or self._releasing.done():
            self._releasing = asyncio.ensure_future(self._release())

    async def _release(self) -> None:
        await asyncio.sleep(RELEASE_SECONDS)
        await asyncio.to_thread(release_memory_of_cycles)


def release_memory_of_cycles() -> None:
    """Collect and release the objects of servers, which refer to each other.

    Most of their memory is the engine's, which does not count for Python's collector.
    """
    gc.collect()
    release_memory()


class BoundedWriter:
    """Writer to a client, which cuts off a client that does not read before its messages fill the memory."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._unread_since: float | None = None

    def write(self, data: bytes) -> None:
        """Send without waiting."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        self._writer.write(data)
        unread, now = transport.get_write_buffer_size(), time.monotonic()
        if unread <= UNREAD_BYTES:
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        late = self._unread_since is not None and now - self._unread_since > UNREAD_SECONDS
        if late or unread > MOST_MESSAGE_BYTES:
            logger.warning("a client was cut off: it does not read what it is sent")
            transport.abort()

    def close(self) -> None:
        """Send the rest, and nothing more."""
        self._writer.close()


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Have the system close a connection whose client vanished with its machine or network."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is None:
        return
    options = {"TCP_KEEPIDLE": SILENT_SECONDS, "TCP_KEEPINTVL": PROBE_SECONDS, "TCP_KEEPCNT": PROBES}
    options["TCP_USER_TIMEOUT"] = 1000 * (SILENT_SECONDS + PROBE_SECONDS * PROBES)  # also for unacknowledged answers
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        with contextlib.suppress(OSError, AttributeError):  # a system without such an option
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Discard a client's bytes for a moment: with unread bytes, closing would reset the connection."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            writer.write_eof()
            while await reader.read(MOST_HEADER_BYTES):
                pass
