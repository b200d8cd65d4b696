"""Open documents and notebooks of the editor.

A cell is a document of its own for positions, ranges and changes. Its notebook is the document for cached answers, for
a worker's thread, and for the project's memory.
"""

from __future__ import annotations

import logging
import re
from copy import deepcopy
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urldefrag

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import Workspace

from fim_server.language import Language
from fim_server.next_edit.edit_memory import EditMemory
from fim_server.server.documents.cut import CELL_SCHEMES, reader_of
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.documents.retention import Retention
from fim_server.text.document import PositionEncoding
from fim_server.text.notebook import Cell, Notebook
from fim_server.text.trimming import trimmed

logger = logging.getLogger(__name__)

SYNC_KIND = types.TextDocumentSyncKind.Incremental

NOTEBOOK_SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook="*", cells=[types.NotebookCellLanguage(name) for name in sorted(Language.names())]
        )
    ],
    save=True,
)
"""Cells that the server asks for: those in its languages, of notebooks of every kind."""

NOTEBOOK_SUFFIX = ".ipynb"
"""End of the name of a document that holds all cells of a notebook, as JupyterLab's extension sends them."""

DIGITS = re.compile(r"(\d+)")


class OpenDocuments(Workspace):
    """Workspace of pygls with :class:`OpenDocument`, and with the cells of each notebook in their order."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.retention = Retention(self.text_of)
        """Accepted texts in these documents."""
        self.edit_memory = EditMemory(self.text_of)
        """Latest edits of these documents."""
        self._edits = 0
        """Number of changes of all documents so far."""
        self._cells: dict[str, Cell] = {}
        """Latest cell by a document's name."""
        self._snapshots: dict[str, tuple[int, Notebook]] = {}
        """Latest notebook by its name, with the number of changes at that time."""

    def put_text_document(self, text_document: types.TextDocumentItem, notebook_uri: str | None = None) -> None:
        self._edits += 1
        self._end_retention(text_document.uri)
        super().put_text_document(text_document, notebook_uri)

    def remove_text_document(self, doc_uri: str) -> None:
        self._edits += 1
        self._end_retention(doc_uri)
        self._cells.pop(self.key_of(doc_uri), None)
        super().remove_text_document(doc_uri)

    def update_text_document(
        self, text_doc: types.VersionedTextDocumentIdentifier, change: types.TextDocumentContentChangeEvent
    ) -> None:
        self._edits += 1
        document = self.opened(text_doc.uri)
        if document is None:
            super().update_text_document(text_doc, change)
            return
        replaced = document.replaced_by(change)
        self.edit_memory.change(document.uri, document.source, *trimmed(document.source, *replaced))
        if not self.retention.watches(document.uri):
            super().update_text_document(text_doc, change)
            return
        self.retention.change(document.uri, document.source, *replaced)
        super().update_text_document(text_doc, change)
        self.retention.changed(document.uri, document.source)

    def put_notebook_document(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        self._edits += 1
        self._notebook_documents[self.key_of(notebook.uri)] = deepcopy(notebook)
        for document in params.cell_text_documents:
            self.put_text_document(document, notebook_uri=notebook.uri)

    def update_notebook_document(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply a change of a notebook: its cells, their data, and their texts.

        Changes of cells that are not the notebook's are ignored.
        """
        notebook = self._notebook_documents[self.key_of(params.notebook_document.uri)]
        notebook.version = params.notebook_document.version
        self._edits += 1
        changes = params.change.cells
        if changes is None:
            return
        if (structure := changes.structure) is not None:
            start, count = structure.array.start, structure.array.delete_count
            notebook.cells = [*notebook.cells[:start], *(structure.array.cells or ()), *notebook.cells[start + count :]]
            for closed in structure.did_close or ():
                self.remove_text_document(closed.uri)
            for opened in structure.did_open or ():
                self.put_text_document(opened, notebook_uri=notebook.uri)
        newer = {cell.document: cell for cell in changes.data or ()}
        notebook.cells = [newer.get(cell.document, cell) for cell in notebook.cells]
        for text in changes.text_content or ():
            if self.key_of(text.document.uri) not in self._text_documents:
                logger.warning("a change of a cell that is not open was ignored")
                continue
            for change in text.changes:
                self.update_text_document(text.document, change)

    def remove_notebook_document(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Forget a closed notebook and all of its cells, named or not."""
        key = self.key_of(params.notebook_document.uri)
        self._edits += 1
        self._notebook_documents.pop(key, None)
        self._snapshots.clear()
        named = [document.uri for document in params.cell_text_documents]
        for uri in [*named, *(cell for cell, of in self._cell_in_notebook.items() if of == key)]:
            self.remove_text_document(uri)

    @staticmethod
    @lru_cache(maxsize=1 << 14)
    def key_of(uri: str) -> str:
        """Return the name under which a document is kept."""
        return unquote(uri)

    def has_notebook(self, uri: str) -> bool:
        return self.key_of(uri) in self._notebook_documents

    def opened(self, uri: str) -> OpenDocument | None:
        """Return the open document of that name, if any. pygls keeps names without percent escapes."""
        document = self.text_documents.get(unquote(uri))
        return document if isinstance(document, OpenDocument) and document.version is not None else None

    def text_of(self, uri: str) -> str | None:
        """Return the text of the open document of that name, if any."""
        document = self.opened(uri)
        return None if document is None else document.source

    def _end_retention(self, uri: str) -> None:
        """Follow no accepted text of a document any more."""
        document = self.opened(uri)
        if document is not None:
            self.retention.close(document.uri, document.source)
            self.edit_memory.close(document.uri, document.source)

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> OpenDocument:
        return OpenDocument(
            doc_uri,
            source=source,
            encoding=PositionEncoding(self.position_encoding or PositionEncoding.UTF16),
            notebook_at=self.notebook_at,
            version=version,
            language_id=None
            if language_id is None
            else Language.name_for_editor(language_id, to_fs_path(doc_uri) or ""),
            sync_kind=self._sync_kind,
            position_codec=self.position_codec,
        )

    def notebook_uri(self, uri: str) -> str | None:
        """Return the notebook of a cell; None for other documents."""
        document = self.opened(uri)
        if document is None or reader_of(document.language_id or "") is None:
            return None
        key = self._cell_in_notebook.get(self.key_of(uri))
        if key is not None and key in self._notebook_documents:
            return self._notebook_documents[key].uri
        if uri.startswith(CELL_SCHEMES):
            return urldefrag(uri).url
        return uri if uri.endswith(NOTEBOOK_SUFFIX) else None

    def left_empty(self, uri: str) -> list[str]:
        """Return the notebook of a closed cell, if no other cell of it is open."""
        owner = urldefrag(uri).url
        self._snapshots.pop(owner, None)
        others = (urldefrag(other).url == self.key_of(owner) for other in self._text_documents)
        return [owner] if uri.startswith(CELL_SCHEMES) and owner != uri and not any(others) else []

    def synchronized(self, uri: str) -> Notebook | None:
        """Return the current state of a notebook that an editor has opened as one."""
        known = self._notebook_documents.get(self.key_of(uri))
        if known is None:
            return None
        edits, snapshot = self._snapshots.get(known.uri, (-1, None))
        if snapshot is None or edits != self._edits:
            found = (self._cell(cell.document) for cell in known.cells if cell.kind is types.NotebookCellKind.Code)
            snapshot = Notebook(known.uri, tuple(cell for cell in found if cell is not None))
            self._snapshots[known.uri] = self._edits, snapshot
        return snapshot

    def _cell(self, uri: str) -> Cell | None:
        """Return an open document as a cell, the same object while its text is the same; None where it is not open."""
        key = self.key_of(uri)
        document, known = self._text_documents.get(key), self._cells.get(key)
        if document is None:
            return None
        text, language = document.source, document.language_id or ""
        if known is None or known.text is not text or known.language != language:
            known = self._cells[key] = Cell(document.uri, language, text)
        return known

    def notebook_at(self, uri: str) -> Notebook | None:
        """Return the current notebook of a cell; None for other documents."""
        owner = self.notebook_uri(uri)
        if owner is None:
            return None
        known = self.synchronized(owner)
        if known is not None:
            return known
        # The editor opens its cells one by one: all with the notebook's name belong to it.
        edits, snapshot = self._snapshots.get(owner, (-1, None))
        if snapshot is None or edits != self._edits:
            names = [document.uri for document in self._text_documents.values()]
            names = sorted((name for name in names if self.notebook_uri(name) == owner), key=natural)
            cells = tuple(cell for cell in map(self._cell, names) if cell is not None)
            snapshot = Notebook(owner, cells, len(cells) > 1 or owner == uri)
            self._snapshots[owner] = self._edits, snapshot
        return snapshot


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers in texts by their values."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in DIGITS.split(text)]
