"""What is decoded side by side, and what becomes of it: the words of :mod:`.batches` and :mod:`.in_turn`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fim_server.decoding.results import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.loop.run import Run


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt, and the runs that are to go on from it."""

    prompt: Sequence[int]
    runs: Sequence[Run]


Ending: TypeAlias = StopReason | Exception
"""How a run ended. An exception is what the run itself raised (its matcher, its sampler); the others go on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run."""

    ending: Ending
    choosing_ms: float
    """Everything but forward passes: choosing tokens, and waiting for the engine."""
