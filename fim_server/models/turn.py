"""Taking turns at a model, pass by pass, and giving up one whose pass does not end."""

from __future__ import annotations

import threading
from types import TracebackType

from fim_server.language.stop import Stop, heed, watching

SLICE_SECONDS = 0.005
"""How long is waited for a turn before it is looked whether anybody still waits for what it is for."""


class Turn:
    """A lock of threads that share a model: side by side they would slow each other down. ``with turn:`` is one's turn.

    Who wants one is left as the engine is: StoppedError is raised where what watches the thread is set. So each pass
    shows that its thread goes on, whichever runtime it is on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held_by: tuple[Stop, ...] = ()
        self._is_lost = False

    @property
    def is_lost(self) -> bool:
        """Whether the model was given up."""
        return self._is_lost

    def is_watched_by(self, stop: Stop) -> bool:
        """Whether the turn is that of a thread which ``stop`` watches."""
        return stop in self._held_by

    def lose(self) -> None:
        """Give up the model: whoever waits for a turn, or will want one, gets RuntimeError."""
        self._is_lost = True

    def __enter__(self) -> None:
        heed()
        while not self._lock.acquire(timeout=SLICE_SECONDS):
            heed()
            if self._is_lost:
                break
        else:
            self._held_by = tuple(watching())
            if not self._is_lost:
                return
            self._lock.release()
        raise RuntimeError("the model was given up: one of its passes did not end")

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held_by = ()
        self._lock.release()
