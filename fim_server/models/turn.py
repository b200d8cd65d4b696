"""Turns of threads at a model, pass by pass, and giving up a model whose pass does not end."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType

from fim_server.language.stop import Stop, heed, watching

SLICE_SECONDS = 0.005
"""Longest wait for a turn between two checks whether the caller still needs it."""


class Turn:
    """Lock of the threads that share a model, taken with ``with turn:``.

    Passes side by side would slow each other down.

    Threads get their turns in the order in which they asked. A lock of the operating system goes to the thread that is
    running when it is released, which is the one that has just released it. A thread that reads a long prompt would
    then make all its passes before another thread makes one.

    A waiting thread gets StoppedError once one of its stops is set. So each pass shows that its thread goes on,
    whichever runtime computes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Guards the fields below; held only to look at them."""
        self._is_taken = False
        self._waiting = deque[threading.Event]()
        """Waiting threads in order; each event is set when its thread has the turn."""
        self._held_by: tuple[Stop, ...] = ()
        self._is_lost = False

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def is_watched_by(self, stop: Stop) -> bool:
        """Return whether ``stop`` watches the thread that has the turn."""
        return stop in self._held_by

    def lose(self) -> None:
        """Give up the model: threads that wait for a turn, or ask for one later, get RuntimeError."""
        self._is_lost = True

    def __enter__(self) -> None:
        heed()
        with self._lock:
            mine = threading.Event()
            if self._is_taken:
                self._waiting.append(mine)
            else:
                self._is_taken = True
                mine.set()
        try:
            while not mine.wait(SLICE_SECONDS):
                heed()
                if self._is_lost:
                    break
            if self._is_lost:
                raise RuntimeError("the model was given up: one of its passes did not end")
        except BaseException:
            self._leave(mine)
            raise
        self._held_by = tuple(watching())

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held_by = ()
        self._pass_on()

    def _leave(self, mine: threading.Event) -> None:
        """Leave the queue, or pass on a turn that has come meanwhile."""
        with self._lock:
            waits = not mine.is_set()
            if waits:
                self._waiting.remove(mine)
        if not waits:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_taken = False
