"""Processes that train together: what they share, and that none is waited for that has ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

from fim_server.errors import TrainingError
from training.fim import team
from training.fim.team import ALONE, Team, asked_to_stop, run_together


def add_for_ever(member: Team) -> None:
    torch.set_num_threads(1)
    while True:
        member.add_up(torch.ones(8))


def test_sums_are_over_all_and_the_first_one_says_when_to_end() -> None:
    sums: list[list[float]] = []

    def work(member: Team) -> None:
        torch.set_num_threads(1)
        while member.agreed(member.rank == 0 and len(sums) < 3):
            ranks = torch.full((2,), float(member.rank + 1))
            member.add_up(ranks)
            sums.append(ranks.tolist())

    run_together(3, work)
    assert sums == [[6.0, 6.0]] * 3
    assert not multiprocessing.active_children()
    alone = torch.ones(2)
    ALONE.add_up(alone)
    assert alone.tolist() == [1.0, 1.0]
    assert ALONE.agreed(0.25) == 0.25


def raise_an_error() -> None:
    raise ValueError("no such thing\nand more of it")


def raise_a_known_error() -> None:
    raise TrainingError("no text")


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (raise_an_error, "ValueError: no such thing"),
        (raise_a_known_error, "failed: no text"),
        (lambda: os.kill(os.getpid(), 9), "signal 9"),
        (lambda: os._exit(3), "exit status 3"),
    ],
    ids=["error", "known error", "killed", "exit"],
)
def test_one_that_ends_ends_all_and_is_told(
    size: int, end: Callable[[], None], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(member: Team) -> None:
        if member.rank == size - 1:
            for _ in range(5):
                member.add_up(torch.ones(8))
            end()
        add_for_ever(member)

    with pytest.raises(TrainingError, match=told) as raised:
        run_together(size, work)
    assert len(str(raised.value).splitlines()) == 1
    assert not multiprocessing.active_children()
    assert "Traceback" not in capfd.readouterr().err


def test_one_that_ends_before_they_have_met_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "MEETING", timedelta(seconds=2))
    monkeypatch.setattr(team, "_follow", lambda *_: os._exit(3))
    with pytest.raises(TrainingError, match="exit status 3"):
        run_together(2, add_for_ever)


def test_one_that_never_came_is_begun_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(team, "MEETING", timedelta(seconds=2))
    monkeypatch.setattr(team, "LEAVING", 1.0)
    follow, met = team._follow, list[int]()

    def come_the_second_time(*arguments: Any) -> None:
        if not (tmp_path / "begun").exists():
            (tmp_path / "begun").touch()
            time.sleep(600)
        follow(*arguments)

    monkeypatch.setattr(team, "_follow", come_the_second_time)
    run_together(2, lambda member: met.append(member.size))
    assert met == [2]


def test_a_meeting_that_breaks_off_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "MEETING", timedelta(seconds=10))
    monkeypatch.setattr(team, "LEAVING", 1.0)
    new_group, first, met = distributed.new_group, os.getpid(), list[int]()
    broken: list[int] = []

    def break_off(**settings: Any) -> Any:
        if os.getpid() == first and not broken:
            broken.append(1)
            raise RuntimeError("Connection closed by peer")
        return new_group(**settings)

    monkeypatch.setattr(distributed, "new_group", break_off)
    run_together(2, lambda member: met.append(member.size))
    assert (broken, met) == ([1], [2])
    assert not distributed.is_initialized()


def test_one_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "PATIENCE", timedelta(seconds=2))
    monkeypatch.setattr(team, "LEAVING", 1.0)

    def work(member: Team) -> None:
        if member.rank == 1:
            time.sleep(600)
        add_for_ever(member)

    with pytest.raises(TrainingError, match="no answer"):
        run_together(2, work)
    assert not multiprocessing.active_children()


def test_an_error_of_the_first_one_is_its_own_and_leaves_none() -> None:
    def work(member: Team) -> None:
        if member.rank == 0:
            raise ZeroDivisionError
        add_for_ever(member)

    with pytest.raises(ZeroDivisionError):
        run_together(2, work)
    assert not multiprocessing.active_children()


def test_signals_are_taken_while_within_only() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        with asked_to_stop() as asked:
            assert not asked.is_set()
            os.kill(os.getpid(), number)
            assert asked.wait(5)
        assert [signal.getsignal(number) for number in numbers] == before
    with pytest.raises(ZeroDivisionError), asked_to_stop():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in numbers] == before


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone() -> None:
    found: list[bool] = []

    def ask() -> None:
        with asked_to_stop() as asked:
            found.append(asked.is_set())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False]
