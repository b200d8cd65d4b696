"""Lanes: a thread for each document that is worked at, so that none waits for what another one takes long with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fim_server.errors import StoppedError
from fim_server.server.process import release_memory

if TYPE_CHECKING:
    from fim_server.language import Stop
    from fim_server.models.model import FimModel
    from fim_server.server.completing import Completer

T = TypeVar("T")

SILENT_LOOKS = 10
"""A thread that has looked at its stop at none of so many looks at it is stuck. They are counted, not timed: after a
machine has slept, the first look finds a silence as long as the night."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a lane is at.

    Attributes:
        is_asked: Whether somebody asked for it.
        began: By ``time.monotonic``.
    """

    stop: Stop
    is_asked: bool
    began: float


class Lane:
    """A document's thread, with all that only this thread touches. Used by the protocol's thread."""

    def __init__(self, uri: str, completer: Completer) -> None:
        self.uri = uri
        self.completer = completer
        self.asked: Stop | None = None
        """That of the document's latest request."""
        self.model: FimModel | None = None
        """The model of its worker when it was closed, which may have another one since."""
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fim-complete")
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

        ``is_asked``: as in :class:`Step`. The future raises what the work does, and StoppedError once the lane was
        given up.
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
            finally:
                self.completer.give_back()
                with self._lock:
                    self._step = None
                    del self._promised[promised]

        with self._lock:
            self._promised[promised] = stop
        self._executor.submit(run)
        return promised

    def is_stuck(self) -> bool:
        """Look at the thread: whether its work has not looked at its stop for :data:`SILENT_LOOKS` of these looks."""
        step = self._step
        seen = (step, 0 if step is None else step.stop.looks)
        self._silent = self._silent + 1 if step is not None and seen == self._seen else 0
        self._seen = seen
        return self._silent >= SILENT_LOOKS

    def close(self) -> None:
        """Stop what the thread is at and what waits for it, have it drop what it has, and end it."""
        with self._lock:
            stops = list(self._promised.values())
        for stop in stops:
            stop.set()
        with suppress(RuntimeError):  # it was closed before
            self._executor.submit(self._drop)
        self._executor.shutdown(wait=False)

    def give_up(self) -> None:
        """The same for a thread that is stuck: nobody waits for it any more."""
        self.close()
        with self._lock:
            promised = list(self._promised)
        for one in promised:
            settle(one, error=StoppedError("nothing was heard from the work for too long"))

    def _drop(self) -> None:
        self.completer.contexts.clear()
        release_memory()


def settle(promised: Future[Any], result: object = None, error: BaseException | None = None) -> None:
    """Give a future its end, unless it has one."""
    with suppress(InvalidStateError):
        if error is not None:
            promised.set_exception(error)
        else:
            promised.set_result(result)
