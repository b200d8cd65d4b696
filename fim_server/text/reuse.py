"""Sessions that follow a user's typing: what is right of the cursor is read once, and left of it what is new.

A keystroke changes the left context near its end and leaves the right one as it is. The engine keeps the work on the
right context, and every set of the parse of the left one, for the next session to go on from (`Session.moved`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from fim_server.language import Language, Session

OWN_SHARE = 2
"""One document's sessions may hold one part in so many of what those of all may."""

_uses = count()


@dataclass(eq=False)
class _Kept:
    session: Session
    in_use: bool
    used: int
    """When it was last asked for: later ones have larger numbers."""


class _Shelf(dict[tuple["Language", str], _Kept]):
    """By language object and right context, those used last at the end."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # each is itself alone


class SessionMemory:
    """What the sessions of several documents may hold together. Safe to use from several threads.

    Where they hold more, those that were not used for the longest time are forgotten: first those of a document that
    has more than its part, then those of any. What is in use is never forgotten, nor what was used last, so these may
    hold more than the rest of them may.
    """

    def __init__(self, most: int | None = None) -> None:
        """``most``: bytes, by `Session.held`; None: any number."""
        self._most = most
        self.lock = Lock()
        """Held whenever what is kept is looked at or changed, whosever it is."""
        self._shelves: WeakSet[_Shelf] = WeakSet()

    @property
    def most(self) -> int | None:
        """Bytes that the sessions of all documents may hold."""
        return self._most

    @most.setter
    def most(self, most: int | None) -> None:
        with self.changing() as dropped:
            if most != self._most:
                self._most = most
                self.fit(dropped)

    @property
    def held(self) -> int:
        """Bytes that the sessions of all documents hold."""
        with self.changing() as dropped:
            shelves = list(self._shelves)
            dropped += shelves
            return sum(kept.session.held for shelf in shelves for kept in shelf.values())

    @contextmanager
    def changing(self) -> Iterator[list[object]]:
        """Hold the lock in the block. What the block puts into the list is freed after it.

        Freeing a large session takes its time, in which no other document is to wait. The list is also for what may
        have lost its last other owner meanwhile.
        """
        dropped: list[object] = []
        with self.lock:
            yield dropped
        dropped.clear()

    def shelf(self) -> _Shelf:
        """A place for one document's sessions, as long as somebody has it."""
        shelf = _Shelf()
        with self.lock:
            self._shelves.add(shelf)
        return shelf

    def fit(self, dropped: list[object]) -> None:
        """Forget what there is no memory for. The lock is held, by `changing`, whose list ``dropped`` is."""
        if self._most is None:
            return
        shelves = list(self._shelves)
        dropped += shelves
        for shelf in shelves:
            dropped += forget_oldest([shelf], self._most // OWN_SHARE)
        dropped += forget_oldest(shelves, self._most)


def forget_oldest(shelves: list[_Shelf], most: int) -> list[_Kept]:
    """Forget sessions, those used last the last, until they hold no more than so many bytes or cannot be spared.

    Returns what was forgotten.
    """
    entries = [(kept.used, key, kept, shelf) for shelf in shelves for key, kept in shelf.items()]
    entries.sort(key=lambda entry: entry[0])
    too_much = sum(kept.session.held for _, _, kept, _ in entries) - most
    forgotten = []
    for _, key, kept, shelf in entries[:-1]:
        if too_much <= 0:
            break
        if not kept.in_use:
            too_much -= kept.session.held
            forgotten.append(shelf.pop(key))
    return forgotten


class Sessions:
    """The sessions opened last, each for another right context. Safe to use from several threads.

    A session that it gives answers as one that `Language.open` gives, in whatever order sessions are opened and used.
    Those of one right context share an engine, so calls to them wait for each other.
    """

    def __init__(self, most: int = 8, memory: SessionMemory | None = None) -> None:
        """Keeps some sessions, of at least one right context, and as many of them as ``memory`` has room for."""
        self._most = max(1, most)
        self._memory = memory or SessionMemory()
        self._lock = self._memory.lock
        self._known = self._memory.shelf()

    def knows(self, language: Language, right: str) -> bool:
        """Whether a session with that right context is kept, so that another one need not read it."""
        with self._lock:
            return (language, right) in self._known

    def open(self, language: Language, left: str, right: str) -> Session:
        """Opens a session as `Language.open` does, going on from an earlier one where there is one to go on from.

        It is in use from then on, until :meth:`rest`.
        """
        key = (language, right)
        with self._lock:
            known = self._known.get(key)
        # Opening takes milliseconds and needs no lock: two threads that open the same at once do the work twice.
        opened = (known and known.session.moved(left)) or language.open(left, right)
        with self._memory.changing() as dropped:
            dropped.append(self._known.pop(key, None))
            self._known[key] = _Kept(opened, True, next(_uses))
            while len(self._known) > self._most:
                dropped.append(self._known.pop(next(iter(self._known))))
            self._memory.fit(dropped)
        return opened

    def open_ahead(self, language: Language, left: str, right: str) -> None:
        """Opens a session that will be used later: it is in use only if an earlier one was, or somebody asks for it."""
        key = (language, right)
        with self._lock:
            before = self._known.get(key)
        opened = self.open(language, left, right)
        with self._memory.changing() as dropped:
            kept = self._known.get(key)
            if kept is not None and kept.session is opened:
                kept.in_use = before is not None and before.in_use
                self._memory.fit(dropped)

    def rest(self) -> None:
        """Nothing that was opened is in use any more."""
        with self._memory.changing() as dropped:
            for kept in self._known.values():
                kept.in_use = False
            self._memory.fit(dropped)
