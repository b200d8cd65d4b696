"""Progress of a download from the hub, which the hub's library reports to its progress bars."""

from __future__ import annotations

import io
import threading
import time
from concurrent.futures import Future, wait
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from fim_server.errors import StoppedError
from fim_server.language.stop import heed, watch_also, watching

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.models.store.transfer import Amount

T = TypeVar("T")

TOLD_SECONDS = 0.2
"""Time between two reports of a download."""

SLICE_SECONDS = 0.05
"""Time between two checks of the need to wait for the library."""


def progress_bar(tell: Amount, total: int = 0) -> type:
    """Return a class of progress bars that draw nothing and report the bytes received, on the library's threads.

    They raise StoppedError, which ends the download, once a stop that watches the calling thread is set. Checking it at
    each block also shows that the download goes on.

    Args:
        tell: Receives the bytes that have come and those of the whole download.
        total: Least number of bytes that will come.
    """
    stops, lock = watching(), threading.RLock()
    base: Any = import_module("tqdm").tqdm
    most = [0, total]
    last = [0.0]

    class Bar(base):  # type: ignore[misc]  # the library's classes have no types
        monitor_interval = 0  # no thread that would draw it anew

        def __init__(self, *values: Any, **options: Any) -> None:
            options.pop("name", None)  # the hub's own bars know it
            self.counts_bytes = options.get("unit") == "B"
            super().__init__(*values, **{**options, "file": io.StringIO(), "disable": False})

        def display(self, *values: Any, **options: Any) -> None:
            """Draw nothing."""

        def refresh(self, *values: Any, **options: Any) -> None:
            """Report a total as soon as it is known: the library counts in steps of 10 MB, which may take a while."""
            with lock:
                self._tell()

        def update(self, count: float | None = 1) -> object:
            if not watching():
                watch_also(stops)
            heed()
            with lock:
                super().update(count)
                self._tell()
            return None

        def _tell(self) -> None:
            if not self.counts_bytes or not (self.n or self.total):
                return
            # Two bars count bytes, those that have come and those that are written: the one that is ahead is told.
            most[0], most[1] = max(most[0], int(self.n)), max(most[1], int(self.total or 0), int(self.n))
            now = time.monotonic()
            if now - last[0] >= TOLD_SECONDS or most[0] == most[1]:
                last[0] = now
                tell(most[0], most[1])

    Bar.set_lock(threading.RLock())  # its own one would start a process
    return Bar


def heeding(work: Callable[[], T]) -> T:
    """Run the library's work on a thread that is abandoned once a stop of this thread is set.

    A hub that sends a byte a second keeps the library waiting forever. Raises the work's errors, and StoppedError.
    """
    found = Future[T]()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it is for the thread that waits
            found.set_exception(error)

    threading.Thread(target=run, name="fim-hub", daemon=True).start()
    while not wait((found,), SLICE_SECONDS).done:
        heed()
    return found.result()


def was_stopped() -> bool:
    """Return whether a stop of this thread is set, so that an error of the library comes from it."""
    try:
        heed()
    except StoppedError:
        return True
    return False
