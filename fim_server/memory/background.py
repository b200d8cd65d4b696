"""Thread for background work: one task at a time, and of tasks under one name only the latest."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from threading import Condition, Thread, get_native_id

LEAST_URGENT = 19
"""Niceness of the thread, on systems where each thread has its own."""

logger = logging.getLogger(__name__)


class Background:
    """Thread that does one task after the other; it starts with the first and ends with :meth:`close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: dict[object, Callable[[], object]] = {}
        self._busy = False
        self._closed = False
        self._changed = Condition()
        self._thread: Thread | None = None

    def do(self, name: object, work: Callable[[], object]) -> None:
        """Queue a task, in place of a waiting one of the same name. Does nothing after :meth:`close`."""
        with self._changed:
            if self._closed:
                return
            self._waiting.pop(name, None)
            self._waiting[name] = work
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def is_busy(self) -> bool:
        with self._changed:
            return self._busy or bool(self._waiting)

    def settle(self, seconds: float) -> bool:
        """Wait up to ``seconds`` until no task is left; return False if it takes longer."""
        deadline = time.monotonic() + seconds
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._busy, max(0.0, deadline - time.monotonic())
            )

    def close(self, seconds: float = 5.0) -> bool:
        """Drop the waiting tasks; wait up to ``seconds`` for the running one. Return whether the thread has ended."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(seconds)
        return not thread.is_alive()

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            self._busy = True
            return self._waiting.pop(next(iter(self._waiting)))

    def _run(self) -> None:
        if sys.platform == "linux":
            # Linux alone takes a thread's number here, and gives threads priorities of their own.
            try:
                os.setpriority(os.PRIO_PROCESS, get_native_id(), LEAST_URGENT)
            except OSError:
                logger.debug("%s keeps its priority", self._name)
        while (work := self._next()) is not None:
            try:
                work()
            except BaseException:
                # The other documents go on; a panic of the native module is no Exception.
                logger.exception("%s: a task failed", self._name)
            del work  # it may hold a whole text
