"""Models on onnxruntime, with torch as the twin; skipped where the optional package is not installed."""

from __future__ import annotations

import ast
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fim_server.cli import program as cli
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.batches import decode_together
from fim_server.errors import ModelError
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.onnx.backend import MODULE, OnnxBackend, OnnxCache, weights_digest
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.models.reading import Reading, Readings
from fim_server.models.source import locate
from fim_server.text.document import Split
from support.engine.corpus import cuts, python
from support.models.tiny_models import write_tiny_model
from training.__main__ import main as train

EMBEDDED = Path(locate(None))

ROUNDING = 0.25
"""Difference of logits by the rounding of activations to 8 bits: kernels round a chunk of tokens unlike a single token.
Logits of other tokens differ several times as much."""

MOST_BYTES = 30_000_000
"""The whole embedded model is installed with the package."""

LEFT = "import os\n\n\ndef load(path):\n    with open(path) as file:\n        ret"
RIGHT = "\n\n\nload(os.sep)\n" * 20

needs_package = pytest.mark.skipif(
    not onnx_backend.is_installed(), reason="onnxruntime is not installed (the extra `onnx` has it)"
)


@pytest.fixture(scope="module")
def twin() -> FimModel:
    return load_model(None, "cpu", "torch")


@pytest.fixture(scope="module")
def exported() -> FimModel:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime is not installed (the extra `onnx` has it)")
    return load_model(None, "cpu", "onnx")


@pytest.fixture(scope="module")
def prompt(twin: FimModel) -> list[int]:
    text = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8")
    half = len(text) // 2
    return twin.format.encode(text[:half], text[half:], 300)


Row = NDArray[np.float32]


def apart(one: Row, other: Row) -> float:
    """The largest difference between two rows of logits [V]."""
    return float(np.abs(one - other).max())


def losses(logits: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    """The loss, in nats, of each token but the first; logits [T, V] after each token."""
    wanted = torch.tensor(tokens[1:])
    return torch.nn.functional.cross_entropy(logits[:-1], wanted, reduction="none")


# --- what is computed ----------------------------------------------------------------------------------------------


def test_the_export_agrees_with_torch(exported: FimModel, twin: FimModel, prompt: list[int]) -> None:
    with torch.inference_mode():
        assert isinstance(twin.backend, TorchBackend)
        wanted = twin.backend.network(torch.tensor([prompt])).logits[0]
    cache = exported.new_cache()
    found = torch.stack([torch.from_numpy(exported.forward([token], cache)) for token in prompt])
    assert found.dtype == torch.float32
    assert found.shape == wanted.shape == (len(prompt), exported.size)
    same = (found.argmax(1) == wanted.argmax(1)).float().mean()
    assert same > 0.9, f"{same:.1%} of the likeliest tokens"
    assert abs(float((losses(found, prompt) - losses(wanted, prompt)).mean())) < 0.03


def test_a_prompt_in_chunks_gives_the_logits_of_the_whole(exported: FimModel, prompt: list[int]) -> None:
    whole = exported.forward(prompt, exported.new_cache())
    cache = exported.new_cache()
    for begin in range(0, len(prompt), 64):
        logits = exported.forward(prompt[begin : begin + 64], cache)
    assert apart(logits, whole) < ROUNDING
    assert apart(exported.forward(prompt[:-1], exported.new_cache()), whole) > 4 * ROUNDING, "the measure tells tokens"


def test_the_logits_are_those_of_onnxruntime_genai(exported: FimModel, prompt: list[int]) -> None:
    genai = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai, the twin, is not installed")
    config = genai.Config(str(EMBEDDED / "onnx"))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": 1}}}}))
    model = genai.Model(config)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=400)
    twin, cache = genai.Generator(model, parameters), exported.new_cache(400)
    for begin, end in ((0, 200), (200, 201), (201, 260)):
        twin.append_tokens(prompt[begin:end])
        assert np.array_equal(exported.forward(prompt[begin:end], cache), twin.get_logits()[0, -1])
    twin.rewind_to(230)
    cache.crop(-30)
    twin.append_tokens(prompt[100:130])
    assert np.array_equal(exported.forward(prompt[100:130], cache), twin.get_logits()[0, -1])


