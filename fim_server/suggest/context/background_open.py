"""Opening of large texts in the background, so that the whole is there at a later keystroke.

Each document has a thread for it, with a lower priority than the threads that answer, and one text at a time: that of
its last cursor. A stuck thread is abandoned, as a document's thread is.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from fim_server.errors import StoppedError
from fim_server.language import Language, Stop
from fim_server.system.watched_threads import WatchedThread
from fim_server.text.reuse import Sessions

SECONDS = 30.0
"""Time for one text by the clock, in which a thread of low priority works some five seconds."""

NICENESS = 5
"""Priority below the other threads, as of `nice`. With a lower one, the thread would keep Python's lock for long."""

MOST_TRIES, MOST_GIVEN_UP = 2, 64
"""Most tries of a text that takes too long, because the machine may be busy, and most texts whose tries are kept."""


Key = tuple[Language, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    uri: str
    language: Language
    left: str
    right: str
    stop: Stop = field(default_factory=Stop)

    @property
    def key(self) -> Key:
        return key_of(self.language, self.right)


@dataclass(frozen=True, slots=True)
class StuckFinish:
    """An abandoned thread.

    Attributes:
        uri: The document whose text it was to open.
        left: Whether that text was not wanted any more.
        thread: The thread.
    """

    uri: str
    left: bool
    thread: WatchedThread


class Unfinished:
    """Finishers that are at work, and texts that none of them may begin again.

    Safe to use from several threads, except that one alone calls :meth:`replace_stuck`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: list[Finisher] = []
        self._texts: OrderedDict[Key, None] = OrderedDict()
        self._documents: set[str] = set()

    @property
    def is_at_work(self) -> bool:
        with self._lock:
            self._at_work = [one for one in self._at_work if one.is_busy]
            return bool(self._at_work)

    @property
    def documents(self) -> list[str]:
        """Return the documents that are not opened in the background until they change."""
        with self._lock:
            return sorted(self._documents)

    def begin(self, finisher: Finisher) -> None:
        with self._lock:
            if finisher not in self._at_work:
                self._at_work.append(finisher)

    def may_begin(self, uri: str, key: Key) -> bool:
        """Return whether no thread was abandoned at a text, or at a document since its last change."""
        with self._lock:
            return key not in self._texts and uri not in self._documents

    def changed(self, uri: str) -> None:
        with self._lock:
            self._documents.discard(uri)

    def replace_stuck(self) -> list[StuckFinish]:
        """Replace the stuck threads of all finishers at work, and return them."""
        found = []
        if self.is_at_work:
            with self._lock:
                at_work = list(self._at_work)
            for finisher in at_work:
                found += finisher.replace_stuck()
        return found

    def give_up(self, uri: str, key: Key, left: bool) -> None:
        """Note that a thread was abandoned at a text and, unless that was ``left``, at a document."""
        with self._lock:
            self._texts[key] = None
            while len(self._texts) > MOST_GIVEN_UP:
                self._texts.popitem(last=False)
            if not left:
                self._documents.add(uri)


class Finisher:
    """Opens texts whole on a thread of its own. Safe to use from several threads."""

    def __init__(self, sessions: Sessions, memory: int, unfinished: Unfinished | None = None) -> None:
        """Make a finisher.

        Args:
            sessions: The opened sessions go there.
            memory: Most bytes of a session.
            unfinished: Watches the thread.
        """
        self._sessions = sessions
        self._memory = memory
        self._unfinished = unfinished or Unfinished()
        self._lock = threading.RLock()
        self._jobs: dict[str, _Job] = {}
        self._tries: OrderedDict[Key, int] = OrderedDict()
        self._thread = WatchedThread("fim-finish", step_back)
        self._at: _Job | None = None
        """Work of the thread, wanted or not."""

    @property
    def is_busy(self) -> bool:
        return self._thread.is_busy

    def finish(self, uri: str, language: Language, left: str, right: str) -> None:
        """Open a document's text after those that wait already, in place of the document's earlier text."""
        if self._sessions.knows(language, right):
            return
        with self._lock:
            before = self._jobs.get(uri)
            if before is not None and (before.language, before.right) == (language, right):
                return
            if before is not None:
                before.stop.set()
                del self._jobs[uri]
            key = key_of(language, right)
            if self._tries.get(key, 0) >= MOST_TRIES or not self._unfinished.may_begin(uri, key):
                return
            self._begin(_Job(uri, language, left, right))

    def is_finishing(self, uri: str, language: Language, right: str) -> bool:
        """Return whether a document's text is being opened, or waits for it."""
        with self._lock:
            job = self._jobs.get(uri)
            return job is not None and (job.language, job.right) == (language, right)

    def leave(self, uri: str) -> None:
        with self._lock:
            job = self._jobs.pop(uri, None)
        if job is not None:
            job.stop.set()

    def clear(self) -> None:
        """Stop all opening, and forget which texts took too long."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
            self._tries.clear()
        for job in jobs:
            job.stop.set()

    def close(self) -> None:
        """Stop all opening, and take no more work."""
        self.clear()
        self._thread.close()

    def replace_stuck(self) -> list[StuckFinish]:
        """Abandon the thread if it is stuck, and return it; another one takes over the waiting texts.

        Call this regularly, also for a closed finisher: its thread may keep a processor busy.
        """
        with self._lock:
            thread, job = self._thread, self._at
            if not thread.is_stuck() or job is None:
                return []
            left = self._jobs.get(job.uri) is not job
            self._unfinished.give_up(job.uri, job.key, left)
            waiting = [other for other in self._jobs.values() if other is not job]
            self._jobs.clear()
            self._thread, self._at = WatchedThread("fim-finish", step_back), None
            thread.give_up()
            for other in waiting:
                self._begin(_Job(other.uri, other.language, other.left, other.right))
        return [StuckFinish(job.uri, left, thread)]

    def _begin(self, job: _Job) -> None:
        thread = self._thread
        self._jobs[job.uri] = job
        try:
            thread.submit(job.stop, lambda: self._finish(thread, job))
        except RuntimeError:  # it was closed
            del self._jobs[job.uri]
        else:
            self._unfinished.begin(self)

    def _finish(self, thread: WatchedThread, job: _Job) -> None:
        with self._lock:
            if thread is not self._thread:
                return
            self._at = job
        try:
            if not job.stop.is_set():
                with Stop(SECONDS, self._memory):
                    self._sessions.open_ahead(job.language, job.left, job.right)
        except StoppedError:
            if not job.stop.is_set():
                self._give_up(job.key)
        finally:
            with self._lock:
                if self._at is job:
                    self._at = None
                if self._jobs.get(job.uri) is job:
                    del self._jobs[job.uri]

    def _give_up(self, key: Key) -> None:
        with self._lock:
            self._tries[key] = self._tries.pop(key, 0) + 1
            while len(self._tries) > MOST_GIVEN_UP:
                self._tries.popitem(last=False)


def key_of(language: Language, right: str) -> Key:
    """Return a key for a text that is not kept. Two texts with one key cost an opening at most."""
    return language, len(right), hash(right)


def step_back() -> None:
    """Put the calling thread below the others, where it has a priority of its own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
