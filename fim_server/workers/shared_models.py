"""What the clients of a process share: loaded models above all, each loaded once, and freed with the last user."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from fim_server.errors import DamagedError, StoppedError
from fim_server.language.stop import telling
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
"""A model that has been so long in coming is not waited for by who asks for it later: a network may have been gone."""


class _Loading:
    """A model on its way."""

    def __init__(self) -> None:
        self.found: Future[FimModel] = Future()
        self.began = time.monotonic()
        self.is_settled = threading.Event()
        """Set once it has come, or another one is on its way in its place."""

    @property
    def is_overdue(self) -> bool:
        return time.monotonic() - self.began > OVERDUE_SECONDS


class SharedModels:
    """The models that are loaded, by what was asked for. Used from the threads of all workers.

    Attributes:
        resident: For the budgets of memory (``MemoryBudget``). The protocol's thread's alone, as the next one.
        given_up: The threads that any worker has given up, and that may not have come back.
        warm: The turns of the models that have made passes before.
        paces: How fast the models are, by their turns.
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
        """What the models that are loaded, or on their way, were asked for by; None for the default."""
        with self._lock:
            return {key[0] for key in (*self._loaded, *self._loading)}

    @contextmanager
    def warming_up(self, turn: Turn) -> Iterator[None]:
        """Enter as the only thread that warms up the model of a turn; others wait and learn its pace.

        Raises StoppedError once this thread is told to stop, and RuntimeError where the model was given up.
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
        """The model that some settings ask for: loaded here, or by another worker, which is waited for.

        One that is overdue is not waited for but begun again, and who waits for it already waits for that.
        ``afresh``: load it again though it is loaded, for what is on the disk may be another now; who has it keeps it.
        ``tell``: as :func:`fim_server.models.load.load_model` has it, if it is loaded here.
        While the model in the cache is damaged, the embedded one takes its place.
        Raises ModelError and the libraries' errors in each worker that waits; the next one tries again. Raises
        StoppedError once this thread is told to stop while another worker loads the model.
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
    """Wait for another thread; ``wait`` waits for a number of seconds and returns whether that was enough.

    The waiting thread shows no sign of life: the other one may be stuck, which its watcher has to notice. Raises
    StoppedError once this thread is told to stop.
    """
    stopped = threading.Event()
    with telling(stopped.set):
        while not wait(LOOK_SECONDS):
            if stopped.is_set():
                raise StoppedError("the wait for another thread was stopped")


def load_or_stand_in(key: Key, tell: Amount | None) -> FimModel:
    """Load a model, or the embedded one in place of one of the catalogue that is damaged. Raises as `load_model`."""
    from fim_server.models.load import load_model

    try:
        return load_model(*key, tell)
    except DamagedError:
        if key[0] not in catalogue():
            raise
        return load_model(EMBEDDED_NAME, *key[1:], tell)
