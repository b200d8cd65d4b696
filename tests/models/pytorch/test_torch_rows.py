"""Rows in static buffers read what transformers' own cache has them read."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, DynamicCache, Qwen2Config

from fim_server.models.pytorch import rows as torch_rows
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.models.pytorch.masks import _refused, mask_buffer
from fim_server.models.pytorch.rows import Replayed, RowCache, StaticRows

CPU = torch.device("cpu")
SIZE = 50


@pytest.fixture(params=["sdpa", "eager"], scope="module")
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(2)
    config = Qwen2Config(
        vocab_size=SIZE,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    attention = request.param
    network = AutoModelForCausalLM.from_config(config, attn_implementation=attention)  # type: ignore[no-untyped-call]
    return network.eval()


def alone(network: Any, tokens: list[int]) -> torch.Tensor:
    """Logits [V] after tokens that are read at once, without a cache."""
    logits: torch.Tensor = network(torch.tensor([tokens]), use_cache=False).logits[0, -1]
    return logits


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("span_step", [1, 16])
def test_rows_equal_single_readings(network: Any, span_step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_rows, "PREFILL_CHUNK", 7)
    draw = random.Random(span_step)
    known: list[list[int]] = []
    rows = StaticRows(network, CPU, 5, 64, span_step=span_step)

    def some(least: int, most: int) -> list[int]:
        return [draw.randrange(SIZE) for _ in range(draw.randrange(least, most))]

    with torch.inference_mode():
        for _ in range(60):
            change = draw.choice(["new", "resume", "copy", "remove", "rewind", "", ""])
            row = draw.randrange(len(known)) if known else 0
            if change == "new" and len(known) < 5:
                known.append(some(1, 20))
                close(rows.read(rows.new(), known[-1]), alone(network, known[-1]))
            elif change == "resume" and known:
                tokens = [*known[row][: draw.randrange(1, 20)], *some(1, 4)]
                shared = [mine == other for mine, other in zip(known[row], tokens[:-1], strict=False)]
                kept, logits = rows.resume(row, known[row], tokens)
                assert kept == [*shared, False].index(False)
                close(logits, alone(network, tokens))
                known[row] = tokens
            elif change == "copy" and known and len(known) < 5:
                rows.copy(row)
                known.append(list(known[row]))
            elif change == "remove" and len(known) > 1:
                rows.remove(row)
                known[row] = known[-1]
                known.pop()
            elif change == "rewind" and known and len(known[row]) > 4:
                rows.rewind(row, 3)
                del known[row][-3:]
            assert rows.lengths == [len(tokens) for tokens in known]
            if known and max(rows.lengths) < 50:
                for tokens in known:
                    tokens.append(draw.randrange(SIZE))
                last = [tokens[-1] for tokens in known]
                if draw.random() < 0.5:
                    found = rows.forward(last)
                else:
                    rows.tokens[: len(last)] = torch.tensor(last)
                    found = rows.launch()
                close(found, torch.stack([alone(network, tokens) for tokens in known]))


class NothingAsked(TorchDispatchMode):  # type: ignore[no-untyped-call]  # __init_subclass__ has no annotations
    """Raises where the host would wait for a value of the device, or sizes would depend on one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func.overloadpacket not in ASKS, func
        return func(*args, **(kwargs or {}))


