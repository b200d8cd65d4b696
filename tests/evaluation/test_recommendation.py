"""Recommendation of a catalogue model: estimates, memory, licences, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fim_server.errors import ModelError
from fim_server.evaluation.model_check import recommendation as module
from fim_server.evaluation.model_check.known import Here, Kept, keep_speed, models_here
from fim_server.evaluation.model_check.listing import list_models
from fim_server.evaluation.model_check.recommendation import (
    LINE_MS,
    MEMORY_BESIDES,
    MEMORY_PER_BYTE,
    TWIN,
    Machine,
    Measured,
    Recommendation,
    candidate,
    estimated,
    measured_models,
    recommend,
    reference_for,
    to_measure,
)
from fim_server.evaluation.model_check.speed import Speed
from fim_server.models.gguf.header import count_parameters
from fim_server.models.store.catalogue import Entry, catalogue, entry_of
from fim_server.system.process import available_bytes
from support.command_line import run_command
from support.models.tiny_base import tiny_weights, write_tiny_base

MACHINE = Machine(cores=4, memory=8_000_000_000, gpu=None, gpu_runs_gguf=False)
SMALL = Measured("small", 100_000_000, 106_000_000, Kept(1000.0, 100.0, 312.0), is_gguf=True)


def found_with(known: list[Measured], machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Recommendation:
    monkeypatch.setattr(module, "measured_models", lambda here: known)
    return recommend([], machine)


def test_an_estimate_goes_by_parameters_and_bytes() -> None:
    entry = replace(entry_of("qwen2.5-coder-0.5b"), parameters=400_000_000)
    speed = estimated(entry, SMALL)
    assert speed.read == pytest.approx(250.0)
    assert speed.written == pytest.approx(100 * 106 / 425)
    assert speed.line_ms == pytest.approx(1000 * (192 / speed.read + 12 / speed.written))
    smaller = estimated(replace(entry, precision="Q4_K_M"), SMALL)
    assert (smaller.read, smaller.written > speed.written) == (speed.read, True)


def test_a_model_is_compared_with_the_largest_of_its_runtime() -> None:
    large = replace(SMALL, name="large", weights=200_000_000)
    other = replace(SMALL, name="other", weights=900_000_000, is_gguf=False)
    entry = entry_of("mellum-4b")
    assert reference_for(entry, [SMALL, other, large]) == large
    assert reference_for(entry, [other]) == other
    assert reference_for(entry_of("smollm2"), [large, other]) == other
    assert reference_for(entry, []) is None


def test_the_largest_open_model_that_is_fast_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = replace(SMALL, speed=Kept(200_000.0, 9_000.0, 3.0))
    found = found_with([fast], MACHINE, monkeypatch)
    ready = {one.entry.name for one in found.candidates if one.fits and one.is_fast}
    assert "deepseek-coder-6.7b" in ready, "fast, and not open"
    assert found.name == "seed-coder-8b"
    assert entry_of(found.name).open
    slower = found_with([replace(SMALL, speed=Kept(20_000.0, 1_000.0, 3.0))], MACHINE, monkeypatch)
    assert slower.name == "qwen2.5-coder-0.5b"
    for one in (found, slower):
        for candidate_ in one.candidates:
            assert candidate_.speed is not None
            assert candidate_.is_fast == (candidate_.speed.line_ms <= LINE_MS)


@pytest.mark.parametrize("memory", [100_000_000, 700_000_000, 3_000_000_000, 9_000_000_000, 40_000_000_000])
def test_a_model_that_does_not_fit_is_never_recommended(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = replace(SMALL, speed=Kept(1e9, 1e9, 0.1))
    found = found_with([fast], replace(MACHINE, memory=memory), monkeypatch)
    able = [entry for entry in catalogue().values() if entry.open and needs(entry) <= memory]
    assert found.name == (max(able, key=lambda entry: entry.parameters).name if able else None)
    assert [one.fits for one in found.candidates] == [needs(entry) <= memory for entry in catalogue().values()]


def needs(entry: Entry) -> float:
    return round(MEMORY_PER_BYTE * entry.weights) + MEMORY_BESIDES


def test_a_slow_machine_gets_the_closest_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_with([SMALL], MACHINE, monkeypatch)
    assert found.name is None
    assert found.reason.startswith("none that fits writes a line in 300 ms; smollm2 comes closest, with ")
    nothing = found_with([], MACHINE, monkeypatch)
    assert nothing.name is None
    assert all(one.speed is None for one in nothing.candidates)


def test_a_measured_model_is_not_estimated() -> None:
    own = replace(SMALL, name="mellum-4b", speed=Kept(5.0, 5.0, 40_800.0))
    found = candidate(entry_of("mellum-4b"), [SMALL, own], MACHINE)
    assert (found.speed, found.reference) == (own.speed, None)


def test_parameters_of_a_file_are_counted(tmp_path: Path) -> None:
    file = write_tiny_base(tmp_path / "tiny.gguf", tiny_weights())
    assert count_parameters(file) == sum(values.size for values in tiny_weights().values())
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ModelError, match="cannot be read"):
        count_parameters(file)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with a tiny GGUF file, and the embedded model alone."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    return write_tiny_base(tmp_path / "models/tiny.gguf", tiny_weights())


def test_measured_files_are_references_and_unknown_ones_are_not(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "models/broken.gguf"
    broken.write_bytes(b"GGUF")
    here = [Here(str(path), path, path.stat().st_size) for path in (home, broken)]
    for one in here:
        keep_speed(one, Kept(10.0, 10.0, 100.0))
    (found,) = measured_models(here)
    assert (found.name, found.parameters, found.is_gguf) == (str(home), count_parameters(home), True)
    assert to_measure(here) == []


def test_a_missing_model_is_recommended_in_the_list(home: Path) -> None:
    (one,) = [one for one in models_here() if one.place == home]
    assert not [row for row in list_models([one]).rows if row["recommended"]]
    keep_speed(one, Kept(1e9, 1e9, 1.0))
    expected = recommend([one], replace(MACHINE, memory=available_bytes())).name
    assert expected in catalogue()
    assert {row["name"] for row in list_models([one]).rows if row["recommended"]} == {str(home), expected}


@pytest.mark.usefixtures("home")
def test_figures_of_a_busy_machine_are_measured_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for load, times in ((99.0, 1), (99.0, 0), (0.0, 1), (0.0, 0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, load, load))
        seen: list[object] = []

        def counted(model: object, seen: list[object] = seen) -> Speed:
            seen.append(model)
            return Speed(100.0, 10.0, None)

        monkeypatch.setattr("fim_server.evaluation.model_check.speed.measure_speed", counted)
        status, output, _ = run_command(capsys, "models", "recommend")
        assert status == 0
        assert ("measures anew once it is idle" in output) is (load > 1)
        assert len(seen) == times


@pytest.mark.usefixtures("home")
def test_the_command_measures_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    status, output, errors = run_command(capsys, "models", "recommend", "--json")
    assert (status, errors) == (0, "")
    found = json.loads(output)
    assert [row["name"] for row in found["models"]] == list(catalogue())
    assert {row["estimatedFrom"] for row in found["models"]} == {"embedded"}
    assert found["machine"]["cores"] >= 1
    assert found["mostLineMs"] == LINE_MS

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("fim_server.evaluation.model_check.speed.measure_speed", fail)
    status, output, _ = run_command(capsys, "models", "recommend")
    assert status == 0
    assert "~ is an estimate by parameters and bytes from embedded, measured here" in output
    assert TWIN not in output
