"""Sessions that follow a user's typing: they read the right context once, and of the left one only the new text.

A keystroke changes the left context near its end and leaves the right one as it is. The engine keeps its work on the
right context, and every Earley set of the left one, for the next session (`Session.moved`).
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
"""One document's sessions may hold this fraction's part (1/2) of the bytes of all."""

_uses = count()


@dataclass(eq=False)
class _Kept:
    session: Session
    in_use: bool
    used: int
    """Order of use: later ones have larger numbers."""


class _Shelf(dict[tuple["Language", str], _Kept]):
    """Sessions by language object and right context, those used last at the end."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # each is itself alone


class SessionMemory:
    """Memory that the sessions of several documents may hold together. Safe to use from several threads.

    Beyond it, the least recently used sessions are forgotten: first those of a document with more than its part, then
    those of any. Sessions in use and the one used last stay, even if these hold more.
    """

    def __init__(self, most: int | None = None) -> None:
        """Limit the bytes, by `Session.held`; None: no limit."""
        self._most = most
        self.lock = Lock()
        """Guards the sessions of all documents."""
        self._shelves: WeakSet[_Shelf] = WeakSet()

    @property
    def most(self) -> int | None:
        """Return the bytes that the sessions of all documents may hold."""
        return self._most

    @most.setter
    def most(self, most: int | None) -> None:
        with self.changing() as dropped:
            if most != self._most:
                self._most = most
                self.fit(dropped)

    @property
    def held(self) -> int:
        """Return the bytes that the sessions of all documents hold."""
        with self.changing() as dropped:
            shelves = list(self._shelves)
            dropped += shelves
            return sum(kept.session.held for shelf in shelves for kept in shelf.values())

    @contextmanager
    def changing(self) -> Iterator[list[object]]:
        """Hold the lock in the block; free the objects that the block puts into the list after it.

        Freeing a large session takes time, for which no other document should wait. The list also takes objects that
        may lose their last other owner meanwhile.
        """
        dropped: list[object] = []
        with self.lock:
            yield dropped
        dropped.clear()

    def shelf(self) -> _Shelf:
        """Return a place for one document's sessions, which lasts as long as a reference to it."""
        shelf = _Shelf()
        with self.lock:
            self._shelves.add(shelf)
        return shelf

    def fit(self, dropped: list[object]) -> None:
        """Forget sessions beyond the limit. The caller holds the lock by `changing`, whose list ``dropped`` is."""
        if self._most is None:
            return
        shelves = list(self._shelves)
        dropped += shelves
        for shelf in shelves:
            dropped += forget_oldest([shelf], self._most // OWN_SHARE)
        dropped += forget_oldest(shelves, self._most)


def forget_oldest(shelves: list[_Shelf], most: int) -> list[_Kept]:
    """Forget unused sessions, the least recently used first, down to ``most`` bytes; return those forgotten."""
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
    """Sessions opened last, each for another right context. Safe to use from several threads.

    Each answers as one of `Language.open`, in whatever order sessions are opened and used. Those of one right context
    share an engine, so calls to them wait for each other.
    """

    def __init__(self, most: int = 8, memory: SessionMemory | None = None) -> None:
        """Keep up to ``most`` sessions, at least one, within the limit of ``memory``."""
        self._most = max(1, most)
        self._memory = memory or SessionMemory()
        self._lock = self._memory.lock
        self._known = self._memory.shelf()

    def knows(self, language: Language, right: str) -> bool:
        """Return whether a session with that right context is kept, so that another one need not read it."""
        with self._lock:
            return (language, right) in self._known

    def open(self, language: Language, left: str, right: str) -> Session:
        """Open a session as `Language.open` does, from an earlier one if possible; it is in use until :meth:`rest`."""
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
        """Open a session for later: it is in use only if an earlier one was, or once it is opened again."""
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
        with self._memory.changing() as dropped:
            for kept in self._known.values():
                kept.in_use = False
            self._memory.fit(dropped)
