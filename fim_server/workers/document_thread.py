"""Thread of one document, so that no document waits for slow work on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.language import Stop
from fim_server.system.process import release_memory
from fim_server.system.watched_threads import WatchedThread

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.suggest.pipeline import Completer


class DocumentThread(WatchedThread):
    """Thread of a document, with the completer that it alone uses. The event loop's thread owns this object."""

    def __init__(self, uri: str, completer: Completer) -> None:
        super().__init__("fim-complete")
        self.uri = uri
        self.completer = completer
        self._latest: Stop | None = None
        """Stop of the document's latest request."""
        self.model: FimModel | None = None
        """Model that its work uses, if the worker may have another one: it is closed, or proposes next edits."""

    def renew_stop(self) -> Stop:
        """Stop the document's latest request, and return the stop of a new one."""
        if self._latest is not None:
            self._latest.set()
        self._latest = Stop()
        return self._latest

    def rest(self) -> None:
        """Let other threads use the sessions."""
        self.completer.give_back()

    def drop(self) -> None:
        """Release the memory of the sessions."""
        self.completer.contexts.clear()
        release_memory()
