"""Threads whose work is watched by stops: it shows that they are alive, and one that is stuck is given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fim_server.errors import StoppedError

if TYPE_CHECKING:
    from fim_server.language import Stop

T = TypeVar("T")

SILENT_LOOKS = 10
"""A thread that has looked at its stop at none of so many looks at it is stuck. They are counted, not timed: after a
machine has slept, the first look finds a silence as long as the night."""

HANDING_OVER_SECONDS = 0.001
"""How long a thread rests once it has what somebody asked for: who waits runs at once then, and not up to 5 ms later,
when Python takes the thread's turn away from what it goes on with."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread is at.

    Attributes:
        is_asked: Whether somebody asked for it.
        began: By ``time.monotonic``.
    """

    stop: Stop
    is_asked: bool
    began: float


class WatchedThread:
    """A thread that does one thing after another, each watched by a stop, and can be given up."""

    def __init__(self, name: str, begin: Callable[[], object] = lambda: None) -> None:
        """``begin`` is called on the thread before all else."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=begin)
        self._lock = threading.Lock()
        self._step: Step | None = None
        self._promised: dict[Future[Any], Stop] = {}
        """What is not done yet, and what watches it."""
        self._seen: tuple[Step | None, int] = (None, 0)
        self._silent = 0

    @property
    def step(self) -> Step | None:
        """What the thread is at."""
        return self._step

    @property
    def is_busy(self) -> bool:
        """Whether the thread is at something, or has something to do."""
        with self._lock:
            return bool(self._promised)

    def submit(self, stop: Stop, work: Callable[[], T], is_asked: bool = False) -> Future[T]:
        """Queue some work, which ``stop`` watches; it is begun even where that is set.

        ``is_asked``: as in :class:`Step`. The future raises what the work does, and StoppedError once the thread was
        given up. Raises RuntimeError where the thread was closed.
        """
        promised: Future[T] = Future()

        def run() -> None:
            self._step = Step(stop, is_asked, time.monotonic())
            try:
                with stop:
                    result = work()
            except BaseException as error:  # noqa: BLE001  # it is for who waits
                settle(promised, error=error)
            else:
                settle(promised, result)
                if is_asked:
                    time.sleep(HANDING_OVER_SECONDS)
            finally:
                self.rest()
                with self._lock:
                    self._step = None
                    del self._promised[promised]

        with self._lock:
            self._executor.submit(run)
            self._promised[promised] = stop
        return promised

    def look(self) -> int:
        """Look at the thread: for how many of these looks in a row its work has not looked at its stop."""
        step = self._step
        seen = (step, 0 if step is None else step.stop.looks)
        self._silent = self._silent + 1 if step is not None and seen == self._seen else 0
        self._seen = seen
        return self._silent

    def is_stuck(self) -> bool:
        """Look at the thread: whether that is so for :data:`SILENT_LOOKS` of these looks."""
        return self.look() >= SILENT_LOOKS

    def close(self) -> None:
        """Stop what the thread is at and what waits for it, have it drop what it has, and end it."""
        with self._lock:
            stops = list(self._promised.values())
        for stop in stops:
            stop.set()
        with suppress(RuntimeError):  # it was closed before
            self._executor.submit(self.drop)
        self._executor.shutdown(wait=False)

    def give_up(self, error: BaseException | None = None) -> None:
        """The same for a thread that is stuck: nobody waits for it any more, and who does gets an error."""
        self.close()
        with self._lock:
            promised = list(self._promised)
        for one in promised:
            settle(one, error=error or StoppedError("nothing was heard from the work for too long"))

    def rest(self) -> None:
        """Called on the thread after each work."""

    def drop(self) -> None:
        """Called on the thread as the last of all."""


def settle(promised: Future[Any], result: object = None, error: BaseException | None = None) -> None:
    """Give a future its end, unless it has one."""
    with suppress(InvalidStateError):
        if error is not None:
            promised.set_exception(error)
        else:
            promised.set_result(result)
