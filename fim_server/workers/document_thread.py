"""Lanes: a thread for each document that is worked at, so that none waits for what another one takes long with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.system.process import release_memory
from fim_server.system.watched_threads import WatchedThread

if TYPE_CHECKING:
    from fim_server.language import Stop
    from fim_server.models.model import FimModel
    from fim_server.suggest.pipeline import Completer


class Lane(WatchedThread):
    """A document's thread, with all that only this thread touches. Used by the protocol's thread."""

    def __init__(self, uri: str, completer: Completer) -> None:
        super().__init__("fim-complete")
        self.uri = uri
        self.completer = completer
        self.asked: Stop | None = None
        """That of the document's latest request."""
        self.model: FimModel | None = None
        """The model of its worker when it was closed, which may have another one since."""

    def rest(self) -> None:
        """Let others have what was used for the work."""
        self.completer.give_back()

    def drop(self) -> None:
        """Give the memory of the sessions back."""
        self.completer.contexts.clear()
        release_memory()
