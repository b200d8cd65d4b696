"""Suggestions of the project's memory, and the model's answer while the user looks at one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Future

import pytest
import pytest_asyncio

from fim_server.decoding.results import Written
from fim_server.language import Stop
from fim_server.server.requests.prefetch import confirmed
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.ranking.rank import others_of, together
from fim_server.suggest.request import Request
from fim_server.suggest.suggestion import Suggestion
from support.editors.answers import answered, changed, suggestion
from support.editors.connected import URI, Connected
from support.editors.watched import SETTINGS, Blocked, request

LINE = "call(first)"
OTHER = "file:///b.py"


class Model:
    """Model that answers once it is released, with the texts of its requests."""

    def __init__(self) -> None:
        self.gate, self.texts = Blocked(), ["call(first).result"]
        self.asked: list[tuple[str, Stop]] = []

    def answer(self, request: Request, cancelled: Stop) -> Work | None:
        self.asked.append((request.uri, cancelled))
        while not self.gate.gate.wait(0.001):
            if cancelled.is_set():
                return None
        suggestions = tuple(suggestion(text, identity=text) for text in self.texts)
        return None if cancelled.is_set() else Work(request.answered(suggestions))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()

    def recall(self: Completer, request: Request, cancelled: Stop, submitted: float) -> Work | None:
        if request.uri != URI or request.split.left != "x = ":
            return None
        return Work(request.answered((changed(suggestion(LINE), is_recalled=True),)), origin="memory")

    def answer(
        self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, submitted: float, recalls: bool
    ) -> Work | None:
        recalled = recall(self, request, cancelled, submitted) if recalls else None
        return recalled or model.answer(request, cancelled)

    monkeypatch.setattr(Completer, "_answer", answer)
    monkeypatch.setattr(Completer, "recall", recall)
    monkeypatch.setattr(Completer, "read_on", lambda *arguments: None)
    monkeypatch.setattr(Completer, "read_ahead", lambda *arguments: None)
    return model


@pytest_asyncio.fixture
async def client(model: Model, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connected]:
    connected = Connected()
    await connected.begin(monkeypatch)
    connected.server.settings = SETTINGS.having("prefetch", True).having("debounce_ms", 0.0)
    yield connected
    connected.server.close()


async def shown_at_once(client: Connected, model: Model) -> None:
    """The memory's line is offered though the model does not answer."""
    client.ask("first", invoked=False)
    assert await client.texts("first") == [LINE]
    await client.until(lambda: model.asked)
    assert not model.asked[0][1].is_set()


async def typed(client: Connected, text: str, version: int = 2) -> list[str]:
    """Return the suggestions after some text was typed."""
    client.change(version, f"x = {text}\n")
    client.ask(text, invoked=False, at=4 + len(text))
    return await client.texts(text)


@pytest.mark.asyncio
async def test_a_longer_text_of_the_model_is_shown_at_the_next_key(client: Connected, model: Model) -> None:
    await shown_at_once(client, model)
    model.gate.gate.set()
    await client.until(lambda: client.server.requests.prefetch is None or len(model.asked) > 1)
    assert await typed(client, "c") == ["all(first).result"]


@pytest.mark.asyncio
async def test_another_text_of_the_model_is_shown_once_it_is_typed(client: Connected, model: Model) -> None:
    model.texts = ["call(second)"]
    await shown_at_once(client, model)
    model.gate.gate.set()
    await client.until(lambda: client.server.requests.prefetch is None or len(model.asked) > 1)
    assert await typed(client, "call(") == ["first)"]  # what is seen stays
    assert await typed(client, "call(s", 3) == ["econd)"]


@pytest.mark.asyncio
async def test_typing_along_keeps_the_model_running_and_other_keys_stop_it(client: Connected, model: Model) -> None:
    await shown_at_once(client, model)
    assert await typed(client, "c") == ["all(first)"]
    assert not model.asked[0][1].is_set()
    client.change(3, "x = cost\n")
    client.ask("else", invoked=False, at=8)
    await client.until(lambda: len(model.asked) > 1)
    assert model.asked[0][1].is_set()
    model.gate.gate.set()
    assert await client.texts("else") == ["call(first).result"]


