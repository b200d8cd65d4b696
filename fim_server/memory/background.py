"""A thread for work that nobody waits for: one thing after the other, the latest alone of what replaces itself."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from threading import Condition, Thread, get_native_id

LEAST_URGENT = 19
"""The niceness of the thread, where threads have one of their own."""

logger = logging.getLogger(__name__)


class Background:
    """A thread that does one thing after the other; it begins with the first and ends with :meth:`close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: dict[object, Callable[[], object]] = {}
        self._busy = False
        self._closed = False
        self._changed = Condition()
        self._thread: Thread | None = None

    def do(self, what: object, work: Callable[[], object]) -> None:
        """Do something later; in place of what waits under the same name, behind all the rest.

        After :meth:`close`, nothing.
        """
        with self._changed:
            if self._closed:
                return
            self._waiting.pop(what, None)
            self._waiting[what] = work
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def is_busy(self) -> bool:
        """Return whether work is running or waiting."""
        with self._changed:
            return self._busy or bool(self._waiting)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is left to do, at most so long; returns whether that is so."""
        deadline = time.monotonic() + seconds
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._busy, max(0.0, deadline - time.monotonic())
            )

    def close(self, seconds: float = 5.0) -> bool:
        """Forget what waits, and wait for what is being done, at most so long; returns whether the thread has ended."""
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
                # What one document does must not keep the others from being remembered; a panic of the native module is
                # no Exception.
                logger.exception("%s: something could not be done", self._name)
            # What was done may hold a whole text.
            del work
