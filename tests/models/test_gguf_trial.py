"""GGUF files that end the process that loads them: none ends the server, and each is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fim_server.cli import program as cli
from fim_server.errors import ModelError
from fim_server.models.gguf import library, trial
from fim_server.models.gguf.header import check_header
from fim_server.models.gguf.trial import Tried, require_sound
from fim_server.models.load import load_model
from fim_server.models.resources import attempts
from fim_server.models.resources.attempts import MOST_CRASHES, attempt, crashes
from support.models.gguf_mutations import mutated, sound_file
from support.models.tiny_base import tiny_weights, write_tiny_base

TESTS = Path(__file__).parents[1]

FATAL_SEED = 14
"""Seed of a mutated file with a valid header at which llama.cpp aborts."""

needs_library = pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(trial, "known", {})
    return tmp_path / "cache"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return sound_file(tmp_path / "sound.gguf")


@pytest.fixture
def fatal(tmp_path: Path, sound: Path) -> Path:
    path = tmp_path / "fatal.gguf"
    path.write_bytes(mutated(sound.read_bytes(), FATAL_SEED)[0])
    return path


@pytest.mark.parametrize("count", [0, 2**31 - 1, 513])
def test_layers_that_cannot_be_are_refused_before_the_library_sees_them(tmp_path: Path, count: int) -> None:
    path = write_tiny_base(tmp_path / "layers.gguf", tiny_weights(), add_block_count=count)
    with pytest.raises(ModelError, match=f"llama.block_count is {count}"):
        check_header(path)


def test_an_invalid_header_is_one_line(sound: Path, tmp_path: Path) -> None:
    check_header(sound)
    data, path, said = sound.read_bytes(), tmp_path / "other.gguf", list[str]()
    for seed in range(5000 if os.environ.get("FIM_SERVER_LONG") else 500):
        path.write_bytes(mutated(data, seed)[0])
        try:
            check_header(path)
        except ModelError as error:
            said.append(str(error).removeprefix(str(path)))
    assert len(said) > 150
    assert all("\n" not in line and len(line) < 300 for line in said)


@needs_library
def test_mutated_files_never_end_the_calling_process(tmp_path: Path) -> None:
    count = 600 if os.environ.get("FIM_SERVER_LONG") else 24
    command = [sys.executable, "-m", "support.models.gguf_mutations", "--files", str(count)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} files" in done.stdout
    assert "'ended its trial': 0" not in done.stdout, "the files are too tame"


@needs_library
def test_a_verdict_is_remembered_until_the_file_changes(
    fatal: Path, sound: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fatal.with_name("a.py")
    source.write_text("value = ")
    for _ in range(2):
        assert cli.main(["complete", str(source), "1:9", "--model", str(fatal), "--json"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "llama.cpp ends the process that loads it (" in captured.err
        assert "GGML_ASSERT" in captured.err
        trial.known.clear()
        monkeypatch.setattr(trial, "verdict_of", lambda tried: pytest.fail("it is tried again"))
    monkeypatch.undo()
    monkeypatch.setenv("FIM_SERVER_CACHE", str(cache))
    fatal.write_bytes(sound.read_bytes())
    assert load_model(str(fatal)).size == sound_size(sound)
    for verdict in cache.glob("*.trial"):  # one that is damaged is not believed
        verdict.write_text("damaged")
    trial.known.clear()
    require_sound(Tried(str(fatal)))


def sound_size(path: Path) -> int:
    return load_model(str(path)).size


@needs_library
def test_a_killed_trial_gives_no_verdict(sound: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "raise MemoryError"):
        monkeypatch.setattr(trial, "COMMAND", (sys.executable, "-c", ending))
        with pytest.raises(ModelError, match="cannot be tried"):
            require_sound(Tried(str(sound)))
    assert not list(cache.glob("*.trial"))


# --- loads that ended their process -----------------------------------------------------------------------------------


ENDING = """
import os, sys
from pathlib import Path
from fim_server.models.resources.attempts import attempt
with attempt("mine", Path(sys.argv[1])):
    os.kill(os.getpid(), 9)
"""


def end_while_loading(place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ENDING, str(place)], check=False)
    assert done.returncode != 0


def test_a_model_that_has_ended_two_processes_is_not_loaded_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "model.gguf"
    place.write_bytes(b"weights")
    end_while_loading(place)
    with attempt("mine", place):  # the first may be chance
        pass
    end_while_loading(place)
    assert len(list(cache.glob("*.mark"))) == MOST_CRASHES
    with pytest.raises(ModelError, match="mine: has ended the process that loads it 2 times: choose another"):  # noqa: SIM117
        with attempt("mine", place):
            pytest.fail("it is loaded")
    with attempt("another", tmp_path):
        pass
    monkeypatch.setattr(attempts, "FORGOTTEN_SECONDS", -1.0)
    with attempt("mine", place):
        pass
    assert not list(cache.glob("*.mark"))


def test_a_model_that_has_changed_is_loaded_again(tmp_path: Path) -> None:
    place = tmp_path / "model.gguf"
    place.write_bytes(b"weights")
    end_while_loading(place)
    end_while_loading(place)
    place.write_bytes(b"other weights")
    with attempt("mine", place):
        pass


def test_a_failed_or_cancelled_load_is_no_crash(tmp_path: Path, cache: Path) -> None:
    for _ in range(3):
        with pytest.raises(ModelError, match="no"), attempt("mine", tmp_path):
            raise ModelError("no")
    with attempt("mine", tmp_path):
        attempts.forget_all()
    assert crashes(cache, "") == 0
    assert not list(cache.glob("*.mark"))
