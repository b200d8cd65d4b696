"""Clients of a port that hung up: they are noticed before work begins for them.

A client that closes its connection after the last message looks like one that only sends no more. The difference shows
when the server writes: the answer to `initialize` comes back as a reset.
"""

from __future__ import annotations

import asyncio
import select
import sys

POLL_SECONDS, POLLS = 0.01, 10
"""Time between two looks for a reset, and their number; only for clients that send no more."""

SENDS_NO_MORE = getattr(select, "POLLRDHUP", 0)
"""Flag of a connection whose client has closed its side; 0 on systems without one."""

RESET = getattr(select, "POLLERR", 0) | getattr(select, "POLLHUP", 0)
"""Flags of a connection that is over in both directions."""


async def has_hung_up(writer: asyncio.StreamWriter) -> bool:
    """Return whether a client that was just written to has closed its connection."""
    for _ in range(POLLS):
        if is_reset(writer):
            return True
        if not flags_of(writer) & SENDS_NO_MORE:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return is_reset(writer)


def is_reset(writer: asyncio.StreamWriter) -> bool:
    """Return whether a connection is over in both directions."""
    return writer.transport.is_closing() or bool(flags_of(writer) & RESET)


def flags_of(writer: asyncio.StreamWriter) -> int:
    """Return the flags of a connection; none on systems that cannot tell."""
    connection = writer.get_extra_info("socket")
    if sys.platform != "win32" and SENDS_NO_MORE and connection is not None and connection.fileno() >= 0:
        poll = select.poll()
        poll.register(connection.fileno(), SENDS_NO_MORE)
        return next((flags for _, flags in poll.poll(0)), 0)
    return 0
