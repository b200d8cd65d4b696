"""Files of low-rank adapters: what is written is read again, and what is no adapter is refused in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fim_server.errors import ModelError
from fim_server.models.smollm2.adapter import Adapter, read_adapter, write_adapter

RANK, WIDTH = 3, 8


@pytest.fixture
def adapter() -> Adapter:
    numbers = np.random.default_rng(0)
    matrices = {
        f"layers.{layer}.{part}": (
            numbers.normal(size=(RANK, WIDTH)).astype(np.float16),
            numbers.normal(size=(WIDTH + layer, RANK)).astype(np.float16),
        )
        for layer in range(2)
        for part in ("qkv", "down")
    }
    rows = numbers.normal(size=(2, WIDTH)).astype(np.float16)
    return Adapter(RANK, 6.0, 1000, matrices, rows, np.array([8, 0]), "a base", "a recipe")


def test_an_adapter_survives_writing_and_reading(adapter: Adapter, tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    write_adapter(path, adapter)
    found = read_adapter(path)
    assert (found.rank, found.alpha, found.tokens) == (RANK, 6.0, 1000)
    assert (found.base, found.recipe) == ("a base", "a recipe")
    assert found.matrices.keys() == adapter.matrices.keys()
    for name, pair in adapter.matrices.items():
        assert all(np.array_equal(one, other) for one, other in zip(found.matrices[name], pair, strict=True))
    assert np.array_equal(found.rows, adapter.rows)
    assert found.row_ids.tolist() == [8, 0]
    assert [each.name for each in tmp_path.iterdir()] == ["adapter.safetensors"]


def test_8_bits_halve_the_file_and_nearly_keep_the_weights(adapter: Adapter, tmp_path: Path) -> None:
    whole, small = tmp_path / "whole.safetensors", tmp_path / "small.safetensors"
    down, up = adapter.matrices["layers.0.qkv"]
    sizes = np.array([1e-3, 1, 40])[:RANK]  # each of the rank's products is rounded by its own
    zeros = np.zeros_like(down), np.zeros_like(up)
    matrices = {**adapter.matrices, "layers.0.qkv": (down * sizes[:, None], up), "layers.0.down": zeros}
    adapter = replace(adapter, matrices=matrices)
    write_adapter(whole, adapter)
    write_adapter(small, adapter, small=True)
    found = read_adapter(small)
    for name, pair in adapter.matrices.items():
        for one, other, axis in zip(found.matrices[name], pair, (1, 0), strict=True):
            largest = np.abs(other.astype(np.float32)).max(axis, keepdims=True)
            assert np.all(np.abs(one - other) <= 0.501 / 127 * largest + 1e-6)
    assert np.array_equal(found.rows, adapter.rows)
    assert (found.rank, found.alpha, found.tokens, found.recipe) == (RANK, 6.0, 1000, "a recipe")
    tensors = load_file(small)
    scale = tensors.pop("layers.1.qkv.A.scale")
    told = {"rank": str(RANK), "alpha": "6.0", "tokens": "1000"}
    save_file(tensors, small, metadata=told)
    assert "layers.1.qkv.A.scale" in refusal(small)
    for wrong in (scale[:, 0], scale.T, scale.astype(np.int64), scale * np.inf, scale * np.nan, -scale, scale * 1e36):
        save_file({**tensors, "layers.1.qkv.A.scale": np.ascontiguousarray(wrong)}, small, metadata=told)
        assert "layers.1.qkv.A.scale is not 3 by 1 scales" in refusal(small)
    whole_file = {**tensors, "layers.1.qkv.A.scale": scale}
    for shape in ((), (3,), (3, 1, 1)):
        save_file({**whole_file, "layers.1.qkv.A": np.ones(shape, np.int8)}, small, metadata=told)
        assert "layers.1.qkv.A is no matrix" in refusal(small)
    save_file(whole_file, small, metadata={**told, "alpha": "nan"})
    assert "alpha nan" in refusal(small)


def test_the_change_is_the_scaled_product(adapter: Adapter) -> None:
    down, up = adapter.matrices["layers.1.qkv"]
    wanted = [
        [sum(2.0 * float(up[row, r]) * float(down[r, column]) for r in range(RANK)) for column in range(WIDTH)]
        for row in range(WIDTH + 1)
    ]
    change = adapter.change(1, "qkv")
    assert change is not None
    assert np.allclose(change, wanted, atol=1e-5)
    assert adapter.change(1, "o") is None


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as error:
        read_adapter(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_invalid_adapter_is_refused_in_one_line(adapter: Adapter, tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    assert "not a readable adapter" in refusal(path)
    path.write_bytes(b"abacus")
    assert "not a readable adapter" in refusal(path)
    save_file({"rows": np.zeros((1, 2), dtype=np.float16)}, path)
    assert "not a readable adapter ('rank')" in refusal(path)
    write_adapter(path, adapter)
    path.write_bytes(path.read_bytes()[:-1])
    assert "not a readable adapter" in refusal(path)
    for changes, words in (
        ({"rank": 2}, "at rank 2"),
        ({"row_ids": np.array([1])}, "for (1,) ids"),
        ({"rows": np.full((2, WIDTH), np.inf)}, "its rows are not finite"),
        ({"matrices": {"layers.0.attic": adapter.matrices["layers.0.qkv"]}}, "layers.0.attic is no part of a layer"),
    ):
        write_adapter(path, replace(adapter, **changes))
        assert words in refusal(path)
