"""Names of notebooks and cells in messages."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.server.documents.spellings import Spellings


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
