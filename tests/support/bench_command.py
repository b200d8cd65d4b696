"""Runs of `./dev bench`, in this process and in one of their own."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

from benchmarks.__main__ import run


def printed(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error of a run in this process."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = run(arguments)
        except SystemExit as refused:
            status = int(refused.code or 0)
    return status, output.getvalue(), errors.getvalue()


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=120)


def complaint(*arguments: str) -> str:
    """Return the standard error of a run that ends as bad input and prints nothing else."""
    ended = started(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    return ended.stderr
