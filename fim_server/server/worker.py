"""The one thread that completes: it loads the model once and then serves one request at a time, the latest first."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server import masks
from fim_server.document import Split
from fim_server.language import Language, LanguageError

if TYPE_CHECKING:
    from fim_server.decode import Completion
    from fim_server.model import FimModel
    from fim_server.server.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one request is about, taken before anything else could change it."""

    split: Split
    language_id: str
    """The editor's name of the language."""
    path: str
    """Names the language where the editor's name is unknown."""

    def language(self, settings: ServerSettings) -> Language:
        """The document's language. Raises LanguageError if it is not one of ours."""
        name = self.language_id if self.language_id in Language.names() else None
        return Language.for_path(self.path, name, {"python": settings.python_version})


@dataclass(frozen=True, slots=True)
class Job:
    """A request under way."""

    future: Future[Completion | None]
    cancelled: threading.Event
    """Stops the work within one forward pass of the model when it is set."""


class CompletionWorker:
    """Completes on a thread of its own, so that the protocol's thread always answers."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fim-complete")
        self._latest = threading.Event()
        self._loading: Future[FimModel] | None = None

    def load(self) -> Future[FimModel]:
        """Start loading the model, once. The future raises ModelError if that fails, now and ever after."""
        if self._loading is None:
            self._loading = self._executor.submit(self._load)
        return self._loading

    def submit(self, snapshot: Snapshot) -> Job:
        """Queue a request and cancel the one before: only the latest cursor matters.

        The job's future gives None where the language is not one of ours, and raises ModelError where there is no
        model.
        """
        self._latest.set()
        self._latest = cancelled = threading.Event()
        loading = self.load()
        return Job(self._executor.submit(self._complete, loading, snapshot, cancelled), cancelled)

    def close(self) -> None:
        """Stop what is under way and take nothing more."""
        self._latest.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> FimModel:
        from fim_server.model import load_model

        model = load_model(self._settings.model, self._settings.device)
        # The first run builds the token tables, a second or two for a large vocabulary: not while someone waits.
        for name in Language.names():
            version = self._settings.python_version if name == "python" else None
            masks.prepare(Language.load(name, version=version), model.vocabulary)
        return model

    def _complete(self, loading: Future[FimModel], snapshot: Snapshot, cancelled: threading.Event) -> Completion | None:
        if cancelled.is_set():
            return None
        from fim_server.decode import DecodeOptions, complete

        try:
            language = snapshot.language(self._settings)
        except LanguageError:
            return None
        options = DecodeOptions(
            max_new_tokens=self._settings.max_new_tokens,
            temperature=self._settings.temperature,
            deadline_ms=self._settings.deadline_ms,
        )
        # The model's job was queued on this same thread before, so its result is there.
        return complete(loading.result(), language, snapshot.split, options, cancelled)
