"""Run of a sample's test on a completion, with the program in one process and its test in another.

The processes run in a sandbox that bubblewrap makes (:mod:`.bubblewrap`). It has a Python's own files, an empty folder
in memory, no other process and no network. It limits time, processor time, memory, files and threads, and filters
system calls that evade these limits (`sandbox_child`). Without bubblewrap nothing runs, unless the caller says
``unsafe``. Then only the limits that are there hold.

The test's process calls the program, and plain data goes between them. So the program cannot read its test, report in
the harness's stead, or answer with an object that equals everything. A program that exits, with whatever status, has
not passed. It gets copies of its arguments, so a test cannot see its changes to them.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from fim_server.datasets.python import bubblewrap
from fim_server.datasets.python.bubblewrap import Harness
from fim_server.datasets.samples import Sample, UnitTest
from fim_server.errors import DatasetError

_CHILD = Path(__file__).with_name("sandbox_child.py")
_STARTED = b"started\n"
_PATIENCE_S = 10.0
"""Longest wait for killed processes to be gone."""


class Verdict(StrEnum):
    """Verdict of a test."""

    PASSED = "passed"
    WRONG = "wrong"
    """An assertion of the test failed."""
    ERROR = "error"
    """The program does not compile, raised another exception, ended before its test did, or crashed."""
    TIMEOUT = "timeout"
    """The limit of time or of processor time was reached."""
    MEMORY = "memory"
    """The limit of memory was reached."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a program."""

    seconds: float = 10.0
    """Wall clock."""
    cpu_seconds: int = 10
    memory_bytes: int = 1 << 30
    """Address space."""
    file_bytes: int = 16 << 20
    """Size of each file that it writes; in the sandbox, of all files together, which are in memory."""
    processes: int = 32
    """Threads, in the sandbox, which allows no further processes."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdict and its cause."""

    verdict: Verdict
    detail: str
    """One line: the exception or the signal; may be empty."""
    seconds: float
    isolation: tuple[str, ...]
    """Parts of ``bubblewrap``, ``cgroup``; empty for a program without a sandbox."""

    @property
    def passed(self) -> bool:
        """True if the test ran to its end without a failure."""
        return self.verdict is Verdict.PASSED


def run_sample(sample: Sample, middle: str, limits: Limits = DEFAULT_LIMITS, *, unsafe: bool = False) -> Outcome:
    """Run a sample's own test with ``middle`` in the hole.

    Other names that the test uses are those of the sample's text.

    Raises:
        DatasetError: The sample has no test, or as `run_test`.
    """
    if not isinstance(sample.test, UnitTest):
        raise DatasetError(f"{sample.id}: the sample has no test of a function")
    return run_test(sample.test, sample.filled(middle), limits, reference=sample.text, unsafe=unsafe)


def run_test(
    test: UnitTest,
    program: str,
    limits: Limits = DEFAULT_LIMITS,
    *,
    reference: str = "",
    unsafe: bool = False,
) -> Outcome:
    """Run ``program`` in one process; in another the test's text, then ``check(entry_point)``. Safe in threads.

    Args:
        test: The test of the program.
        program: Untrusted code, of a model for instance.
        limits: Limits of time, memory and the rest.
        reference: Trusted code whose names the test may use, except the entry point's.
        unsafe: Run without a sandbox where there is none.

    Raises:
        DatasetError: There is no sandbox and ``unsafe`` is false, or the processes do not start.
    """
    missing = unavailable()
    if missing is not None and not unsafe:
        raise DatasetError(refusal(missing))
    return _run(test, program, limits, reference, sandboxed=missing is None)


def refusal(missing: str) -> str:
    """Return the message for a machine without a sandbox."""
    return (
        f"tests run what a model wrote, and there is no sandbox here: {missing}; install bubblewrap and libseccomp "
        "(Linux), or say --unsafe to run them without"
    )


@cache
def unavailable() -> str | None:
    """Return the reason why this machine has no sandbox, or None where it has one.

    A process tries it once.
    """
    return _missing_on_linux() if sys.platform == "linux" else f"bubblewrap is for Linux, this is {sys.platform}"


