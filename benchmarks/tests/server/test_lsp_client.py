"""The editor's end of the protocol: answers, errors, cancellations, and a server that ends."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

from benchmarks.server.lsp_client import CANCELLED, Client
from fim_server.errors import BenchError


def test_a_server_is_waited_for_no_longer_than_it_lives() -> None:
    async def ask() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "input()"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        client = Client(process, io.BytesIO(b"first\ngone\n"), 0.0)
        try:
            await client.answer_to(client.ask("initialize", {}))
        finally:
            await client.end()

    with pytest.raises(BenchError, match=r"^the server ended: gone$"):
        asyncio.run(ask())


SERVER = """
import json, sys

def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()

held = None
while header := sys.stdin.buffer.readline():
    length = int(header.split(b":")[1])
    while sys.stdin.buffer.readline().strip():
        pass
    message = json.loads(sys.stdin.buffer.read(length))
    if message.get("method") == "hold":
        held = message["id"]
    elif message.get("method") == "$/cancelRequest":
        send(id=message["params"]["id"], error={"code": -32800, "message": "cancelled"})
    elif message.get("method") == "configured":
        asker = message["id"]
        send(id="c", method="workspace/configuration", params={"items": [{}, {}]})
    elif message.get("method") == "shutdown":
        send(id=message["id"], result=None)
    elif message.get("method") == "exit":
        break
    elif message.get("id") == "c":
        send(id=asker, result=message["result"])
    elif "id" in message:
        send(method="no/such", params={})
        send(method="fim-server/status", params={"state": "ready", "last": {"origin": "cache"}})
        send(id=message["id"], result={"given": message["params"]})
"""


async def served(errors: io.BytesIO) -> Client:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return Client(process, errors, 0.0)


def test_answers_are_plain_data_with_their_status_and_times() -> None:
    async def talk() -> None:
        client = await served(io.BytesIO())
        try:
            asked = client.ask("echo", {"text": "é", "nested": [{"a": None}]})
            assert await client.answer_to(asked) == {"given": {"text": "é", "nested": [{"a": None}]}}
            assert asked.last == {"origin": "cache"}
            assert asked.sent < asked.received
            assert await client.ready() > 0
            assert await client.answer_to(client.ask("configured", {})) == [None, None]
        finally:
            await client.end()
        assert client.process.returncode == 0

    asyncio.run(talk())


def test_a_cancelled_request_is_answered_with_an_error() -> None:
    async def talk() -> None:
        client = await served(io.BytesIO())
        try:
            asked = client.ask("hold", {})
            client.cancel(asked)
            assert await client.answer_to(asked) is None
            assert asked.answer.result()["error"]["code"] == CANCELLED
            assert asked.cancelled is not None
            assert asked.cancelled < asked.received
            assert asked.last is None
            client.cancel(asked)  # which is answered already
            await client.settle()
        finally:
            await client.end()

    asyncio.run(talk())
