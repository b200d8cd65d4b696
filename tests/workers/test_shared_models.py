"""Models shared by the clients of a process."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fim_server.models.turn import Turn
from fim_server.suggest.settings import ServerSettings
from fim_server.workers.shared_models import SharedModels


class Model:
    """Stand-in for a loaded model."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.turn = Turn()


def loaded_as(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    monkeypatch.setattr("fim_server.models.load.load_model", load)


def test_concurrent_requests_load_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[tuple[object, ...]] = []
    gate = threading.Event()

    def load(*key: object) -> Model:
        loads.append(key)
        assert gate.wait(10)
        return Model()

    loaded_as(monkeypatch, load)
    models, found = SharedModels(), list[Any]()
    threads = [
        threading.Thread(target=lambda: found.append(models.get(ServerSettings())), daemon=True) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(10)
    assert len(found) == 4
    assert all(one is found[0] for one in found)
    assert models.get(ServerSettings()) is found[0]
    assert len(loads) == 1
    assert models.get(ServerSettings(model="other")) is not found[0]
    assert models.get(ServerSettings(), afresh=True) is not found[0]
    assert len(loads) == 3


def test_a_failed_load_is_repeated_and_an_unused_model_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Any] = [ValueError("not now"), Model("first"), Model("second")]

    def load(*_: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    loaded_as(monkeypatch, load)
    models = SharedModels()
    with pytest.raises(ValueError, match="not now"):
        models.get(ServerSettings())
    held: Any = models.get(ServerSettings())
    assert held.name == "first"
    del held
    again: Any = models.get(ServerSettings())
    assert again.name == "second"
