"""Assertion that one thread alone uses an object."""

from __future__ import annotations

from threading import get_ident


class OneThread:
    """Thread that owns an object: the first that used it."""

    def __init__(self) -> None:
        self._owner: int | None = None

    def is_current(self) -> bool:
        """Return whether the current thread is the owner, for an assertion at the beginning of each method."""
        current = get_ident()
        if self._owner is None:
            self._owner = current
        return self._owner == current
