"""Tasks and outcomes of :mod:`.batches` and :mod:`.in_turn`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fim_server.decoding.results import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.loop.run import Run


@dataclass(frozen=True, slots=True)
class Task:
    """Prompt, and the runs that go on from it."""

    prompt: Sequence[int]
    runs: Sequence[Run]


Ending: TypeAlias = StopReason | Exception
"""Ending of a run. An exception is the run's own, from its matcher or sampler; the other runs go on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one run."""

    ending: Ending
    choosing_ms: float
    """Time without forward passes: choosing tokens, and waiting for the engine."""
