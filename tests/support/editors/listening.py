"""Clients and servers of a TCP port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.editors.editor import SERVE, Ending, Server, Wire, patiently


@asynccontextmanager
async def listening(*arguments: str, **variables: str) -> AsyncIterator[tuple[Server, int]]:
    """A server that listens on a port, and the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *SERVE,
        "--tcp",
        f"127.0.0.1:{port}",
        "--log-level",
        "debug",
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables},
    )
    server = Server(process)
    async with Ending(server):
        yield server, port


async def connect(port: int) -> Wire:
    return Wire(*await patiently(lambda: asyncio.open_connection("127.0.0.1", port, limit=2**24)))
