"""Costs of work: seconds and memory of this process, of a fresh one, or of another one that runs already.

Memory that a process has freed serves it again unseen, and imports stay. So memory, and work that has to start cold,
are measured in a process of their own.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Clock = Callable[[], float]
"""Seconds from any start."""


def clock_of(cpu_time: bool) -> Clock:
    """The processor time of this process, all its threads, or the clock's."""
    return time.process_time if cpu_time else time.perf_counter


def timed(clock: Clock, work: Callable[..., Result], *given: object) -> tuple[Result, float]:
    """Return the work's result and its seconds. The result lives on: releasing it is not measured."""
    started = clock()
    result = work(*given)
    return result, clock() - started


# --- memory of this process ---------------------------------------------------------------------------------------


def resident_memory() -> int | None:
    """Bytes of memory this process holds now; None where the system does not tell."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, check=False)
        return int(shown.stdout) * 1024
    return None


def peak_memory() -> int | None:
    """Bytes of memory this process held at most in its life; None where the system does not tell."""
    peak = None
    if sys.platform != "win32":
        import resource

        # macOS counts bytes, others kilobytes.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak


def forget_peak() -> None:
    """Makes the memory of now the peak (Linux only; elsewhere only what passes the old peak is seen)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_since_forgotten() -> int | None:
    """Bytes of memory this process held at most since `forget_peak`; None where the system does not tell."""
    with suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split()[1] for line in status if line.startswith("VmHWM:"))) * 1024
    return peak_memory()


def release_free_memory() -> None:
    """Gives back what the allocator holds free, which would serve new work unseen (glibc only)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def growth(before: int | None, after: int | None) -> int | None:
    """By how many bytes memory grew; None where either is not known."""
    return None if before is None or after is None else max(after - before, 0)


@dataclass(frozen=True)
class Footprint:
    """Costs of some work: seconds, and growth of the process in bytes, where the system reports it."""

    seconds: float
    growth: int | None


def footprint(clock: Clock, work: Callable[[], object]) -> Footprint:
    """Does the work and keeps its result until its memory has been read."""
    before = resident_memory()
    result, seconds = timed(clock, work)
    after = resident_memory()
    del result
    return Footprint(seconds, None if before is None or after is None else after - before)


# --- in fresh processes -------------------------------------------------------------------------------------------


def in_own_process(
    work: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Result:
    """Runs a function of a module in a fresh interpreter."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **named).result()


def in_limited_process(
    most_seconds: float, work: Callable[Parameters, Result], *given: Parameters.args, **named: Parameters.kwargs
) -> Result:
    """Runs a function of a module in a fresh interpreter, which is killed when its time is up.

    Raises:
        TimeoutError: It was.
        EOFError: The process ended without an answer.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, work, given, named), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(most_seconds):
            raise TimeoutError
        result: Result = receiver.recv()
        return result
    finally:
        process.kill()
        process.join()
        receiver.close()


def _answer(sender: Connection, work: Callable[..., object], given: Sequence[Any], named: Mapping[str, Any]) -> None:
    with suppress(OSError):  # should memory run out, the kernel is to end this process and no other
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    sender.send(work(*given, **named))


@dataclass(frozen=True)
class Limits:
    """Limits of a process.

    Attributes:
        seconds: Most seconds from one answer to the next.
        bytes: Most growth in bytes (Linux only).
        cpu_time: True to count processor time where the system reports it, so that other work is left out.
    """

    seconds: float
    bytes: int
    cpu_time: bool = False


class EndedError(Exception):
    """A process that ended before it was done."""

    def __init__(self, status: int | None) -> None:
        """Wraps its exit status, which is below 0 for a signal."""
        super().__init__(f"exit status {status}")
        self.status = status


LOOKS = 0.1
"""Seconds after which a process that has not answered is looked at."""

MOST_WAITING = 10
"""By how much more than its processor time a process may take by the clock."""


def answers_of_limited_process(
    most: Limits, work: Callable[Parameters, Iterator[Result]], *given: Any
) -> Iterator[Result]:
    """Yield the answers of a module's generator that runs in a process of its own.

    On Linux the process is forked, so that loaded modules are there already; elsewhere it is a fresh interpreter.

    Args:
        most: Limits of the process; it is killed when its time is up, and gets no more memory.
        work: The generator's function.
        given: Its arguments.

    Raises:
        TimeoutError: An answer's time was up.
        EndedError: The process ended before the generator did.
    """
    # typed as the one that every system has: the other's process has the same methods
    context = cast("SpawnContext", multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn"))
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_yield_answers, args=(sender, most.bytes, work, given), daemon=True)
    with warnings.catch_warnings():
        # Numerical libraries have threads of their own, which wait for work that the forked process does not give them.
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        process.start()
    sender.close()
    try:
        while True:
            _wait(receiver.poll, process.pid or 0, most)
            try:
                answer = receiver.recv()
            except EOFError:
                process.join()
                raise EndedError(process.exitcode) from None
            if answer is None:
                return
            yield answer[0]
    finally:
        process.kill()
        process.join()
        receiver.close()


def _wait(has_answer: Callable[[float], bool], identity: int, most: Limits) -> None:
    """Waits for an answer; raises TimeoutError where its time is up."""
    started = time.monotonic()
    before = usage_of(identity) if most.cpu_time else None
    while not has_answer(min(most.seconds, LOOKS)):
        waited = time.monotonic() - started
        used = waited
        now = usage_of(identity)
        if before is not None and now is not None:
            used = max(now.seconds - before.seconds, waited / MOST_WAITING)
        if used > most.seconds:
            raise TimeoutError


def _yield_answers(
    sender: Connection, most_bytes: int, work: Callable[..., Iterator[object]], given: Sequence[Any]
) -> None:
    with suppress(OSError):  # should memory run out, the kernel is to end this process and no other
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (held + most_bytes, held + most_bytes))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a process without memory ends as a fault does
    for answer in work(*given):
        sender.send((answer,))
    sender.send(None)


# --- of another process -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """Resources that a process has used."""

    memory: int
    """Bytes that it holds."""
    seconds: float
    """Seconds of processor time."""


def usage_of(identity: int) -> Usage | None:
    """Return the resources that another process has used; None where the system does not report them."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{identity}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            return Usage(int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))
    return None
