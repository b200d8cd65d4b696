"""Models on a machine, their measured speed, and the recommended one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fim_server.cli import program as cli
from fim_server.evaluation.model_check import known
from fim_server.evaluation.model_check.known import (
    FILE,
    Here,
    Kept,
    gguf_files,
    keep_speed,
    known_speeds,
    models_here,
    recommended,
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with a cache, and nothing in them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_gguf_files_of_the_usual_folders_are_found(machine: Path) -> None:
    wanted = [
        put(machine / "cache/models/own.gguf"),
        put(machine / ".cache/llama.cpp/model.gguf"),
        put(machine / ".lmstudio/models/owner/name/Model-Q8_0.GGUF"),
    ]
    put(machine / ".lmstudio/models/owner/name/mmproj-model.gguf")
    put(machine / ".lmstudio/models/a/b/c/d/e/deep.gguf")
    put(machine / ".cache/llama.cpp/model.gguf.part")
    put(machine / "models/odd").with_name("loop").symlink_to(machine)  # round and round
    assert gguf_files() == wanted
    assert [one.name for one in models_here() if one.place.is_file()] == [str(path) for path in wanted]


def test_a_model_in_parts_is_one(machine: Path) -> None:
    first = put(machine / "models/m-00001-of-00003.gguf", 5)
    put(machine / "models/m-00002-of-00003.gguf", 7)  # the third is not there
    odd = [put(machine / f"models/odd-{number}.gguf", 3) for number in ("00001-of-00000", "00001-of-99999")]
    assert {one.name: one.size for one in models_here() if one.place.is_file()} == {
        str(first): 12,
        **{str(path): 3 for path in odd},
    }


def test_looking_is_bounded(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        put(machine / f"models/{number:03}.gguf")
    monkeypatch.setattr(known, "MOST_LOOKED_AT", 7)
    assert len(gguf_files()) == 7


def test_what_was_measured_is_kept_for_the_model_as_it_is_and_for_this_machine(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(machine / "models/one.gguf")
    put(machine / "models/two.gguf")
    one, two = [model for model in models_here() if model.place.is_file()]
    assert known_speeds() == {}
    keep_speed(one, Kept(100.0, 20.0, 900.0))
    keep_speed(two, Kept(50.0, 10.0, 2000.0))
    assert known_speeds() == {one.name: Kept(100.0, 20.0, 900.0), two.name: Kept(50.0, 10.0, 2000.0)}
    put(one.place, 11)
    assert list(known_speeds()) == [two.name]
    monkeypatch.setattr(known, "machine_name", lambda: "another")
    assert known_speeds() == {}


@pytest.mark.parametrize("content", ["", "[]", "{nonsense", '{"a": 3}', "null"])
def test_a_damaged_file_is_as_none_and_is_replaced(machine: Path, content: str) -> None:
    put(machine / "models/one.gguf")
    put(machine / "cache" / FILE).write_text(content)
    (one,) = [model for model in models_here() if model.place.is_file()]
    assert known_speeds() == {}
    keep_speed(one, Kept(1.0, 2.0, 3.0))
    assert known_speeds() == {one.name: Kept(1.0, 2.0, 3.0)}


def test_the_largest_that_is_fast_enough_is_recommended() -> None:
    small, middle, large = (Here(name, Path(name), size) for name, size in (("s", 1), ("m", 2), ("l", 3)))
    here = [small, middle, large]
    fast, slow, slower = Kept(1, 1, 400.0), Kept(1, 1, 1600.0), Kept(1, 1, 9000.0)
    assert recommended(here, {}) is None
    assert recommended(here, {"s": fast, "m": fast, "l": slow}) == (
        "m",
        "the largest here that writes a line while the user types (0.40 s)",
    )
    assert recommended(here, {"m": slow, "l": slower}) == ("m", "the fastest here, though a line takes 1.6 s")


def test_the_command_measures_and_remembers(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(machine / "models/broken.gguf")
    assert cli.main(["models"]) == 0
    assert "--measure` measures their speed here" in capsys.readouterr().out
    assert cli.main(["models", "list", "--measure"]) == 0
    printed = capsys.readouterr()
    assert "for this machine: embedded, " in printed.out
    assert "broken.gguf" in printed.err
    assert cli.main(["models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["embedded"]["recommended"] is True
    assert rows["embedded"]["lineMs"] > 0
    assert rows[str(machine / "models/broken.gguf")]["lineMs"] is None