@pytest.mark.asyncio
async def test_another_document_does_not_wait_for_it(client: Connected, model: Model) -> None:
    client.open(OTHER)
    await shown_at_once(client, model)
    client.ask("other", invoked=False, uri=OTHER)
    await client.until(lambda: [uri for uri, _ in model.asked] == [URI, OTHER])
    assert model.asked[0][1].is_set()
    model.gate.gate.set()
    assert await client.texts("other") == ["call(first).result"]


@pytest.mark.asyncio
async def test_an_explicit_request_gets_the_models_suggestion(client: Connected, model: Model) -> None:
    model.texts = ["cost"]
    await shown_at_once(client, model)
    model.gate.gate.set()
    client.server.settings = client.server.settings.having("alternatives", 1)
    client.ask("asked", invoked=True)
    assert await client.texts("asked") == ["cost"]


@pytest.mark.asyncio
@pytest.mark.parametrize("setting", ["prefetch", "ask_model"])
async def test_settings_prevent_the_models_confirmation(client: Connected, model: Model, setting: str) -> None:
    client.server.settings = client.server.settings.having(setting, False)
    client.ask("first", invoked=False)
    assert await client.texts("first") == [LINE]
    await client.until(lambda: not client.server.worker.is_at_work)
    assert not model.asked
    assert client.server.requests.prefetch is None


def test_the_models_texts_come_behind_the_shown_one() -> None:
    asked = request(URI)

    def texts(*written: Suggestion) -> list[tuple[str, bool]]:
        first = changed(
            suggestion(LINE), is_recalled=True, is_calibrated=True, tokens=(Written(len(LINE), 0.9),), cuts=(len(LINE),)
        )
        found = confirmed(answered("x = ", "\n", first), answered("x = ", "\n", *written), asked)
        return [(one.text, one.is_recalled) for one in found.suggestions]

    recalled = changed(suggestion("cost"), is_recalled=True)
    assert texts() == [(LINE, True)]
    assert texts(suggestion(LINE), recalled) == [(LINE, False), ("cost", True)]
    assert texts(suggestion("cost")) == [(LINE, True), ("cost", False)]
    assert texts(suggestion(LINE + ".x")) == [(LINE + ".x", False), (LINE, True)]
    assert texts(suggestion(LINE + "\ny")) == [(LINE, True), (LINE + "\ny", False)]
    unsure = changed(suggestion(LINE + ".x"), tokens=(Written(len(LINE) + 2, 0.01),), cuts=(len(LINE) + 2,))
    assert texts(unsure) == [(LINE, True), (LINE + ".x", False)]


def test_texts_are_suggested_once() -> None:
    first, again, other, known = (
        suggestion("a"),
        changed(suggestion("a"), identity="2"),
        suggestion("b"),
        suggestion("c"),
    )
    assert others_of([suggestion("c")], [first, known, other, again]) == [first, other]


def test_alternatives_come_from_model_and_memory() -> None:
    def one(text: str, share: float) -> Suggestion:
        return changed(suggestion(text), tokens=(Written(len(text), share),), cuts=(len(text),), is_calibrated=True)

    best, second, third = one("best", 0.2), one("second", 0.4), one("third", 0.6)
    sure, unsure = one("recalled", 0.9), one("other", 0.1)

    def texts(written: list[Suggestion], recalled: list[Suggestion], most: int) -> list[str]:
        return [found.text for found in together(written, recalled, "", most)]

    assert texts([best, second, third], [sure, unsure], 1) == ["best"]
    assert texts([best, second, third], [sure, unsure], 3) == ["best", "recalled", "third"]
    assert texts([best, second, third], [unsure], 3) == ["best", "third", "other"]
    assert texts([best, second, third], [unsure], 9) == ["best", "third", "second", "other"]
    assert texts([best], [], 3) == ["best"]
    assert texts([], [sure, unsure], 1) == ["recalled"]
    ended = [found.text for found in together([third], [sure, unsure], "", 3, is_written=False)]
    assert ended == ["recalled", "third", "other"], "a text that the engine ended is not the first"
