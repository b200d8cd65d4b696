"""Time that a run has, for machines that are lent for some minutes."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLimit:
    """Lets batches begin as long as the slowest one so far would end in time; the first may always begin."""

    def __init__(self, ends: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``ends``: on the clock; None for no limit."""
        self._ends, self._clock = ends, clock
        self._begun: float | None = None
        self._longest = 0.0

    def has_time(self) -> bool:
        """Return whether a batch can begin now, after the one that began at the last call has ended."""
        now = self._clock()
        if self._begun is not None:
            self._longest = max(self._longest, now - self._begun)
        has_time = self._ends is None or self._begun is None or now + self._longest <= self._ends
        self._begun = now
        return has_time
