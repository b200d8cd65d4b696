"""Notebooks: their cells as editors synchronize them, and a request's cursor in one of them.

A cell is a document of its own for positions, ranges and changes. Its notebook is the document for remembered answers,
for a worker's thread, and for the project's memory.
"""

from __future__ import annotations

import logging
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urldefrag

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import Workspace

from fim_server.language import Language
from fim_server.language_support.registry import support_of
from fim_server.server.documents.spellings import Spellings
from fim_server.text import notebook as program
from fim_server.text.notebook import Cell, CellContexts, Notebook

if TYPE_CHECKING:
    from fim_server.text.document import Document, Split
    from fim_server.text.notebook import Reader

logger = logging.getLogger(__name__)

LANGUAGES = frozenset(Language.names())

SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook="*", cells=[types.NotebookCellLanguage(name) for name in sorted(LANGUAGES)]
        )
    ],
    save=True,
)
"""The cells that the server asks for: those in its languages, of notebooks of every kind."""

CELL_SCHEMES = ("vscode-notebook-cell:", "vscode-interactive-input:")
"""Schemes of documents that are cells, also where the editor tells of no notebook."""

NOTEBOOK_SUFFIX = ".ipynb"
"""End of the name of a document that holds all cells of a notebook, as JupyterLab's extension sends them."""

DIGITS = re.compile(r"(\d+)")


class TextOpened(Protocol):
    """Document that an editor has open."""

    @property
    def uri(self) -> str:
        """Name of the document in the editor."""

    @property
    def path(self) -> str | None:
        """File of the document, if there is one."""

    @property
    def language_id(self) -> str | None:
        """Name of its language in the editor."""

    @property
    def document(self) -> Document:
        """Current text."""

    @property
    def notebook(self) -> Notebook | None:
        """Notebook of the cell at this moment."""


def changes_of(
    params: Any,
) -> tuple[types.NotebookDocumentCellChanges | None, types.NotebookDocumentCellChangeStructure | None]:
    """Return the changes of cells in a message, and those of their order; None without."""
    changes = params.change.cells if isinstance(params, types.DidChangeNotebookDocumentParams) else None
    return changes, None if changes is None else changes.structure


def respell(spellings: Spellings, params: Any) -> None:
    """Give a message's cells and notebook the spellings by which they were opened."""
    opened: list[Any]
    if isinstance(params, types.DidOpenNotebookDocumentParams):
        opened, cells = [params.notebook_document, *params.cell_text_documents], list(params.notebook_document.cells)
    else:
        changes, structure = changes_of(params)
        opened = [] if structure is None else list(structure.did_open or ())
        cells = [] if changes is None else [*(changes.data or ()), *((structure and structure.array.cells) or ())]
        named: list[Any] = [] if changes is None else [text.document for text in changes.text_content or ()]
        named += () if structure is None else structure.did_close or ()
        named += getattr(params, "cell_text_documents", ())
        for document in (params.notebook_document, *named):
            spellings.respell(document)
    for document in opened:
        document.uri = spellings.open(document.uri)
    for cell in cells:
        cell.document = spellings.of(cell.document)


def closed_by(params: Any) -> list[str]:
    """Return the notebook and the cells that a message closes."""
    if isinstance(params, types.DidCloseNotebookDocumentParams):
        return [params.notebook_document.uri, *(document.uri for document in params.cell_text_documents)]
    structure = changes_of(params)[1]
    return [] if structure is None else [document.uri for document in structure.did_close or ()]


class NotebookWorkspace(Workspace):
    """Workspace of pygls that knows the cells of each notebook in their order."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._edits = 0
        """Number of changes of all documents so far."""
        self._cells: dict[str, Cell] = {}
        """Latest cell by a document's name."""
        self._snapshots: dict[str, tuple[int, Notebook]] = {}
        """Latest notebook by its name, with the number of changes at that time."""

    def put_text_document(self, text_document: types.TextDocumentItem, notebook_uri: str | None = None) -> None:
        self._edits += 1
        super().put_text_document(text_document, notebook_uri)

    def remove_text_document(self, doc_uri: str) -> None:
        self._edits += 1
        self._cells.pop(self.key_of(doc_uri), None)
        super().remove_text_document(doc_uri)

    def update_text_document(
        self, text_doc: types.VersionedTextDocumentIdentifier, change: types.TextDocumentContentChangeEvent
    ) -> None:
        self._edits += 1
        super().update_text_document(text_doc, change)

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

    def opened(self, uri: str) -> TextOpened | None:
        """Return the document that an editor has open under that name, if any."""
        raise NotImplementedError

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


@dataclass(frozen=True, slots=True)
class Cut:
    """Cursor of a request.

    Attributes:
        uri: The document that holds the program: for a cell its notebook.
        path: The program's file; empty where there is none.
        split: The program, cut at the cursor.
        cell: The contexts of a cursor in a cell.
    """

    uri: str
    path: str
    split: Split
    cell: CellContexts | None = None

    @property
    def one_line(self) -> bool:
        """True where no line break may be written."""
        return self.cell is not None and self.cell.one_line


def cut_of(document: TextOpened, split: Split) -> Cut | str:
    """Return the cursor of a request in a document's own text, or the reason for having no suggestion."""
    notebook = document.notebook
    reader = None if notebook is None else reader_of(document.language_id or "")
    if notebook is None or reader is None:
        return Cut(document.uri if notebook is None else notebook.uri, document.path or "", split)
    found = program.cut(notebook, document.uri, split, reader)
    return found if isinstance(found, str) else Cut(notebook.uri, path_of(notebook.uri), *found)


def text_of(document: TextOpened) -> str:
    """Return the program of a document, or the one that it is a part of."""
    notebook = document.notebook
    reader = None if notebook is None else reader_of(document.language_id or "")
    if notebook is None or reader is None:
        return document.document.text
    return notebook.program(document.language_id or "", reader)


def reader_of(language: str) -> Reader | None:
    """Return a language's reader of cells; None where it has none."""
    support = support_of(language)
    return None if support is None else support.cells


def path_of(uri: str) -> str:
    """Return the file of a notebook; empty where there is none."""
    for scheme in CELL_SCHEMES:
        if uri.startswith(f"{scheme}/"):
            uri = f"file:{uri.removeprefix(scheme)}"
    return to_fs_path(uri) or ""


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers in texts by their values."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in DIGITS.split(text)]
