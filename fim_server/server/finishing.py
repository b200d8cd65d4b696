"""Opening in the background what did not fit while somebody waited, so that it is there at the next keystroke.

A thread of its own does it, below the priority of those that answer where the system lets a thread have one. A document
has one text at a time to be finished: that where its cursor was last.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from fim_server.errors import StoppedError
from fim_server.language import Language, Stop
from fim_server.text.reuse import Sessions

SECONDS = 30.0
"""How long one text may take, by the clock: some five seconds of work for a thread that gives way to all others."""

NICENESS = 5
"""How far below the others the thread is, as of `nice`. Further down it would keep Python's lock from them for long."""

MOST_TRIES, MOST_GIVEN_UP = 2, 64
"""How often a text may take too long before it stays as it is until it changes (the machine may just have been busy),
and of how many texts that is remembered."""


@dataclass(frozen=True, slots=True)
class _Job:
    language: Language
    right: str
    stop: Stop = field(default_factory=Stop)


class Finisher:
    """Opens texts whole on a thread of its own. Safe to use from several threads."""

    def __init__(self, sessions: Sessions, memory: int) -> None:
        """What is opened goes into ``sessions``, if it holds no more bytes than ``memory``."""
        self._sessions = sessions
        self._memory = memory
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._tries: OrderedDict[tuple[Language, int, int], int] = OrderedDict()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fim-finish", initializer=step_back)

    def finish(self, uri: str, language: Language, left: str, right: str) -> None:
        """Have a document's text opened, after those that wait already; what the document had before is left."""
        if self._sessions.knows(language, right):
            return
        with self._lock:
            before = self._jobs.get(uri)
            if before is not None and (before.language, before.right) == (language, right):
                return
            if before is not None:
                before.stop.set()
                del self._jobs[uri]
            if self._tries.get(key_of(language, right), 0) >= MOST_TRIES:
                return
            job = self._jobs[uri] = _Job(language, right)
        with suppress(RuntimeError):  # it was closed
            self._executor.submit(self._finish, uri, job, left)

    def is_finishing(self, uri: str, language: Language, right: str) -> bool:
        """Whether a document's text waits to be opened, or is being."""
        with self._lock:
            job = self._jobs.get(uri)
            return job is not None and (job.language, job.right) == (language, right)

    def leave(self, uri: str) -> None:
        """Open nothing of a document any more."""
        with self._lock:
            job = self._jobs.pop(uri, None)
        if job is not None:
            job.stop.set()

    def clear(self) -> None:
        """Open nothing any more of all that was asked for, and forget what took too long."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
            self._tries.clear()
        for job in jobs:
            job.stop.set()

    def close(self) -> None:
        """Leave what is under way and take nothing more."""
        self.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _finish(self, uri: str, job: _Job, left: str) -> None:
        try:
            if not job.stop.is_set():
                with job.stop, Stop(SECONDS, self._memory):
                    self._sessions.open_ahead(job.language, left, job.right)
        except StoppedError:
            if not job.stop.is_set():
                self._give_up(key_of(job.language, job.right))
        finally:
            with self._lock:
                if self._jobs.get(uri) is job:
                    del self._jobs[uri]

    def _give_up(self, key: tuple[Language, int, int]) -> None:
        with self._lock:
            self._tries[key] = self._tries.pop(key, 0) + 1
            while len(self._tries) > MOST_GIVEN_UP:
                self._tries.popitem(last=False)


def key_of(language: Language, right: str) -> tuple[Language, int, int]:
    """What a text is known by that is not kept itself. Two that share one cost an opening at most."""
    return language, len(right), hash(right)


def step_back() -> None:
    """Put the calling thread below the others, where it has a priority of its own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
