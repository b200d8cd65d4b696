"""Stopping the engine from another thread, or after a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from fim_server import _core
from fim_server.errors import StoppedError
from fim_server.language.argument_types import expect_count

_here = threading.local()


class Stop:
    """Flag that ends the engine's work: ``with stop:`` watches the engine calls of a thread in the block.

    `set` may be called from any thread, at any time. A call under way then, or made later in the block, raises
    StoppedError within some milliseconds. Each of several nested blocks ends a call. Sessions and languages stay as
    they were; a state or a matcher that was being moved must not be used any more.

    A `Stop` is like a `threading.Event` without `wait`.
    """

    def __init__(self, within: float | None = None, holding: int | None = None) -> None:
        """Make a flag that is not set.

        Raises ValueError if ``within`` is negative or not a number; OverflowError if ``holding`` is negative.

        Args:
            within: Seconds from now after which it is set by itself.
            holding: Bytes by which one call may increase its memory. A call beyond that ends as well, and the next one
                may try again.
        """
        try:
            self._core = _core.Stop(within, holding)
        except TypeError:
            if holding is not None:
                expect_count("holding", holding)
            raise TypeError(f"within: a number of seconds expected, not {type(within).__name__}") from None
        self._looks = 0
        self._callbacks: set[Callable[[], None]] = set()

    def set(self) -> None:
        self._core.set()
        for callback in tuple(self._callbacks):
            callback()

    def is_set(self) -> bool:
        """Return whether it was set, or its time is over."""
        if self in watching():
            self._looks += 1
        return self._core.is_set()

    @property
    def looks(self) -> int:
        """Return how often the engine, and other watched code, have checked it.

        It grows while a watched call goes on and would heed it.
        """
        return self._core.looks() + self._looks

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` on the thread that sets it; see :func:`on_stop`."""
        self._callbacks.add(callback)

    def remove_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks.discard(callback)

    def __enter__(self) -> Self:
        self._core.__enter__()
        _watched().append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        stops = _watched()
        stops.reverse()
        stops.remove(self)  # the innermost of several blocks
        stops.reverse()
        self._core.__exit__(kind, raised, trace)


def watching() -> Sequence[Stop]:
    """Return the stops that watch the calls of this thread, innermost last."""
    return tuple(_watched())


def watch_also(stops: Sequence[Stop]) -> None:
    """Have this thread watched by the stops of another, as long as it lives."""
    for stop in stops:
        stop.__enter__()


def heed() -> None:
    """Check the stops that watch this thread. Raises StoppedError if one of them is set."""
    are_set = [stop.is_set() for stop in watching()]  # each of them is looked at
    if any(are_set):
        raise StoppedError("what was done is wanted no more")


@contextmanager
def on_stop(callback: Callable[[], None]) -> Iterator[None]:
    """Call ``callback`` once a stop that watches this thread is set in the block, on the thread that sets it.

    At once if one is set already. A time that is over calls nothing.
    """
    stops = watching()
    for stop in stops:
        stop.add_callback(callback)
    try:
        if any(stop.is_set() for stop in stops):
            callback()
        yield
    finally:
        for stop in stops:
            stop.remove_callback(callback)


def _watched() -> list[Stop]:
    found: list[Stop] | None = getattr(_here, "stops", None)
    if found is None:
        found = _here.stops = []
    return found
