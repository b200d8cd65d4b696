"""Processes that train together: forked, joined by gloo's collectives, and not left waiting for one that has ended."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

from fim_server.errors import TrainingError, first_line

MEETING = timedelta(minutes=1)
"""Time limit for the processes to find each other; only a machine without memory delays them so long."""

MEETINGS = 3
"""Attempts to start processes that meet: one forked while a thread holds a library's lock waits for ever."""

PATIENCE = timedelta(minutes=30)
"""Most time that one process may keep the others waiting; the first one measures held-out examples meanwhile."""

LEAVING = 20.0
"""Seconds that a process has to end where it should: connections close before it has."""


class Parted(TrainingError):
    """The others do not answer."""


class Unmet(Parted):
    """They have not found each other."""


@dataclass(frozen=True)
class Team:
    """The processes from one of them: its `rank`, and how many (`size`); one alone has no `group`."""

    rank: int = 0
    size: int = 1
    group: Any = None

    def add_up(self, tensor: Tensor) -> None:
        """Put the sum over all processes into each one's tensor. Raises Parted where another has ended."""
        if self.size > 1:
            with _answers():
                distributed.all_reduce(tensor, group=self.group)

    def agreed(self, number: float) -> float:
        """Return the first process's number in every process. Raises Parted where another has ended."""
        if self.size == 1:
            return number
        said = torch.tensor([number], dtype=torch.float64)
        with _answers():
            distributed.broadcast(said, 0, group=self.group)
        return float(said.item())


ALONE = Team()


def can_fork() -> bool:
    """Return whether the system can fork processes; Windows cannot."""
    return hasattr(os, "fork")


def run_together(size: int, work: Callable[[Team], None]) -> None:
    """Do the work in this process, the first of the team, and in `size` - 1 forked ones.

    None of them is left when it returns. Raises TrainingError, in one line, where another one than this has failed.
    """
    for _ in range(MEETINGS - 1):
        with suppress(Unmet):
            _run_together(size, work)
            return
    _run_together(size, work)


def _run_together(size: int, work: Callable[[Team], None]) -> None:
    """Once. Raises Unmet where no process has failed and they have not met all the same."""
    context: Any = torch.multiprocessing.get_context("fork")
    problems = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"{folder}/meeting"
        others = [
            context.Process(target=_follow, args=(rank, size, meeting, work, problems), daemon=True)
            for rank in range(1, size)
        ]
        try:
            for other in others:
                other.start()
            with _joined(0, size, meeting) as team:
                work(team)
            for other in others:
                other.join(LEAVING)
        except Parted as error:
            problem = _problem(others, problems)
            if problem is None and isinstance(error, Unmet):
                raise
            problem = problem or str(error)
            raise TrainingError(f"a process of the training failed: {problem}") from error
        finally:
            for other in others:
                # They do not end when they are asked to terminate (`_follow`), and have nothing to save.
                if other.pid is not None:
                    other.kill()
                    other.join()


def _problem(others: Sequence[Any], problems: Any) -> str | None:
    """Return the message of the process that failed, or its end; None where all are well."""
    until = time.monotonic() + LEAVING
    while time.monotonic() < until:
        if not problems.empty():
            return str(problems.get())
        for other in others:
            if other.exitcode:
                return f"signal {-other.exitcode}" if other.exitcode < 0 else f"exit status {other.exitcode}"
        time.sleep(0.05)
    return None


def _follow(rank: int, size: int, meeting: str, work: Callable[[Team], None], problems: Any) -> None:
    # Garbage of the first process, such as the group of a training that failed, has no threads here to be ended with.
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # an interrupt reaches all of them, and the first one says when to end
    try:
        with _joined(rank, size, meeting) as team:
            work(team)
    except Parted:
        pass  # it is another one that failed
    except Exception as error:  # whatever it is, the first process is to say it
        name = "" if isinstance(error, TrainingError) else f"{type(error).__name__}: "
        problems.put(f"{name}{first_line(error)}")
        raise SystemExit(1) from error


@contextmanager
def _joined(rank: int, size: int, meeting: str) -> Iterator[Team]:
    try:
        distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=MEETING
        )
        group = distributed.new_group(backend="gloo", timeout=PATIENCE)
    except RuntimeError as error:  # in both of them the processes meet
        if distributed.is_initialized():
            distributed.destroy_process_group()
        raise Unmet(f"no answer from another one ({first_line(error)})") from error
    try:
        yield Team(rank, size, group)
    finally:
        distributed.destroy_process_group()


@contextmanager
def _answers() -> Iterator[None]:
    """Gloo's errors are RuntimeErrors, as all of torch's are; here they say that another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise Parted(f"no answer from another one ({first_line(error)})") from error


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """A flag that an interrupt or a request to terminate sets instead of ending the process, while within.

    Only the main thread is told of signals; elsewhere the flag is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: asked.set()) for number in numbers]
    try:
        yield asked
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
