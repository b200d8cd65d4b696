"""Sessions that follow a user's typing: what is right of the cursor is read once, and left of it what is new.

A keystroke changes the left context near its end and leaves the right one as it is. The engine keeps the work on the
right context, and every set of the parse of the left one, for the next session to go on from (`Session.moved`).
"""

from threading import Lock

from fim_server.language import Language, Session


class Sessions:
    """The sessions opened last, each for another right context. Safe to use from several threads.

    A session that it gives answers as one that `Language.open` gives, in whatever order sessions are opened and used.
    Those of one right context share an engine, so calls to them wait for each other.
    """

    def __init__(self, most: int = 8) -> None:
        """Keeps some sessions, of at least one right context."""
        self._most = max(1, most)
        self._lock = Lock()
        self._known: dict[tuple[Language, str], Session] = {}
        """By language object and right context, those used last at the end."""

    def knows(self, language: Language, right: str) -> bool:
        """Whether a session with that right context is kept, so that another one need not read it."""
        with self._lock:
            return (language, right) in self._known

    def open(self, language: Language, left: str, right: str) -> Session:
        """Opens a session as `Language.open` does, going on from an earlier one where there is one to go on from."""
        key = (language, right)
        with self._lock:
            earlier = self._known.get(key)
        # Opening takes milliseconds and needs no lock: two threads that open the same at once do the work twice.
        opened = (earlier and earlier.moved(left)) or language.open(left, right)
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = opened
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return opened
