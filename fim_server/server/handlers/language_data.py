"""Handler of the editor's own data of languages, and the choice of a document's language by it."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.errors import LanguageError
from fim_server.language.editor_data import MOST_PAIRS
from fim_server.server.arguments import member, text_member
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.secret_files import secret_reason

LANGUAGE_DATA = "fim-server/languageData"
"""Notification of a language's comments, brackets and quotes."""

FIELDS = ("comments", "brackets", "autoClosingPairs", "surroundingPairs")

DEEPEST = 3
"""Levels of these fields that are read."""


def on_language_data(ls: FimLanguageServer, params: Any) -> None:
    """Take an editor's data of a language, and choose the language of its open documents again.

    Data that cannot be used is logged. Raises JsonRpcInvalidParams for a missing field.
    """
    name, configuration = text_member(params, "languageId"), member(params, "configuration")
    fields = {key: as_json(member(configuration, key, None)) for key in FIELDS}
    try:
        is_new = ls.editor_languages.describe(name, fields)
    except LanguageError as error:
        ls.log_once(types.MessageType.Warning, f"{error}; its files have the guarantee none")
        is_new = True
    if is_new:
        for document in tuple(ls.workspace.text_documents.values()):
            if isinstance(document, OpenDocument) and document.language_id == name:
                ls.spawn(judge(ls, document))


async def judge(ls: FimLanguageServer, document: OpenDocument | None) -> None:
    """Choose the language of a document as it is now, unless it holds secrets or is too large."""
    if document is None or document.notebook is not None:
        return
    text, name = document.document.text, document.language_id or ""
    if len(text) <= ls.settings.max_file_characters and await secret_reason(ls, document.uri) is None:
        ls.editor_languages.judge(document.uri, name, text)


def as_json(value: Any, depth: int = DEEPEST) -> Any:
    """Return a JSON value for pygls' named tuples, without the end of long lists and what is nested deeper."""
    if isinstance(value, list):
        return [as_json(one, depth - 1) for one in value[: MOST_PAIRS + 1]] if depth else None
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: as_json(one, depth - 1) for key, one in value.items()} if depth else None
    return value
