"""Preparation of the languages of opened documents, before their first requests."""

from __future__ import annotations

from functools import partial

from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.server.documents.cut import language_at
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.context.stage import prepare
from fim_server.suggest.request import LANGUAGES
from fim_server.system.blocking_pool import BLOCKING_POOL


def prepare_opened(ls: FimLanguageServer) -> None:
    """Prepare the languages of all open documents."""
    try:
        documents = tuple(ls.workspace.text_documents.values())
    except RuntimeError:  # before `initialize`
        return
    for document in documents:
        if isinstance(document, OpenDocument):
            prepare_language(ls, document)


def prepare_language(ls: FimLanguageServer, document: OpenDocument) -> None:
    """Load the language of a document in the background, and its table of tokens for a model that is loaded.

    The first table of a language and a model takes seconds. Errors are left to the request.
    """
    settings, path = ls.settings, document.path or ""
    try:
        found = language_at(document, document.document, 0)
    except LanguageError:  # of code in a file of another language
        return
    if not found.has_grammar or not settings.enabled or found.silent(False, settings, ls.learnt) is not None:
        return
    name = document.language_id if document.language_id in LANGUAGES else None
    find = partial(Language.for_path, path, name, settings.versions)
    vocabulary = None if ls.worker.model is None else ls.worker.model.vocabulary
    BLOCKING_POOL.begin(("prepare", document.uri, id(vocabulary)), lambda: prepare(find, vocabulary))
