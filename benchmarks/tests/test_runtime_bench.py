"""``./dev bench runtimes``: every figure is there, precisions stay one model, and no time is judged."""

from __future__ import annotations

import importlib.machinery
import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks import report as reports
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER
from benchmarks.models import runtimes as runtime_bench
from benchmarks.models import torch_precisions
from fim_server.models.gguf import library
from fim_server.models.gguf.writing import write_gguf
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.onnx.backend import OnnxBackend
from support.bench_command import printed

EMBEDDED = EMBEDDED_TOKENIZER.parent
SMALL = ("--threads", "1", "--prompt", "40", "--steps", "3", "--repeats", "1")
TIMES = ("prefill_ms", "decode_ms", "decode_tokens_per_second", "keystroke_ms", "load_ms", "megabytes", "nats", "same")


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """A tiny run's JSON."""
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime_bench, "KEYSTROKES", 1)
        status, output, _ = printed("runtimes", *SMALL, "--json")
    assert status == 0
    assert torch.get_num_threads() == before
    report: dict[str, Any] = json.loads(output)
    return report


def test_every_figure_is_there(measured: dict[str, Any]) -> None:
    rows = measured["rows"]
    assert [(row["runtime"], row["precision"], row["threads"]) for row in rows] == [
        ("torch", precision, 1) for precision in runtime_bench.TORCH_PRECISIONS
    ]
    for row in rows:
        assert row["note"] == ""
        assert all(row[name] > 0 for name in TIMES)
        assert row["same"] <= 1
        assert row["decode_tokens_per_second"] == pytest.approx(1e3 / row["decode_ms"])


def test_precisions_are_the_same_model_in_less_room(measured: dict[str, Any]) -> None:
    fp32, *others = measured["rows"]
    assert fp32["same"] == 1
    for row in others:
        assert row["same"] > 0.8
        assert row["nats"] == pytest.approx(fp32["nats"], abs=0.1)
        assert row["megabytes"] < fp32["megabytes"]


def test_the_table_has_a_line_for_each_row(measured: dict[str, Any]) -> None:
    rows = [runtime_bench.Row(**row) for row in measured["rows"]]
    *_, header, first, second, third = reports.lines(runtime_bench.Report(measured["setting"], rows))
    assert header.split()[:3] == ["runtime", "precision", "threads"]
    assert [line.split()[1] for line in (first, second, third)] == list(runtime_bench.TORCH_PRECISIONS)


@pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")
def test_gguf_files_are_measured_beside(tmp_path: Path) -> None:
    for precision in ("f16", "q8_0"):
        write_gguf(EMBEDDED, tmp_path / f"{precision}.gguf", precision, "smollm")
    files = [part for name in ("f16", "q8_0") for part in ("--gguf", str(tmp_path / f"{name}.gguf"))]
    status, output, errors = printed("runtimes", *SMALL, "--torch", "fp32", "--json", *files)
    assert status == 0, errors
    fp32, f16, q8 = json.loads(output)["rows"]
    for row, precision in ((f16, "f16"), (q8, "q8_0")):
        assert (row["runtime"], row["precision"], row["note"]) == ("llama.cpp", precision, "")
        assert all(row[name] > 0 for name in TIMES)
        assert row["same"] > 0.8
        assert row["nats"] == pytest.approx(fp32["nats"], abs=0.1)
    assert q8["megabytes"] < f16["megabytes"]
    assert printed("runtimes", *SMALL, "--gguf", str(tmp_path / "missing.gguf"))[0] == 2


def test_nothing_printed_names_a_folder_of_this_machine(measured: dict[str, Any]) -> None:
    assert str(EMBEDDED.parent) not in json.dumps(measured)


def test_weights_kept_in_int8_multiply_like_the_layer() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 48, bias=False)
    inputs = torch.randn(2, 3, 64)
    packed = torch_precisions.WeightOnlyLinear(layer)(inputs.bfloat16()).float()
    assert packed.shape == (2, 3, 48)
    assert float((packed - layer(inputs).detach()).abs().max()) < 0.05


# --- onnxruntime, played by torch -----------------------------------------------------------------------------------


