"""Model that writes next edits, loaded beside that of suggestions when it is first wanted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import AwayError, FimServerError, StoppedError
from fim_server.language import Stop
from fim_server.models.remote.address import is_remote
from fim_server.models.remote.client import SilentError
from fim_server.models.source import is_gguf_model
from fim_server.system.watched_threads import WatchedThread

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fim_server.models.model import FimModel
    from fim_server.suggest.settings import ServerSettings
    from fim_server.workers.shared_models import SharedModels


AWAY_SECONDS = 30.0
"""Seconds after which an endpoint that did not answer is asked again, with the next question."""


class EditModel:
    """Model of the setting `nextEditModel`. Used on the event loop's thread."""

    def __init__(self, models: SharedModels) -> None:
        self._models = models
        self._wanted: ServerSettings | None = None
        self._thread: WatchedThread | None = None
        self._stop = Stop()
        self._loading: Future[FimModel] | None = None
        self._began = 0.0
        self._told: Future[FimModel] | None = None
        """The loading whose result was told."""
        self._has_failed = False
        """True once an error of this model was told."""

    def get(self, settings: ServerSettings, own: FimModel | None) -> FimModel | None:
        """Return the model if it is loaded; begin to load it otherwise. ``own``: the model of suggestions."""
        if settings.next_edit_model is None or settings.next_edit_model == settings.model:
            self.close()
            return own
        wanted = settings_of(settings)
        if self._wanted is None or not wanted.loads_like(self._wanted):
            self.close()
            self._begin(wanted)
        elif self._is_away and time.monotonic() - self._began > AWAY_SECONDS:
            self._begin(wanted)
        loading = self._loading
        if loading is None or not loading.done() or loading.exception():
            return None
        model = loading.result()
        if model.turn.is_lost:  # a pass of it did not end: it is loaded again with the next question
            self.close()
            return None
        return model

    def take_news(self) -> FimModel | BaseException | None:
        """Return the loaded model, or why there is none, once."""
        loading = self._loading
        if loading is None or not loading.done() or loading is self._told:
            return None
        error = loading.exception()
        if error is not None and self._has_failed:
            return None
        self._told, self._has_failed = loading, error is not None
        return error or loading.result()

    def close(self) -> None:
        """Stop the loading, and let go of the model."""
        self._end()
        self._wanted = self._thread = self._loading = self._told = None
        self._has_failed = False

    @property
    def _is_away(self) -> bool:
        """True if the model is an endpoint that did not answer."""
        loading = self._loading
        return loading is not None and loading.done() and isinstance(loading.exception(), AwayError | SilentError)

    def _begin(self, wanted: ServerSettings) -> None:
        self._end()
        self._wanted, self._stop, self._thread = wanted, Stop(), WatchedThread("fim-load-edits")
        self._loading = self._thread.submit(self._stop, lambda: self._models.get(wanted))
        self._began = time.monotonic()

    def _end(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.close()


def settings_of(settings: ServerSettings) -> ServerSettings:
    """Return the settings that load the model for edits. Options of other kinds of models do not count."""
    name = settings.next_edit_model or ""
    return replace(
        settings,
        model=settings.next_edit_model,
        runtime=None,
        adapter=None,
        tokenizer=settings.tokenizer if is_remote(name) else None,
        gpu_layers=settings.gpu_layers if is_gguf_model(name) else None,
        api_key_env=settings.api_key_env if is_remote(name) else None,
        allow_plain_http=settings.allow_plain_http and is_remote(name),
    )


def in_words(error: BaseException) -> str:
    """Return why the model could not be loaded, in one line."""
    if isinstance(error, FimServerError) and not isinstance(error, StoppedError):
        return str(error)
    return f"the model for next edits cannot be loaded ({type(error).__name__})"
