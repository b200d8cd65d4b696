"""Trigger `subtle`: an answer is computed while the user types, and shown by the next explicit request there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import pytest
import pytest_asyncio

from fim_server.language import Stop
from fim_server.server.requests import answer
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from support.editors.answers import suggestion
from support.editors.connected import URI, Connected
from support.editors.editor import Wire

SUBTLE = {"trigger": "subtle"}


class Subtle(Connected):
    """A server that makes one text, of alternatives several; ``asked``: the worker's requests, as explicit or not."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bool] = []
        self.ready: list[bool] = []

    def configure(self, **settings: Any) -> None:
        self.send(Wire.note("workspace/didChangeConfiguration", {"settings": settings}))

    def work(self, request: Request) -> Work:
        self.asked.append(request.invoked)
        texts = ("1", "2", "3") if request.invoked else ("1",)
        return Work(request.answered(tuple(suggestion(text, identity=text, confidence=0.9) for text in texts)))


@pytest_asyncio.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Subtle]:
    connected = Subtle()

    def work(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Work:
        return connected.work(request)

    monkeypatch.setattr(Completer, "_answer", work)
    await connected.begin(monkeypatch, initializationOptions=SUBTLE)
    monkeypatch.setattr(answer, "report_answered", lambda *arguments: connected.ready.append(arguments[-1]))
    yield connected
    connected.server.close()


@pytest.mark.asyncio
async def test_the_first_explicit_request_gets_what_was_computed_and_the_next_one_alternatives(client: Subtle) -> None:
    client.ask("typed", invoked=False)
    assert await client.texts("typed") == []
    assert client.server.usage.shown == 0
    client.ask("first")
    assert await client.texts("first") == ["1"]
    assert client.asked == [False]
    assert (client.server.usage.shown, client.server.usage.answered_from_cache) == (1, 1)
    client.ask("second")
    assert await client.texts("second") == ["1", "2", "3"]
    assert client.asked == [False, True]
    assert client.ready == [True, False, False]


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["elsewhere", "changed", "closed", "settings"])
async def test_elsewhere_an_explicit_request_is_an_ordinary_one(client: Subtle, how: str) -> None:
    client.ask("typed", invoked=False)
    assert await client.texts("typed") == []
    match how:
        case "changed":
            client.change(2, "y = \n")
        case "closed":
            client.close()
            client.open()
        case "settings":
            client.configure(trigger="subtle", temperature=1)
    client.ask("asked", at=0 if how == "elsewhere" else 4)
    assert await client.texts("asked") == ["1", "2", "3"]


@pytest.mark.asyncio
async def test_typing_after_a_request_shows_nothing(client: Subtle) -> None:
    client.ask("typed", invoked=False)
    assert await client.texts("typed") == []
    client.ask("asked")
    assert await client.texts("asked") == ["1"]
    client.ask("again", invoked=False)
    assert await client.texts("again") == []
    client.ask("asked again")
    assert await client.texts("asked again") == ["1"]


@pytest.mark.asyncio
async def test_the_setting_holds_by_language(client: Subtle) -> None:
    client.configure(trigger="subtle", languages={"python": "automatic"})
    client.ask("typed", invoked=False)
    assert await client.texts("typed") == ["1"]
    client.configure(trigger="automatic", languages={"*.py": "subtle"})
    client.ask("again", invoked=False)
    assert await client.texts("again") == []
    assert client.server.requests.held is not None
    assert client.server.requests.held.uri == URI
