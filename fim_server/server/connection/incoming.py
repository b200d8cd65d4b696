"""Normalisation of clients' messages: each gets the form that lsprotocol reads, or an error.

lsprotocol would read a number as ``"3"``, the text ``"None"`` as null, and letters as arguments. It loses a change that
it cannot read, and then the server's text differs from the editor's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from fim_server.server.arguments import LARGEST

Json = dict[str, Any]


def mend(message: Json, next_version: Callable[[str], int]) -> None:
    """Put a message into the form that lsprotocol reads.

    ``next_version``: the version that follows the one that a document has. Raises JsonRpcInvalidParams where the
    message has no such form.
    """
    method, params = message.get("method"), message.get("params")
    if not isinstance(params, dict):
        return
    if method == types.WORKSPACE_EXECUTE_COMMAND:
        mend_arguments(params)
    elif method == types.TEXT_DOCUMENT_DID_OPEN:
        mend_version(params, lambda uri: 0)
        if not isinstance(params["textDocument"].get("text"), str):
            raise wrong("text: a text expected")
    elif method == types.TEXT_DOCUMENT_DID_CHANGE:
        mend_version(params, next_version)
        mend_changes(params)
    elif method in (types.NOTEBOOK_DOCUMENT_DID_OPEN, types.NOTEBOOK_DOCUMENT_DID_CHANGE):
        mend_notebook(params, next_version)


def mend_notebook(params: Json, next_version: Callable[[str], int]) -> None:
    """Give cells and their changes the form of documents; count versions where the client does not."""
    notebook = params.get("notebookDocument")
    if not isinstance(notebook, dict) or not isinstance(notebook.get("uri"), str):
        raise wrong("notebookDocument: a notebook with a uri expected")
    if notebook.get("version") is None:
        notebook["version"] = 0
    change = params.get("change") or {}
    cells = (change.get("cells") or {}) if isinstance(change, dict) else None
    structure = (cells.get("structure") or {}) if isinstance(cells, dict) else None
    if not isinstance(cells, dict) or not isinstance(structure, dict):
        raise wrong("change: cells expected")
    for document in (*listed(params, "cellTextDocuments"), *listed(structure, "didOpen")):
        mend_version({"textDocument": document}, lambda uri: 0)
        if not isinstance(document.get("text"), str):
            raise wrong("text: a text expected")
    for content in listed(cells, "textContent"):
        whole = content if isinstance(content, dict) else {}
        mend_version({"textDocument": whole.get("document")}, next_version)
        read = {"contentChanges": whole.get("changes")}
        mend_changes(read)
        whole["changes"] = read["contentChanges"]
    array = structure.get("array") or {}
    for name in ("start", "deleteCount"):
        if isinstance(array.get(name), int | float) and not isinstance(array[name], bool):
            array[name] = int(min(max(0, array[name]), LARGEST))


def listed(params: Json, name: str) -> list[Any]:
    """Return the entries of a list that may be missing or null."""
    found = params.get(name)
    if not isinstance(found, list | None):
        raise wrong(f"{name}: a list expected")
    return found or []


def mend_arguments(params: Json) -> None:
    """Make missing arguments of null and of an empty list, because pygls fails at null."""
    if params.get("arguments") is None:
        params["arguments"] = []
    if not isinstance(params["arguments"], list):
        raise wrong("arguments: a list expected")


def mend_version(params: Json, version_of: Callable[[str], int]) -> None:
    """Give a document a version where the client has none, which the protocol allows for files on the disk."""
    document = params.get("textDocument")
    if not isinstance(document, dict) or not isinstance(document.get("uri"), str):
        raise wrong("textDocument: a document with a uri expected")
    if document.get("version") is None:
        document["version"] = version_of(document["uri"])


def mend_changes(params: Json) -> None:
    """Read a range of null as the whole text, and positions below 0 as 0; ignore the length of a range."""
    changes = params.get("contentChanges")
    if changes is None:
        changes = params["contentChanges"] = []
    if not isinstance(changes, list):
        raise wrong("contentChanges: a list expected")
    for change in changes:
        if not isinstance(change, dict) or not isinstance(change.get("text"), str):
            raise wrong("contentChanges: a text expected in each")
        change.pop("rangeLength", None)  # deprecated since LSP 3.16
        if change.get("range") is None:
            change.pop("range", None)
            continue
        for end in ("start", "end"):
            mend_position(change["range"].get(end) if isinstance(change["range"], dict) else None)


def mend_position(position: Any) -> None:
    """Clamp a line or a character to the numbers of the protocol."""
    for name in ("line", "character"):
        number = position.get(name) if isinstance(position, dict) else None
        if not isinstance(number, int | float) or isinstance(number, bool) or number != number:
            raise wrong("range: positions with line and character expected")
        position[name] = int(min(max(0, number), LARGEST))


def wrong(problem: str) -> JsonRpcInvalidParams:
    error: JsonRpcInvalidParams = JsonRpcInvalidParams.of(ValueError(problem))
    return error
