"""Requests that are cancelled, overtaken or out of date: over TCP, and with several messages in one packet."""

from __future__ import annotations

import asyncio
import random
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.editors.editor import PATIENCE, REQUEST_CANCELLED, STATUS, Server, Wire, parses, wired_tcp

pytestmark = pytest.mark.asyncio(loop_scope="module")

INLINE = "textDocument/inlineCompletion"
SOURCE = Path(textwrap.__file__).read_text(encoding="utf-8")
CANCELLATIONS = 20


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tcp() -> AsyncIterator[tuple[Server, Wire]]:
    async with wired_tcp() as (server, wire):
        await wire.initialize(
            prefetch=False, deadlineMs=0, invokedDeadlineMs=0, multiline="always", maxTokens=64, alternatives=2
        )
        await wire.is_ready()
        yield server, wire


@pytest.fixture
def wire(tcp: tuple[Server, Wire]) -> Wire:
    return tcp[1]


class Slow:
    """A document whose prompt alone takes the model longer than a message takes to arrive."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire, self.name = wire, name
        self.uri = f"file:///project/{name}.py"
        self.text = SOURCE + f"\n\ndef {name}(a):\n    b = [\n        \n    ]\n    return b\n"
        self.line = self.text[: self.text.rindex("        \n")].count("\n")
        self.version = 1

    async def open(self) -> None:
        await self.wire.open(self.uri, self.text)

    def request(self, number: str, back: int = 0, invoked: bool = True) -> dict[str, Any]:
        return Wire.request(number, INLINE, Wire.completion(self.uri, self.line, 8 - back, invoked))

    def typed(self, text: str) -> dict[str, Any]:
        """A change at the cursor."""
        self.version += 1
        at = {"line": self.line, "character": 8}
        lines = self.text.split("\n")
        lines[self.line] = lines[self.line][:8] + text + lines[self.line][8:]
        self.text = "\n".join(lines)
        change = {"range": {"start": at, "end": at}, "text": text}
        document = {"uri": self.uri, "version": self.version}
        return Wire.note("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def applied(self, item: dict[str, Any]) -> str:
        start, end = item["range"]["start"], item["range"]["end"]
        assert start["line"] == end["line"] == self.line
        lines = self.text.split("\n")
        before, after = lines[self.line][: start["character"]], lines[self.line][end["character"] :]
        lines[self.line] = before + item["insertText"] + after
        return "\n".join(lines)


async def statistics(wire: Wire) -> dict[str, Any]:
    answer = await wire.ask("statistics", "workspace/executeCommand", {"command": "fim-server.statistics"})
    result: dict[str, Any] = answer["result"]
    return result


def cancel(number: str) -> dict[str, Any]:
    return Wire.note("$/cancelRequest", {"id": number})


def last(wire: Wire) -> dict[str, Any]:
    found: dict[str, Any] = next(
        note["params"]["last"] for note in reversed(wire.notes) if note["method"] == STATUS and "last" in note["params"]
    )
    return found


async def test_cancelled_requests_are_answered_at_once(wire: Wire) -> None:
    """Twenty of them, cancelled at random moments: in the queue, in the prompt, between two tokens."""
    slow = Slow(wire, "cancelled")
    await slow.open()
    before = await statistics(wire)
    choose = random.Random(20)
    times = []
    for number in range(CANCELLATIONS):
        name = f"cancelled {number}"
        await wire.send(slow.typed("x"), slow.request(name))
        await asyncio.sleep(choose.uniform(0, 0.15))
        started = time.monotonic()
        await wire.send(cancel(name))
        answer = await wire.answer(name)
        if "error" in answer:
            assert answer["error"]["code"] == REQUEST_CANCELLED
            times.append(time.monotonic() - started)
    after = await statistics(wire)
    times.sort()
    print(f"{len(times)} cancelled: median {1000 * times[len(times) // 2]:.0f} ms, longest {1000 * times[-1]:.0f} ms")
    assert len(times) > CANCELLATIONS // 2
    assert times[-1] < 1
    assert after["cancelled"] == before["cancelled"] + len(times)
    assert after["failed"] == before["failed"]


async def test_the_worker_stops_when_a_request_is_cancelled(wire: Wire) -> None:
    """The next request does not wait for cancelled work."""
    slow = Slow(wire, "stopped")
    small = "file:///project/small.py"
    await slow.open()
    await wire.open(small, "def f(a):\n    return \n")
    waits = []
    for number in range(5):
        await wire.send(slow.typed("y"), slow.request(f"stopped {number}"))
        await asyncio.sleep(0.1)
        await wire.send(
            cancel(f"stopped {number}"),
            Wire.note(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": small, "version": number + 2},
                    "contentChanges": [{"text": f"a = {number}\n"}],
                },
            ),
            Wire.request(f"next {number}", INLINE, Wire.completion(small, 0, 4, invoked=False)),
        )
        answer = await wire.answer(f"next {number}", 60)
        assert "result" in answer
        waits.append(last(wire)["latency"]["queueMs"])
    print(f"waited for the worker: {sorted(waits)} ms")
    assert sorted(waits)[len(waits) // 2] < 1000


async def test_a_cancellation_in_the_same_packet(wire: Wire) -> None:
    slow = Slow(wire, "packet")
    await slow.open()
    await wire.send(slow.request("same packet"), cancel("same packet"))
    answer = await wire.answer("same packet", 10)
    assert answer["error"]["code"] == REQUEST_CANCELLED


async def test_cancelling_finished_and_unknown_requests(wire: Wire) -> None:
    slow = Slow(wire, "done")
    await slow.open()
    await wire.send(slow.request("done", invoked=False))
    assert "result" in await wire.answer("done")
    await wire.send(cancel("done"), cancel("never asked"), cancel("done"))
    assert await statistics(wire)


async def test_the_latest_of_many_wins(wire: Wire) -> None:
    slow = Slow(wire, "latest")
    await slow.open()
    before = await statistics(wire)
    await wire.send(*(slow.request(f"race {number}", back=4 - number % 5, invoked=False) for number in range(10)))
    answers = [await wire.answer(f"race {number}") for number in range(10)]
    assert all(answer["result"]["items"] == [] for answer in answers[:-1])
    for item in answers[-1]["result"]["items"]:
        assert parses(slow.applied(item))
    after = await statistics(wire)
    assert after["superseded"] == before["superseded"] + 9


async def test_a_change_in_the_requests_packet(wire: Wire) -> None:
    """The request means the text before the change, and its answer is too late."""
    slow = Slow(wire, "skew")
    await slow.open()
    for number in range(3):
        await wire.send(slow.request(f"skew {number}", invoked=False), slow.typed("["))
        answer = await wire.answer(f"skew {number}")
        assert answer["result"]["items"] == []
    await wire.send(slow.request("skew after", invoked=False))
    for item in (await wire.answer("skew after"))["result"]["items"]:
        argument = item["command"]["arguments"][0]
        assert argument["guarantee"] != "exact" or parses(slow.applied(item))


async def test_a_change_and_its_request_in_one_packet(wire: Wire) -> None:
    """The request means the text after the change."""
    slow = Slow(wire, "both")
    await slow.open()
    for number, text in enumerate(["a", ",", " "]):
        at = 8
        await wire.send(slow.typed(text), slow.request(f"both {number}", back=0, invoked=False))
        for item in (await wire.answer(f"both {number}"))["result"]["items"]:
            assert item["range"]["start"]["character"] == at
            assert parses(slow.applied(item))


async def test_a_request_that_arrives_byte_by_byte(wire: Wire) -> None:
    slow = Slow(wire, "bytes")
    await slow.open()
    frame = Wire.frame(slow.request("bytes", invoked=False))
    for start in range(0, len(frame), 7):
        wire.writer.write(frame[start : start + 7])
        await wire.writer.drain()
        await asyncio.sleep(0)
    assert "result" in await wire.answer("bytes", PATIENCE)


async def test_a_document_closed_during_its_request(wire: Wire) -> None:
    slow = Slow(wire, "closed")
    await slow.open()
    await wire.send(slow.request("closed"), Wire.note("textDocument/didClose", {"textDocument": {"uri": slow.uri}}))
    assert (await wire.answer("closed"))["result"]["items"] == []


async def test_explaining_does_not_stop_a_completion(wire: Wire) -> None:
    slow = Slow(wire, "explained")
    await slow.open()
    argument = {"uri": slow.uri, "position": {"line": 0, "character": 0}}
    command = {"command": "fim-server.explainAt", "arguments": [argument]}
    await wire.send(slow.request("completed"), Wire.request("explained", "workspace/executeCommand", command))
    assert (await wire.answer("explained"))["result"]["language"].startswith("python")
    for item in (await wire.answer("completed"))["result"]["items"]:
        assert parses(slow.applied(item))


async def test_no_request_failed(tcp: tuple[Server, Wire]) -> None:
    server, wire = tcp
    assert (await statistics(wire))["failed"] == 0
    assert "Traceback" not in server.errors.decode()
