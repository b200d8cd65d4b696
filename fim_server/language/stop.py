"""Stopping the engine from another thread, or after a time."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from fim_server import _core


class Stop:
    """Leaves what the engine does once nobody waits for it: ``with stop:`` watches what a thread asks it in the block.

    `set` may be called from any thread, at any time. A call that is under way then, or made later in the block, raises
    StoppedError within some milliseconds. What several blocks watch is left for each of them. Sessions and languages
    stay as they were; a state or a matcher that was being moved is not to be used any more.

    A `Stop` is like a `threading.Event` that nobody can wait for.
    """

    def __init__(self, within: float | None = None, holding: int | None = None) -> None:
        """Makes one that is not set.

        Args:
            within: Seconds from now after which it is set by itself.
            holding: Bytes of memory that one call may come to hold more than at its beginning: one that passes them is
                left, too, and the next one may try again.

        Raises:
            ValueError: ``within`` is negative or not a number.
            OverflowError: ``holding`` is negative.
        """
        self._core = _core.Stop(within, holding)

    def set(self) -> None:
        """Stop what is watched."""
        self._core.set()

    def is_set(self) -> bool:
        """Whether it was set, or its time is over."""
        return self._core.is_set()

    def __enter__(self) -> Self:
        self._core.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._core.__exit__(kind, raised, trace)
