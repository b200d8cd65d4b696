"""A tiny model, samples, and the evaluation on them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fim_server.datasets import write_samples
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from support.command_line import run_command
from support.evaluation.evaluating import SETTINGS, Eval
from support.evaluation.evaluation_samples import sample_of
from support.models.tiny_models import write_tiny_model


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of one layer with the embedded model's tokenizer."""
    return write_tiny_model(tmp_path_factory.mktemp("tiny"), 16)


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> FimModel:
    return load_model(str(tiny_folder), "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "samples.jsonl"
    write_samples(path, [sample_of(number) for number in range(14)])
    return path


@pytest.fixture
def evaluate(
    tiny: FimModel, tiny_folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Eval:
    """``fim-server eval run`` with the tiny model, loaded once; gives exit status, standard output and error."""
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *asked: tiny)

    def runner(out: Path, *arguments: str, data: Path = data, landing: bool = False) -> tuple[int, str, str]:
        command = [
            "eval",
            "run",
            "--data",
            str(data),
            "--out",
            str(out),
            "--model",
            str(tiny_folder),
            "--device",
            "cpu",
        ]
        settings = [*SETTINGS, *([] if landing else ["--no-landing"])]
        return run_command(capsys, *command, *settings, *arguments)

    return runner


@pytest.fixture
def command(data: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run `evaluate` in a process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = [sys.executable, "-m", "fim_server", "eval", "run", "--data", str(data), "--model", str(tiny_folder)]
    return [*command, "--device", "cpu", *SETTINGS, "--no-landing"]
