"""Speed and memory of a model on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.errors import ModelError, first_line
from fim_server.models.backend import PacedBackend
from fim_server.models.pace import LEAST_PROMPT

if TYPE_CHECKING:
    from fim_server.models.model import FimModel

Clock = Callable[[], float]
"""Seconds, from whenever on."""

WRITTEN_TOKENS = 12
"""The tokens of a usual line, and how many are written to see how fast that is."""

READ_TOKENS = LEAST_PROMPT
"""Tokens of the shortest prompt that the server makes where a file has so many."""

TYPING_MS = 1500.0
"""Most milliseconds for a line while a user types: the server's default deadline."""

MOST_SECONDS = 20.0
"""After so many seconds nothing is measured again; the pass that is under way ends first."""

TIMES = 3
"""Each thing is measured as often at most. Other work only ever slows a pass, so the fastest counts."""


@dataclass(frozen=True)
class Speed:
    """Measured speed.

    Attributes:
        read: Prompt tokens a second.
        written: Generated tokens a second, one after another.
        memory: Peak memory of this process in bytes, or None where the system does not report it. A model in another
            process is not included.
    """

    read: float
    written: float
    memory: int | None

    @property
    def line_ms(self) -> float:
        """Milliseconds for a line of which nothing was read before."""
        return 1000 * (READ_TOKENS / self.read + WRITTEN_TOKENS / self.written)

    @property
    def is_for_typing(self) -> bool:
        """Tell whether a line arrives before the server's deadline."""
        return self.line_ms <= TYPING_MS


def measure_speed(model: FimModel, clock: Clock = time.perf_counter, most_seconds: float = MOST_SECONDS) -> Speed:
    """Read some tokens and write a few. Raises :class:`ModelError` where the model's runtime cannot."""
    if isinstance(model.backend, PacedBackend):
        return speed_of_endpoint(model, model.backend, clock)
    count = max(1, min(READ_TOKENS, model.window - WRITTEN_TOKENS - 1))
    tokens = [number % model.size for number in range(1, count + 1)]  # which they are makes no difference
    began = clock()
    read, written = [], []
    try:
        cache = model.new_cache(count + WRITTEN_TOKENS)
        for turn in range(TIMES):
            if turn and clock() - began > most_seconds:
                break
            started = clock()
            model.forward(tokens, cache)
            read.append(clock() - started)
            for number in range(WRITTEN_TOKENS):
                started = clock()
                model.forward([tokens[number % count]], cache)
                written.append(clock() - started)
                if clock() - began > most_seconds:
                    break
            cache = model.new_cache(count + WRITTEN_TOKENS)
    except RuntimeError as error:
        raise ModelError(f"{model.name}: cannot compute ({first_line(error)})") from error
    least = sys.float_info.epsilon  # of a clock that did not move
    return Speed(count / max(least, min(read)), 1 / max(least, min(written)), peak_memory())


def speed_of_endpoint(model: FimModel, backend: PacedBackend, clock: Clock) -> Speed:
    """Measure a remote model, whose time is spent when its rows are read and not in its passes.

    Raises :class:`ModelError` where it does not answer.
    """
    likeliest = model.backend.arithmetic.likeliest
    try:
        read = backend.reading_speed()
        cache = model.new_cache()
        token = likeliest(model.forward(model.format.encode("values = [", "]\n", LEAST_PROMPT), cache))
        started = clock()
        for _ in range(WRITTEN_TOKENS):
            token = likeliest(model.forward([token], cache))
        seconds = clock() - started
    except RuntimeError as error:
        raise ModelError(f"{model.name}: cannot compute ({first_line(error)})") from error
    return Speed(read, WRITTEN_TOKENS / max(sys.float_info.epsilon, seconds), peak_memory())


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    peak = None
    if sys.platform != "win32":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak
