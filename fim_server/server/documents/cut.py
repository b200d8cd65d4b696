"""Cursor of a request in its document, or in the notebook of its cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygls.uris import to_fs_path

from fim_server.language_support.registry import support_of
from fim_server.text import notebook as program
from fim_server.text.notebook import CellContexts

if TYPE_CHECKING:
    from fim_server.server.documents.open_document import OpenDocument
    from fim_server.text.document import Split
    from fim_server.text.notebook import Reader

CELL_SCHEMES = ("vscode-notebook-cell:", "vscode-interactive-input:")
"""Schemes of documents that are cells, even if the editor opens no notebook."""


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


def cut_of(document: OpenDocument, split: Split) -> Cut | str:
    """Return the cursor of a request in a document's own text, or the reason for having no suggestion."""
    notebook = document.notebook
    reader = None if notebook is None else reader_of(document.language_id or "")
    if notebook is None or reader is None:
        return Cut(document.uri if notebook is None else notebook.uri, document.path or "", split)
    found = program.cut(notebook, document.uri, split, reader)
    return found if isinstance(found, str) else Cut(notebook.uri, path_of(notebook.uri), *found)


def text_of(document: OpenDocument) -> str:
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
