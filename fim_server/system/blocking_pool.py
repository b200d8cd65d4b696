"""Blocking work that cannot be cancelled, such as reading a disk, on a few threads of its own.

Nothing ends a thread that waits for a disk that does not answer. So there are few of these threads, however many
requests come and go, and work that is under way is not begun a second time.
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

MOST_THREADS = 8
"""Most threads of a process."""

SLICE_SECONDS = 0.005
"""Time between two looks at the stop of a waiting thread."""


class BlockingPool:
    """Pool of threads for blocking work. Safe to use from several threads."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}

    def run(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result of ``work``, or of the work under way with the same ``key``.

        Waits for a free thread. Raises what the work raises, and StoppedError once the calling thread is stopped; the
        work then goes on.
        """
        while (begun := self.begin(key, work)) is None:
            time.sleep(SLICE_SECONDS)
            heed()
        return wait_for(begun)

    def begin(self, key: Hashable, work: Callable[[], T]) -> Future[T] | None:
        """Begin like :meth:`run`, without waiting; return None if no thread is free."""
        with self._lock:
            found = self._under_way.get(key)
            if found is None and len(self._under_way) < self._most:
                found = Future[T]()
                found.set_running_or_notify_cancel()  # several callers may wait for it, so none may cancel it
                # A daemon: it may never end, and the process does not wait for it.
                threading.Thread(target=self._run, args=(key, work, found), daemon=True, name="fim-blocking").start()
                self._under_way[key] = found
            return found

    def _run(self, key: Hashable, work: Callable[[], object], promised: Future[Any]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # the waiting threads get it
            self._forget(key)
            promised.set_exception(error)
        else:
            self._forget(key)
            promised.set_result(result)

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            del self._under_way[key]


BLOCKING_POOL = BlockingPool()
"""Pool of the process: its clients may all wait for the same disk."""


def wait_for(future: Future[T]) -> T:
    """Return a future's result. Raises what it raises, and StoppedError once this thread is stopped."""
    while True:
        try:
            return future.result(None if future.done() else SLICE_SECONDS)
        except NotYet:
            if future.done():  # just now, or with an error of this kind
                return future.result()
            heed()