class Value:
    """Container of the package's arrays."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def numpy(self) -> NDArray[Any]:
        return self._array


class Values:
    """Stand-in for the class that makes values."""

    ortvalue_from_numpy = Value

    @staticmethod
    def ortvalue_from_shape_and_type(shape: list[int], kind: Any, device: str) -> Value:
        return Value(np.zeros(shape, kind))


class Binding:
    """The ends of a session, and the tokens that it has read with them."""

    def __init__(self) -> None:
        self.inputs: dict[str, Value] = {}
        self.tokens: list[int] = []
        self.logits: Value | None = None

    def bind_ortvalue_input(self, name: str, value: Value) -> None:
        self.inputs[name] = value

    def bind_ortvalue_output(self, name: str, value: Value) -> None:
        assert self.inputs[name.replace("present", "past_key_values")] is value, "keys and values stay in place"

    def bind_output(self, name: str, device: str) -> None:
        assert (name, device) == ("logits", "cpu")

    def get_outputs(self) -> list[Value | None]:
        return [self.logits]


class PlayedOnnx(types.ModuleType):
    """The parts of the package that the backend uses, over the embedded model; it remembers its threads."""

    def __init__(self, model: FimModel) -> None:
        super().__init__(onnx_backend.MODULE)
        self.__spec__ = importlib.machinery.ModuleSpec(self.__name__, None)
        self.threads: list[int] = []
        played = self

        class InferenceSession:
            def __init__(self, path: str, options: Any, providers: list[str]) -> None:
                assert Path(path).is_file()
                assert providers == ["CPUExecutionProvider"]
                played.threads.append(options.intra_op_num_threads)

            def get_inputs(self) -> list[Any]:
                names = (
                    "input_ids",
                    "attention_mask",
                    "position_ids",
                    "past_key_values.0.key",
                    "past_key_values.0.value",
                )
                return [types.SimpleNamespace(name=name, type="tensor(float)", shape=[1, 1, "n", 2]) for name in names]

            def get_overridable_initializers(self) -> list[Any]:
                return []

            def get_outputs(self) -> list[Any]:
                return [types.SimpleNamespace(name="logits", type="tensor(float)", shape=[1, 1, model.size])]

            def io_binding(self) -> Binding:
                return Binding()

            def run_with_iobinding(self, binding: Binding, options: Any) -> None:
                ids = binding.inputs["input_ids"].numpy()[0].tolist()
                total = binding.inputs["attention_mask"].numpy().shape[1]
                assert binding.inputs["position_ids"].numpy().tolist() == [[*range(total - len(ids), total)]]
                assert total <= binding.inputs["past_key_values.0.key"].numpy().shape[2]
                binding.tokens[total - len(ids) :] = ids
                row = model.forward(binding.tokens, model.new_cache()).numpy()
                binding.logits = Value(row[None, None])

        self.InferenceSession, self.OrtValue = InferenceSession, Values

        class Options(types.SimpleNamespace):
            def add_session_config_entry(self, key: str, value: str) -> None:
                self.__dict__[key] = value

        self.SessionOptions = self.RunOptions = Options


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Files of a folder with an export."""
    folder = tmp_path / "int4"
    folder.mkdir()
    inputs = {name: name for name in ("input_ids", "attention_mask", "position_ids")}
    inputs |= {f"past_{part}_names": f"past_key_values.%d.{part}" for part in ("key", "value")}
    outputs = {"logits": "logits", **{f"present_{part}_names": f"present.%d.{part}" for part in ("key", "value")}}
    decoder = {"filename": "model.onnx", "head_size": 2, "num_hidden_layers": 1, "num_key_value_heads": 1}
    described = {
        "vocab_size": 16384,
        "context_length": 1024,
        "decoder": decoder | {"inputs": inputs, "outputs": outputs},
    }
    config = {"model": described, "search": {"past_present_share_buffer": True}}
    (folder / "genai_config.json").write_text(json.dumps(config))
    (folder / "model.onnx").write_bytes(b"x" * 1000)
    (folder / "model.onnx.data").write_bytes(b"x" * 2000)
    return folder


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedOnnx:
    package = PlayedOnnx(load_model(device="cpu", runtime="torch"))
    monkeypatch.setitem(sys.modules, onnx_backend.MODULE, package)
    monkeypatch.setattr(runtime_bench, "TORCH_PRECISIONS", ("fp32",))
    monkeypatch.setattr(runtime_bench, "KEYSTROKES", 1)
    return package


