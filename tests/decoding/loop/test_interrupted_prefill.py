"""Prompts whose reading is interrupted, gone on from and changed meanwhile, against prompts that are read at once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch

from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, StopReason
from fim_server.decoding.strategies.alternatives import complete_session, read_ahead
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.pace import Pace, measure
from fim_server.models.reading import KEPT_TOKENS, Reading, Readings
from fim_server.text.document import Split
from support.models.scripted_models import Cache, Counted, Scripted
from support.models.tiny_models import small_model

WORDS = [
    "total",
    " = ",
    "value",
    " + ",
    "other(name,",
    " [1, 2],",
    " key='x')\n",
    "    return",
    " result\n",
    "if not found:\n",
]

OPTIONS = DecodeOptions(max_new_tokens=6, max_prompt_tokens=180, prompt_grid=16, prefill_chunk=24)

ROUNDING = 0.25
"""Tolerance of logits, as in the tests of the runtimes: activations of 8 bits are rounded."""


class AnyText:
    """A session without a grammar."""

    guarantee = "none"
    diagnostics = ()

    def matcher(self, vocabulary: Any, shape: Any = None) -> Any:
        raise AssertionError("nothing is guaranteed")


@dataclass(frozen=True)
class Watched(FimModel):
    """A model, and what it was given to read."""

    passes: list[list[int]] = field(default_factory=list)

    def forward(self, token_ids: Sequence[int], cache: Any) -> Any:
        self.passes.append([*token_ids])
        return super().forward(token_ids, cache)


def watched(model: FimModel) -> Watched:
    return Watched(model.name, model.backend, model.format, model.vocabulary)


def finish(model: FimModel, split: Split, readings: Readings | None, cancelled: threading.Event) -> Completion:
    session: Any = AnyText()
    return complete_session(model, session, split, OPTIONS, cancelled, readings=readings)


def edits(draw: random.Random, count: int) -> list[Split]:
    """Return the texts of a user who types, deletes, opens and closes brackets, and goes elsewhere."""
    text = "".join(draw.choices(WORDS, k=150))
    left, right = text[:400], text[400:]
    found = []
    for _ in range(count):
        kind = draw.random()
        if kind < 0.6:
            left += draw.choice([*"abc =(", "\n    "])
        elif kind < 0.75:
            left = left[: -draw.randint(1, 5)]
        elif kind < 0.9:
            right = right[1:] if right.startswith(")") else ")" + right
        else:
            left, right = (left + right)[:300], (left + right)[300:]
        found.append(Split(left, right))
    return found


def logits_of(model: FimModel, reading: Reading, tokens: Sequence[int]) -> np.ndarray[Any, Any]:
    """The logits after tokens of which a reading may know some."""
    return np.asarray(reading.forward(tokens[reading.resume(tokens) :]))


@pytest.fixture(scope="module", params=["torch", "onnx"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    return small_model(request.param, tmp_path_factory.mktemp("tiny") / "model")


@pytest.mark.parametrize("seed", range(4))
def test_interruptions_of_any_kind_change_no_logits(model: FimModel, seed: int) -> None:
    draw = random.Random(seed)
    watching = watched(model)
    readings = Readings(watching)
    tolerance = ROUNDING if model.runtime == "onnx" else 1e-3
    for split in edits(draw, 12):
        for _ in range(draw.randint(0, 2)):
            if draw.random() < 0.5:
                found = finish(watching, split, readings, Counted(draw.randint(0, 6)))
                assert found.stop_reason is StopReason.CANCELLED or found.statistics.prefilled_tokens <= 180
            else:
                read_ahead(watching, split, OPTIONS, Counted(draw.randint(0, 9)), readings)
        tokens = watching.format.encode(split.left, split.right, OPTIONS.max_prompt_tokens, OPTIONS.prompt_grid)
        kept = logits_of(watching, readings.nearest(tokens, len(tokens) + 6), tokens)
        assert np.abs(kept - logits_of(model, Reading(model), tokens)).max() < tolerance


@dataclass(frozen=True)
class Remembering(Scripted):
    """Its logits are a hash of everything in its cache, so that one wrong token there is another text."""

    passes: list[list[int]] = field(default_factory=list)
    rows_too: bool = False

    @property
    def gives_rows(self) -> bool:
        return self.rows_too

    def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
        self.passes.append([*token_ids])
        cache.extend(token_ids)
        generator = torch.Generator().manual_seed(hash(tuple(cache)) & 0xFFFFFFFF)
        return torch.randn(self.size, generator=generator)


@pytest.fixture(scope="module")
def remembering() -> Callable[[], Remembering]:
    embedded = load_model(None, "cpu", "torch")
    return lambda: Remembering("hash", embedded.backend, embedded.format, embedded.vocabulary)


@pytest.mark.parametrize("seed", range(12))
def test_interruptions_of_any_kind_change_no_text(remembering: Callable[[], Remembering], seed: int) -> None:
    draw = random.Random(seed)
    model, fresh = remembering(), remembering()
    readings = Readings(model)
    for split in edits(draw, 30):
        for _ in range(draw.randint(0, 3)):
            if draw.random() < 0.5:
                finish(model, split, readings, Counted(draw.randint(0, 12)))
            else:
                read_ahead(model, split, OPTIONS, Counted(draw.randint(0, 9)), readings)
        found = finish(model, split, readings, threading.Event())
        wanted = finish(fresh, split, None, threading.Event())
        assert (found.text, found.stop_reason) == (wanted.text, wanted.stop_reason)


def test_passes_before_an_interruption_are_reused(remembering: Callable[[], Remembering]) -> None:
    model = remembering()
    readings, split = Readings(model), edits(random.Random(1), 1)[0]
    for _ in range(4):
        assert finish(model, split, readings, Counted(1)).stop_reason is StopReason.CANCELLED
    finish(model, split, readings, threading.Event())
    prompt = model.format.encode(split.left, split.right, OPTIONS.max_prompt_tokens, OPTIONS.prompt_grid)
    assert [token for part in model.passes for token in part][: len(prompt)] == prompt


def test_an_interruption_waits_for_one_pass(remembering: Callable[[], Remembering]) -> None:
    model = remembering()
    found = finish(model, edits(random.Random(2), 1)[0], Readings(model), Counted(2))
    assert found.stop_reason is StopReason.CANCELLED
    assert list(map(len, model.passes)) == [24, 24]
    assert found.statistics.prefilled_tokens == 48


def test_a_deadline_ends_the_reading_of_a_prompt_and_the_next_goes_on(remembering: Callable[[], Remembering]) -> None:
    model = remembering()
    readings, split, session = Readings(model), edits(random.Random(3), 1)[0], AnyText()
    late: Any = session
    found = complete_session(model, late, split, replace(OPTIONS, deadline_ms=0.0), readings=readings)
    assert (found.text, found.stop_reason, found.statistics.prefilled_tokens) == (None, StopReason.DEADLINE, 0)
    assert read_ahead(model, split, OPTIONS, Counted(3), readings) == 72
    found = complete_session(model, late, split, OPTIONS, readings=readings)
    assert found.statistics.reused_tokens == 72
    assert found.statistics.prefilled_tokens == found.statistics.prompt_tokens - 72


def test_reading_ahead_leaves_one_token_to_read(remembering: Callable[[], Remembering]) -> None:
    model = remembering()
    readings, split = Readings(model), edits(random.Random(4), 1)[0]
    read = read_ahead(model, split, OPTIONS, threading.Event(), readings)
    found = finish(model, split, readings, threading.Event())
    assert read == found.statistics.reused_tokens == found.statistics.prompt_tokens - 1
    assert read_ahead(model, split, OPTIONS, threading.Event(), readings) == 0


# --- which reading is gone on from ----------------------------------------------------------------------------------


def test_a_reading_that_was_interrupted_early_is_gone_on_from(remembering: Callable[[], Remembering]) -> None:
    readings = Readings(remembering())
    prompt = list(range(100))
    reading = readings.nearest(prompt)
    reading.forward(prompt[:8])
    assert readings.nearest(prompt) is reading
    assert readings.nearest([0, 1, *range(200, 300)]) is not reading  # it would lose most of what it has
    assert readings.nearest(prompt) is reading


def test_a_prompt_that_moved_its_far_end_keeps_what_it_began_with(remembering: Callable[[], Remembering]) -> None:
    readings = Readings(remembering())
    suffix = list(range(1000, 1040))
    reading = readings.nearest([*suffix, *range(160)])
    reading.forward([*suffix, *range(160)])
    assert readings.nearest([*suffix, *range(30, 190)]) is reading


def test_room_is_for_what_any_request_needs(remembering: Callable[[], Remembering]) -> None:
    readings = Readings(remembering())
    readings.room = 300
    short = readings.nearest([1, 2, 3, 4], 200)
    short.forward([1, 2, 3, 4])
    assert readings.nearest([1, 2, 3, 4, 5], 290) is short
    longer = readings.nearest([1, 2, 3, 4, 5], 500)
    assert longer is not short
    longer.forward([1, 2, 3, 4, 5])
    assert readings.nearest([1, 2, 3, 4, 5], 200) is longer


def test_all_readings_together_have_a_bound(remembering: Callable[[], Remembering]) -> None:
    model = remembering()
    readings = Readings(model)
    large = [readings.nearest([n] * 20, model.window) for n in range(1, 9)]
    for n, reading in enumerate(large, start=1):
        reading.forward([n] * 20)
    kept = [n for n in range(1, 9) if any(readings.nearest([n] * 20, model.window) is one for one in large)]
    assert sum(model.window for _ in kept) <= max(KEPT_TOKENS, 2 * model.window)


def test_a_cache_of_onnxruntime_has_the_room_it_was_made_for() -> None:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime is not installed")
    model = load_model(None, "cpu", "onnx")
    reading = Reading(model, 64)
    reading.forward(list(range(64)))
    with pytest.raises(RuntimeError, match="max length"):
        reading.forward([1])
    whole = Reading(model, 100_000)  # no more than the window
    assert whole.forward([1, 2, 3]).shape == (model.size,)


# --- pace -----------------------------------------------------------------------------------------------------------


def test_a_prompt_has_the_tokens_that_there_is_time_for() -> None:
    found = Pace()
    assert (found.prompt_tokens, found.chunk) == (192, 256)
    found.note(10, 0.1)
    assert (found.prompt_tokens, found.chunk) == (192, 8)
    found.note(64, 0.1)
    assert (found.prompt_tokens, found.chunk) == (192, 32)
    found.note(300, 0.1)
    assert (found.prompt_tokens, found.chunk) == (896, 144)
    found.note(10, 1.0)  # something else ran
    assert (found.prompt_tokens, found.chunk) == (896, 144)
    found.note(310, 0.1)  # too little for all that would be read again
    assert found.prompt_tokens == 896
    found.note(10_000, 0.1)
    assert (found.prompt_tokens, found.chunk) == (4096, 256)


@pytest.mark.parametrize(("rate", "least", "most"), [(50, 4, 4), (700, 5, 12), (100_000, 8, 14)])
def test_the_pace_is_that_of_the_fastest_pass(
    remembering: Callable[[], Remembering], rate: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("fim_server.models.pace.time.perf_counter", lambda: clock[0])
    model = remembering()

    class Timed(Remembering):
        def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
            noise = 1 if len(self.passes) == 1 else 3
            clock[0] += noise * len(token_ids) / rate
            assert len(cache) + len(token_ids) <= self.window
            return super().forward(token_ids, cache)

    timed = Timed("timed", model.backend, model.format, model.vocabulary)
    found = Pace()
    measure(timed, found)
    assert least <= len(timed.passes) <= most
    assert found.tokens_per_second == pytest.approx(rate)


@pytest.mark.parametrize(
    ("fixed", "each", "chunk"),
    [
        (0.0, 0.001, 48),  # as many as there is time for
        (0.0001, 0.001, 48),
        (0.055, 0.00085, 200),  # 135M on torch and two cores: eight at a time take six times as long
        (0.055, 0.00001, 240),
        (0.002, 0.00625, 8),
    ],
)
def test_passes_are_not_split_without_need(
    remembering: Callable[[], Remembering], fixed: float, each: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, model = [0.0], remembering()
    monkeypatch.setattr("fim_server.models.pace.time.perf_counter", lambda: clock[0])

    class Timed(Remembering):
        def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
            first = 0.3 if not self.passes else 0.0
            clock[0] += first + fixed + each * len(token_ids)
            return super().forward(token_ids, cache)

    found = Pace()
    measure(Timed("timed", model.backend, model.format, model.vocabulary), found)
    assert found.chunk == chunk


def test_equal_passes_end_the_measurement(
    remembering: Callable[[], Remembering], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, model = [0.0], remembering()
    monkeypatch.setattr("fim_server.models.pace.time.perf_counter", lambda: clock[0])

    class Timed(Remembering):
        def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
            clock[0] += len(token_ids) / 1000
            return super().forward(token_ids, cache)

    waited: list[None] = []
    timed = Timed("timed", model.backend, model.format, model.vocabulary)
    measure(timed, Pace(), lambda: waited.append(None))
    assert [len(tokens) for tokens in timed.passes] == [32, 32, 8, 8]
    assert len(waited) == 4


@pytest.mark.parametrize(
    ("first", "each", "pay"),
    [
        (0.012, 0.0006, True),  # SmolLM2-135M on onnxruntime
        (0.011, 0.0097, False),  # the same on llama.cpp, in 8 bits
        (0.0, 0.01, False),
        (0.01, 0.0, True),
    ],
)
def test_drafts_are_read_where_several_tokens_cost_little_more_than_one(
    remembering: Callable[[], Remembering], first: float, each: float, pay: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, model = [0.0], remembering()
    monkeypatch.setattr("fim_server.models.pace.time.perf_counter", lambda: clock[0])

    class Timed(Remembering):
        def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
            clock[0] += first + each * len(token_ids)
            return super().forward(token_ids, cache)

        def forward_rows(self, token_ids: Sequence[int], cache: Cache, rows: int) -> list[torch.Tensor]:
            late = 0.0 if len(self.passes) % 2 else 0.05  # something else runs now and then
            clock[0] += late
            return [self.forward(token_ids, cache)] * rows

    found = Pace()
    measure(Timed("timed", model.backend, model.format, model.vocabulary, rows_too=True), found)
    assert found.drafts_pay is pay
