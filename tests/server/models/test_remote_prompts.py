"""Prompts for endpoints: as long as the endpoint reads in time, with prefetch only at resting cursors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.options import LoadOptions
from fim_server.models.pace import LEAST_CHUNK, LEAST_PROMPT, Pace, first_pace
from fim_server.models.source import locate
from fim_server.suggest.context.prompts import Prompts
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from support.models import endpoints
from support.models.endpoints import Endpoint
from support.models.scripted_models import Counted

TEXT = "".join(f"value_{n} = compute({n}, name='n{n}')\n" for n in range(200))

SPLIT = Split(TEXT[: len(TEXT) // 2] + "total", "\n" + TEXT[len(TEXT) // 2 :])

REQUEST = Request("file:///a.py", SPLIT, "python", "", False, True, ServerSettings(max_tokens=32))

KINDS = ["llama.cpp", "vllm", "ollama", "openai"]


@pytest.fixture(scope="module")
def local() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


@pytest.fixture(params=KINDS)
def endpoint(local: FimModel, request: pytest.FixtureRequest) -> Iterator[tuple[Endpoint, FimModel]]:
    endpoint = Endpoint(local, request.param, shows=True)
    options = LoadOptions() if request.param == "ollama" else LoadOptions(tokenizer=locate("embedded"))
    with endpoints.serving(endpoint) as address:
        model = load_model(address, options=options)
        endpoint.asked.clear()
        yield endpoint, model


def paced() -> Pace:
    """The pace of an endpoint that reads the least in time."""
    pace = Pace()
    pace.tokens_per_second, pace.is_reported = 200.0, True
    return pace


def read_ahead(prompts: Prompts, both: bool, looks: int | None = None) -> int:
    cancelled: Any = threading.Event() if looks is None else Counted(looks)
    return prompts.read_ahead(REQUEST, SPLIT, prompts.options(REQUEST, 0, None), cancelled, False, both)


def test_passes_do_not_measure_an_endpoints_speed(endpoint: tuple[Endpoint, FimModel]) -> None:
    _, model = endpoint
    pace = first_pace(model, 4000, 1e-6)
    before = pace.tokens_per_second
    assert pace.is_reported
    assert before > 0
    pace.note(4000, 1e-6)  # nothing was read yet
    assert pace.tokens_per_second == before


def test_there_is_no_long_prompt(endpoint: tuple[Endpoint, FimModel]) -> None:
    asked, model = endpoint
    prompts = Prompts(model, paced())
    for _ in range(3):
        options = prompts.options(REQUEST, 0, None)
        assert prompts.reach(REQUEST, SPLIT, options, False) == (options, prompts.short)
        assert options.max_prompt_tokens == LEAST_PROMPT
        assert read_ahead(prompts, both=True) == 0
    assert asked.asked == []


def test_a_prompt_is_read_where_a_cursor_rests_and_that_is_one_request(endpoint: tuple[Endpoint, FimModel]) -> None:
    asked, model = endpoint
    prompts = Prompts(model, paced())
    read = read_ahead(prompts, both=False)
    assert LEAST_PROMPT // 2 < read < LEAST_PROMPT
    (body,) = asked.asked
    assert not body.get("stream")
    assert 1 in (body.get("n_predict"), body.get("max_tokens"), body.get("options", {}).get("num_predict"))
    assert read_ahead(prompts, both=False) == 0  # it is read
    assert len(asked.asked) == 1


def test_a_request_ends_a_prefetch_of_an_endpoint(endpoint: tuple[Endpoint, FimModel]) -> None:
    asked, model = endpoint
    prompts = Prompts(model, paced())
    assert read_ahead(prompts, both=False, looks=0) == 0
    assert asked.asked == []
    asked.faults = ["silent"]  # for half a minute
    began = time.monotonic()
    assert read_ahead(prompts, both=False, looks=LEAST_PROMPT // LEAST_CHUNK + 5) == 0
    assert read_ahead(prompts, both=False, looks=8) == 0
    assert time.monotonic() - began < 20
    assert len(asked.asked) == 1
    assert read_ahead(prompts, both=False) > 0  # it was not read, and is now
    patience = prompts.short.nearest([5, 6, 7]).patience
    patience()  # what was looked at then is not looked at now


def test_a_failed_prefetch_is_reported_at_the_next_request(endpoint: tuple[Endpoint, FimModel]) -> None:
    asked, model = endpoint
    asked.faults = ["400"]
    prompts = Prompts(model, paced())
    assert read_ahead(prompts, both=False) == 0
    assert len(asked.asked) == 1
    assert read_ahead(prompts, both=False) > 0
