"""Work that looks at no stop, done on threads of its own: disks and compilers take the time they take.

What a thread waits for on a disk that does not answer, nothing ends. So there are few of them, however many requests
come and go meanwhile, and what is being done already is not begun a second time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

from fim_server.language.stop import heed

T = TypeVar("T")

MOST_ASIDE = 8
"""Threads at a time, of all documents of a process."""

SLICE_SECONDS = 0.005
"""How long another thread is waited for before it is looked whether anybody waits for the request."""


class Aside:
    """Does things on threads of its own, as many at a time as there may be. Safe to use from several threads."""

    def __init__(self, most: int = MOST_ASIDE) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}

    def do(self, key: Hashable, work: Callable[[], T]) -> T:
        """What ``work`` comes to: begun by this call, or by an earlier one of the same ``key`` that is not done yet.

        Where there may be no more threads, waits for one to end. Raises what the work does, and StoppedError once what
        watches the calling thread is set; the work goes on then.
        """
        while (begun := self.begin(key, work)) is None:
            time.sleep(SLICE_SECONDS)
            heed()
        return wait_for(begun)

    def begin(self, key: Hashable, work: Callable[[], T]) -> Future[T] | None:
        """As :meth:`do`, and wait for nothing; None where there may be no more threads."""
        with self._lock:
            found = self._under_way.get(key)
            if found is None and len(self._under_way) < self._most:
                found = Future[T]()
                found.set_running_or_notify_cancel()  # others may wait for it, so that nobody can cancel it
                # A daemon: it may never end, and the process does not wait for it.
                threading.Thread(target=self._run, args=(key, work, found), daemon=True, name="fim-aside").start()
                self._under_way[key] = found
            return found

    def _run(self, key: Hashable, work: Callable[[], object], promised: Future[Any]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # it is for who waits
            self._forget(key)
            promised.set_exception(error)
        else:
            self._forget(key)
            promised.set_result(result)

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            del self._under_way[key]


ASIDE = Aside()
"""That of the process: what its clients read may be on one and the same disk."""


def wait_for(future: Future[T]) -> T:
    """What a future gives, once it does. Raises what it raises, and StoppedError where nobody waits for it any more."""
    while True:
        try:
            return future.result(None if future.done() else SLICE_SECONDS)
        except NotYet:
            if future.done():  # just now, or with an error of this kind
                return future.result()
            heed()
