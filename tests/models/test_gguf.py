"""GGUF files on llama.cpp itself, with torch as the twin; skipped where the extra `gguf` is not installed."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from fim_server.cli import program as cli
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.errors import ModelError, StoppedError
from fim_server.language.stop import Stop
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.gguf import library
from fim_server.models.gguf.backend import MOST_SPARE, GgufBackend
from fim_server.models.gguf.context import MOST_ROWS
from fim_server.models.gguf.load import load_gguf
from fim_server.models.gguf.writing import PRECISIONS, SPLITTERS, write_gguf
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.options import LoadOptions
from fim_server.models.prompt import PLAIN
from fim_server.models.source import locate
from fim_server.text.document import Split
from support.engine.corpus import cuts, python, sources

EMBEDDED = Path(locate("embedded"))

ROUNDING = 2e-2
"""Difference of logits with keys and values in float16, and all else in float32."""

pytestmark = pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model's network with a way of splitting texts that llama.cpp has a name for."""
    path = tmp_path_factory.mktemp("gguf") / "embedded.gguf"
    write_gguf(EMBEDDED, path, "f32", next(iter(SPLITTERS)))
    return path


@pytest.fixture(scope="module")
def model(file: Path) -> FimModel:
    return load_model(str(file))


@pytest.fixture(scope="module")
def twin() -> FimModel:
    return load_model("embedded", "cpu", "torch")


@pytest.fixture(scope="module")
def prompt(twin: FimModel) -> list[int]:
    text = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8")
    return twin.format.encode(text[:3000], text[3000:], 300)


def test_logits_are_those_of_torch(model: FimModel, twin: FimModel, prompt: list[int]) -> None:
    ours, theirs = model.new_cache(512), twin.new_cache(512)
    for part in (prompt[:200], prompt[200:-1], prompt[-1:]):
        found, wanted = model.forward(part, ours), twin.forward(part, theirs).numpy()
        assert found.shape == (model.size,)
        assert found.dtype == np.float32
        assert np.abs(found - wanted[: model.size]).max() < ROUNDING


def test_a_quantised_file_is_near_and_another_prompt_is_not(model: FimModel, prompt: list[int], tmp_path: Path) -> None:
    wanted = model.forward(prompt, model.new_cache(512))
    other = model.forward(prompt[:-7], model.new_cache(512))
    sizes = []
    for precision in PRECISIONS:
        path = tmp_path / f"{precision}.gguf"
        write_gguf(EMBEDDED, path, precision, next(iter(SPLITTERS)))
        small = load_gguf(path, 1)
        found = small.forward(prompt, small.new_cache(512))
        assert np.corrcoef(found, wanted)[0, 1] > 0.9 > np.corrcoef(other, wanted)[0, 1], precision
        sizes.append(path.stat().st_size)
    assert sizes == sorted(sizes, reverse=True)


def test_cropped_tokens_leave_no_trace(model: FimModel, prompt: list[int]) -> None:
    plain, used = model.new_cache(512), model.new_cache(512)
    model.forward(prompt[:100], plain)
    model.forward(prompt[:100], used)
    model.forward(prompt[150:180], used)
    used.crop(-30)
    assert np.abs(model.forward(prompt[100:110], plain) - model.forward(prompt[100:110], used)).max() < ROUNDING
    for wrong in (0, 1, -111):
        with pytest.raises(ValueError, match="cannot take back"):
            used.crop(wrong)


def test_caches_are_independent_even_in_reused_memory(model: FimModel, prompt: list[int]) -> None:
    fresh = model.new_cache(512)
    alone = [model.forward(prompt[:50], fresh), model.forward(prompt[50:51], fresh)]
    del fresh
    again, other = model.new_cache(512), model.new_cache(300)
    first = model.forward(prompt[:50], again)
    model.forward(prompt[100:250], other)
    second = model.forward(prompt[50:51], again)
    assert np.array_equal(first, alone[0])  # the row is memory of its own
    assert np.array_equal(second, alone[1])


def test_contexts_are_reused_and_few_are_kept(file: Path) -> None:
    backend = GgufBackend(file, 1)
    caches = [backend.new_cache(256) for _ in range(MOST_SPARE + 3)]
    contexts = {id(cache.context) for cache in caches}
    caches.clear()
    assert len(backend._spare) == MOST_SPARE
    assert id(backend.new_cache(256).context) in contexts
    big = backend.new_cache(1024)
    assert big.context.room == 1024
    del backend
    big.forward([5, 6])  # a cache outlives the backend that made it


