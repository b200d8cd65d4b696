"""Models in the cache whose files are not what was built: said in one line, repaired by one command."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fim_server.cli import program as cli
from fim_server.errors import DamagedError, ModelError
from fim_server.models.load import load_model
from fim_server.models.smollm2 import build as smollm2
from fim_server.models.smollm2.build import ADAPTER, ADAPTER_DIGEST, build, digest_of
from fim_server.models.source import name_of
from fim_server.models.store import manifest
from fim_server.models.store.catalogue import entry_of
from fim_server.models.store.folders import cached_damage
from fim_server.models.store.get import get, remove
from fim_server.models.store.manifest import MANIFEST, STAMPS, damage_of, hub_damage_of
from fim_server.models.store.state import State, state_of, to_be_got
from fim_server.suggest.settings import ServerSettings
from fim_server.system.files import stamp_of
from fim_server.workers.shared_models import SharedModels
from support.models.model_store import Told
from support.models.tiny_base import tiny_weights, write_tiny_base
from support.unix import make_pipe

HOW = "run `fim-server models get smollm2`"


def silent(line: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_base(tmp_path_factory.mktemp("base") / "tiny.gguf", tiny_weights())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Path:
    """A model folder, which tests copy."""
    folder = tmp_path_factory.mktemp("built") / "smollm2"
    build(base, folder, silent, folder / "no adapter")
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: Path) -> Path:
    """The folder of the model in a cache of the test's own, which is current; `get` builds it anew."""
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "is_current", lambda folder: manifest.has_manifest(folder))
    monkeypatch.setattr("fim_server.models.store.get.take_base", lambda *arguments: base)
    whole_build = smollm2.build

    def build_again(source: Path, made: Path, say: Callable[[str], None], *, keeps_weights: bool) -> None:
        whole_build(source, made, say, made / "none", keeps_weights=keeps_weights)

    monkeypatch.setattr(smollm2, "build", build_again)
    folder = tmp_path / "models" / "smollm2"
    folder.parent.mkdir()
    shutil.copytree(built, folder)
    return folder


