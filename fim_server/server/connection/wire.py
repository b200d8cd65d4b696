"""Messages as they arrive: headers read, and what is larger than allowed refused before it is read.

pygls takes its bytes from a reader of two functions, and knows one spelling of the one header that counts. The readers
here stand between it and the bytes.
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
"""The largest message that is read; editors send no files of more than about 50 MB to a server."""

MOST_FIRST_BYTES = 2**20
"""The same for a connection that has to show a token and has not."""

MOST_HEADER_BYTES = 4096
"""The longest line of a header."""

LARGE_BYTES = 1 << 18
"""Size from which a message is read on a thread of its own."""

MOST_OBJECTS = 500_000
"""Most objects of one message: an edit at 100,000 places has four for each of them."""

PIECE_BYTES = 1 << 16
"""Of standard input that are read at once, at most."""

CONTENT_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r?\n", re.IGNORECASE)
MOST_DIGITS = 18

HEADER = re.compile(rb"[A-Za-z0-9-]+[ \t]*:.*|\r?\n", re.DOTALL)
"""A line of a header, or the empty line after it: a request of HTTP's begins with neither."""


class TooManyObjects(Exception):
    """Message with too many objects."""


class Bytes(Protocol):
    """Where bytes come from."""

    async def readline(self) -> bytes:
        """The next line, or so much of it as is read at once; nothing at the end."""
        ...

    async def readexactly(self, n: int) -> bytes:
        """So many bytes, or what there is until the end."""
        ...


class StandardInput:
    """Standard input, in whatever pieces it comes: what an editor sends for a key is mostly one.

    The event loop itself waits for a pipe, a socket or a terminal, so that no other thread has to wake first. What it
    cannot watch (files, and anything on Windows) is read on a thread of the server's, for a read cannot be cancelled.
    """

    def __init__(self, stdin: BinaryIO, server: FimLanguageServer) -> None:
        self._number, self._server = stdin.fileno(), server
        self._unread = bytearray()
        self._is_watched = True

    async def readline(self) -> bytes:
        """As :class:`Bytes` has it."""
        while (end := self._unread.find(b"\n", 0, MOST_HEADER_BYTES)) < 0:
            if len(self._unread) >= MOST_HEADER_BYTES or not await self._read_on():
                break
        return self._take(MOST_HEADER_BYTES if end < 0 else end + 1)

    async def readexactly(self, n: int) -> bytes:
        """As :class:`Bytes` has it."""
        while len(self._unread) < n and await self._read_on():
            pass
        return self._take(n)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken

    async def _read_on(self) -> bool:
        """Wait for the next piece, and whether there is one."""
        if not await self._has_come():
            loop = asyncio.get_running_loop()
            piece = await loop.run_in_executor(self._server.thread_pool, os.read, self._number, PIECE_BYTES)
        else:
            piece = os.read(self._number, PIECE_BYTES)
        self._unread += piece
        return bool(piece)

    async def _has_come(self) -> bool:
        """Have the event loop wait until something can be read at once; False where it cannot."""
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
    """A connection's bytes; one that broke has ended. Its stream's own limit is :data:`MOST_HEADER_BYTES`."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        """As :class:`Bytes` has it."""
        try:
            return await self._stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError:
            return await self._stream.read(MOST_HEADER_BYTES)
        except ConnectionError:
            return b""

    async def readexactly(self, n: int) -> bytes:
        """As :class:`Bytes` has it."""
        try:
            return await self._stream.readexactly(n)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""


class MessageReader:
    """What pygls reads from: the headers of messages in its own spelling, until one is refused."""

    def __init__(self, source: Bytes, most: Callable[[], int], refuse: Callable[[str], None], strict: bool) -> None:
        """``most``: how many bytes a message may have; ``refuse``: told why nothing more is read.

        ``strict``: lines that are no header's are refused as well, instead of being passed over. A page in a browser
        can have an HTTP request sent to any port of the machine, and its body could be a message of ours.
        """
        self._source = source
        self._most = most
        self._refuse = refuse
        self._strict = strict

    async def readline(self) -> bytes:
        """The next line of a header; nothing at the end, and after what is refused."""
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
        """The message itself; pygls asks for as much as its header said."""
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
    """Answer all messages of one client, until it ends or one is refused."""
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
        if name == b"Content-Length":  # the reader takes this spelling and a number alone
            length = int(value)
        if length and not line.strip():
            return length
    return 0


async def parsed(body: bytes, structure: Callable[[Json], Any]) -> Any:
    """Read a message. A large one takes seconds, so a thread of its own reads it while other clients are served.

    Raises the errors of reading, and TooManyObjects.
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
    """How many bytes the next message may have."""
    protocol = server.protocol
    return MOST_FIRST_BYTES if protocol.token is not None and not protocol.initialized else MOST_MESSAGE_BYTES