def test_other_threads_go_on_while_a_prompt_is_read(exported: FimModel, prompt: list[int]) -> None:
    turns, over = itertools.count(), threading.Event()

    def turn() -> None:
        while not over.wait(0.001):
            next(turns)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        # Between these two nothing else in this thread gives Python's lock up.
        tokens, cache = [*prompt, *prompt, *prompt], exported.new_cache()
        first = next(turns)
        exported.forward(tokens, cache)
        assert next(turns) - first > 3
    finally:
        over.set()
        thread.join()


def test_tokens_taken_back_leave_nothing_behind(exported: FimModel, prompt: list[int]) -> None:
    first, second, third = prompt[:200], prompt[200:230], prompt[230:260]
    fresh, cache = exported.new_cache(), exported.new_cache()
    exported.forward(first, fresh)
    wanted = exported.forward(third, fresh).copy()
    exported.forward(first, cache)
    exported.forward(second, cache)
    cache.crop(-len(second))
    assert np.array_equal(exported.forward(third, cache), wanted)


def test_caches_are_apart(exported: FimModel, prompt: list[int]) -> None:
    one, other = exported.new_cache(), exported.new_cache()
    exported.forward(prompt[:50], one)
    exported.forward(prompt[100:150], other)
    alone = exported.new_cache()
    exported.forward(prompt[:50], alone)
    assert np.array_equal(exported.forward(prompt[50:60], one), exported.forward(prompt[50:60], alone))


def test_logits_are_the_callers_own(exported: FimModel, prompt: list[int]) -> None:
    cache = exported.new_cache()
    first = exported.forward(prompt[:20], cache)
    kept = first.copy()
    second = exported.forward(prompt[20:21], cache)
    assert np.array_equal(first, kept), "the next pass writes elsewhere"
    cache.crop(-1)
    second[:] = float("-inf")
    assert np.isfinite(exported.forward(prompt[20:21], cache)).all()


def test_a_reused_cache_gives_the_logits_of_a_fresh_one(exported: FimModel) -> None:
    readings, reused = Readings(exported), 0
    for typed in ("", "u", "ur", "urn", "urn ", "urn f", "urn (", "urn file", "u"):
        after = ")" + RIGHT if typed.endswith("(") else RIGHT
        tokens = exported.format.encode(LEFT + typed, after, 400, 16)
        kept = readings.nearest(tokens)
        start = kept.resume(tokens)
        reused += 2 * start > len(tokens)
        assert apart(kept.forward(tokens[start:]), Reading(exported).forward(tokens)) < ROUNDING
    assert reused == 7  # all but the first one and the one whose right side differs


def test_a_reading_can_rewind(exported: FimModel, prompt: list[int]) -> None:
    reading = Reading(exported)
    reading.forward(prompt)
    reading.rewind(5)
    assert apart(reading.forward(prompt[-5:]), Reading(exported).forward(prompt)) < ROUNDING
    assert reading.resume(prompt[:100]) == 99


# --- errors of the runtime ------------------------------------------------------------------------------------------


def test_a_reading_survives_the_end_of_the_window(exported: FimModel, prompt: list[int]) -> None:
    reading = Reading(exported)
    full = list(itertools.islice(itertools.cycle(prompt), exported.window))
    reading.forward(full)
    with pytest.raises(RuntimeError, match="max length"):
        reading.forward([full[0]])
    assert reading.resume(prompt) == 0
    assert apart(reading.forward(prompt), Reading(exported).forward(prompt)) == 0


@pytest.mark.parametrize("tokens", [[], [1_000_000]], ids=["no tokens", "unknown token"])
def test_refusals_of_the_runtime_are_runtime_errors(
    exported: FimModel, tokens: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError):
        exported.forward(tokens, exported.new_cache())
    assert capfd.readouterr() == ("", ""), "the exception says it all"


def test_a_cache_gives_back_only_what_it_holds(exported: FimModel) -> None:
    cache = exported.new_cache()
    exported.forward([5, 6, 7], cache)
    for length in (0, 1, -4):
        with pytest.raises(ValueError, match="cannot take back"):
            cache.crop(length)
    cache.crop(-3)
    exported.forward([5], cache)


def test_onnxruntime_reads_no_batches(exported: FimModel) -> None:
    with pytest.raises(ValueError, match="which reads one row at a time"):
        decode_together(exported, [])


