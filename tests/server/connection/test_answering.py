"""Messages that go out with an answer, in one piece, and what is done after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pygls.protocol import JsonRPCRequestMessage

from fim_server.server.app import create_server
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.settings import ServerSettings


class Pieces:
    """A writer that notes what it was given at once."""

    def __init__(self) -> None:
        self.pieces: list[list[dict[str, Any]]] = []

    def write(self, data: bytes) -> None:
        bodies = [part.split(b"\r\n\r\n")[-1] for part in data.split(b"Content-Length: ")[1:]]
        self.pieces.append([json.loads(body) for body in bodies])

    def close(self) -> None:
        """Nothing to close."""


async def answered(handle: Callable[[FimLanguageServer], Any], cancelled: bool = False) -> list[list[dict[str, Any]]]:
    """Return the pieces sent for a request that a handler answers."""
    server = create_server(ServerSettings())
    pieces = Pieces()

    async def handler(ls: FimLanguageServer, params: Any) -> Any:
        given = handle(ls)
        await asyncio.sleep(3600 if cancelled else 0)
        return given

    server.protocol.set_writer(pieces)
    server.protocol.initialized = True
    server.feature("test/ask")(handler)
    server.protocol.handle_message(JsonRPCRequestMessage(id=1, method="test/ask", jsonrpc="2.0", params={}))
    await asyncio.sleep(0)  # the handler has begun
    if cancelled:
        server.protocol._handle_cancel_notification(1)
    begun = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*begun, return_exceptions=True)
    await asyncio.sleep(0)  # what the handler's end brings
    return pieces.pieces


def names(pieces: list[list[dict[str, Any]]]) -> list[list[str]]:
    return [[one.get("method") or ("error" if "error" in one else "answer") for one in piece] for piece in pieces]


def test_messages_with_an_answer_are_written_in_one_piece() -> None:
    def handle(ls: FimLanguageServer) -> int:
        ls.once_answered(lambda: ls.protocol.notify("after"))
        ls.with_answer(lambda: ls.protocol.notify("first"))
        ls.with_answer(lambda: ls.protocol.notify("second"))
        return 7

    pieces = asyncio.run(answered(handle))

    assert names(pieces) == [["first", "second", "answer"], ["after"]]
    assert pieces[0][-1]["result"] == 7


def test_a_failure_beside_an_answer_does_not_stop_it() -> None:
    def handle(ls: FimLanguageServer) -> int:
        ls.with_answer(lambda: 1 / 0)
        ls.with_answer(lambda: ls.protocol.notify("second"))
        ls.once_answered(lambda: 1 / 0)
        ls.once_answered(lambda: ls.protocol.notify("after"))
        return 7

    pieces = asyncio.run(answered(handle))

    log = "window/logMessage"
    assert names(pieces) == [[log, "second", "answer"], [log], ["after"]]


def test_a_cancelled_request_sends_no_messages() -> None:
    def handle(ls: FimLanguageServer) -> int:
        ls.with_answer(lambda: ls.protocol.notify("first"))
        ls.once_answered(lambda: ls.protocol.notify("after"))
        return 7

    pieces = asyncio.run(answered(handle, cancelled=True))

    assert names(pieces) == [["error"], ["after"]]


def test_without_a_request_messages_are_sent_at_once() -> None:
    server, pieces = create_server(ServerSettings()), Pieces()
    server.protocol.set_writer(pieces)

    server.with_answer(lambda: server.protocol.notify("first"))
    server.once_answered(lambda: server.protocol.notify("after"))

    assert names(pieces.pieces) == [["first"], ["after"]]
