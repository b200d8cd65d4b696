"""Connection to a client that listens on a port of this machine, a Unix socket or a named pipe of Windows.

vscode-languageclient starts servers this way with its transports ``socket`` and ``pipe``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Any

from fim_server.server.connection.wire import MOST_HEADER_BYTES

LOOPBACK = ("127.0.0.1", "::1")
"""Addresses of a listening client; IPv4 is tried first."""


@dataclass(frozen=True, slots=True)
class ListeningClient:
    """Address of a listening client: a port on loopback, or the name of a socket or pipe."""

    port: int | None = None
    pipe: str | None = None

    def __str__(self) -> str:
        return f"{LOOPBACK[0]}:{self.port}" if self.pipe is None else self.pipe

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the client. Raises OSError where no client listens."""
        if self.pipe is not None:
            return await open_pipe(self.pipe)
        problem: OSError | None = None
        for address in LOOPBACK:
            try:
                return await asyncio.open_connection(address, self.port, limit=MOST_HEADER_BYTES)
            except OSError as error:
                problem = problem or error
        assert problem is not None
        # asyncio's own message names its internal calls.
        raise OSError(problem.errno, os.strerror(problem.errno)) if problem.errno else problem


async def open_pipe(name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a Unix socket or a named pipe. Raises OSError where no client listens."""
    try:
        if sys.platform == "win32":
            opened = await open_windows_pipe(name)
        else:
            opened = await asyncio.open_unix_connection(name, limit=MOST_HEADER_BYTES)
    except ValueError as error:  # a NUL in the name
        raise OSError(str(error)) from None
    return opened


async def open_windows_pipe(name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a named pipe. Raises OSError where no client listens."""
    loop: Any = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MOST_HEADER_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_pipe_connection(lambda: protocol, name)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