def test_an_exported_folder_is_measured_beside_torch(played: PlayedOnnx, exported: Path) -> None:
    status, output, _ = printed("runtimes", *SMALL, "--prompt", "20", "--onnx", str(exported), "--json")
    assert status == 0
    plain, row = json.loads(output)["rows"]
    assert played.threads == [1]
    assert (row["runtime"], row["precision"], row["threads"]) == ("onnxruntime", "int4", 1)
    assert (row["megabytes"], row["same"]) == (0.003, 1)
    assert row["nats"] == pytest.approx(plain["nats"], abs=1e-3)


def test_the_number_of_threads_reaches_an_exported_model(played: PlayedOnnx, exported: Path) -> None:
    for threads in (2, 3):
        OnnxBackend(exported, threads, 8)
    assert played.threads == [2, 3]


def test_a_variant_that_fails_is_noted(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = types.ModuleType(onnx_backend.MODULE)
    broken.__spec__ = importlib.machinery.ModuleSpec(broken.__name__, None)
    monkeypatch.setitem(sys.modules, onnx_backend.MODULE, broken)
    monkeypatch.setattr(runtime_bench, "TORCH_PRECISIONS", ("fp32",))
    monkeypatch.setattr(runtime_bench, "KEYSTROKES", 1)
    status, output, _ = printed("runtimes", *SMALL, "--onnx", str(exported), "--json")
    assert status == 0
    plain, failed = json.loads(output)["rows"]
    assert plain["prefill_ms"] > 0
    assert "SessionOptions" in failed["note"]
    assert all(failed[name] is None for name in TIMES)


def test_precisions_of_torch_can_be_chosen() -> None:
    status, output, _ = printed("runtimes", *SMALL, "--torch", "int8-weights", "--json")
    assert status == 0
    assert [row["precision"] for row in json.loads(output)["rows"]] == ["fp32", "int8-weights"]


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--threads", "0"), "above 0"),
        (("--threads", "1,x"), "above 0"),
        (("--threads", "99999"), "threads"),
        (("--repeats", "0"), "above 0"),
        (("--torch", "fp32,fp8"), "there are fp32, bf16, int8-weights"),
        (("--model", "no/such/folder"), "no such model folder"),
        (("--text", "no-such-file.py"), "no-such-file.py"),
        (("--onnx", "no-such-folder"), "genai_config.json"),
        (("--prompt", "1000", "--steps", "1000"), "window"),
        (("--prompt", "1"), "too short"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments: tuple[str, ...], problem: str) -> None:
    status, output, errors = printed("runtimes", *arguments, "--json")
    assert (status, output) == (2, "")
    assert problem in errors
    assert errors.count("\n") == 1


def test_an_export_of_another_model_is_refused(exported: Path) -> None:
    (exported / "genai_config.json").write_text('{"model": {"vocab_size": 7, "context_length": 1024}}')
    status, _, errors = printed("runtimes", *SMALL, "--onnx", str(exported), "--json")
    assert status == 2
    assert "another model" in errors


def test_an_export_has_to_have_room_for_the_prompt_alone(exported: Path) -> None:
    file = exported / "genai_config.json"
    configuration = json.loads(file.read_text())
    configuration["model"]["context_length"] = 4
    file.write_text(json.dumps(configuration))
    status, _, errors = printed("runtimes", *SMALL, "--onnx", str(exported), "--json")
    assert status == 2
    assert "more than its window, 4" in errors


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    status, _, errors = printed("runtimes", *SMALL, "--model", str(folder), "--json")
    assert status == 2
    assert "weights" in errors


def test_exports_are_told_apart_by_their_models(tmp_path: Path) -> None:
    for name, wanted in (("small/onnx", "small"), ("int4", "int4")):
        (tmp_path / name).mkdir(parents=True)
        assert runtime_bench.export_name(tmp_path / name) == wanted
