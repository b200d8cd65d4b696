"""Verdicts on files, kept for some seconds, because each takes reads of the disk."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

K = TypeVar("K")

LOOK_AGAIN_SECONDS, MOST_KNOWN = 5.0, 256
"""Time for which a verdict is kept, and the most verdicts."""


class RecentVerdicts(Generic[K]):
    """The newest verdicts by their keys, for use on any thread."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[bool, float]] = {}

    def get(self, key: K) -> bool | None:
        """Return the verdict of a key; None if there is none, or an old one."""
        known = self._known.get(key)
        return None if known is None or time.monotonic() - known[1] > LOOK_AGAIN_SECONDS else known[0]

    def keep(self, key: K, verdict: bool) -> bool:
        """Keep a verdict, and return it."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = verdict, time.monotonic()
        return verdict
