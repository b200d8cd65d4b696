"""Reading of messages: headers first, so that too large ones are refused unread.

pygls takes its bytes from a reader with two functions, and knows one spelling of the header `Content-Length`. The
readers here stand between pygls and the bytes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from pygls.io_ import AsyncWriter, Writer

    from fim_server.server.language_server import FimLanguageServer

Json = dict[str, Any]

MOST_MESSAGE_BYTES = 64 * 2**20
"""Largest message; editors send no files of more than about 50 MB to a server."""

MOST_FIRST_BYTES = 2**20
"""Largest message of a connection before its required token."""

MOST_HEADER_BYTES = 4096
"""Longest line of a header."""

LARGE_BYTES = 1 << 18
"""Size from which another thread parses a message."""

MOST_OBJECTS = 500_000
"""Most objects of one message: an edit at 100,000 places has four for each of them."""

PIECE_BYTES = 1 << 16
"""Most bytes of one read of standard input."""

CONTENT_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r?\n", re.IGNORECASE)
MOST_DIGITS = 18

HEADER = re.compile(rb"[A-Za-z0-9-]+[ \t]*:.*|\r?\n", re.DOTALL)
"""Line of a header, or the empty line after it; a request of HTTP begins with neither."""


class TooManyObjects(Exception):
    """Message with too many objects."""


class Bytes(Protocol):
    """Source of bytes."""

    async def readline(self) -> bytes:
        """Return the next line, or the part of it that is there; empty at the end."""
        ...

    async def readexactly(self, n: int) -> bytes:
        """Return so many bytes; fewer at the end."""
        ...


class StandardInput:
    """Standard input, read in the pieces in which it comes.

    The event loop waits for a pipe, a socket or a terminal, so that no other thread has to wake first. It cannot watch
    files, nor anything on Windows: a thread of the server reads those, because a read cannot be cancelled.
    """

    def __init__(self, stdin: BinaryIO, server: FimLanguageServer) -> None:
        self._number, self._server = stdin.fileno(), server
        self._unread = bytearray()
        self._is_watched = True

    async def readline(self) -> bytes:
        while (end := self._unread.find(b"\n", 0, MOST_HEADER_BYTES)) < 0:
            if len(self._unread) >= MOST_HEADER_BYTES or not await self._read_on():
                break
        return self._take(MOST_HEADER_BYTES if end < 0 else end + 1)

    async def readexactly(self, n: int) -> bytes:
        while len(self._unread) < n and await self._read_on():
            pass
        return self._take(n)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken

    async def _read_on(self) -> bool:
        """Wait for the next piece; return whether there is one."""
        if not await self._has_come():
            loop = asyncio.get_running_loop()
            piece = await loop.run_in_executor(self._server.thread_pool, os.read, self._number, PIECE_BYTES)
        else:
            piece = os.read(self._number, PIECE_BYTES)
        self._unread += piece
        return bool(piece)

    async def _has_come(self) -> bool:
        """Have the event loop wait until bytes can be read; return False if it cannot watch the input."""
        loop = asyncio.get_running_loop()
        come = asyncio.Event()
        try:
            if self._is_watched:
                loop.add_reader(self._number, come.set)
        except (OSError, NotImplementedError):
            self._is_watched = False
        if self._is_watched:
            try:
                await come.wait()
            finally:
                loop.remove_reader(self._number)
        return self._is_watched


class Connection:
    """Bytes of a connection; a broken one has ended. Its stream's limit is :data:`MOST_HEADER_BYTES`."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        try:
            return await self._stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError:
            return await self._stream.read(MOST_HEADER_BYTES)
        except ConnectionError:
            return b""

    async def readexactly(self, n: int) -> bytes:
        try:
            return await self._stream.readexactly(n)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""


class MessageReader:
    """Reader for pygls, with headers in its spelling; it ends at a refused message."""

    def __init__(self, source: Bytes, most: Callable[[], int], refuse: Callable[[str], None], strict: bool) -> None:
        """``most``: return the largest size of a message; ``refuse``: called with the reason for the end.

        ``strict``: refuse lines that are not headers, instead of skipping them. A page in a browser can send an HTTP
        request to any port of the machine, and its body could be a message.
        """
        self._source = source
        self._most = most
        self._refuse = refuse
        self._strict = strict

    async def readline(self) -> bytes:
        """Return the next line of a header; empty at the end, and after a refusal."""
        line = await self._source.readline()
        found = CONTENT_LENGTH.fullmatch(line)
        if found is not None:
            return self._length(found[1])
        if len(line) >= MOST_HEADER_BYTES and not line.endswith(b"\n"):
            return self._end(f"a line of a header has more than {MOST_HEADER_BYTES} bytes")
        if self._strict and line and HEADER.fullmatch(line) is None:
            return self._end("not a message: it begins with something else than a header")
        return line

    async def readexactly(self, n: int) -> bytes:
        """Return the body of a message, of the length in its header."""
        return await self._source.readexactly(n)

    def _length(self, value: bytes) -> bytes:
        if not value.isdigit():
            return self._end("Content-Length is not a number")
        most = self._most()
        if len(value) > MOST_DIGITS or int(value) > most:
            return self._end(f"a message of {value[:MOST_DIGITS].decode()} bytes is larger than {most} bytes")
        return b"Content-Length: %d\r\n" % int(value)

    def _end(self, problem: str) -> bytes:
        self._refuse(problem)
        return b""


async def answer_messages(
    server: FimLanguageServer, source: Bytes, writer: AsyncWriter | Writer, strict: bool = False
) -> None:
    """Answer all messages of one client, until their end or a refusal."""
    protocol = server.protocol
    protocol.loop = asyncio.get_running_loop()
    protocol.set_writer(writer)
    reader = MessageReader(source, lambda: most_bytes(server), protocol.refuse, strict)
    while not protocol.ended.is_set():
        length = await length_of_next(reader)
        body = await reader.readexactly(length) if length else b""
        if not body:
            return
        try:
            protocol.handle_message(await parsed(body, protocol.structure_message))
        except TooManyObjects:
            protocol.pass_over(f"a message of more than {MOST_OBJECTS:,} objects")
        except Exception as error:  # noqa: BLE001  # one bad message must not end the connection
            server.report_server_error(error, JsonRpcException)


async def length_of_next(reader: MessageReader) -> int:
    """Read the header of a message and return the length of its body; 0 at the end."""
    length = 0
    while line := await reader.readline():
        name, _, value = line.partition(b":")
        if name == b"Content-Length":  # the reader has checked the number
            length = int(value)
        if length and not line.strip():
            return length
    return 0


async def parsed(body: bytes, structure: Callable[[Json], Any]) -> Any:
    """Parse a message, a large one on another thread, since that takes seconds.

    Raises the errors of parsing, and TooManyObjects.
    """
    left = MOST_OBJECTS

    def take(found: Json) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooManyObjects
        return structure(found)

    if len(body) < LARGE_BYTES:
        return json.loads(body, object_hook=take)
    return await asyncio.to_thread(json.loads, body, object_hook=take)


def most_bytes(server: FimLanguageServer) -> int:
    """Return the largest size of the next message."""
    protocol = server.protocol
    return MOST_FIRST_BYTES if protocol.token is not None and not protocol.initialized else MOST_MESSAGE_BYTES
