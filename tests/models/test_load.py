"""Choice of a model's backend, device and number of threads, without importing torch where that is possible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from fim_server import Vocabulary
from fim_server.errors import ModelError
from fim_server.models import loaders
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.options import LoadOptions
from fim_server.models.pytorch import devices
from fim_server.models.pytorch.devices import best_device, may_have_gpu
from fim_server.models.request import LoadRequest
from fim_server.models.resources import threads
from fim_server.models.source import locate
from fim_server.models.tokenizer import read_tokenizer

NEEDS_TORCH = "needs PyTorch: pip install 'fim-server[torch]'"

TEXTS = ("", "x", "def f(a, b):\n    return a+b  # é 😀\n", "<|fim_middle|> and <|endoftext|>\n", "\t\t \r\n\x00 ﬁ")


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch and transformers are not installed."""
    for name in devices.PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_the_tokenizers_library_encodes_as_transformers_does(text: str, split: bool) -> None:
    ours = read_tokenizer(Path(locate(None)), "embedded")
    theirs = AutoTokenizer.from_pretrained(locate(None))
    options = {"add_special_tokens": False, "split_special_tokens": split}
    ids = ours.encode(text, **options)
    assert ids == theirs.encode(text, **options)
    assert ours.decode(ids) == text
    assert ours.get_vocab() == theirs.get_vocab()
    for token in ("<|fim_middle|>", "x"):
        number = ours.convert_tokens_to_ids(token)
        assert number is not None
        assert number == theirs.convert_tokens_to_ids(token)
        assert ours.convert_ids_to_tokens(number) == token
    assert ours.convert_tokens_to_ids("no such token") is None
    assert ours.convert_ids_to_tokens(len(ours.get_vocab())) is None


def test_vocabularies_of_both_are_equal() -> None:
    ours, theirs = read_tokenizer(Path(locate(None)), "embedded"), AutoTokenizer.from_pretrained(locate(None))
    one, other = (Vocabulary.from_tokenizer(each, end_token_ids=[0]) for each in (ours, theirs))
    assert one.size == other.size
    assert [one.token_bytes(token) for token in range(one.size)] == [other.token_bytes(t) for t in range(other.size)]


def test_texts_are_not_cut_or_filled_up_as_a_file_says(tmp_path: Path) -> None:
    content = json.loads((Path(locate(None)) / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    token = {"pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>"}
    content["padding"] = {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, **token}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    ours, plain = read_tokenizer(tmp_path, "mine"), read_tokenizer(Path(locate(None)), "embedded")
    for text in (*TEXTS, "return x + 1\n" * 40):
        options = {"add_special_tokens": False, "split_special_tokens": True}
        assert ours.encode(text, **options) == plain.encode(text, **options)


def test_a_damaged_tokenizer_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"^mine: its tokenizer cannot be loaded \(") as refusal:
        read_tokenizer(tmp_path, "mine")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None, "cpu", "torch"), f"embedded: {NEEDS_TORCH}"),
        ((None, "cuda", None), f"device cuda: {NEEDS_TORCH}"),
        ((None, None, "torch"), f"embedded: {NEEDS_TORCH}"),
    ],
)
def test_without_torch_one_line_names_the_extra(
    no_torch: None, arguments: tuple[str | None, str | None, str | None], said: str
) -> None:
    with pytest.raises(ModelError) as refusal:
        load_model(*arguments)
    assert str(refusal.value) == said


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("runtime", [None, "torch"])
@pytest.mark.parametrize("options", [LoadOptions(), LoadOptions(gpu_layers=1), LoadOptions(adapter="a.gguf")])
def test_no_refusal_quotes_the_password_in_an_address(
    device: str | None, runtime: str | None, options: LoadOptions
) -> None:
    with pytest.raises(ModelError) as refusal:
        load_model("https://me:secret@localhost/v1", device, runtime, options)
    assert "secret" not in str(refusal.value)


def test_without_torch_the_cpu_is_the_best_device(no_torch: None) -> None:
    assert best_device() == "cpu"


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_the_cpu_needs_no_torch(no_torch: None, name: str) -> None:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime has no wheel here")
    assert load_model(None, name).runtime == "onnx"


def test_torch_is_asked_for_a_gpu_where_a_driver_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(devices, "ROCM_DEVICE", Path("/no/such/device"))
    monkeypatch.setattr(devices, "CUDA_DRIVERS", {sys.platform: "no-such-driver.so"})
    assert not may_have_gpu()
    monkeypatch.setattr(devices, "ROCM_DEVICE", Path(os.devnull))
    assert may_have_gpu()


@pytest.mark.parametrize("load_average", [0.0, 1.0, 50.0])
def test_threads_leave_busy_cores_alone(monkeypatch: pytest.MonkeyPatch, load_average: float) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "usable_cpus", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(os, "getloadavg", lambda: (load_average, 0.0, 0.0), raising=False)
    assert threads.free_cores(4) == max(1, 4 - round(load_average))
    assert threads.free_cores(2) == max(1, min(2, 4 - round(load_average)))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.free_cores(threads.usual_threads()) == 3


def test_hyperthreads_of_a_core_count_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "usable_cpus", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(threads, "TOPOLOGY", tmp_path)
    assert threads.usual_threads() == 4, "where the system does not say"
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(siblings, encoding="ascii")
    assert threads.usual_threads() == 2


def test_a_completion_imports_no_torch() -> None:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime has no wheel here")
    code = (
        "import sys\nfrom fim_server import Language\nfrom fim_server.decoding.complete import complete\n"
        "from fim_server.models.load import load_model\nfrom fim_server.text.document import Split\n"
        "print(complete(load_model(None, 'cpu'), Language.load('python'), Split('x = ', '\\n')).guarantee)\n"
        "print(*{'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "exact\n\n"


def test_asking_the_loaders_imports_no_library() -> None:
    code = (
        "import sys\nfrom fim_server.models.loaders import LOADERS\nfrom fim_server.models.request import LoadRequest\n"
        "request = LoadRequest('embedded', 'cpu')\nfor make in LOADERS.values():\n"
        "    try:\n        make().matches(request)\n    except Exception as error:\n        print(error)\n"
        "print(*{'torch', 'transformers', 'onnxruntime', 'xllamacpp', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_registered_backend_is_asked_before_torch_and_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    class MlxLoader:
        def matches(self, request: LoadRequest) -> bool:
            return request.name == "mine"

        def load(self, request: LoadRequest) -> FimModel:
            return replace(embedded, name=request.name)

    embedded = load_model("embedded", "cpu")
    monkeypatch.setitem(loaders.LOADERS, "mlx", MlxLoader)
    assert load_model("mine").name == "mine"
    assert load_model("embedded", "cpu").name == "embedded"