def test_invalid_or_too_many_tokens_are_refused_unread(model: FimModel, prompt: list[int]) -> None:
    cache = model.new_cache(256)
    wanted = model.forward(prompt[:20], cache)
    for wrong in ([], [-1], [model.size], prompt * 4):
        with pytest.raises(RuntimeError):
            model.forward(wrong, cache)
    cache.crop(-1)
    assert np.abs(model.forward(prompt[19:20], cache) - wanted).max() < ROUNDING


@pytest.mark.parametrize("precision", ["f32", "q8_0"])
def test_rows_of_a_pass_equal_single_steps(file: Path, prompt: list[int], precision: str, tmp_path: Path) -> None:
    if precision != "f32":
        path = tmp_path / "quantised.gguf"
        write_gguf(EMBEDDED, path, precision, next(iter(SPLITTERS)))
        file = path
    model = load_gguf(file, 1)
    assert model.gives_rows
    one, many = model.new_cache(512), model.new_cache(512)
    wanted = [model.forward(prompt[:100], one), *(model.forward([token], one) for token in prompt[100:140])]
    assert np.array_equal(model.forward_rows(prompt[:100], many, 1)[0], wanted[0])
    at = 100
    for size in (2, 5, 1, 8, 3, 7, 14):
        rows = model.forward_rows(prompt[at : at + size], many, size)
        assert len(rows) == size
        for row, expected in zip(rows, wanted[at - 99 :], strict=False):
            assert np.abs(row - expected).max() < ROUNDING
        many.crop(-1)
        at += size - 1
    for tokens, wrong in ((1, 0), (2, 3), (MOST_ROWS + 2, MOST_ROWS + 1)):
        with pytest.raises(RuntimeError, match=f"{wrong} rows of {tokens} tokens"):
            model.forward_rows(prompt[:tokens], many, wrong)


def test_rows_are_of_the_last_tokens_of_a_long_text(model: FimModel, prompt: list[int]) -> None:
    long = (prompt * 2)[: PREFILL_CHUNK + 150]
    one, many = model.new_cache(1024), model.new_cache(1024)
    model.forward(long[:-3], one)
    wanted = [model.forward([token], one) for token in long[-3:]]
    found = model.forward_rows(long, many, 3)
    assert max(np.abs(row - expected).max() for row, expected in zip(found, wanted, strict=True)) < ROUNDING


def test_drafts_do_not_change_texts(model: FimModel) -> None:
    split = Split("def total(values):\n    result = 0\n    for value in values:\n        res", "\n    return result\n")
    options = DecodeOptions(max_new_tokens=24, single_line=True)
    plain = complete(model, python(), split, options)
    drafted = complete(
        model, python(), split, dataclasses.replace(options, drafts=lambda middle: (plain.text or "")[len(middle) :])
    )
    assert (drafted.text, drafted.stop_reason) == (plain.text, plain.stop_reason)
    assert drafted.statistics.accepted_tokens > 0
    assert drafted.statistics.passes < plain.statistics.passes


def test_a_stop_ends_a_pass(model: FimModel, prompt: list[int]) -> None:
    cache, stop = model.new_cache(1024), Stop()
    wanted = model.forward(prompt[:20], cache)
    asked = threading.Event()

    def set_soon() -> None:
        asked.wait(10)
        time.sleep(0.005)
        stop.set()

    setter = threading.Thread(target=set_soon)
    setter.start()
    with stop, pytest.raises(StoppedError):  # noqa: PT012
        asked.set()
        for _ in range(2000):
            model.forward(prompt[:200], cache)
            cache.crop(-200)
    setter.join()
    cache.crop(-1)
    assert np.abs(model.forward(prompt[19:20], cache) - wanted).max() < ROUNDING


# --- tokens -------------------------------------------------------------------------------------------------------


def test_tokens_are_those_of_the_tokenizer(model: FimModel, twin: FimModel) -> None:
    size = twin.vocabulary.size
    assert [model.vocabulary.token_bytes(token) for token in range(size)] == [
        twin.vocabulary.token_bytes(token) for token in range(size)
    ]
    assert model.vocabulary.end_token_ids == twin.vocabulary.end_token_ids