@needs_package
def test_onnxruntime_sends_and_stores_nothing_about_the_user(tmp_path: Path) -> None:
    """The libraries' telemetry keeps an identifier and a queue of events in the cache folder, where it is on."""
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in onnx_backend.NO_TELEMETRY}
    script = (
        "from fim_server.models.load import load_model; model = load_model(None, 'cpu', 'onnx');"
        "model.forward([5, 6, 7], model.new_cache()); print('read')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={**kept, **home}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "read\n"
    assert not [path.name for path in tmp_path.rglob("*") if "onnxruntime" in str(path.relative_to(tmp_path)).lower()]


# --- completions ----------------------------------------------------------------------------------------------------


def test_threads_sleep_between_passes(exported: FimModel) -> None:
    backend = exported.backend
    assert isinstance(backend, OnnxBackend)
    options = backend._session.get_session_options()
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"


def test_completions_parse(exported: FimModel) -> None:
    written = 0
    for index, cut in enumerate(itertools.islice(cuts(random.Random(32), 40_000, 4), 8)):
        options = DecodeOptions(max_new_tokens=12, seed=index, temperature=index % 2, max_prompt_tokens=192)
        found = complete(exported, python(), Split(cut.left, cut.right), options)
        assert found.guarantee == "exact"
        if found.text is not None:
            written += 1
            assert python().open(cut.left, cut.right).check(found.text).complete
    assert written >= 4


def test_reading_a_prompt_can_be_cancelled(exported: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled, passes = threading.Event(), []
    plain = OnnxCache.forward

    def forward(cache: OnnxCache, token_ids: Sequence[int]) -> NDArray[np.float32]:
        passes.append(len(token_ids))
        cancelled.set()
        return plain(cache, token_ids)

    monkeypatch.setattr(OnnxCache, "forward", forward)
    split = Split("total = value + 1\n" * 400, "\n")
    found = complete(exported, python(), split, DecodeOptions(max_prompt_tokens=800), cancelled)
    assert found.stop_reason is StopReason.CANCELLED
    assert passes == [PREFILL_CHUNK]


@needs_package
@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_the_command_line_names_the_runtime(
    runtime: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def load(*arguments: Any) -> FimModel:
        model = load_model(*arguments)
        loaded.append(model.runtime)
        return model

    monkeypatch.setattr("fim_server.models.load.load_model", load)
    path = tmp_path / "hole.py"
    path.write_text("def f(a):\n    return a + \n\n\nprint(f(1))\n", encoding="utf-8")
    wanted = ["complete", str(path), "2:16", "--device", "cpu", "--max-new-tokens", "8", "--json", "--runtime", runtime]
    assert cli.main(wanted) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (loaded, answer["guarantee"]) == ([runtime], "exact")
    ast.parse(f"def f(a):\n    return a + {answer['text']}\n\n\nprint(f(1))\n")


# --- which runtime --------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A random model of one layer, without an export, with the embedded model's tokenizer."""
    return write_tiny_model(tmp_path / "tiny", 64, bos_token_id=None, eos_token_id=0, pad_token_id=4)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime is not installed."""
    monkeypatch.setitem(sys.modules, MODULE, None)


@needs_package
def test_an_export_is_preferred_on_the_cpu_and_saves_loading_torchs_weights() -> None:
    model = load_model(None, "cpu")
    assert model.runtime == "onnx"
    assert isinstance(model.backend, OnnxBackend)


def test_without_the_package_torch_runs_the_model(absent: None) -> None:
    model = load_model(None, "cpu")
    assert model.runtime == "torch"
    assert model.forward([5, 6, 7], model.new_cache()).shape == (model.size,)


def test_without_an_export_torch_runs_the_model(tiny: Path) -> None:
    assert load_model(str(tiny), "cpu").runtime == "torch"


def refusal(*arguments: Any) -> str:
    with pytest.raises(ModelError) as error:
        load_model(*arguments)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_a_runtime_that_cannot_run_the_model_is_refused(tiny: Path) -> None:
    assert "has no export (no onnx/genai_config.json in its folder)" in refusal(str(tiny), "cpu", "onnx")
    assert "runs on the CPU, not on meta" in refusal(None, "meta", "onnx")
    assert "runtime abacus: unknown" in refusal(None, "cpu", "abacus")


@needs_package
def test_an_export_of_other_weights_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    assert load_model(str(folder), "cpu").runtime == "onnx"
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert load_model(str(folder), "cpu").runtime == "torch"
    assert "is of other weights" in refusal(str(folder), "cpu", "onnx")
    weights.unlink()
    assert load_model(str(folder), "cpu").runtime == "onnx"
    assert "its folder has no weights" in refusal(str(folder), "cpu", "torch")


def test_a_missing_runtime_is_named_if_requested(absent: None) -> None:
    assert "onnxruntime is not installed; pip install onnxruntime brings it" in refusal(None, "cpu", "onnx")


@needs_package
@pytest.mark.parametrize(
    "damage",
    ["no JSON", "no size", "no graph", "no graph in it", "not in place", "other heads", "other tokens", "no window"],
)
def test_a_damaged_export_is_one_clear_line(damage: str, tiny: Path) -> None:
    folder = tiny / "onnx"
    shutil.copytree(EMBEDDED / "onnx", folder, ignore=shutil.ignore_patterns("export.json"))
    if damage == "no JSON":
        (folder / "genai_config.json").write_text("{", encoding="utf-8")
    elif damage == "no size":
        (folder / "genai_config.json").write_text('{"model": {}}', encoding="utf-8")
    elif damage in ("not in place", "other heads", "other tokens", "no window"):
        path = folder / "genai_config.json"
        configuration = json.loads(path.read_text(encoding="utf-8"))
        if damage == "not in place":
            configuration["search"]["past_present_share_buffer"] = False
        elif damage == "other heads":
            configuration["model"]["decoder"]["num_key_value_heads"] = 3
        else:
            configuration["model"]["vocab_size" if damage == "other tokens" else "context_length"] = -5
        path.write_text(json.dumps(configuration), encoding="utf-8")
    elif damage == "no graph":
        (folder / "model.onnx").unlink()
    else:
        (folder / "model.onnx").write_bytes(b"abacus")
    assert "the export cannot be loaded (" in refusal(str(tiny), "cpu")


# --- the export -----------------------------------------------------------------------------------------------------


def test_the_embedded_export_is_of_the_embedded_weights() -> None:
    record = json.loads((EMBEDDED / "onnx" / "export.json").read_text(encoding="utf-8"))
    assert record["weights_sha256"] == weights_digest(EMBEDDED), "run: ./dev train onnx"


def test_the_embedded_model_is_small_enough_to_install() -> None:
    assert sum(path.stat().st_size for path in EMBEDDED.rglob("*") if path.is_file()) < MOST_BYTES


@needs_package
def test_a_folder_is_exported_by_one_command(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx", reason="onnx, which the export is made with, is not installed")
    pytest.importorskip("onnx_ir", reason="onnx-ir, which the export is made with, is not installed")
    assert train(["onnx", "--model", str(tiny)]) == 0, capsys.readouterr().err
    assert sorted(path.name for path in (tiny / "onnx").iterdir()) == ["export.json", "genai_config.json", "model.onnx"]
    one_table = 16384 * 64
    assert one_table < (tiny / "onnx" / "model.onnx").stat().st_size < 2 * one_table, "the embedding is not there twice"
    found, wanted = load_model(str(tiny), "cpu"), load_model(str(tiny), "cpu", "torch")
    assert (found.runtime, found.window, found.size) == ("onnx", wanted.window, wanted.size)
    tokens = found.vocabulary.encode("for name in names:\n    print(name)\n")
    one, other = found.forward(tokens, found.new_cache()), wanted.forward(tokens, wanted.new_cache())
    assert float(np.corrcoef(one, other.numpy())[0, 1]) > 0.99


@pytest.mark.parametrize("package", ["onnx", "onnx_ir", "onnxruntime_genai"])
def test_the_export_names_the_packages_it_misses(
    package: str, monkeypatch: pytest.MonkeyPatch, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert train(["onnx", "--model", str(tiny)]) == 2
    assert package.replace("_", "-") in capsys.readouterr().err.splitlines()[-1].split("pip install ")[1].split()
    assert not (tiny / "onnx").exists()


@needs_package
def test_the_export_wants_a_model_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx", reason="onnx, which the export is made with, is not installed")
    pytest.importorskip("onnx_ir", reason="onnx-ir, which the export is made with, is not installed")
    assert train(["onnx", "--model", str(tmp_path)]) == 2
    assert "not a model folder" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert train(["onnx", "--model", str(tmp_path)]) == 2
    assert "its folder has no weights to export" in capsys.readouterr().err
