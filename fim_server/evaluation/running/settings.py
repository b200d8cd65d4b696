"""What a run is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fim_server.evaluation.running.shards import Shard


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker needs, in a form that can be sent to another machine."""

    model: str | None
    device: str | None
    modes: tuple[str, ...]
    budget: int
    max_prompt_tokens: int
    seed: int
    temperature: float
    judge: str | None
    """The Python whose ``ast.parse`` says what parses; None is the one that runs the worker."""
    language_version: str | None
    """None is the judge's own version, or the newest where the judge is newer."""
    landing: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is asked for, besides what its workers are told."""

    data: tuple[str, ...]
    out: Path
    batch: int
    limit: int | None = None
    shard: Shard = field(default_factory=Shard)
    retry_failed: bool = False
