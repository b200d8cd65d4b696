"""Who may use what: an assertion that something is used by one thread alone."""

from __future__ import annotations

from threading import get_ident


class OneThread:
    """The thread that something belongs to: the first that used it."""

    def __init__(self) -> None:
        self._owner: int | None = None

    def is_current(self) -> bool:
        """Whether the current thread is that one, for an assertion at the beginning of each method."""
        current = get_ident()
        if self._owner is None:
            self._owner = current
        return self._owner == current
