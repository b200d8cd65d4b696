"""Programs that the rehearsal runs: their output goes into a log file, and a failure is an error in a few lines."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SHOWN_LINES = 15
"""Last lines of a failed program's output in its error."""


class ReleaseError(Exception):
    """A file cannot be built, or a check fails."""


def run(command: Sequence[str | Path], folder: Path, log: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run a program in a folder and return its output, both streams together; append it to the log.

    Raises:
        ReleaseError: The program is not there, or its exit status is not 0.
    """
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ReleaseError(f"{command[0]}: {error.strerror}") from None
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(map(str, command))}\n{done.stdout}\n")
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-SHOWN_LINES:])
        raise ReleaseError(f"{Path(command[0]).name} ended with status {done.returncode} ({log}):\n{last}")
    return done.stdout
