"""Deadline and cancel flag of a decoding."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fim_server.decoding.results import StopReason

if TYPE_CHECKING:
    from fim_server.decoding.protocols import CancelFlag


class Interrupted(Exception):
    """Raised between two forward passes after the deadline or once the cancel flag is set."""

    def __init__(self, stop_reason: StopReason) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class Watch:
    """Deadline and cancel flag, checked before every forward pass."""

    def __init__(
        self, deadline_ms: float | None, cancelled: CancelFlag | None, first_end_ms: float | None = None
    ) -> None:
        """Take the options' limits; ``first_end_ms`` is :attr:`.DecodeOptions.first_end_ms`."""
        now = time.perf_counter()
        self._end = None if deadline_ms is None else now + deadline_ms / 1000
        self._first_end = None if first_end_ms is None else now + first_end_ms / 1000
        self._cancelled = cancelled

    def check(self) -> None:
        """Raise :class:`Interrupted` if decoding should stop."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise Interrupted(StopReason.CANCELLED)
        if self._end is not None and time.perf_counter() >= self._end:
            raise Interrupted(StopReason.DEADLINE)

    def is_late(self) -> bool:
        """Return whether to give up a middle that is complete nowhere yet."""
        return self._first_end is not None and time.perf_counter() >= self._first_end
