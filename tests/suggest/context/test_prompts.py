"""Prompts of two lengths: the choice of a request, by the readings made before it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fim_server.decoding.strategies.alternatives import prompt_of
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.pace import LEAST_PROMPT, LONG_FACTOR, MOST_LONG, Pace
from fim_server.suggest.context.prompts import EXTRA_MS, LEAST_AHEAD, Prompts
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from support.models.scripted_models import Counted
from support.models.tiny_models import write_tiny_model

PER_SECOND = 200

TEXT = "".join(f"value_{n} = compute({n}, name='n{n}')\n" for n in range(200))

SPLIT = Split(TEXT[: len(TEXT) // 2] + "total", "\n" + TEXT[len(TEXT) // 2 :])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    folder: Path = write_tiny_model(tmp_path_factory.mktemp("tiny") / "model", 32, window=1024)
    return load_model(str(folder), "cpu", "torch")


@pytest.fixture
def prompts(model: FimModel) -> Prompts:
    pace = Pace()
    pace.note(PER_SECOND, 1.0)
    return Prompts(model, pace)


def request_at(split: Split, **settings: Any) -> Request:
    return Request("file:///a.py", split, "python", "", False, True, ServerSettings(max_tokens=32, **settings))


def typed(split: Split, text: str) -> Split:
    return replace(split, left=split.left + text)


def read_ahead(prompts: Prompts, request: Request, looks: int | None = None) -> int:
    cancelled = threading.Event() if looks is None else Counted(looks)
    return prompts.read_ahead(request, request.split, prompts.options(request, 0, None), cancelled, False)


def length(prompts: Prompts, request: Request) -> int:
    """Return the greatest length of the prompt that a request takes."""
    options, readings = prompts.reach(request, request.split, prompts.options(request, 0, None), False)
    assert (readings is prompts.short) == (options.max_prompt_tokens == LEAST_PROMPT)
    return options.max_prompt_tokens


def test_a_request_gets_the_short_prompt(prompts: Prompts) -> None:
    assert length(prompts, request_at(SPLIT)) == LEAST_PROMPT


def test_a_long_prompt_that_was_read_ahead_is_used(model: FimModel, prompts: Prompts) -> None:
    request = request_at(SPLIT)
    read = read_ahead(prompts, request)
    assert LEAST_PROMPT * LONG_FACTOR < read < LEAST_PROMPT * (LONG_FACTOR + 1)
    for text in ("", " ", " = com", " = compute(1)\nother"):
        assert length(prompts, request_at(typed(SPLIT, text))) == LEAST_PROMPT * LONG_FACTOR
    options, readings = prompts.reach(request, SPLIT, prompts.options(request, 0, None), False)
    prompt = prompt_of(model, SPLIT, options, False)[0]
    assert len(prompt) > LEAST_PROMPT * (LONG_FACTOR - 1)
    assert len(prompt) - readings.shared(prompt) <= 1 + PER_SECOND * EXTRA_MS / 1000
    elsewhere = Split(TEXT[:200], TEXT[200:])
    assert length(prompts, request_at(elsewhere)) == LEAST_PROMPT


def test_an_interrupted_reading_continues_later(prompts: Prompts) -> None:
    request = request_at(SPLIT)
    total = 0
    turns = 0
    while length(prompts, request) == LEAST_PROMPT:
        read = read_ahead(prompts, request, 12)
        assert read, "each turn reads some"
        total, turns = total + read, turns + 1
    assert turns > 3
    assert total <= LEAST_PROMPT * (LONG_FACTOR + 1)
    # The short one was not lost by it.
    options = prompts.options(request, 0, None)
    assert prompts.short.shared(prompt_of(prompts._model, SPLIT, options, False)[0]) > LEAST_PROMPT - 2 * LEAST_AHEAD


def test_reading_both_prompts_keeps_both(prompts: Prompts) -> None:
    read_ahead(prompts, request_at(SPLIT))
    split, read = SPLIT, 0
    for text in (" = ", "value", "_1", " +", " value", "_2"):
        split = typed(split, text)
        read += read_ahead(prompts, request_at(split))
        assert length(prompts, request_at(split)) == LEAST_PROMPT * LONG_FACTOR
    # The short prompt's far end may have moved on once, by its grid.
    assert read < LEAST_PROMPT


def nothing_longer(request: Request) -> Request:
    return replace(request, split=Split("a = 1\nb", "\nc = 2\n"))


@pytest.mark.parametrize(
    "without",
    [
        lambda request: replace(request, settings=replace(request.settings, prompt_tokens=LEAST_PROMPT)),
        lambda request: replace(request, settings=replace(request.settings, prefetch=False)),
        nothing_longer,
    ],
    ids=["a length of one's own", "nothing ahead", "a short file"],
)
def test_cases_without_a_long_prompt(prompts: Prompts, without: Callable[[Request], Request]) -> None:
    request = without(request_at(SPLIT))
    assert read_ahead(prompts, request) <= LEAST_PROMPT
    assert length(prompts, request) == LEAST_PROMPT


def test_the_long_prompt_is_bounded() -> None:
    pace = Pace()
    for per_second in (100, 1_000, 1_300, 6_000, 100_000):
        pace.note(per_second, 1.0)
        assert pace.prompt_tokens <= pace.long_prompt_tokens <= max(MOST_LONG, pace.prompt_tokens)
