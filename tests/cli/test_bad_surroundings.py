"""Files, folders, disks and addresses as bad as they come: one line and status 2, or an answer all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fim_server.datasets import read_samples, write_samples
from fim_server.datasets.python import sandbox
from support.command_line import run_command
from support.engine.odd_files import KINDS, posix, put, worst
from support.evaluation.evaluation_samples import sample_of
from support.unix import unix_socket

COMMAND = [sys.executable, "-m", "fim_server"]
EMBEDDED = Path(__file__).parents[2] / "fim_server/models/embedded"
SECONDS = 60


@pytest.fixture
def hole(tmp_path: Path) -> Path:
    path = tmp_path / "hole.py"
    path.write_text("def f(x):\n    return \n", encoding="utf-8")
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that is said of bad input."""
    status, output, errors = run_command(capsys, *map(str, arguments))
    assert (status, output) == (2, ""), errors
    said = [line for line in errors.splitlines() if not line.endswith(" ...")]
    assert len(said) == 1, errors
    return said[0]


# --- names ----------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("name", "said"),
    {
        "nothing": ("", "is a directory"),
        "too long": ("a" * 300 + ".py", "file name too long"),
        "a file as a folder": ("{tmp}/hole.py/x.py", "not a directory"),
        "memory": ("/proc/self/mem", "input/output error"),
        "descriptor": ("/dev/fd/99", "no such file or directory"),
        "link to itself": ("{tmp}/loop.py", "too many levels of symbolic links"),
        "socket": ("{tmp}/s.py", "no such device or address"),
        "half characters": ("\udcff.py", r"\udcff.py: no such file"),
        "control characters": ("\x1b[2J.py", r"\x1b[2J.py: no such file"),
    }.values(),
)
def test_names_without_a_file(
    name: str,
    said: str,
    hole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's name has to be short
    if sys.platform != "linux" and name.startswith(("/", "{tmp}/s")):
        pytest.skip("said otherwise there")
    (tmp_path / "loop.py").symlink_to("loop.py")
    with unix_socket() as bound:
        bound.bind("s.py")
        assert said in refused(capsys, "check", name.format(tmp=tmp_path), "--language", "python")


@pytest.mark.parametrize("number", ["9" * 20, "9" * 5000, "-1", "1e9", "0x1", "²", "1.5", ""])
def test_invalid_cursors(number: str, hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "explain", hole, f"{number}:1") if not number.startswith("-") else None
    refused(capsys, "explain", hole, f"1:{number}")


@pytest.mark.parametrize(
    "option",
    [
        *(("--max-new-tokens", "9" * 5000), ("--seed", "9" * 5000), ("--deadline-ms", "9" * 5000)),
        *(("--temperature", "9" * 5000), ("--max-prompt-tokens", "9" * 5000), ("--python-version", "3." + "9" * 5000)),
        *(("--python-version", "\u0663.\u0661\u0664"), ("--device", "cuda:" + "9" * 5000), ("--device", "meta")),
    ],
    ids=lambda option: f"{option[0]} {option[1][:6]!r}",
)
def test_options_beyond_all_bounds(option: tuple[str, str], hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "complete", hole, "2:12", *option)


@pytest.mark.parametrize("address", ["a" * 300 + ":80", "a..b:80", "256.1.1.1:80"])
def test_invalid_hosts(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "serve", "--tcp", address)


@pytest.mark.parametrize("address", ["99999", "-1", "[::1]:", ":", "1:2:x", "9" * 5000])
def test_invalid_ports(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not an address" in refused(capsys, "serve", f"--tcp={address}")


# --- models ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the embedded model, by links."""
    folder = tmp_path / "model"
    (folder / "onnx").mkdir(parents=True)
    for path in EMBEDDED.rglob("*"):
        if path.is_file():
            (folder / path.relative_to(EMBEDDED)).symlink_to(path)
    return folder


def replaced(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@posix
@worst
@pytest.mark.parametrize("name", ["tokenizer.json", "onnx/genai_config.json", "onnx/export.json", "onnx/model.onnx"])
def test_invalid_files_of_a_model(
    name: str, kind: str, hole: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kind, model / name)
    arguments = ("complete", hole, "2:12", "--model", model, "--max-new-tokens", "2", "--runtime", "onnx")
    if name == "onnx/export.json":  # says which weights the export is of; without it, nothing is known against it
        assert run_command(capsys, *map(str, arguments))[0] in (0, 1)
    else:
        assert str(model) in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "change",
    [
        *({"num_hidden_layers": 10**9}, {"num_hidden_layers": "4"}, {"hidden_size": 0}, {"hidden_size": 10**12}),
        *({"vocab_size": -5}, {"vocab_size": 1.5}, {"max_position_embeddings": -1}, {"max_position_embeddings": "x"}),
        *({"model_type": "nothing"}, {"model_type": 7}, {"num_attention_heads": 0}, {"architectures": 7}),
        *({"hidden_act": "__import__"}, {"dtype": "banana"}),
    ],
    ids=str,
)
def test_configurations_that_make_no_sense(
    change: dict[str, Any], hole: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8")) | change
    replaced(model / "config.json", json.dumps(configuration).encode())
    shutil.rmtree(model / "onnx")
    status, _, errors = run_command(
        capsys, "complete", str(hole), "2:12", "--model", str(model), "--max-new-tokens", "2"
    )
    said = [line for line in errors.splitlines() if not line.endswith(" ...")]
    assert status == 2 or (status == 0 and "architectures" in change), errors
    assert len(said) == (status == 2), errors


def header(content: bytes, length: int | None = None) -> bytes:
    return (len(content) if length is None else length).to_bytes(8, "little") + content


def tensor(kind: str = "F32", shape: object = (1,), offsets: object = (0, 4)) -> bytes:
    return header(json.dumps({"a": {"dtype": kind, "shape": shape, "data_offsets": offsets}}).encode()) + bytes(4)


@pytest.mark.parametrize(
    "content",
    {
        "endless header": header(b"{}", 1 << 63),
        "header beyond the file": header(b"{}", 1000),
        "no JSON": header(b"{{{{"),
        "nested": header(b"[" * 100_000),
        "unknown numbers": tensor("X9"),
        "offsets beyond the file": tensor(offsets=(0, 1 << 60)),
        "offsets backwards": tensor(offsets=(4, 0)),
        "shape of all memory": tensor(shape=(1 << 40, 1 << 40)),
        "negative shape": tensor(shape=(-1,)),
        "empty": b"",
        "a pickle": b"\x80\x04\x95" + bytes(100),
        "no tensors": header(b"{}"),
    }.values(),
)
def test_forged_weights(content: bytes, hole: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced(model / "model.safetensors", content)
    assert "weights cannot be loaded" in refused(
        capsys, "complete", hole, "2:12", "--model", model, "--runtime", "torch", "--max-new-tokens", "2"
    )


def test_truncated_weights(hole: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, runtime in (("model.safetensors", "torch"), ("onnx/model.onnx", "onnx")):
        for size in (100, 1_000_000):
            replaced(model / name, (EMBEDDED / name).read_bytes()[:size])
            refused(capsys, "complete", hole, "2:12", "--model", model, "--runtime", runtime)


def test_code_in_a_models_folder_is_not_run(
    hole: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither that which its configuration asks for, nor that of pickled weights."""
    mark = tmp_path / "was run"
    code = f"open({str(mark)!r}, 'w')\n"
    (model / "evil.py").write_text(code, encoding="utf-8")
    auto = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M", "AutoTokenizer": ["evil.T", None]}
    configuration = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))
    replaced(model / "config.json", json.dumps({**configuration, "auto_map": auto}).encode())
    tokenizer = json.loads((EMBEDDED / "tokenizer_config.json").read_text(encoding="utf-8"))
    replaced(model / "tokenizer_config.json", json.dumps({**tokenizer, "auto_map": auto}).encode())
    arguments = ("complete", str(hole), "2:12", "--model", str(model), "--max-new-tokens", "2", "--runtime")
    for runtime in ("torch", "onnx"):
        run_command(capsys, *arguments, runtime)
    replaced(model / "config.json", json.dumps({**configuration, "model_type": "evil", "auto_map": auto}).encode())
    refused(capsys, *arguments, "torch")
    (model / "model.safetensors").unlink()
    pickled = f"cbuiltins\nexec\n(V{code.strip()}\ntR.".encode()
    (model / "pytorch_model.bin").write_bytes(pickled)
    replaced(model / "config.json", json.dumps(configuration).encode())
    refused(capsys, *arguments, "torch")
    assert not mark.exists()


@posix
def test_invalid_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_bytes(bytes(1000))
    assert "printable characters" in refused(capsys, "serve", "--tcp", "1", "--token-file", tmp_path / "token")


@posix
def test_a_source_of_odd_files_gives_what_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    for kind in KINDS:
        put(kind, folder / f"{kind}.py")
    (folder / "self").symlink_to(".")
    (folder / "good.py").write_text("def f(x):\n    return x\n" * 20, encoding="utf-8")
    out = tmp_path / "out.jsonl"
    command = ("dataset", "build", "line", "--source", str(folder), "--seed", "1", "--out", str(out))
    assert run_command(capsys, *command)[0] == 0
    assert {sample.origin.path for sample in read_samples(out)} == {"good.py"}


# --- samples and judges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        *({"left": 7}, {"language": []}, {"id": None}, {"origin": 7}, {"test": 7}),
        {"test": {"task_id": 1, "prompt": 2, "test": 3, "entry_point": 4}},
        {"origin": {"source": 1, "package": 2, "version": 3, "path": 4, "licence": 5, "sha256": 6}},
    ],
    ids=str,
)
def test_samples_of_other_types(change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(sample_of(0).to_json() | change) + "\n", encoding="utf-8")
    assert "a.jsonl:1: not a sample: " in refused(capsys, "dataset", "show", tmp_path / "a.jsonl")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"data":' * 100_000, "[]", "{}", '{"data": 7}', "\0", "1" * 5000])
def test_invalid_runs(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(content, encoding="utf-8")
    (run / "samples.jsonl").write_text(content + "\n", encoding="utf-8")
    for step in (["report", run, "--out", tmp_path / "report"], ["compare", run, run], ["table", run]):
        assert "run.json: not a run (" in refused(capsys, "eval", *step)


def test_half_characters_of_a_sample_are_shown_as_escapes(tmp_path: Path) -> None:
    write_samples(tmp_path / "a.jsonl", [sample_of(0, left="a = '\ud800")])
    for more in ((), ("--json",)):
        command = [*COMMAND, "dataset", "show", str(tmp_path / "a.jsonl"), "--sample", "1", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\\ud800" in done.stdout


@posix
@pytest.mark.parametrize(
    "judge",
    [
        "",
        "/dev/null",
        "/tmp",
        "yes",
        "true",
        "cat",
        "printf '3.x\\377\\n'",
        "printf 3.; exec cat /dev/zero",
        "echo 3.x.y; exec cat",
    ],
)
def test_invalid_judges(
    judge: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fim_server.evaluation.running.judge.PATIENCE_S", 1.0)
    if judge and not judge.startswith("/"):
        (tmp_path / "judge").write_text(f"#!/bin/sh\n{judge}\n", encoding="utf-8")
        (tmp_path / "judge").chmod(0o755)
        judge = str(tmp_path / "judge")
    write_samples(tmp_path / "a.jsonl", [sample_of(0)])
    command = ("eval", "run", "--data", tmp_path / "a.jsonl", "--out", tmp_path / "run", f"--judge={judge}")
    refused(capsys, *command, "--modes", "constrained", "--budget", "2")


# --- a full disk ----------------------------------------------------------------------------------------------------

FULL = {
    "standard output": ("{fim} languages > {disk}/out", 2),
    "samples": ("{fim} dataset build line --source {source} --seed 1 --out {disk}/a.jsonl", 2),
    "a run": ("{fim} eval run --data {data} --out {disk}/run --modes constrained --budget 2", 2),
    "a model": ("FIM_SERVER_CACHE={disk} {fim} models get smollm2", 2),
    "the cache": ("FIM_SERVER_CACHE={disk}/cache {fim} check {hole}", 0),
    "temporary files": ("TMPDIR={disk} FIM_SERVER_CACHE= {fim} check {hole}", 0),
}


@pytest.mark.skipif(sandbox.unavailable() is not None, reason=f"no small disk here: {sandbox.unavailable()}")
@pytest.mark.parametrize("case", FULL)
def test_a_full_disk(case: str, hole: Path, tmp_path: Path) -> None:
    command, expected = FULL[case]
    disk = tmp_path / "disk"
    disk.mkdir()
    write_samples(tmp_path / "a.jsonl", [sample_of(0)])
    names = {
        "fim": f"{sys.executable} -m fim_server",
        "disk": disk,
        "hole": hole,
        "source": Path(json.__file__).parent,
    }
    script = f"cat /dev/zero > {disk}/zero 2> {os.devnull}; " + command.format(data=tmp_path / "a.jsonl", **names)
    shell = ["bwrap", "--dev-bind", "/", "/", "--size", "65536", "--tmpfs", str(disk), "sh", "-c", script]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=SECONDS)
    said = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert done.returncode == expected, done.stderr
    assert len(said) == (expected == 2), done.stderr


@pytest.mark.parametrize("option", ["--model", "--adapter"])
def test_the_home_of_an_unknown_user_is_no_file(option: str) -> None:
    given = ["--model", "x.gguf"] if option == "--adapter" else []
    command = [sys.executable, "-m", "fim_server", "complete", "examples/largest.py", "8:13", *given]
    ended = subprocess.run([*command, option, "~nobody-of-that-name/m"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    *progress, _ = ended.stderr.splitlines()
    assert progress in ([], ["loading the language ..."])  # on a busy machine that is told of
