"""Programs that download packages, one for each language."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fim_server.errors import DatasetError

PATIENCE_S = 600.0
"""Longest time for a download, in seconds."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def fetched(
    command: Sequence[str], what: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program that downloads packages, and return its standard output.

    ``environment``: variables that differ from this process's.

    Raises DatasetError where it is not installed or fails, with its first line about an error.
    """
    program = shutil.which(command[0])
    if program is None:
        raise DatasetError(f"{what} are fetched by {command[0]}, which is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DatasetError(f"{what} cannot be fetched: {error}") from None
    if done.returncode != 0:
        raise DatasetError(f"{what} cannot be fetched: {_said(done.stderr + done.stdout) or 'no reason is given'}")
    return done.stdout


def _said(output: str) -> str:
    """Return the first line that names an error, else the first."""
    lines = [" ".join(_COLOURS.sub("", line).split()) for line in output.splitlines()]
    lines = [line for line in lines if line]
    return next((line for line in lines if re.search("error", line, re.IGNORECASE)), next(iter(lines), ""))[:300]


def parts_of(named: Iterable[str], pattern: re.Pattern[str], form: str) -> list[re.Match[str]]:
    """Match names of packages with a pattern. Raises DatasetError for one that is not of the form."""
    found = []
    for name in named:
        match = pattern.fullmatch(name)
        if match is None:
            raise DatasetError(f"{name or 'no name'}: {form} expected")
        found.append(match)
    return found
