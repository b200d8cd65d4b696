"""Taking turns at a model, pass by pass, and giving up one whose pass does not end."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType

from fim_server.language.stop import Stop, heed, watching

SLICE_SECONDS = 0.005
"""How long is waited for a turn before it is looked whether anybody still waits for what it is for."""


class Turn:
    """A lock of threads that share a model: side by side they would slow each other down. ``with turn:`` is one's turn.

    Turns are had in the order in which they were asked for. A lock of the system's goes to whoever is running when it
    becomes free, which is the thread that has just given it back: one that reads a long prompt would have all its
    passes before another has one.

    Who wants one is left as the engine is: StoppedError is raised where what watches the thread is set. So each pass
    shows that its thread goes on, whichever runtime it is on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Of what follows; never held for longer than it takes to look at it."""
        self._is_taken = False
        self._waiting = deque[threading.Event]()
        """Those who wait, the first one next; each is set once it has the turn."""
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
        """Want the turn no more, whether or not it has come meanwhile."""
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
