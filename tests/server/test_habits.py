"""The file of what the user accepts and dismisses: restarts, damage, two servers at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fim_server.language.cache import write_text
from fim_server.server import habits as habits_module
from fim_server.server.habits import FILE, MOST_LANGUAGES, Decision, Habits
from fim_server.suggest.constants import RANKING
from fim_server.suggest.ranking.personal import decided

DISMISSED = Decision("python", 0.9, False)
ONE = decided(0.0, 0.9, False)
TWO = decided(ONE, 0.9, False)
DAMAGED = (None, "", "[]", "nonsense", '{"python": "much"}', "[" * 100_000)


@pytest.fixture(autouse=True)
def _merges_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Habits, "update", Habits.merge)


def started(folder: Path | None) -> Habits:
    habits = Habits(folder)
    habits.update()
    return habits


def test_decisions_count_at_once_and_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    habits = started(tmp_path)
    assert habits.shift_of("python") == 0
    habits.decide(DISMISSED)
    assert (habits.shift_of("python"), habits.shift_of("go")) == (ONE, 0)
    assert started(tmp_path).shift_of("python") == ONE
    monkeypatch.setattr(Habits, "update", lambda habits: None)  # no thread for disks is free
    habits.decide(DISMISSED)
    assert habits.shift_of("python") == TWO
    habits.merge()
    assert habits.shift_of("python") == TWO
    assert habits.as_json() == {"python": round(TWO, 3)}


def test_two_servers_share_the_file(tmp_path: Path) -> None:
    first, second = started(tmp_path), started(tmp_path)
    first.decide(DISMISSED)
    second.decide(DISMISSED)
    assert second.shift_of("python") == started(tmp_path).shift_of("python") == TWO
    first.forget()
    assert first.shift_of("python") == started(tmp_path).shift_of("python") == 0
    second.decide(DISMISSED)
    assert second.shift_of("python") == ONE


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_counts_as_missing(tmp_path: Path, text: str | None) -> None:
    habits = started(tmp_path)
    habits.decide(DISMISSED)
    if text is None:
        (tmp_path / FILE).write_bytes(b"\xff\x00 not ours")
    else:
        write_text(tmp_path / FILE, text)
    assert started(tmp_path).shift_of("python") == 0
    habits.decide(DISMISSED)  # a server that knows the shift writes it again
    assert habits.shift_of("python") == started(tmp_path).shift_of("python") == TWO


def test_shifts_in_a_file_are_limited(tmp_path: Path) -> None:
    shifts = {f"language {number}": 0.01 for number in range(MOST_LANGUAGES + 10)} | {"go": 99, "rust": float("nan")}
    write_text(tmp_path / FILE, json.dumps(shifts | {"c": 10**400}))
    habits = started(tmp_path)
    assert habits.shift_of("go") == RANKING.personal_most
    assert habits.shift_of("rust") == habits.shift_of("c") == 0
    assert len(habits.as_json()) == MOST_LANGUAGES


def test_without_a_folder_decisions_last_as_long_as_the_server() -> None:
    habits = started(None)
    habits.decide(DISMISSED)
    assert habits.shift_of("python") == ONE
    habits.forget()
    assert habits.shift_of("python") == 0


def test_a_folder_that_cannot_be_written_costs_the_restart_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    habits = started(tmp_path / "file")
    habits.decide(DISMISSED)
    habits.decide(DISMISSED)
    assert habits.shift_of("python") == TWO


def test_a_file_that_cannot_be_replaced_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path).decide(DISMISSED)
    habits = started(tmp_path)
    monkeypatch.setattr(habits_module, "write_text", lambda path, text: False)
    habits.decide(DISMISSED)
    habits.decide(DISMISSED)
    assert habits.shift_of("python") == decided(TWO, 0.9, False)
    habits.forget()
    habits.update()
    assert habits.shift_of("python") == 0
