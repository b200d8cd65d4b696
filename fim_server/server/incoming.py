"""Messages as clients send them, put into the forms that lsprotocol reads, or refused before it guesses.

lsprotocol takes a number for ``"3"``, the text ``"None"`` for null, and letters for arguments. A change that it
cannot read is lost, and with it the agreement on the text.
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
    """Put cells and their changes into the form of documents and theirs; count versions where no client does."""
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
        told = {"contentChanges": whole.get("changes")}
        mend_changes(told)
        whole["changes"] = told["contentChanges"]
    array = structure.get("array") or {}
    for name in ("start", "deleteCount"):
        if isinstance(array.get(name), int | float) and not isinstance(array[name], bool):
            array[name] = int(min(max(0, array[name]), LARGEST))


def listed(params: Json, name: str) -> list[Any]:
    """The entries of a list that may be missing or null."""
    found = params.get(name)
    if not isinstance(found, list | None):
        raise wrong(f"{name}: a list expected")
    return found or []


def mend_arguments(params: Json) -> None:
    """No arguments, null and an empty list are one to us: pygls fails where a command's arguments are null."""
    if params.get("arguments") is None:
        params["arguments"] = []
    if not isinstance(params["arguments"], list):
        raise wrong("arguments: a list expected")


def mend_version(params: Json, version_of: Callable[[str], int]) -> None:
    """Give a document a version where the client counts none, as the protocol has it for files on the disk."""
    document = params.get("textDocument")
    if not isinstance(document, dict) or not isinstance(document.get("uri"), str):
        raise wrong("textDocument: a document with a uri expected")
    if document.get("version") is None:
        document["version"] = version_of(document["uri"])


def mend_changes(params: Json) -> None:
    """Take a range of null for none: the whole text. Positions below 0 are 0; the length of a range counts nothing."""
    changes = params.get("contentChanges")
    if changes is None:
        changes = params["contentChanges"] = []
    if not isinstance(changes, list):
        raise wrong("contentChanges: a list expected")
    for change in changes:
        if not isinstance(change, dict) or not isinstance(change.get("text"), str):
            raise wrong("contentChanges: a text expected in each")
        change.pop("rangeLength", None)  # LSP 3.16 leaves it to history
        if change.get("range") is None:
            change.pop("range", None)
            continue
        for end in ("start", "end"):
            mend_position(change["range"].get(end) if isinstance(change["range"], dict) else None)


def mend_position(position: Any) -> None:
    """Take a line or a character below 0 for 0, and what is larger than the protocol has for the largest."""
    for name in ("line", "character"):
        number = position.get(name) if isinstance(position, dict) else None
        if not isinstance(number, int | float) or isinstance(number, bool) or number != number:
            raise wrong("range: positions with line and character expected")
        position[name] = int(min(max(0, number), LARGEST))


def wrong(problem: str) -> JsonRpcInvalidParams:
    """The error that says so."""
    error: JsonRpcInvalidParams = JsonRpcInvalidParams.of(ValueError(problem))
    return error
