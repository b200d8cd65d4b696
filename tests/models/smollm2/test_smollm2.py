"""The model folder of SmolLM2, built from a small random base: against torch, a numpy twin and a plain quantiser."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fim_server.errors import ModelError
from fim_server.models.gguf.writing import write_gguf
from fim_server.models.load import load_model
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.onnx.backend import EXPORT_FOLDER, OnnxBackend, is_stale
from fim_server.models.onnx.loader import OnnxLoader
from fim_server.models.request import LoadRequest
from fim_server.models.smollm2 import build as building
from fim_server.models.smollm2.__main__ import main
from fim_server.models.smollm2.adapter import Adapter, read_adapter, write_adapter
from fim_server.models.smollm2.base import read_base
from fim_server.models.smollm2.build import build, drop_weights, is_current
from fim_server.models.smollm2.export import write_export
from fim_server.models.smollm2.forward import forward
from fim_server.models.smollm2.graph import Precisions
from fim_server.models.smollm2.merging import check_fits, stacked_places
from fim_server.models.smollm2.quantizing import CHANNEL_LEVELS, Precision, by_channels, quantize
from fim_server.models.smollm2.shape import EMBEDDING, LlamaShape, shape_of
from fim_server.models.smollm2.smoothing import smooth
from fim_server.models.source import locate
from fim_server.models.store.manifest import FRESH, damage_of
from fim_server.models.weights import has_weights, require_weights
from support.models.tiny_base import SHAPE, tiny_weights, write_tiny_base

pytest.importorskip("onnx", reason="onnx, which the export is made with, is not installed")

REAL = os.environ.get("FIM_SERVER_SMOLLM2")
"""The folder of the real model, built with `--torch`; it is compared as well if this names it."""

needs_package = pytest.mark.skipif(not onnx_backend.is_installed(), reason="onnxruntime has no wheel here")

Matrix = NDArray[np.float32]


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def weights() -> dict[str, Matrix]:
    return tiny_weights()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, Matrix]) -> Path:
    return write_tiny_base(tmp_path_factory.mktemp("base") / "tiny.gguf", weights)


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    numbers = np.random.default_rng(1)
    heads, keys = SHAPE.heads * SHAPE.head_size, SHAPE.kv_heads * SHAPE.head_size
    sizes = {
        "qkv": (heads + 2 * keys, SHAPE.width),
        "o": (SHAPE.width, heads),
        "gate_up": (2 * SHAPE.inner, SHAPE.width),
        "down": (SHAPE.width, SHAPE.inner),
    }
    matrices = {
        f"layers.{layer}.{part}": (numbers.normal(size=(4, into)) / 8, numbers.normal(size=(out, 4)) / 8)
        for layer in range(SHAPE.layers)
        for part, (out, into) in sizes.items()
    }
    return Adapter(4, 8.0, 1000, matrices, numbers.normal(size=(4, SHAPE.width)), np.array([8, 9, 10, 0]))


@pytest.fixture(scope="module")
def adapter_file(tmp_path_factory: pytest.TempPathFactory, adapter: Adapter) -> Path:
    path = tmp_path_factory.mktemp("adapter") / "adapter.safetensors"
    write_adapter(path, adapter)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, source: Path, adapter_file: Path) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    build(source, made, silent, adapter_file)
    return made


TOKENS = np.random.default_rng(2).integers(0, SHAPE.vocabulary, 90).tolist()

# --- weights and network ---------------------------------------------------------------------------------------------


def test_the_base_equals_transformers_reading(source: Path, weights: dict[str, Matrix]) -> None:
    base = read_base(source)
    assert base.shape == SHAPE
    for name, wanted in weights.items():
        assert np.array_equal(base.weight(name), wanted), name


def torch_logits(folder: Path, tokens: list[int]) -> Matrix:
    """Logits [T, V] of transformers in float32."""
    import torch
    from transformers import LlamaForCausalLM

    network: Any = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        logits: Matrix = network(torch.tensor([tokens])).logits[0].numpy()
    return logits


def onnx_logits(folder: Path, tokens: list[int], chunk: int) -> Matrix:
    """Logits after each chunk of tokens; of all, with chunks of one."""
    backend = OnnxBackend(folder / EXPORT_FOLDER, 1)
    cache = backend.new_cache()
    return np.stack([backend.forward(tokens[at : at + chunk], cache) for at in range(0, len(tokens), chunk)])


def surprise(logits: Matrix, tokens: list[int]) -> Matrix:
    """The loss in nats of each token but the first, of logits [T, V]."""
    rows = logits[:-1].astype(np.float64)
    shares = np.log(np.exp(rows - rows.max(1, keepdims=True)).sum(1)) + rows.max(1)
    lost: Matrix = shares - rows[np.arange(len(rows)), tokens[1:]]
    return lost


@needs_package
def test_torch_and_the_export_give_the_same_logits(folder: Path) -> None:
    wanted = torch_logits(folder, TOKENS)
    found = onnx_logits(folder, TOKENS, 1)
    assert found.shape == wanted.shape == (len(TOKENS), SHAPE.vocabulary)
    scale = wanted.std()
    assert np.abs(found - wanted).max() < 0.25 * scale, "rounding is a small part of a random network's logits"
    assert np.abs(found - wanted).mean() < 0.03 * scale
    assert np.abs(found - wanted[::-1]).mean() > scale / 2, "the measure tells tokens"
    assert abs(float((surprise(found, TOKENS) - surprise(wanted, TOKENS)).mean())) < 0.02
    chunks = onnx_logits(folder, TOKENS, 30)
    assert np.abs(chunks - found[29::30]).max() < 0.05 * scale


@needs_package
def test_tokens_taken_back_leave_nothing_behind(folder: Path) -> None:
    backend = OnnxBackend(folder / EXPORT_FOLDER, 1)
    cache, fresh = backend.new_cache(64), backend.new_cache()
    for tokens in (TOKENS[:20], TOKENS[20:30]):
        backend.forward(tokens, cache)
    cache.crop(-10)
    backend.forward(TOKENS[:20], fresh)
    found, wanted = (backend.forward(TOKENS[50:60], each) for each in (cache, fresh))
    assert np.array_equal(found, wanted)
    with pytest.raises(RuntimeError):
        backend.forward(TOKENS[:40], cache)


@needs_package
@pytest.mark.skipif(REAL is None, reason="FIM_SERVER_SMOLLM2 names no folder")
def test_torch_and_the_export_of_the_real_model_give_the_same_logits() -> None:
    path = Path(str(REAL))
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    text = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8")
    tokens = tokenizer.encode(text).ids[:256]
    wanted, found = torch_logits(path, tokens), onnx_logits(path, tokens, 1)
    assert (wanted.argmax(1) == found.argmax(1)).mean() > 0.9
    assert abs(float((surprise(found, tokens) - surprise(wanted, tokens)).mean())) < 0.05


def test_the_numpy_twin_gives_torchs_logits(folder: Path) -> None:
    base = read_base(folder)
    found = forward(base.shape, base.weight, TOKENS) @ base.weight(EMBEDDING).T
    assert np.allclose(found, torch_logits(folder, TOKENS), atol=2e-3)


def test_smoothed_weights_compute_the_same(source: Path) -> None:
    base = read_base(source)
    smoothed = smooth(SHAPE, base.weight, TOKENS[:40])
    changed = [name for name, _ in SHAPE.sizes() if not np.array_equal(smoothed(name), base.weight(name))]
    assert len(changed) == SHAPE.layers * 9
    found, wanted = forward(SHAPE, smoothed, TOKENS), forward(SHAPE, base.weight, TOKENS)
    assert np.allclose(found, wanted, atol=1e-3)


def test_the_adapter_that_the_package_brings_is_whole_and_fits_the_base() -> None:
    brought = read_adapter(building.ADAPTER)
    shape = LlamaShape(49_152, 576, 1536, 30, 9, 3, 64, 8192, 1e-5, 100_000.0)
    check_fits(shape, brought, stacked_places(shape))
    assert len(brought.matrices) == 4 * shape.layers
    for down, up in brought.matrices.values():
        assert down.shape[0] == up.shape[1] == brought.rank
        assert 0 < np.abs(down).max() < 10
        assert 0 < np.abs(up).max() < 10
    assert [*brought.row_ids] == [8, 9, 10, 0]
    assert f"{brought.tokens:,}" in (building.ADAPTER.parents[1] / "smollm2" / "MODEL_CARD.md").read_text("utf-8")


def test_an_adapter_is_merged(source: Path, folder: Path, weights: dict[str, Matrix], adapter: Adapter) -> None:
    merged = read_base(folder)
    queries = SHAPE.heads * SHAPE.head_size
    keys = SHAPE.kv_heads * SHAPE.head_size
    for name, key, rows in (
        ("model.layers.1.self_attn.q_proj.weight", "layers.1.qkv", slice(0, queries)),
        ("model.layers.0.self_attn.v_proj.weight", "layers.0.qkv", slice(queries + keys, queries + 2 * keys)),
        ("model.layers.1.mlp.up_proj.weight", "layers.1.gate_up", slice(SHAPE.inner, 2 * SHAPE.inner)),
        ("model.layers.0.mlp.down_proj.weight", "layers.0.down", slice(None)),
    ):
        down, up = (each.astype(np.float16).astype(np.float64) for each in adapter.matrices[key])
        wanted = weights[name] + 2.0 * (up @ down)[rows]  # alpha / rank is 2
        assert np.allclose(merged.weight(name), wanted, atol=2e-3), name
    table = merged.weight(EMBEDDING)
    assert np.allclose(table[[8, 9, 10, 0]], adapter.rows, atol=2e-3)
    assert np.array_equal(table[11:], weights[EMBEDDING][11:])


# --- rounding --------------------------------------------------------------------------------------------------------


def plain_product(tokens: Matrix, matrix: Matrix) -> Matrix:
    """A product tokens @ matrix.T rounded as the graph does it, number by number, in plain arithmetic."""
    product = np.zeros((len(tokens), len(matrix)))
    for place, row in enumerate(tokens):
        step = max(abs(float(number)) for number in row) / 127
        levels = [round(float(np.float32(number) / np.float32(step))) for number in row]
        for channel, weights in enumerate(matrix):
            scale = max(abs(float(weight)) for weight in weights) / CHANNEL_LEVELS
            whole = [round(float(weight) / scale) for weight in weights]
            product[place, channel] = sum(a * b for a, b in zip(levels, whole, strict=True)) * step * scale
    return product.astype(np.float32)


def test_channels_are_packed_as_a_plain_quantiser_has_them() -> None:
    matrix = np.random.default_rng(3).normal(size=(5, 32)).astype(np.float32)
    matrix[2] = 0
    channels = by_channels(matrix)
    assert channels.levels.shape == (32, 5)
    assert np.abs(channels.levels).max() == CHANNEL_LEVELS
    for row, weights in enumerate(matrix):
        scale = float(np.abs(weights).max()) / CHANNEL_LEVELS
        assert np.isclose(channels.scales[row], scale)
        assert channels.levels[:, row].tolist() == [round(float(w) / scale) if scale else 0 for w in weights]


def test_messages_are_what_the_library_of_their_format_writes(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from fim_server.models.smollm2 import messages

    values: list[np.ndarray[Any, Any]] = [
        np.arange(6, dtype=kind).reshape(2, 3) for kind in (np.float32, np.uint8, np.int8, np.int32, np.int64)
    ] + [np.array(3, dtype=np.int64), np.arange(5000, dtype=np.float32)]
    names = [f"c{number}" for number in range(len(values))]
    settings: dict[str, Any] = {"keepdims": 1, "epsilon": 1e-5, "axes": [0, 2], "axis": -1}
    make = onnx.helper
    wanted = make.make_model(
        make.make_graph(
            [make.make_node("Op", ["x", ""], ["y"], name="y", domain="com.microsoft", **settings)],
            "llama",
            [make.make_tensor_value_info("x", onnx.TensorProto.INT64, ["batch", 4])],
            [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, "n"])],
            [onnx.numpy_helper.from_array(value, name) for name, value in zip(names, values, strict=True)],
        ),
        opset_imports=[make.make_opsetid("", 21), make.make_opsetid("com.microsoft", 1)],
        ir_version=10,
        producer_name="fim-server",
    )
    graph = messages.make(
        "Graph",
        node=[messages.node("Op", ["x", ""], ["y"], "com.microsoft", settings)],
        name="llama",
        initializer=[messages.tensor(name, value) for name, value in zip(names, values, strict=True)],
        input=[messages.value_info("x", messages.INT64, ["batch", 4])],
        output=[messages.value_info("y", messages.FLOAT, [1, "n"])],
    )
    opsets = [messages.make("Opset", domain="", version=21), messages.make("Opset", domain="com.microsoft", version=1)]
    model = messages.make("Model", ir_version=10, producer_name="fim-server", graph=graph, opset_import=opsets)
    assert onnx.ModelProto.FromString(model.SerializeToString()) == wanted
    messages.save(model, tmp_path / "model.onnx", "weights", 1000)
    assert (tmp_path / "weights").stat().st_size == values[-1].nbytes
    loaded = onnx.load(tmp_path / "model.onnx")
    for constant, value in zip(loaded.graph.initializer, values, strict=True):
        assert (onnx.numpy_helper.to_array(constant) == value).all()


@needs_package
def test_the_runtime_multiplies_channels_as_a_plain_quantiser_does() -> None:
    import onnxruntime

    from fim_server.models.smollm2 import messages
    from fim_server.models.smollm2.graph import LlamaGraph

    numbers = np.random.default_rng(4)
    matrix = numbers.normal(size=(24, 64)).astype(np.float32)
    matrix[:12] = np.sign(matrix[:12])  # all at the last level: sums that 16 bits do not hold, were there 8 bits
    tokens = numbers.normal(size=(7, 64)).astype(np.float32) * np.array([[1], [9], [0.01], [1], [2], [3], [4]], "f4")
    tokens[3] = np.abs(tokens[3]).max() * np.sign(matrix[0])
    graph = LlamaGraph(SHAPE, 16, Precisions(None, Precision(8)))
    product = graph.matmul("m", "x", matrix)
    ends = (messages.value_info(name, messages.FLOAT, [1, "tokens", size]) for name, size in (("x", 64), (product, 24)))
    taken, given = ends
    model = graph.model([taken], [given]).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for rows in (tokens, tokens[3:4]):
        (found,) = session.run(None, {"x": rows[None]})
        wanted = plain_product(rows, matrix)
        assert np.allclose(found[0], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def unpacked(packed: NDArray[np.uint8], bits: int, count: int) -> list[list[int]]:
    """Levels of packed rows [N, bytes], one by one."""
    rows = []
    for row in packed.reshape(len(packed), -1).tolist():
        levels = row if bits == 8 else [level for byte in row for level in (byte & 15, byte >> 4)]
        rows.append(levels[:count])
    return rows


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero_points", [False, True])
def test_blocks_hold_their_numbers_to_half_a_step(bits: int, zero_points: bool) -> None:
    matrix = np.random.default_rng(5).normal(size=(6, 96)).astype(np.float32)
    matrix[1, 32:64] = 0
    matrix[2] += 3
    found = quantize(matrix, Precision(bits, 32, zero_points))
    assert found.packed.shape == (6, 3, 32 * bits // 8)
    levels = unpacked(found.packed, bits, 96)
    zeros = unpacked(found.zero_points, bits, 3) if found.zero_points is not None else [[1 << (bits - 1)] * 3] * 6
    assert (found.zero_points is None) != zero_points
    for row in range(6):
        for column in range(96):
            scale = float(found.scales[row, column // 32])
            restored = (levels[row][column] - zeros[row][column // 32]) * scale
            assert abs(restored - float(matrix[row, column])) <= (0.5001 if bits == 8 else 2.6) * abs(scale)
    errors = []
    for precision in (Precision(bits, 32, zero_points), Precision(8, 32, zero_points)):
        made = quantize(matrix, precision)
        errors.append(float(np.square(made.scales).mean()))
    assert errors[1] <= errors[0]


def test_a_table_in_q8_0_comes_out_as_it_is() -> None:
    numbers = np.random.default_rng(6)
    levels = numbers.integers(-127, 128, (4, 2, 32)).astype(np.float32)
    levels[:, :, 5] = 127  # as Q8_0 has it: a block's largest number has the last level
    scales = numbers.random((4, 2, 1)).astype(np.float32) + np.float32(0.5)
    found = quantize((levels * scales).reshape(4, 64), Precision(8, 32))
    assert np.array_equal(found.packed.reshape(4, 2, 32), (levels + 128).astype(np.uint8))
    assert np.allclose(found.scales, scales[:, :, 0], rtol=1e-6)


@needs_package
@pytest.mark.parametrize("layers", [Precision(4), Precision(4, 16, True), Precision(8)], ids=str)
def test_other_precisions_run(layers: Precision, source: Path, tmp_path: Path) -> None:
    base = read_base(source)
    write_export(tmp_path / EXPORT_FOLDER, base, "", Precisions(layers, Precision(layers.bits)))
    wanted = forward(SHAPE, base.weight, TOKENS[:20]) @ base.weight(EMBEDDING).T
    found = onnx_logits(tmp_path, TOKENS[:20], 1)
    assert np.abs(found - wanted).mean() < (0.25 if layers.bits == 4 else 0.03) * wanted.std()


# --- the folder ------------------------------------------------------------------------------------------------------


def test_a_folder_is_whole_and_knows_what_it_was_built_of(folder: Path, adapter_file: Path, tmp_path: Path) -> None:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    exported = {f"onnx/{name}" for name in ("export.json", "genai_config.json", "model.onnx", "model.onnx.data")}
    own = {"build.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    own |= {"manifest.json", "verified.json"}
    assert names == own | exported
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing is left beside it"
    assert not is_stale(folder)
    assert is_current(folder, adapter_file)
    assert not is_current(folder, tmp_path / "another.safetensors")
    assert not is_current(tmp_path, adapter_file)
    assert shape_of(json.loads((folder / "config.json").read_text(encoding="utf-8"))) == SHAPE


@needs_package
def test_a_folder_without_weights_has_the_same_export(
    folder: Path, source: Path, adapter_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    said: list[str] = []
    small = tmp_path / "models" / "smollm2"
    build(source, small, said.append, adapter_file, keeps_weights=False)
    assert "computing the weights, with the adapter of 1,000 tokens" in said
    assert not has_weights(small)
    assert is_current(small, adapter_file)
    assert not is_stale(small)
    for name in ("model.onnx", "model.onnx.data"):
        assert (small / EXPORT_FOLDER / name).read_bytes() == (folder / EXPORT_FOLDER / name).read_bytes()
    assert load_model("smollm2").runtime == "onnx"
    how = "smollm2: only its export for the CPU is here; `fim-server models get smollm2 --torch` gets its weights"
    assert refusal(lambda: load_model("smollm2", "cpu", "torch")) == how
    assert refusal(lambda: write_gguf(small, tmp_path / "made.gguf", "f16")) == how
    assert not (tmp_path / "made.gguf").exists()


@needs_package
def test_weights_of_an_earlier_build_are_dropped(
    folder: Path, adapter_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    shutil.copytree(folder, made)
    (made / FRESH).write_bytes(b"of a killed process")
    monkeypatch.setattr("fim_server.models.store.manifest.verdicts", {})
    assert drop_weights(made) == (folder / "model.safetensors").stat().st_size
    assert drop_weights(made) == 0
    assert not has_weights(made)
    assert not (made / FRESH).exists()
    assert damage_of(made, thorough=True) is None
    assert is_current(made, adapter_file)
    assert not is_stale(made)
    assert np.array_equal(onnx_logits(made, TOKENS[:3], 1), onnx_logits(folder, TOKENS[:3], 1))
    (made / EXPORT_FOLDER / "model.onnx.data").write_bytes(b"other")
    assert damage_of(made) is not None
    shutil.rmtree(made / EXPORT_FOLDER)
    shutil.copy(folder / "model.safetensors", made)
    assert drop_weights(made) == 0, "nothing else runs the model"


def test_a_build_without_onnxruntime_keeps_the_weights(
    source: Path, adapter_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    with monkeypatch.context() as patched:
        patched.setattr(onnx_backend, "is_installed", lambda: False)
        build(source, made, silent, adapter_file, keeps_weights=False)
        assert building.needs_weights()
        assert is_current(made, adapter_file)
        (made / "model.safetensors").rename(tmp_path / "weights")
        assert not is_current(made, adapter_file)
    assert not (made / EXPORT_FOLDER).exists()
    assert not is_current(made, adapter_file)


@needs_package
def test_without_weights_a_gpu_that_is_not_named_is_left_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fim_server.models.request.best_device", lambda: "cuda")
    monkeypatch.setattr("fim_server.models.request.named_device", lambda name: name)
    monkeypatch.setattr(building, "best_device", lambda: "cuda")
    assert building.needs_weights()
    made = tmp_path / "made"
    build(source, made, silent, tmp_path / "none")
    weights = tmp_path / "weights"
    assert not OnnxLoader().matches(LoadRequest(str(made)))
    (made / "model.safetensors").rename(weights)
    assert OnnxLoader().matches(LoadRequest(str(made)))
    assert load_model(str(made)).device == "cpu"
    assert not OnnxLoader().matches(LoadRequest(str(made), "cuda"))
    assert "made: its folder has no weights (*.safetensors)" in refusal(lambda: require_weights(made, "made"))


def test_a_folder_is_built_from_a_transformers_folder_too(folder: Path, adapter_file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    build(folder, tmp_path / "again", said.append, tmp_path / "none")
    assert said == [
        f"reading {folder.name}",
        "writing the weights, with no adapter",
        "rounding the weights for the CPU",
    ]
    first, second = read_base(folder), read_base(tmp_path / "again")
    assert np.array_equal(first.weight(EMBEDDING)[11:], second.weight(EMBEDDING)[11:])
    assert np.allclose(second.weight(EMBEDDING)[10], first.weight(EMBEDDING)[[3, 4]].mean(0), atol=2e-3)
    assert first.tokenizer.to_str() == second.tokenizer.to_str()


def test_a_second_adapter_is_refused(folder: Path, adapter_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has an adapter in its weights already"):
        build(folder, tmp_path / "twice", silent, adapter_file)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_replaced_when_the_new_one_is_whole(
    source: Path, adapter_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(building, "write_export", fail)
        with pytest.raises(ModelError, match=r"cannot be built \(No space left on device\)$"):
            build(source, target, silent, adapter_file)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in target.iterdir()] == ["old"]
    build(source, target, silent, adapter_file)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (target / "config.json").is_file()
    assert not (target / "old").exists()


def test_remains_of_a_killed_build_are_removed(source: Path, adapter_file: Path, tmp_path: Path) -> None:
    for name, age in ((".model.building-x", 2 * building.FORGOTTEN_AFTER), (".model.building-y", 0.0)):
        (tmp_path / name / "new").mkdir(parents=True)
        at = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (at, at))
    build(source, tmp_path / "model", silent, adapter_file)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.building-y", "model"]


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ModelError) as error:
        act()
    message = str(error.value)
    assert "\n" not in message
    return message


def test_an_invalid_base_is_refused_in_one_line(
    source: Path, folder: Path, adapter_file: Path, weights: dict[str, Matrix], tmp_path: Path
) -> None:
    target = tmp_path / "models" / "made"

    def message(base: Path, adapter: Path = adapter_file) -> str:
        said = refusal(lambda: build(base, target, silent, adapter))
        assert list(target.parent.iterdir()) == []
        return said

    broken = tmp_path / "broken.gguf"
    assert "no model that can be read" in message(tmp_path / "missing.gguf")
    broken.write_bytes(b"abacus" * 100)
    assert "no model that can be read" in message(broken)
    content = source.read_bytes()
    broken.write_bytes(content[: len(content) // 2])
    assert "no model that can be read" in message(broken)
    fewer = {name: values for name, values in weights.items() if "1.mlp.up_proj" not in name}
    write_tiny_base(broken, fewer)
    assert "model.layers.1.mlp.up_proj.weight is of shape None, not (96, 64)" in message(broken)
    write_tiny_base(broken, weights, add_tokenizer_pre="gpt-2")
    assert "a tokenizer of the kind ('gpt2', 'gpt-2')" in message(broken)
    write_tiny_base(broken, weights, add_rope_freq_base=None)
    assert "its metadata lack rope.freq_base" in message(broken)
    write_tiny_base(broken, {**weights, EMBEDDING: weights[EMBEDDING] * np.float32(np.inf)})
    assert "model.embed_tokens.weight: not finite in float16" in message(broken)
    assert "no model that can be read" in message(tmp_path)
    assert "not <issue_start>: another tokenizer" in message(Path(locate("embedded")))
    assert "not a readable adapter" in message(source, broken)


def test_an_adapter_of_another_network_is_refused(source: Path, adapter: Adapter, tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    wide = {"layers.0.qkv": (np.zeros((4, SHAPE.width)), np.zeros((7, 4)))}
    for changed, words in (
        (replace(adapter, matrices=wide), "the adapter's layers.0.qkv is (7, 64), the base's (256, 64)"),
        (replace(adapter, row_ids=np.array([8, 9, 10, 9999])), "rows are of another embedding"),
        (replace(adapter, rows=np.zeros((4, 7))), "rows are of another embedding"),
    ):
        write_adapter(path, changed)
        assert words in refusal(lambda: build(source, tmp_path / "made", silent, path))


def test_a_module_builds_any_adapter_in_any_precision(
    source: Path,
    adapter_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def command(*arguments: object) -> int:
        monkeypatch.setattr("sys.argv", ["smollm2", *map(str, arguments)])
        return main()

    made = tmp_path / "made"
    assert command(source, made, "--adapter", adapter_file, "--layers", "int4-zero-points", "--table-bits", "4") == 0
    assert is_current(made, adapter_file)
    recorded = json.loads((made / EXPORT_FOLDER / "export.json").read_text(encoding="utf-8"))
    words = "layers int4 in blocks of 32 with zero points, embedding int4 in blocks of 32"
    assert recorded["precision"] == words
    assert command(source, made, "--no-adapter") == 0
    assert "with no adapter" in capsys.readouterr().err
    assert command(source, made, "--adapter", tmp_path / "none") == 2
    assert capsys.readouterr().err.endswith("none: no such file\n")
