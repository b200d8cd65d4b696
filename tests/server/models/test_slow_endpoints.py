"""The server on an endpoint whose answers never end: requests are answered on time, and the server tries again."""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from support.editors import editor
from support.editors.editor import AUTOMATIC, Editor, assert_parses, serving, written
from support.models.hostile_endpoint import Answer, answering, whole

pytestmark = pytest.mark.asyncio

PROGRAM = Path(__file__).parents[2] / "support" / "servers" / "served_hastily.py"
TEXT = "def f(a):\n    return \n"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose time limits for endpoints are short."""
    monkeypatch.setattr(editor, "SERVE", [sys.executable, str(PROGRAM)])


class Slow:
    """Answers that send signs of life for ever, or, once ``is_sound``, what another answer sends."""

    def __init__(self, part: bytes, sound: Answer) -> None:
        self.part, self.sound, self.is_sound, self.asked = part, sound, False, 0

    def __call__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.asked += 1
        if self.is_sound:
            self.sound(handler, body)
            return
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while not self.is_sound:
            handler.wfile.write(self.part)
            time.sleep(0.1)


def one_token(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """A stream, or an answer, of one token."""
    told = b'{"choices": [{"text": "a", "finish_reason": "stop", "logprobs": null}]}'
    if body.get("stream"):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + told + b"\n\n")
    else:
        whole(told)(handler, body)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("part", [b": alive\n\n", b"d"], ids=["signs of life", "a byte at a time"])
async def test_an_endpoint_without_answers_is_an_error_and_tried_again(part: bytes) -> None:
    slow = Slow(part, one_token)
    with answering("openai", slow) as address:
        async with serving(None, "--model", address) as client:
            await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
            assert f"{address}: " in client.statuses[-1]["message"]
            assert "has not answered within 4 s" in client.statuses[-1]["message"]
            assert [line for line in client.logged if "has not answered within 4 s" in line]
            asked = slow.asked
            await client.until(lambda: slow.asked > asked)
            slow.is_sound = True
            await client.is_ready()
            assert await Editor(client, "a.py", TEXT).ask(len(TEXT) - 1)


@pytest.mark.parametrize("kind", [editor.INVOKED, AUTOMATIC])
async def test_requests_are_answered_on_time_while_an_endpoint_is_silent(kind: Any) -> None:
    slow = Slow(b": alive\n\n", one_token)
    with answering("openai", slow) as address:
        options = {**editor.SETTINGS, "invokedDeadlineMs": 300, "deadlineMs": 300}
        async with serving(None, "--model", address, options=options) as client:
            await client.until(lambda: slow.asked)
            assert await Editor(client, "a.py", TEXT).ask(len(TEXT) - 1, kind=kind) == []
            assert client.statuses[-1]["state"] == "loading"
            assert client.last["reason"] == f"{address}: its model is still being loaded"
            slow.is_sound = True
            await client.is_ready()
            assert await Editor(client, "b.py", TEXT).ask(len(TEXT) - 1)


async def test_an_invoked_request_is_answered_on_time_once_the_endpoint_falls_silent() -> None:
    slow = Slow(b": alive\n\n", one_token)
    slow.is_sound = True
    with answering("openai", slow) as address:
        async with serving(None, "--model", address) as client:
            await client.is_ready()
            await client.use(invokedDeadlineMs=600)
            slow.is_sound = False
            silent = Editor(client, "a.py", TEXT)
            for item in await silent.ask(len(TEXT) - 1):  # the engine's own, if the model has written nothing
                assert_parses(silent.applied(item, len(TEXT) - 1), written(item))
            assert client.last["uri"] == silent.uri
            slow.is_sound = True
            assert await Editor(client, "b.py", TEXT).ask(len(TEXT) - 1)
