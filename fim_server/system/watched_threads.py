"""Threads watched by their stops: work that looks at its stop is alive, and a stuck thread is given up."""

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
"""Looks in a row without a sign of life after which a thread is stuck. They are counted, not timed: after the machine
slept, the first look finds a silence as long as the night."""

HANDING_OVER_SECONDS = 0.001
"""Rest of a thread after it has answered a request. The waiting thread then runs at once, and not up to 5 ms later,
when Python makes the busy thread give way."""


@dataclass(frozen=True, slots=True)
class Step:
    """Current work of a thread.

    Attributes:
        is_asked: Whether a request waits for it.
        began: Time by ``time.monotonic``.
    """

    stop: Stop
    is_asked: bool
    began: float


class WatchedThread:
    """Thread with a queue of work, each watched by a stop; it can be given up."""

    def __init__(self, name: str, begin: Callable[[], object] = lambda: None) -> None:
        """``begin`` is called on the thread first of all."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=begin)
        self._lock = threading.Lock()
        self._step: Step | None = None
        self._promised: dict[Future[Any], Stop] = {}
        """Unfinished work, and its stops."""
        self._seen: tuple[Step | None, int] = (None, 0)
        self._silent = 0

    @property
    def step(self) -> Step | None:
        """Current work of the thread."""
        return self._step

    @property
    def is_busy(self) -> bool:
        """True while the thread has work, at hand or queued."""
        with self._lock:
            return bool(self._promised)

    def submit(self, stop: Stop, work: Callable[[], T], is_asked: bool = False) -> Future[T]:
        """Queue work, which ``stop`` watches; it begins even if the stop is set. ``is_asked``: see :class:`Step`.

        The future raises what the work raises, and StoppedError once the thread is given up. Raises RuntimeError if the
        thread is closed.
        """
        promised: Future[T] = Future()

        def run() -> None:
            self._step = Step(stop, is_asked, time.monotonic())
            try:
                with stop:
                    result = work()
            except BaseException as error:  # noqa: BLE001  # the waiting thread gets it
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
        """Return for how many checks in a row the work has not polled its stop."""
        step = self._step
        seen = (step, 0 if step is None else step.stop.looks)
        self._silent = self._silent + 1 if step is not None and seen == self._seen else 0
        self._seen = seen
        return self._silent

    def is_stuck(self) -> bool:
        """Look at the thread; return whether it is stuck, by :data:`SILENT_LOOKS`."""
        return self.look() >= SILENT_LOOKS

    def close(self) -> None:
        """Stop the work at hand and the queued work, call :meth:`drop`, and end the thread."""
        with self._lock:
            stops = list(self._promised.values())
        for stop in stops:
            stop.set()
        with suppress(RuntimeError):  # it was closed before
            self._executor.submit(self.drop)
        self._executor.shutdown(wait=False)

    def give_up(self, error: BaseException | None = None) -> None:
        """Close a stuck thread. First, all who wait for its work get the error, in place of that of its stop."""
        with self._lock:
            promised = list(self._promised)
        for one in promised:
            settle(one, error=error or StoppedError("the work did not respond for too long"))
        self.close()

    def rest(self) -> None:
        """Called on the thread after each piece of work."""

    def drop(self) -> None:
        """Called on the thread last of all."""


def settle(promised: Future[Any], result: object = None, error: BaseException | None = None) -> None:
    """Finish a future, unless it is done."""
    with suppress(InvalidStateError):
        if error is not None:
            promised.set_exception(error)
        else:
            promised.set_result(result)
