"""Going on with a run: ``run.json``, and what may not have changed since it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fim_server.errors import RunError
from fim_server.evaluation.records import RUN_FILE, Data, RunInfo, record_files
from fim_server.evaluation.running.settings import Asked, WorkerSettings
from fim_server.models.source import name_of

OPTIONS = {
    "model_sha256": "--model",
    "modes": "--modes",
    "budget": "--budget",
    "max_prompt_tokens": "--max-prompt-tokens",
    "seed": "--seed",
    "temperature": "--temperature",
    "batch": "--batch",
    "device": "--device",
    "judge": "--judge",
    "judges": "--judge",
    "language_versions": "--language-version",
    "language_version": "--python-version",
    "landing": "landing",
    "runtime": "--runtime",
    "export_sha256": "the export",
    "contexts": "--contexts",
    "healing": "healing",
    "single_line": "--single-line",
    "score": "--score",
    "truncation": "truncation",
    "tested": "--untested",
    "format": "the prompt format",
    "versions": "versions",
}
"""Options that may not change when a run resumes, with the user's names for them. Data is compared by its hash."""


def run_info(asked: Asked, settings: WorkerSettings, about: Mapping[str, Any], data: tuple[Data, ...]) -> RunInfo:
    """``run.json`` of a run that begins."""
    return RunInfo(
        data=data,
        model=name_of(settings.model),
        model_sha256=about["model_sha256"],
        format=about["format"],
        modes=settings.modes,
        budget=settings.budget,
        max_prompt_tokens=settings.max_prompt_tokens,
        seed=settings.seed,
        temperature=settings.temperature,
        batch=asked.batch,
        device=about["device"],
        language_version=about["language_version"],
        judge=about["judge"],
        languages=about["languages"],
        judges=about["judges"],
        language_versions=about["language_versions"],
        landing=settings.landing,
        runtime=about["runtime"],
        export_sha256=about["export_sha256"],
        contexts=str(settings.reads),
        healing=settings.heal,
        single_line=settings.single_line,
        score=settings.score,
        truncation=settings.truncation,
        tested=settings.tested,
        versions=about["versions"],
        machine=about["machine"],
        limit=asked.limit,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def settle(folder: Path, asked: RunInfo) -> None:
    """Begin a run in a folder, or see that the one in it can be gone on with. Raises RunError where it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror or error}") from None
    if (folder / RUN_FILE).exists():
        known = RunInfo.read(folder)
        difference = differing(known, asked)
        if difference is not None:
            raise RunError(f"{folder} was begun with {difference}: name another --out, or go on as it was begun")
        if known.limit is not None and (asked.limit is None or asked.limit > known.limit):
            replace(known, limit=asked.limit).write(folder)
    elif record_files(folder):
        raise RunError(f"{folder}: has results, but no {RUN_FILE} that says what of; name another --out")
    else:
        asked.write(folder)


def differing(known: RunInfo, asked: RunInfo) -> str | None:
    """The first setting in which two runs differ, in words, or None."""
    if [one.sha256 for one in known.data] != [one.sha256 for one in asked.data]:
        return "other --data: " + ", ".join(f"{one.path} with {one.samples} samples" for one in known.data)
    for name, called in OPTIONS.items():
        before, now = getattr(known, name), getattr(asked, name)
        if before != now:
            if name == "model_sha256":
                before, now = f"{known.model} ({before[:12]})", f"{asked.model} ({now[:12]})"
            return f"{called} {shown(before)}, not {shown(now)}"
    return None


def shown(value: object) -> str:
    """A setting as its option spells it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, Mapping) and not value:
        return "none"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {version}" for name, version in value.items())
    return "newest" if value is None else str(value)