ASKS = {
    getattr(torch.ops.aten, name)
    for name in ("item", "_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "equal", "unique")
    if hasattr(torch.ops.aten, name)
}


def test_a_step_does_not_synchronise_the_device(network: Any) -> None:
    rows = StaticRows(network, CPU, 3, 64, span_step=16)
    packed, words = mask_buffer(SIZE, 3)
    words[:] = 0xFFFF
    with torch.inference_mode():
        for row in range(3):
            rows.read(rows.new(), [1] * (row + 1))
        rows.launch()  # brings the lengths
        with NothingAsked():  # type: ignore[no-untyped-call]
            logits = rows.launch()
            logits.masked_fill_(_refused(packed, SIZE), float("-inf"))  # as on a GPU
            torch.argmax(logits, dim=-1, out=rows.tokens)
        assert int(rows.tokens.max()) < 16
        for asking in (lambda: int(rows.tokens.max()), lambda: bool(rows.tokens[0] > 0), rows.tokens.nonzero):
            with pytest.raises(AssertionError), NothingAsked():  # type: ignore[no-untyped-call]
                asking()


class Pretended:
    """Stands in for a step that was captured; CUDA's graphs cannot be tried here."""

    made = 0
    failure = None
    is_captured = True

    def __init__(self, work: Any, place: Any, pool: Any) -> None:
        type(self).made += 1
        self._work = work

    def __call__(self) -> Any:
        return self._work()


def test_sizes_are_captured_when_they_are_met_again(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_rows, "Replayed", Pretended)
    monkeypatch.setattr(Pretended, "made", 0)
    plain = StaticRows(network, CPU, 5, 64)
    rows = StaticRows(network, CPU, 5, 64, span_step=16)
    rows._graphs = True
    captured = []
    with torch.inference_mode():
        for each in (plain, rows):
            for row in range(3):
                each.read(each.new(), [1, 2, 3 + row])
        for step in range(24):
            tokens = [step, step + 1, step + 2]
            close(rows.forward(tokens), plain.forward(tokens))
            captured.append(Pretended.made)
    # Lengths from 3: the 14th step is the first of 17 positions, and each size is plain twice.
    assert captured == [0] * 2 + [1] * 13 + [2] * 9
    assert rows.captured == 2


@pytest.mark.parametrize("room", [4, 64])
def test_a_single_row_is_a_cache(network: Any, room: int) -> None:
    growing, static = (TorchBackend(network, CPU, static_cache=static) for static in (False, True))
    caches = growing.new_cache(room), static.new_cache(room)
    assert isinstance(static.new_cache(), DynamicCache)
    assert [type(cache) for cache in caches] == [DynamicCache, RowCache]
    draw = random.Random(room)
    length = 0
    for _ in range(30):
        count = draw.choice([1, 1, 2, 5])
        tokens = [draw.randrange(SIZE) for _ in range(count)]
        rows = draw.randrange(1, count + 1)
        wanted, found = (
            each.forward_rows(tokens, cache, rows) for each, cache in zip((growing, static), caches, strict=True)
        )
        close(torch.stack(list(found)), torch.stack(list(wanted)))
        length += count
        back = draw.choice([0, 0, 1, 3])
        if back and back < length:
            for cache in caches:
                cache.crop(-back)
            length -= back
    with pytest.raises(ValueError, match="taken back"):
        caches[1].crop(-length - 1)


def test_a_single_row_s_logits_are_in_their_own_memory(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Overwriting(Pretended):
        """Stand-in for a graph: each result overwrites the last one."""

        result: Any = None

        def __call__(self) -> Any:
            found = self._work()
            self.result = found if self.result is None else self.result.copy_(found)
            return self.result

    monkeypatch.setattr(torch_rows, "Replayed", Overwriting)
    cache = RowCache(network, CPU, 64, span_step=64)
    cache._rows._graphs = True
    found, copies = [], []
    with torch.inference_mode():
        for token in range(6):
            found.append(cache.read([token], 1)[0])
            copies.append(found[-1].clone())
    assert cache.captured == 1
    assert all(mine.equal(copied) for mine, copied in zip(found, copies, strict=True))


def test_sliding_windows_have_no_static_cache() -> None:
    config = Qwen2Config(
        vocab_size=SIZE,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_sliding_window=True,
        sliding_window=8,
        max_window_layers=0,
    )
    network = AutoModelForCausalLM.from_config(config).eval()  # type: ignore[no-untyped-call]
    assert isinstance(TorchBackend(network, CPU, static_cache=True).new_cache(20), DynamicCache)


def test_rows_that_are_full_are_refused(network: Any) -> None:
    rows = StaticRows(network, CPU, 1, 8)
    with torch.inference_mode():
        rows.read(rows.new(), [1] * 8)
        with pytest.raises(ValueError, match="full"):
            rows.launch()
        with pytest.raises(ValueError, match="room for 1"):
            rows.new()
        with pytest.raises(ValueError, match="1 tokens after 8"):
            rows.read(0, [1])
        with pytest.raises(ValueError, match="0 tokens"):
            rows.read(0, [])
        with pytest.raises(ValueError, match="9 tokens"):
            rows.set_length(0, 9)


def test_without_cuda_nothing_is_captured(network: Any) -> None:
    given = torch.zeros(1)
    step = Replayed(lambda: given + 1, CPU)
    given += 1
    assert step().item() == 2
    assert not step.is_captured
    rows = StaticRows(network, CPU, 1, 8, graphs=True)
    with torch.inference_mode():
        rows.read(rows.new(), [1])
        rows.launch()
    assert rows.captured == 0
    assert rows.failure is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_graphs_equal_plain_steps(network: Any) -> None:
    place = torch.device("cuda")
    network = network.to(place)
    try:
        found = []
        for graphs in (True, False):
            rows = StaticRows(network, place, 4, 64, graphs=graphs, span_step=16)
            with torch.inference_mode():
                for row in range(3):
                    rows.read(rows.new(), list(range(1, 10 + row)))
                found.append(torch.stack([rows.forward([step, step + 1, step + 2]).clone() for step in range(20)]))
            assert bool(rows.captured) == graphs, rows.failure
        torch.testing.assert_close(*found, atol=1e-3, rtol=1e-3)
    finally:
        network.to(CPU)
