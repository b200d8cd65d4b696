"""Running a sample's test on a completion, in a process apart that cannot do harm by accident.

The program gets limits of time, memory and file size, an empty folder and environment, no input and no network, and all
its processes end with it. On Linux, where the system permits it, it has namespaces of its own (it sees no network and
no process but its own, and all files but its folder are read-only) and a filter of system calls (it can neither open
sockets nor start processes nor signal others). Where there is neither, what of Python does these things is taken away.
`Outcome.isolation` says which of these applied.

A test counts as passed only when the harness says so after the test has run, with a number that it was given for this
run: a program that exits, with whatever status, has not passed. This guards against what models write, not against an
attacker: a program can find that number in its own process, and make its own test true.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from fim_server.datasets.samples import Sample, UnitTest
from fim_server.errors import DatasetError

_CHILD = Path(__file__).with_name("sandbox_child.py")
_LONGEST_REPORT = 64 << 10
"""Bytes. More than the harness ever says: a program has found the harness's pipe and writes to it."""
_PATIENCE_S = 10.0
"""For processes that were killed to be gone."""


class Verdict(StrEnum):
    """What became of a test."""

    PASSED = "passed"
    WRONG = "wrong"
    """An assertion of the test failed."""
    ERROR = "error"
    """The program does not compile, raised something else, ended before its test did, or crashed."""
    TIMEOUT = "timeout"
    """The limit of time or of processor time was reached."""
    MEMORY = "memory"
    """The limit of memory was reached."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use."""

    seconds: float = 10.0
    """Of wall clock."""
    cpu_seconds: int = 10
    memory_bytes: int = 1 << 30
    """Of address space."""
    file_bytes: int = 16 << 20
    """Of each file that it writes, and of its folder where that is in memory."""
    processes: int = 32
    """Processes and threads, where they can be counted for it alone. Processes are refused where that is possible."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and how it came about."""

    verdict: Verdict
    detail: str
    """One line: the exception, the signal; empty where there is nothing to say."""
    seconds: float
    isolation: tuple[str, ...]
    """Of ``namespaces``, ``read-only files``, ``system calls``, ``python alone``."""

    @property
    def passed(self) -> bool:
        """Whether the test ran to its end and held."""
        return self.verdict is Verdict.PASSED


def run_sample(sample: Sample, middle: str, limits: Limits = DEFAULT_LIMITS) -> Outcome:
    """Run a sample's own test with ``middle`` in the hole.

    Raises:
        DatasetError: the sample has no test, or the sandbox does not start.
    """
    if sample.test is None:
        raise DatasetError(f"{sample.id}: the sample has no test")
    return run_test(sample.test, sample.filled(middle), limits)


def run_test(test: UnitTest, program: str, limits: Limits = DEFAULT_LIMITS) -> Outcome:
    """Run ``program``, then the test's text, then ``check(entry_point)``. Safe to call from several threads.

    Raises:
        DatasetError: the sandbox does not start.
    """
    nonce = secrets.token_hex(16)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fim-server-test-") as folder:
        request = {
            "nonce": nonce,
            "program": program,
            "test": test.test,
            "entry_point": test.entry_point,
            "folder": folder,
            **asdict(limits),
        }
        report, in_time = _run(json.dumps(request).encode(), folder, started + limits.seconds)
    return _outcome(_said(report, nonce), in_time, time.monotonic() - started)


def _run(request: bytes, folder: str, deadline: float) -> tuple[bytes, bool]:
    """What the harness wrote, and whether it ended by itself before the deadline."""
    # No -I: it would ignore PYTHONHASHSEED, without which a program that iterates over a set may pass one time in two.
    command = [sys.executable, "-s", "-S", "-P", "-B", str(_CHILD)]
    environment = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "HOME": folder, "TMPDIR": folder}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise DatasetError(f"{sys.executable}: {error.strerror}") from None
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            process.stdin.write(request)
            process.stdin.close()
            return _read(process.stdout.fileno(), deadline)
        except BrokenPipeError:
            with suppress(BrokenPipeError):
                process.stdin.close()
            return b"", True  # the harness itself did not start
        finally:
            # The harness's group: its second process takes along all that are in its namespace.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_PATIENCE_S)


def _read(descriptor: int, deadline: float) -> tuple[bytes, bool]:
    """Read to the end, the deadline or more than there can be; and whether it was one of the other two."""
    read = b""
    while len(read) <= _LONGEST_REPORT:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return read, False
        piece = os.read(descriptor, _LONGEST_REPORT)
        if not piece:
            break
        read += piece
    return read, True


def _said(report: bytes, nonce: str) -> dict[str, str]:
    """The harness's own lines, by their first word; what others wrote into its pipe is passed over."""
    said: dict[str, str] = {}
    for line in report.decode("ascii", "replace").split("\n"):
        number, _, rest = line.partition(" ")
        if number == nonce:
            what, _, text = rest.partition(" ")
            said.setdefault(what, text)
    return said


def _outcome(said: dict[str, str], in_time: bool, seconds: float) -> Outcome:
    isolation = tuple(filter(None, said.get("isolation", "").split(",")))
    if "verdict" in said:
        return Outcome(Verdict(said["verdict"]), said.get("detail", ""), seconds, isolation)
    if in_time and "isolation" not in said:
        raise DatasetError(f"{sys.executable}: the sandbox does not start here")
    if not in_time:
        return Outcome(Verdict.TIMEOUT, "wall clock", seconds, isolation)
    ended = int(said.get("ended", "0"))
    if ended == -signal.SIGXCPU:
        return Outcome(Verdict.TIMEOUT, "processor time", seconds, isolation)
    if ended < 0:
        return Outcome(Verdict.ERROR, f"killed by {signal.Signals(-ended).name}", seconds, isolation)
    return Outcome(Verdict.ERROR, "ended before its test did", seconds, isolation)
