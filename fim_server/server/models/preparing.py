"""Preparation of the languages of opened documents, before their first requests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial

from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.server.documents.cut import language_at
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.context.stage import prepare
from fim_server.suggest.request import LANGUAGES

Key = tuple[str, int]
"""Name of a language, and the identity of the model's vocabulary."""


class Preparations:
    """Preparations one after another, on a thread of their own. Safe to use from several threads.

    They may take seconds each, and an editor opens many files at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Key, Callable[[], object]] = {}
        self._under_way: Key | None = None
        self._is_running = False

    def add(self, key: Key, work: Callable[[], object]) -> None:
        """Do ``work`` after what waits already, unless work with the same ``key`` waits or is under way."""
        with self._lock:
            if key in self._waiting or key == self._under_way:
                return
            self._waiting[key] = work
            if not self._is_running:
                # A daemon: the process does not wait for it. Without a thread, the request prepares its language.
                with contextlib.suppress(RuntimeError):
                    threading.Thread(target=self._run, daemon=True, name="fim-preparing").start()
                    self._is_running = True

    def _run(self) -> None:
        while True:
            with self._lock:
                self._under_way = next(iter(self._waiting), None)
                if self._under_way is None:
                    self._is_running = False
                    return
                work = self._waiting.pop(self._under_way)
            with contextlib.suppress(Exception):  # the request meets the error as well
                work()


PREPARATIONS = Preparations()
"""Preparations of the process."""


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
    PREPARATIONS.add((found.name, id(vocabulary)), lambda: prepare(find, vocabulary))
