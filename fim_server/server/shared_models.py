"""What the clients of a process share: loaded models above all, each loaded once, and freed with the last user."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.server.lanes import Lane
    from fim_server.server.settings import ServerSettings

    Key = tuple[str | None, str | None, str | None]


class SharedModels:
    """The models that are loaded, by what was asked for. Used from the threads of all workers.

    Attributes:
        resident: For the budgets of memory (``MemoryBudget``). The protocol's thread's alone, as the next one.
        given_up: The threads that any worker has given up, and that may not have come back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: WeakValueDictionary[Key, FimModel] = WeakValueDictionary()
        self._loading: dict[Key, Future[FimModel]] = {}
        self.resident: dict[object, int] = {}
        self.given_up: list[Lane] = []

    def get(self, settings: ServerSettings, afresh: bool = False) -> FimModel:
        """The model that some settings ask for: loaded here, or by another worker, which is waited for.

        ``afresh``: load it again though it is loaded, for what is on the disk may be another now; who has it keeps it.
        Raises ModelError and what the libraries raise, in each worker that asked; the next one tries again.
        """
        from fim_server.models.load import load_model

        key = settings.model, settings.device, settings.runtime
        with self._lock:
            known = None if afresh else self._loaded.get(key)
            if known is not None and not known.turn.is_lost:
                return known
            loading = self._loading.get(key)
            if loading is None:
                mine = self._loading[key] = Future()
        if loading is not None:
            return loading.result()
        try:
            model = self._loaded[key] = load_model(*key)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(model)
            return model
        finally:
            with self._lock:
                del self._loading[key]