def cut(path: Path) -> None:
    os.truncate(path, 1000 if path.stat().st_size > 1000 else 10)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """Change a bit in the middle, and have the file look as old as before."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def lose(path: Path) -> None:
    path.unlink()


def be_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def be_a_pipe(path: Path) -> None:
    path.unlink()
    make_pipe(path)


def lead_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


FILES = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "build.json",
    "onnx/genai_config.json",
    "onnx/model.onnx",
    "onnx/model.onnx.data",
    MANIFEST,
)
DAMAGES = (cut, empty, flip, lose, be_a_folder, be_a_pipe, lead_nowhere)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_damage_to_any_file_is_detected(folder: Path, name: str, damage: Callable[[Path], None]) -> None:
    assert state_of(entry_of("smollm2")) is State.READY
    damage(folder / name)
    for _ in range(2):
        assert state_of(entry_of("smollm2")) is State.DAMAGED
    assert name_of(None) == "embedded"
    assert to_be_got(None) == (entry_of("smollm2"), State.DAMAGED)
    with pytest.raises(DamagedError) as failure:
        load_model("smollm2")
    said = str(failure.value)
    assert said.startswith("smollm2 is damaged (")
    assert name in said
    assert said.endswith(f"): {HOW}")
    assert "\n" not in said


@pytest.mark.parametrize("broken", ["onnx/model.onnx", "tokenizer.json", "config.json", None])
@pytest.mark.parametrize("named", [[], ["--model", "smollm2"], ["--model", "FOLDER"]], ids=["", "by name", "by path"])
def test_a_model_without_a_manifest_is_not_loaded(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str | None, named: list[str]
) -> None:
    """Nothing says that its files are whole. The line holds no text of a library, and names the command."""
    if broken is not None:
        cut(folder / broken)
    (folder / MANIFEST).unlink()
    assert cli.main(["models", "list"]) == 0
    assert f"damaged: {HOW}" in capsys.readouterr().out
    source = tmp_path / "a.py"
    source.write_text("value = ")
    model = [str(folder) if word == "FOLDER" else word for word in named]
    status = cli.main(["complete", str(source), "1:9", "--json", "--max-new-tokens", "2", *model])
    captured = capsys.readouterr()
    line = f"fim-server: smollm2 is damaged ({MANIFEST} with its checksums is missing): {HOW}"
    if named:
        assert status == 2
        assert captured.err == f"{line}\n"
    else:
        assert json.loads(captured.out)["model"] == "embedded"
        assert line in captured.err
    assert cli.main(["models", "get", "smollm2"]) == 0
    assert "smollm2 is ready" in capsys.readouterr().out
    assert state_of(entry_of("smollm2")) is State.READY


def test_the_folder_itself_may_be_damaged(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a file")
    assert state_of(entry_of("smollm2")) is State.DAMAGED
    assert get("smollm2", None, Told()).new
    assert state_of(entry_of("smollm2")) is State.READY
    shutil.rmtree(folder)
    folder.symlink_to("nowhere")
    assert state_of(entry_of("smollm2")) is State.DAMAGED
    assert get("smollm2", None, Told()).new
    assert state_of(entry_of("smollm2")) is State.READY
    (folder / "config.json").unlink()
    assert remove("smollm2") > 0
    assert state_of(entry_of("smollm2")) is State.MISSING


def test_get_repairs_a_damaged_model(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut(folder / "onnx" / "model.onnx")
    assert cli.main(["models", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"damaged: {HOW}" in listed
    source = tmp_path / "a.py"
    source.write_text("value = ")
    assert cli.main(["complete", str(source), "1:9", "--json", "--max-new-tokens", "2"]) in (0, 1)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["model"] == "embedded"
    assert captured.err.count(HOW) == 1
    assert cli.main(["complete", str(source), "1:9", "--json", "--model", "smollm2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert cli.main(["models", "get", "smollm2"]) == 0
    assert "smollm2 is ready" in capsys.readouterr().out
    assert cli.main(["models", "get", "smollm2"]) == 0
    assert "smollm2 is here already" in capsys.readouterr().out
    assert state_of(entry_of("smollm2")) is State.READY
    assert name_of(None) == "smollm2"


def test_get_hashes_files_with_unchanged_stamps(folder: Path) -> None:
    state_of(entry_of("smollm2"))
    flip(folder / "onnx" / "model.onnx.data")
    manifest.keep_stamps(  # as if the disk had changed it
        folder / STAMPS,
        {
            name: stamp_of(folder / name)
            for name in json.loads((folder / MANIFEST).read_text().partition("\n")[2])["files"]
        },
    )
    manifest.verdicts.clear()
    assert state_of(entry_of("smollm2")) is State.READY
    assert get("smollm2", None, Told()).new
    assert damage_of(folder, thorough=True) is None


def test_files_are_hashed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = list[str]()
    whole = manifest.digest_of

    def noted(path: Path, wanted: manifest.Expected) -> str:
        hashed.append(path.name)
        return whole(path, wanted)

    monkeypatch.setattr(manifest, "digest_of", noted)
    assert damage_of(folder) is None  # a copy has other stamps
    count = len(hashed)
    assert count == len(FILES) + 1
    manifest.verdicts.clear()
    assert damage_of(folder) is None
    assert len(hashed) == count
    os.utime(folder / "config.json")
    assert damage_of(folder) is None
    assert hashed[count:] == ["config.json"]
    (folder / STAMPS).write_text("damaged")
    manifest.verdicts.clear()
    assert damage_of(folder) is None
    assert len(hashed) == 2 * count + 1


def test_the_embedded_model_serves_until_the_repair(folder: Path) -> None:
    cut(folder / "onnx" / "model.onnx")
    for named in (None, "smollm2"):
        assert SharedModels().get(ServerSettings(model=named)).name == "embedded"


def test_a_full_disk_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(folder / "onnx" / "model.onnx")

    def full(made: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(made))

    monkeypatch.setattr(smollm2, "write_manifest", full)
    with pytest.raises(ModelError, match=r"cannot be built \(No space left on device\)|the disk is full"):
        get("smollm2", None, Told())
    assert state_of(entry_of("smollm2")) is State.DAMAGED
    assert not list(folder.parent.glob(".smollm2.building-*"))
    monkeypatch.undo()


REPAIRING = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from fim_server.models.smollm2 import build as smollm2
from fim_server.models.store import get as getting, manifest
from support.models.model_store import Told
whole = smollm2.build
smollm2.build = lambda source, made, say, **wanted: whole(source, made, say, made / "none", **wanted)
smollm2.is_current = manifest.has_manifest
getting.take_base = lambda *arguments: Path(sys.argv[2])
print(getting.get("smollm2", None, Told()).new)
"""


def test_two_processes_repair_it_once(folder: Path, base: Path) -> None:
    flip(folder / "tokenizer.json")
    command = [sys.executable, "-c", REPAIRING, str(Path(__file__).parents[2]), str(base)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate()[0].strip() for process in both)
    assert said == ["False", "True"]
    assert damage_of(folder, thorough=True) is None


def test_a_damaged_adapter_stops_the_build(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest_of(ADAPTER) == ADAPTER_DIGEST
    copy = tmp_path / "adapter.safetensors"
    shutil.copy(ADAPTER, copy)
    flip(copy)
    monkeypatch.setattr(smollm2, "ADAPTER", copy)
    with pytest.raises(ModelError, match=r"adapter\.safetensors is damaged: run `pip install --force-reinstall"):
        build(base, tmp_path / "made", silent, copy)
    assert not (tmp_path / "made").exists()


def test_hub_files_are_checked_against_their_blob_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    snapshot, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    content = random.Random(1).randbytes(5000)
    names = {
        "model.safetensors": hashlib.sha256(content).hexdigest(),
        "config.json": hashlib.sha1(b"blob 5000\0" + content).hexdigest(),
    }
    for name, blob in names.items():
        (blobs / blob).write_bytes(content)
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    (snapshot / "other.json").write_text("{}")
    patterns = ["*.json", "*.safetensors"]
    assert hub_damage_of(snapshot, patterns) is None
    for name, blob in names.items():
        flip(blobs / blob)
        assert hub_damage_of(snapshot, patterns) == f"{name} is not what was fetched"
        (blobs / blob).write_bytes(content)
        assert hub_damage_of(snapshot, patterns) is None
    (blobs / names["config.json"]).unlink()
    assert hub_damage_of(snapshot, patterns) == "config.json is missing"


def test_no_model_is_no_damaged_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    assert cached_damage("smollm2") is None
    assert state_of(entry_of("smollm2")) is State.MISSING
    monkeypatch.setenv("FIM_SERVER_CACHE", "")
    assert cached_damage("smollm2") is None
