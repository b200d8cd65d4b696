"""Model for next edits, loaded when it is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from fim_server.errors import AwayError, ModelError
from fim_server.models.model import FimModel
from fim_server.models.turn import Turn
from fim_server.suggest.settings import ServerSettings
from fim_server.workers.edit_model import EditModel, in_words
from fim_server.workers.shared_models import SharedModels

OWN, OTHER = (cast(FimModel, SimpleNamespace(turn=Turn())) for _ in range(2))


class Models(SharedModels):
    """Models that are loaded at once."""

    def __init__(self, load: Callable[[], FimModel] = lambda: OTHER) -> None:
        super().__init__()
        self.load, self.asked = load, list[ServerSettings]()

    def get(self, settings: ServerSettings, afresh: bool = False, tell: object = None) -> FimModel:
        self.asked.append(settings)
        return self.load()


def settled(models: Models, settings: ServerSettings) -> EditModel:
    found = EditModel(models)
    found.get(settings, OWN)
    for _ in range(500):
        if models.asked and (news := found.take_news()) is not None:
            assert found.take_news() is None
            assert isinstance(news, ModelError) or news is OTHER
            break
        time.sleep(0.01)
    return found


def test_without_a_setting_it_is_the_model_of_suggestions() -> None:
    models = Models()
    assert EditModel(models).get(ServerSettings(model="a"), OWN) is OWN
    assert EditModel(models).get(ServerSettings(model="a", next_edit_model="a"), OWN) is OWN
    assert not models.asked


def test_it_is_loaded_once_with_the_options_of_its_kind() -> None:
    models = Models()
    settings = ServerSettings(
        model="a", next_edit_model="http://localhost:1", adapter="b", gpu_layers=3, runtime="onnx"
    )
    found = settled(models, settings)
    assert found.get(settings, OWN) is OTHER
    (asked,) = models.asked
    assert (asked.model, asked.adapter, asked.gpu_layers) == ("http://localhost:1", None, None)


def test_a_model_that_cannot_be_loaded_is_told_once() -> None:
    def fail() -> FimModel:
        raise ModelError("no such file")

    settings = ServerSettings(next_edit_model="c.gguf")
    found = settled(Models(fail), settings)
    assert found.get(settings, OWN) is None
    assert found.take_news() is None
    assert in_words(ModelError("no such file")) == "no such file"
    assert in_words(MemoryError()) == "the model for next edits cannot be loaded (MemoryError)"


def test_a_model_that_was_given_up_is_loaded_again() -> None:
    lost, other = (cast(FimModel, SimpleNamespace(turn=Turn())) for _ in range(2))
    models = iter((lost, other))
    settings = ServerSettings(next_edit_model="c.gguf")
    found = EditModel(Models(lambda: next(models)))
    assert eventually(found, settings) is lost
    lost.turn.lose()
    assert found.get(settings, OWN) is None
    assert eventually(found, settings) is other


def test_an_endpoint_that_was_away_is_asked_again_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter((AwayError("no answer"), AwayError("no answer"), OTHER))

    def load() -> FimModel:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    models = Models(load)
    settings = ServerSettings(next_edit_model="http://localhost:1")
    found = settled(models, settings)
    assert found.get(settings, OWN) is None
    assert len(models.asked) == 1  # not yet
    monkeypatch.setattr("fim_server.workers.edit_model.AWAY_SECONDS", 0.0)
    news = []
    assert eventually(found, settings, lambda: news.append(found.take_news())) is OTHER
    assert [one for one in (*news, found.take_news()) if one is not None] == [OTHER]


def eventually(
    found: EditModel, settings: ServerSettings, then: Callable[[], object] = lambda: None
) -> FimModel | None:
    for _ in range(500):
        then()
        if (model := found.get(settings, OWN)) is not None:
            return model
        time.sleep(0.01)
    return None
