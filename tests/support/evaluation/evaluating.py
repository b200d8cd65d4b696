"""Runs of the evaluation in tests, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fim_server.evaluation.records import (
    read_run,
)

Eval = Callable[..., tuple[int, str, str]]

SETTINGS = ["--budget", "12", "--batch", "4", "--temperature", "0.5"]


TIMES = {"open_ms", "model_ms", "engine_ms", "engine_wait_ms", "total_ms"}


def results(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The results of a run without its times; none may be there twice."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in read_run(run):
        assert record.key not in found
        found[record.key] = {name: value for name, value in asdict(record).items() if name not in TIMES}
    return found


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
