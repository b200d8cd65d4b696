"""Protocol of one client, with its open documents and the arrivals of its requests."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from fim_server.next_edit.edit_memory import EditMemory
from fim_server.server.connection.answering import AnsweringProtocol
from fim_server.server.connection.incoming import mend
from fim_server.server.documents.notebook_messages import closed_by, respell
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.documents.retention import Retention
from fim_server.server.documents.spellings import Spellings
from fim_server.server.documents.workspace import SYNC_KIND, OpenDocuments
from fim_server.system.one_thread import OneThread

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Arrival of a request: time by ``time.perf_counter``, and the document then."""

    at: float
    document: OpenDocument | None
    version: int | None


MOST_ARRIVALS = 64

NOTEBOOK_METHODS = frozenset(
    {
        types.NOTEBOOK_DOCUMENT_DID_OPEN,
        types.NOTEBOOK_DOCUMENT_DID_CHANGE,
        types.NOTEBOOK_DOCUMENT_DID_SAVE,
        types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    }
)

COMPLETIONS = frozenset({types.TEXT_DOCUMENT_INLINE_COMPLETION, types.TEXT_DOCUMENT_COMPLETION})


class DocumentProtocol(AnsweringProtocol):
    """Protocol with a workspace of ours, which keeps the document of each request for completions as it arrived.

    The coroutine of a handler starts only after all messages of its packet. By then a change that the client sent right
    after its request would be in the document. One thread handles all messages and changes all documents.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._thread = OneThread()
        self._arrivals: dict[int, Arrival] = {}
        self._changes: dict[str, tuple[float, float]] = {}
        self.spellings = Spellings()
        """Spellings of the open documents' names."""

    def opened(self, uri: str) -> OpenDocument | None:
        """Return the open document of that name in any spelling, if there is one."""
        return self._workspace.opened(self.spellings.of(uri)) if isinstance(self._workspace, OpenDocuments) else None

    def retention(self) -> Retention:
        """Return the accepted texts of the open documents, of which there are none before `initialize`."""
        assert isinstance(self._workspace, OpenDocuments)
        return self._workspace.retention

    def edit_memory(self) -> EditMemory:
        """Return the latest edits of the open documents, of which there are none before `initialize`."""
        assert isinstance(self._workspace, OpenDocuments)
        return self._workspace.edit_memory

    def owner_of(self, uri: str) -> str:
        """Return the document that holds a document's program: for a cell its notebook."""
        uri = self.spellings.of(uri)
        owner = self._workspace.notebook_uri(uri) if isinstance(self._workspace, OpenDocuments) else None
        return uri if owner is None else owner

    def closed_with(self, uri: str) -> list[str]:
        """Return a closed document, and its notebook where this was the last open cell."""
        return [uri, *(self._workspace.left_empty(uri) if isinstance(self._workspace, OpenDocuments) else ())]

    def arrival_of(self, params: Any) -> Arrival:
        """Return and forget the arrival of a request for completions."""
        arrival = self._arrivals.pop(id(params), None)
        return self._arrive(params) if arrival is None else arrival

    def typing_pause_ms(self, uri: str) -> float | None:
        """Return the milliseconds between the last two changes of a document; None if there were not two."""
        last, before = self._changes.get(uri, (0.0, 0.0))
        return 1000 * (last - before) if before else None

    def since_change_ms(self, uri: str) -> float | None:
        """Return the milliseconds since the last change of a document; None if there was none."""
        changes = self._changes.get(uri)
        return None if changes is None else 1000 * (time.perf_counter() - changes[0])

    def _arrive(self, params: Any) -> Arrival:
        opened = self.opened(params.text_document.uri)
        if opened is None:
            return Arrival(time.perf_counter(), None, None)
        return Arrival(time.perf_counter(), opened.frozen(), opened.version)

    def _handle_request(self, msg_id: Any, method_name: str, params: Any) -> None:
        assert self._thread.is_current()
        self.spellings.respell(getattr(params, "text_document", None))
        if method_name in COMPLETIONS and self._workspace is not None:
            self._arrivals[id(params)] = self._arrive(params)
            while len(self._arrivals) > MOST_ARRIVALS:  # a handler that is cancelled before it starts takes none
                del self._arrivals[next(iter(self._arrivals))]
        super()._handle_request(msg_id, method_name, params)

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """Run a handler and forget its future: pygls keeps those of notifications for ever."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(partial(self._forget, msg_id))

    def _forget(self, msg_id: Any, done: Any) -> None:
        if self._request_futures.get(msg_id) is done:  # a client may use a number again
            self._request_futures.pop(msg_id, None)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return a message in the protocol's types; answer an invalid request, which pygls does not."""
        try:
            if "jsonrpc" in data:
                mend(data, self._next_version)
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                refusal = error if isinstance(error, JsonRpcInvalidParams) else JsonRpcInvalidParams()
                self.on_loop(lambda: self._send_response(data["id"], None, refusal.to_response_error()))
            raise

    def _next_version(self, uri: str) -> int:
        opened = self.opened(uri)
        return 0 if opened is None else (opened.version or 0) + 1

    def _send_data(self, data: Any) -> None:
        """Send, and ignore that the editor has gone: the end of its messages ends its work."""
        with contextlib.suppress(OSError):
            super()._send_data(data)

    def _handle_notification(self, method_name: str, params: Any) -> None:
        assert self._thread.is_current()
        if method_name == types.TEXT_DOCUMENT_DID_OPEN:
            self.spellings.open(params.text_document.uri)
        self.spellings.respell(getattr(params, "text_document", None))
        if method_name in NOTEBOOK_METHODS:
            respell(self.spellings, params)
        if method_name == types.TEXT_DOCUMENT_DID_CHANGE:
            uri = params.text_document.uri
            if self.opened(uri) is None:  # vscode-languageclient undoes changes after it has closed a file
                logger.warning("a change of a document that is not open was ignored")
                return
            self._note_changes(uri)
        elif method_name == types.NOTEBOOK_DOCUMENT_DID_CHANGE:
            cells = params.change.cells
            if not self._knows_notebook(params.notebook_document.uri):
                logger.warning("a change of a notebook that is not open was ignored")
                return
            self._note_changes(*(text.document.uri for text in (cells and cells.text_content) or ()))
        elif method_name == types.TEXT_DOCUMENT_DID_CLOSE:
            self._changes.pop(params.text_document.uri, None)
        super()._handle_notification(method_name, params)
        if method_name == types.TEXT_DOCUMENT_DID_CLOSE:
            self.spellings.close(params.text_document.uri)
        elif method_name in NOTEBOOK_METHODS:
            for uri in closed_by(params):
                if self.opened(uri) is None:
                    self.spellings.close(uri)

    def _knows_notebook(self, uri: str) -> bool:
        return isinstance(self._workspace, OpenDocuments) and self._workspace.has_notebook(uri)

    def _note_changes(self, *uris: str) -> None:
        """Note the time of a change of documents and of their notebooks."""
        for uri in {*uris, *map(self.owner_of, uris)}:
            self._changes[uri] = (time.perf_counter(), self._changes.get(uri, (0.0, 0.0))[0])

    def replace_workspace(self) -> None:
        """Replace pygls' workspace by :class:`OpenDocuments`, before any document is opened."""
        theirs = self.workspace
        self._workspace = OpenDocuments(
            theirs.root_uri, SYNC_KIND, list(theirs.folders.values()), theirs.position_encoding
        )