def _missing_on_linux() -> str | None:
    if shutil.which(bubblewrap.BWRAP) is None:
        return "bubblewrap is not installed"
    try:
        # Loads it here, and finds nothing out about the sandbox, in which it is looked for again.
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return "libseccomp is not installed"
    try:
        test = UnitTest("", "", "def check(f):\n    f()\n", "f")
        outcome = _run(test, "f = bool", Limits(seconds=60.0), "", sandboxed=True)  # of a machine under load
    except DatasetError as error:
        return str(error)
    return None if outcome.passed else f"a program that should pass does not: {outcome.verdict}"


def _run(test: UnitTest, program: str, limits: Limits, reference: str, *, sandboxed: bool) -> Outcome:
    told = {
        "program": program,
        "entry_point": test.entry_point,
        "sandboxed": sandboxed,
        "root": bubblewrap.is_root(),
        **asdict(limits),
    }
    asked = {"test": test.test, "entry_point": test.entry_point, "reference": reference}
    report, ran = launch(Harness(_CHILD), (told, asked), limits, sandboxed=sandboxed)
    if report is None:
        return ran
    return Outcome(Verdict(report["verdict"]), report["detail"], ran.seconds, ran.isolation)


def launch(
    harness: Harness, messages: Sequence[object], limits: Limits, *, sandboxed: bool
) -> tuple[Any | None, Outcome]:
    """Run a harness on messages of JSON; return its report, and the outcome that holds where it has none.

    ``limits``: those of the whole. Raises DatasetError if it does not start, and on Windows.
    """
    if sys.platform == "win32" and not sandboxed:
        raise DatasetError("tests of samples run on Linux and macOS, not on Windows")
    scope = bubblewrap.scope() if sandboxed else ()
    isolation = (("bubblewrap", "cgroup") if scope else ("bubblewrap",)) if sandboxed else ()
    written = b"".join(
        len(message).to_bytes(8, "big") + message for message in (json.dumps(one).encode() for one in messages)
    )
    started = time.monotonic()
    with ExitStack() as stack:
        if sandboxed:
            command = bubblewrap.command(harness)
            if scope:
                command = [*scope, *bubblewrap.scope_limits(limits.memory_bytes, limits.processes), "--", *command]
            folder, environment = "/", dict(os.environ)
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fim-server-test-"))
            command = harness.bare_command()
            environment = {**bubblewrap.ENVIRONMENT, **harness.environment, "HOME": folder, "TMPDIR": folder}
        said, complaint, in_time = _communicate(command, folder, environment, written, limits.seconds)
    seconds = time.monotonic() - started
    late = Outcome(Verdict.TIMEOUT, "wall clock", seconds, isolation)
    if not said.startswith(_STARTED):
        if in_time:
            raise DatasetError(_last_line(complaint) or f"{command[0]}: the processes of a test do not start")
        return None, late
    try:
        return json.loads(said.removeprefix(_STARTED)), replace(late, verdict=Verdict.PASSED, detail="")
    except ValueError:  # none: it was killed by the deadline, or by the program
        ended = Outcome(Verdict.ERROR, "ended before its test did", seconds, isolation)
        return None, ended if in_time else late


def _communicate(
    command: list[str], folder: str, environment: dict[str, str], messages: bytes, seconds: float
) -> tuple[bytes, str, bool]:
    """Return the harness's output and errors, and whether it ended before the deadline; kill what is left of it."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise DatasetError(f"{command[0]}: {error.strerror}") from None
    with process:
        said, complaint, in_time = b"", b"", True
        try:
            said, complaint = process.communicate(messages, timeout=seconds)
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            # The processes of a sandbox end with it, all others that did not leave the group.
            if sys.platform != "win32":
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        if not in_time:
            # Ends when the pipes have no writer any more, so nothing of a sandbox is left.
            with suppress(subprocess.TimeoutExpired):
                said, complaint = process.communicate(timeout=_PATIENCE_S)
    return said, complaint.decode("utf-8", "replace"), in_time


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
