"""Typing along with a suggestion while the model writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from fim_server.language import Stop
from fim_server.server.constants import SERVER
from fim_server.server.requests import type_through
from fim_server.server.requests.type_through import typed_since
from fim_server.server.usage import Usage
from fim_server.suggest.job import Costs, Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from fim_server.text.document import Split
from support.editors.answers import suggestion
from support.editors.connected import URI, Connected
from support.editors.watched import SETTINGS, Blocked, request

TEXT = "call(first)"


class Model:
    """Model with a part written so far and a rest for its release, and the cursors of its requests."""

    def __init__(self) -> None:
        self.gate, self.text, self.written = Blocked(), TEXT, ""
        self.asked: list[tuple[str, Stop]] = []

    def answer(self, completer: Completer, request: Request, cancelled: Stop) -> Work | None:
        self.asked.append((request.split.left, cancelled))
        while not self.gate.gate.wait(0.001):
            completer.decoder._writing = cancelled, self.written
            if cancelled.is_set():
                return None
            if completer.decoder.is_enough(cancelled):
                break
        text = self.text.removeprefix(request.split.left.removeprefix("x = "))
        return None if cancelled.is_set() else Work(request.answered((suggestion(text),)))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()

    def answer(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Any:
        return model.answer(self, request, cancelled)

    monkeypatch.setattr(Completer, "_answer", answer)
    monkeypatch.setattr(Completer, "recall", lambda *arguments: None)
    for name in ("read_on", "read_ahead"):
        monkeypatch.setattr(Completer, name, lambda *arguments: None)
    return model


@pytest_asyncio.fixture
async def client(model: Model, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connected]:
    connected = Connected()
    await connected.begin(monkeypatch)
    connected.server.settings = SETTINGS.having("debounce_ms", 0.0)
    yield connected
    connected.server.close()


async def first_asked(client: Connected, model: Model, written: str) -> None:
    """A request waits, and the model has written a part."""
    model.written = written
    client.ask("first", invoked=False)
    await client.until(lambda: model.asked)
    job = client.server.requests.running[URI].job
    await client.until(lambda: job.written() == written)


def type_on(client: Connected, text: str, version: int = 2, cancelling: bool = True) -> None:
    """Send what VS Code sends: the change, the cancellation of the older request, the newer request."""
    client.change(version, f"x = {text}\n")
    if cancelling:
        client.cancel("first")
    client.ask(text, invoked=False, at=4 + len(text))


async def until_followed(client: Connected, number: str = "first") -> None:
    """Until the newer request waits for what the older one asked for."""
    await client.until(lambda: client.server.requests.waiting == 1 + (not client.answers(number)))


@pytest.mark.asyncio
async def test_an_answer_that_arrives_with_its_cancellation_is_cached(client: Connected, model: Model) -> None:
    await first_asked(client, model, "")
    job = client.server.requests.running[URI].job
    model.gate.gate.set()
    job.future.result(20)
    type_on(client, "c")  # all in one go, before the answer arrives
    assert await client.texts("c") == ["all(first)"]
    assert len(model.asked) == 1


@pytest.mark.asyncio
async def test_the_answer_of_unclaimed_work_is_cached(client: Connected, model: Model) -> None:
    await first_asked(client, model, "call")
    client.cancel("first")
    await client.until(lambda: URI in client.server.requests.unclaimed)
    model.gate.gate.set()
    await client.until(lambda: not client.server.requests.unclaimed)
    type_on(client, "ca", cancelling=False)
    assert await client.texts("ca") == ["ll(first)"]
    assert len(model.asked) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("cancelling", [True, False])
@pytest.mark.parametrize("written", ["", "c", "call(fi"])
async def test_typing_along_asks_the_model_once(
    client: Connected, model: Model, written: str, cancelling: bool
) -> None:
    await first_asked(client, model, written)
    type_on(client, "c", cancelling=cancelling)
    await until_followed(client)
    type_on(client, "call", 3, cancelling=cancelling)
    model.gate.gate.set()
    assert await client.texts("call") == ["(first)"]
    assert await client.texts("c") == []  # overtaken
    assert [left for left, _ in model.asked] == ["x = "]
    await client.until(lambda: not client.server.worker.is_at_work)
    assert client.server.requests.waiting == 0
    assert not client.server.requests.running
    assert not client.server.requests.unclaimed


@pytest.mark.asyncio
@pytest.mark.parametrize("cancelling", [True, False])
async def test_a_request_for_one_line_does_not_wait_for_more(client: Connected, model: Model, cancelling: bool) -> None:
    """In a word one line is wanted, before it was several."""
    await first_asked(client, model, "call(fi")
    type_on(client, "c", cancelling=cancelling)
    await until_followed(client)
    assert client.answers("c") == []
    model.written = "call(first)\nand"
    assert await client.texts("c") == ["all(first)"]
    assert not model.gate.gate.is_set()


@pytest.mark.asyncio
@pytest.mark.parametrize("cancelling", [True, False])
async def test_typing_something_else_stops_the_work(client: Connected, model: Model, cancelling: bool) -> None:
    await first_asked(client, model, "call(fi")
    model.text = "cost"
    type_on(client, "co", cancelling=cancelling)
    assert model.asked[0][1].is_set()
    await client.until(lambda: len(model.asked) == 2)
    model.gate.gate.set()
    assert await client.texts("co") == ["st"]
    assert client.server.requests.waiting == 0


@pytest.mark.asyncio
async def test_work_that_writes_something_else_is_stopped(
    client: Connected, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[Costs] = []
    monkeypatch.setattr(Usage, "count_answer", lambda usage, one, from_model: costs.append(one))
    await first_asked(client, model, "")
    type_on(client, "co")
    await until_followed(client)
    assert not model.asked[0][1].is_set()
    await asyncio.sleep(0.2)
    model.written, model.text = "call(", "cost"
    await client.until(lambda: len(model.asked) == 2)
    assert model.asked[0][1].is_set()
    model.gate.gate.set()
    assert await client.texts("co") == ["st"]
    assert costs[-1].queue_ms >= 190, "what was waited for in vain is not the server's own share"


@pytest.mark.asyncio
async def test_a_different_answer_leads_to_a_new_request(client: Connected, model: Model) -> None:
    """The text is known only once it is whole: before, nothing of it was told."""
    await first_asked(client, model, "")
    type_on(client, "co")
    await until_followed(client)
    model.gate.gate.set()
    await client.texts("co")
    assert [left for left, _ in model.asked] == ["x = ", "x = co"]


@pytest.mark.asyncio
async def test_unclaimed_work_ends_soon(client: Connected, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_through, "SERVER", replace(SERVER, unclaimed_seconds=0.05))
    await first_asked(client, model, "call")
    client.cancel("first")
    await client.until(lambda: URI in client.server.requests.unclaimed)
    assert not model.asked[0][1].is_set()
    await client.until(model.asked[0][1].is_set)
    assert not client.server.requests.unclaimed


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["close", "off", "else"])
async def test_unclaimed_work_ends_with_its_document(client: Connected, model: Model, end: str) -> None:
    await first_asked(client, model, "call")
    client.cancel("first")
    await client.until(lambda: URI in client.server.requests.unclaimed)
    match end:
        case "close":
            client.close()
        case "off":
            client.send(
                {
                    "jsonrpc": "2.0",
                    "id": "off",
                    "method": "workspace/executeCommand",
                    "params": {"command": "fim-server.setEnabled", "arguments": [False]},
                }
            )
        case _:
            client.change(2, "y = \n")
    await client.until(model.asked[0][1].is_set)


@pytest.mark.asyncio
async def test_explicit_requests_do_not_follow_and_are_not_followed(client: Connected, model: Model) -> None:
    await first_asked(client, model, "call")
    client.ask("asked", invoked=True)
    await client.until(lambda: len(model.asked) == 2)
    assert model.asked[0][1].is_set()
    client.change(2, "x = c\n")
    assert model.asked[1][1].is_set()
    model.gate.gate.set()


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("x = f", "\n", "f"),
        ("x = f(", ")\n", "f("),  # the editor's closer
        ("x =", "\n", None),
        ("x = f", "\ny", None),
        ("x = f", "+ 1\n", "f"),  # what stands there is no closer, which the memory of suggestions finds out
    ],
)
def test_text_typed_between_two_requests(left: str, right: str, expected: str | None) -> None:
    before = request(URI)
    after = replace(before, split=Split(left, right))
    assert typed_since(before, after) == expected
    assert typed_since(replace(before, invoked=True), after) is None
    assert typed_since(before, replace(after, settings=SETTINGS.having("temperature", 1.0))) is None
    assert typed_since(before, replace(after, language_id="json")) is None


def test_a_closer_that_was_typed_over_is_typed() -> None:
    before = replace(request(URI), split=Split("f(", ")\n"))
    assert typed_since(before, replace(before, split=Split("f(a)", "\n"))) == "a)"
    far = replace(request(URI), split=Split("f(", "x" * 40))
    assert typed_since(far, replace(far, split=Split("f(a", ""))) is None