@pytest.mark.parametrize("text", ["x", "def f():\n    return a  # é 😀\n", "<|fim_middle|>", "\t\t \r\n\x00 ﬁ", ""])
def test_encoding_keeps_each_byte_and_reads_no_control_tokens(model: FimModel, text: str) -> None:
    ids = model.vocabulary.encode(text)
    assert b"".join(model.vocabulary.token_bytes(token) for token in ids) == text.encode()
    assert model.format.control_ids.isdisjoint(ids)
    half = text.encode()[:-1]
    assert b"".join(model.vocabulary.token_bytes(token) for token in model.vocabulary.encode(half)) == half


def test_the_unsettled_end_of_a_text_equals_a_tokenizer_s_with_that_splitter(model: FimModel, tmp_path: Path) -> None:
    described = json.loads((EMBEDDED / "tokenizer.json").read_text(encoding="utf-8"))
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": next(iter(SPLITTERS.values()))}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(described), encoding="utf-8")
    twin = type(model.vocabulary).from_file(path)
    draw = random.Random(0)
    compared = equal = 0
    for source in itertools.islice(sources(draw, 20_000), 6):
        text = source.text
        assert model.vocabulary.encode(text) == twin.encode(text)
        for _ in range(25):
            left = text[: draw.randrange(1, len(text))]
            ours, theirs = model.vocabulary.unsettled(left), twin.unsettled(left)
            assert ours.endswith(theirs), left[-30:]  # more is written again, and comes out as it was
            compared += 1
            equal += ours == theirs
    assert compared > 100
    assert equal > 0.98 * compared


# --- completions --------------------------------------------------------------------------------------------------


def test_completions_fit(model: FimModel) -> None:
    completed = 0
    for cut in itertools.islice(cuts(random.Random(0), 20_000, 2), 8):
        completion = complete(model, python(), Split(cut.left, cut.right), DecodeOptions(max_new_tokens=24))
        ast.parse(cut.left + (completion.text or "") + cut.right)
        completed += 1
    assert completed >= 6


def test_without_fim_tokens_the_model_writes_on_and_the_grammar_connects(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.gguf"
    rename(file, path, {"<|fim_middle|>": "<|another|>"})
    model = load_gguf(path, 1)
    assert model.format.family == PLAIN
    assert not model.format.sees_suffix
    left, right = "def f(a):\n    b = [\n        ", "\n    ]\n    return b\n"
    ids = model.format.encode(left, right, 200)
    assert b"".join(model.vocabulary.token_bytes(token) for token in ids).decode() == left
    completion = complete(model, python(), Split(left, right), DecodeOptions(max_new_tokens=24))
    ast.parse(left + (completion.text or "") + right)


def rename(source: Path, path: Path, names: dict[str, str]) -> None:
    """A copy of a GGUF file with other names for some tokens, of the same length in bytes or shorter."""
    content = source.read_bytes()
    for old, new in names.items():
        assert content.count(old.encode()) == 1
        length = len(old.encode()).to_bytes(8, "little")
        assert length + old.encode() in content
        content = content.replace(old.encode(), new.ljust(len(old.encode()), "_").encode())
    path.write_bytes(content)


def test_an_adapter_equals_merged_weights(file: Path, tmp_path: Path, prompt: list[int]) -> None:
    draw = np.random.default_rng(0)
    rank, scale = 4, 2.0
    down = draw.normal(size=(rank, 256)).astype(np.float32) / 16
    up = draw.normal(size=(704, rank)).astype(np.float32) * 2
    writer = gguf.GGUFWriter(tmp_path / "adapter.gguf", "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", scale * rank)
    writer.add_tensor("blk.1.ffn_up.weight.lora_a", down)
    writer.add_tensor("blk.1.ffn_up.weight.lora_b", up)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    folder = tmp_path / "merged"
    shutil.copytree(EMBEDDED, folder)
    change_weight(folder / "model.safetensors", "model.layers.1.mlp.up_proj.weight", scale * up @ down)
    write_gguf(folder, tmp_path / "merged.gguf", "f32", next(iter(SPLITTERS)))
    merged = load_gguf(tmp_path / "merged.gguf", 1)
    adapted = load_model(str(file), options=LoadOptions(adapter=str(tmp_path / "adapter.gguf")))
    plain = load_model(str(file))
    wanted, found, without = (one.forward(prompt, one.new_cache(512)) for one in (merged, adapted, plain))
    effect = np.abs(without - wanted).max()
    assert effect > 20 * ROUNDING
    assert np.abs(found - wanted).max() < effect / 20  # the merged weights are of float16


def change_weight(path: Path, name: str, change: Any) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(path)
    weights[name] = (weights[name].astype(np.float32) + change).astype(weights[name].dtype)
    save_file(weights, path)


# --- what is wrong ------------------------------------------------------------------------------------------------


def one_line(error: pytest.ExceptionInfo[ModelError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


def test_other_files_than_gguf_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        load_model(str(tmp_path / "missing.gguf"))
    assert "no such file" in one_line(error)
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelError) as error:
        load_model(str(tmp_path / "text.gguf"))
    assert "llama.cpp cannot load it (invalid magic" in one_line(error)
    content = file.read_bytes()
    (tmp_path / "half.gguf").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError) as error:
        load_model(str(tmp_path / "half.gguf"))
    assert "llama.cpp cannot load it" in one_line(error)
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(ModelError, match="no such file"):
        load_model(str(tmp_path / "folder.gguf"))


def test_options_of_other_models_are_refused_for_gguf(file: Path, tmp_path: Path) -> None:
    for options in (LoadOptions(gpu_layers=2), LoadOptions(adapter="x.gguf")):
        with pytest.raises(ModelError, match="for GGUF files, and embedded is none"):
            load_model("embedded", options=options)
    with pytest.raises(ModelError, match=r"llama\.cpp: runs GGUF files, and embedded is none"):
        load_model("embedded", runtime="llama.cpp")
    with pytest.raises(ModelError, match="onnx: runs no GGUF files"):
        load_model(str(file), runtime="onnx")
    with pytest.raises(ModelError, match="2 layers on a GPU were asked for as well"):
        load_model(str(file), "cpu", options=LoadOptions(gpu_layers=2))
    with pytest.raises(ModelError, match="no such file"):
        load_model(str(file), options=LoadOptions(adapter=str(tmp_path / "missing.gguf")))
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelError, match="cannot load the adapter"):
        load_model(str(file), options=LoadOptions(adapter=str(tmp_path / "text.gguf")))


