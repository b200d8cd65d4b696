"""Models shared by the clients of a process: each is loaded once, and freed with its last user."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from fim_server.errors import DamagedError, StoppedError
from fim_server.language.stop import on_stop
from fim_server.models.source import EMBEDDED_NAME
from fim_server.models.store.catalogue import catalogue

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.options import LoadOptions
    from fim_server.models.pace import Pace
    from fim_server.models.store.transfer import Amount
    from fim_server.models.turn import Turn
    from fim_server.suggest.settings import ServerSettings
    from fim_server.system.watched_threads import WatchedThread

    Key = tuple[str | None, str | None, str | None, LoadOptions]


LOOK_SECONDS = 0.05
"""Time between two checks of the need to wait for another thread."""

OVERDUE_SECONDS = 30.0
"""Age of a loading for which later requests no longer wait, but begin again: the network may have been down."""


class _Loading:
    """Loading of a model."""

    def __init__(self) -> None:
        self.found: Future[FimModel] = Future()
        self.began = time.monotonic()
        self.is_settled = threading.Event()
        """Set once it is done, or another loading has replaced it."""

    @property
    def is_overdue(self) -> bool:
        return time.monotonic() - self.began > OVERDUE_SECONDS


class SharedModels:
    """Loaded models by the settings that ask for them. Used on the threads of all workers.

    Attributes:
        resident: Shared by the memory budgets (``MemoryBudget``), on the event loop's thread only.
        given_up: Threads that workers have given up and that may not have come back; on the same thread only.
        warm: Turns of the models that have made passes.
        paces: Speeds of the models, by their turns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: WeakValueDictionary[Key, FimModel] = WeakValueDictionary()
        self._loading: dict[Key, _Loading] = {}
        self.resident: dict[object, int] = {}
        self.given_up: list[WatchedThread] = []
        self.warm: WeakSet[Turn] = WeakSet()
        self.paces: WeakKeyDictionary[Turn, Pace] = WeakKeyDictionary()
        self._warming: WeakKeyDictionary[Turn, threading.Lock] = WeakKeyDictionary()

    def names(self) -> set[str | None]:
        """Return the names by which models are loaded or being loaded; None for the default."""
        with self._lock:
            return {key[0] for key in (*self._loaded, *self._loading)}

    @contextmanager
    def warming_up(self, turn: Turn) -> Iterator[None]:
        """Enter as the only thread that warms up a turn's model; other threads wait and find its pace.

        Raises StoppedError once this thread is stopped, and RuntimeError if the model was given up.
        """
        with self._lock:
            lock = self._warming.setdefault(turn, threading.Lock())

        def is_mine(seconds: float) -> bool:
            if turn.is_lost:
                raise RuntimeError("the model was given up")
            return lock.acquire(timeout=seconds)

        wait_unless_stopped(is_mine)
        try:
            yield
        finally:
            lock.release()

    def get(self, settings: ServerSettings, afresh: bool = False, tell: Amount | None = None) -> FimModel:
        """Return the model that ``settings`` ask for: load it, or wait for the worker that loads it.

        An overdue loading begins again, and its waiting workers wait for the new one. A damaged model of the catalogue
        is replaced by the embedded one.

        ``afresh`` loads it from the disk even if it is loaded; its users keep theirs. ``tell``: see
        :func:`fim_server.models.load.load_model`. Raises ModelError and errors of libraries in each worker that waits;
        the next worker tries again. Raises StoppedError if this thread is stopped while another worker loads the model.
        """
        key = settings.model, settings.device, settings.runtime, settings.load_options
        has_waited = False
        while True:
            with self._lock:
                known = None if afresh else self._loaded.get(key)
                if known is not None and not known.turn.is_lost:
                    return known
                loading = self._loading.get(key)
                if loading is None or (loading.is_overdue and not has_waited):
                    mine = self._loading[key] = _Loading()
                    break
            wait_unless_stopped(loading.is_settled.wait)
            if loading.found.done() and not isinstance(loading.found.exception(), StoppedError):
                return loading.found.result()
            afresh, has_waited = False, True
        if loading is not None:
            loading.is_settled.set()
        try:
            model = load_or_stand_in(key, tell)
        except BaseException as error:
            mine.found.set_exception(error)
            raise
        else:
            mine.found.set_result(model)
            return model
        finally:
            with self._lock:
                if self._loading.get(key) is mine:
                    del self._loading[key]
                    if mine.found.exception() is None:
                        self._loaded[key] = mine.found.result()
            mine.is_settled.set()


def wait_unless_stopped(wait: Callable[[float], bool]) -> None:
    """Wait for another thread; ``wait`` waits for some seconds and returns whether that was enough.

    The waiting thread shows no sign of life, so that the supervisor notices if the other thread is stuck. Raises
    StoppedError once this thread is stopped.
    """
    stopped = threading.Event()
    with on_stop(stopped.set):
        while not wait(LOOK_SECONDS):
            if stopped.is_set():
                raise StoppedError("the wait for another thread was stopped")


def load_or_stand_in(key: Key, tell: Amount | None) -> FimModel:
    """Load a model, or the embedded one in place of a damaged one of the catalogue. Raises like `load_model`."""
    from fim_server.models.load import load_model

    try:
        return load_model(*key, tell)
    except DamagedError:
        if key[0] not in catalogue():
            raise
        return load_model(EMBEDDED_NAME, *key[1:], tell)
