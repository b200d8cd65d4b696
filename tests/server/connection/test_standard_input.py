"""Standard input in pieces, against reading the same bytes from memory."""

from __future__ import annotations

import asyncio
import io
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fim_server.server.app import create_server
from fim_server.server.connection.wire import MOST_HEADER_BYTES, PIECE_BYTES, StandardInput
from fim_server.suggest.settings import ServerSettings


def messages(draw: random.Random) -> bytes:
    """Messages with headers in several spellings, one body larger than what is read at once, a line too long."""
    bodies = [bytes(draw.choices(b"{}\n\r x", k=size)) for size in (0, 1, 7, 200, PIECE_BYTES + 9, 3 * PIECE_BYTES)]
    found = [b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]
    return b"".join(found) + b"x" * (2 * MOST_HEADER_BYTES) + b"\nContent-Length: 9\r\n\r\nend"


async def read(source: Any, calls: list[tuple[str, int]]) -> list[bytes]:
    """Return the results of some calls."""
    return [await (source.readline() if name == "line" else source.readexactly(count)) for name, count in calls]


def plainly(data: bytes, calls: list[tuple[str, int]]) -> list[bytes]:
    """Return the results of the calls on bytes in memory."""
    source = io.BytesIO(data)
    return [source.readline(MOST_HEADER_BYTES) if name == "line" else source.read(count) for name, count in calls]


def calls_for(draw: random.Random) -> list[tuple[str, int]]:
    """Lines and stretches in any order, to the end and beyond."""
    sizes = (0, 1, 5, 200, PIECE_BYTES, 2 * PIECE_BYTES)
    return [draw.choice((("line", 0), ("bytes", draw.choice(sizes)))) for _ in range(60)] + [("line", 0)] * 100


@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_a_pipe_are_joined(seed: int) -> None:
    draw = random.Random(seed)
    data, calls = messages(draw), calls_for(draw)
    end, start = os.pipe()

    def write() -> None:
        at = 0
        while at < len(data):
            size = draw.choice((1, 3, 50, 5000, PIECE_BYTES + 1))
            os.write(start, data[at : at + size])
            at += size
            time.sleep(draw.choice((0.0, 0.0, 0.001)))
        os.close(start)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(end, "rb") as stdin:
        found = asyncio.run(read(StandardInput(stdin, create_server(ServerSettings())), calls))
    writer.join()

    assert found == plainly(data, calls)


def test_a_file_that_the_event_loop_cannot_watch_is_read(tmp_path: Path) -> None:
    draw = random.Random(1)
    data, calls = messages(draw), calls_for(draw)
    (tmp_path / "input").write_bytes(data)

    with (tmp_path / "input").open("rb") as stdin:
        found = asyncio.run(read(StandardInput(stdin, create_server(ServerSettings())), calls))

    assert found == plainly(data, calls)


def test_an_idle_input_does_not_block_the_event_loop() -> None:
    end, start = os.pipe()

    async def both() -> bytes:
        with os.fdopen(end, "rb") as stdin:
            reading = asyncio.ensure_future(StandardInput(stdin, create_server(ServerSettings())).readline())
            await asyncio.sleep(0)  # it waits
            await asyncio.sleep(0)
            assert not reading.done()
            os.write(start, b"now\n")
            return await asyncio.wait_for(reading, 10)

    assert asyncio.run(both()) == b"now\n"
    os.close(start)