@pytest.mark.skipif(
    library.is_installed() and bool(library.load_library().llama_supports_gpu_offload()), reason="there is a GPU"
)
def test_gpu_layers_without_a_gpu_are_refused(file: Path) -> None:
    with pytest.raises(ModelError, match="computes on the CPU alone"):
        load_model(str(file), options=LoadOptions(gpu_layers=-1))
    assert load_model(str(file), "cpu").device == load_model(str(file)).device == "cpu"


def test_another_release_of_the_library_is_refused_first() -> None:
    loaded = library.load_library()
    library.check(loaded.llama_context_default_params(), library.CONTEXT_DEFAULTS)
    moved = loaded.llama_context_default_params()
    moved.threads = 512
    with pytest.raises(ModelError, match=r"another release than .* \(ContextOptions\.threads\)"):
        library.check(moved, library.CONTEXT_DEFAULTS)


def test_without_the_package_the_extra_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PACKAGE", "no_such_package")
    library.load_library.cache_clear()
    try:
        with pytest.raises(ModelError, match=r"pip install 'fim-server\[gguf\]'"):
            load_model(str(file))
    finally:
        monkeypatch.undo()
        library.load_library.cache_clear()


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_tokenizer_without_a_name_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "gguf", "embedded", str(tmp_path / "x.gguf")]) == 2
    assert "llama.cpp has no name for how its tokenizer splits texts" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_the_server_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": next(iter(SPLITTERS.values()))}
    (folder / "tokenizer.json").write_text(json.dumps(described), encoding="utf-8")
    path = tmp_path / "x.gguf"
    assert cli.main(["models", "gguf", str(folder), str(path), "--precision", "q4_0"]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: ")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model", "x.gguf"]
    source = tmp_path / "a.py"
    source.write_text("def add(a, b):\n    \n\n\nadd(1, 2)\n")
    assert cli.main(["complete", "--model", str(path), "--json", str(source), "2:5"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["guarantee"] == "exact"
    ast.parse("def add(a, b):\n    " + answer["text"] + "\n\n\nadd(1, 2)\n")


def test_precisions_of_the_command_are_those_there_are() -> None:
    from fim_server.cli.models import GGUF_PRECISIONS

    assert GGUF_PRECISIONS == PRECISIONS
    assert dataclasses.fields(LoadOptions)
