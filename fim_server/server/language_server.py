"""Language server of one client: a pygls server with a completion worker and its state.

Only the event loop's thread uses it. The worker's results reach that thread by futures.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import traceback
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from fim_server.errors import LanguageError, MissingLibrary, ModelError
from fim_server.language import Language
from fim_server.language.cache import cache_folder
from fim_server.server.checking.checkers import Checkers
from fim_server.server.connection.message_types import made_by
from fim_server.server.documents.cut import LanguageAt
from fim_server.server.documents.editor_languages import EditorLanguages
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.documents.protocol import DocumentProtocol
from fim_server.server.documents.secret_documents import SecretDocuments, name_in
from fim_server.server.documents.workspace import NOTEBOOK_SYNC, SYNC_KIND
from fim_server.server.habits import Habits
from fim_server.server.requests.dismissals import Dismissals
from fim_server.server.state import ClientState, IndexState, ModelState, NextEditState, RequestState, SentStatus
from fim_server.server.usage import Usage
from fim_server.suggest.answer_cache import AnswerCache
from fim_server.suggest.context.cursor import Places
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project, path_of
from fim_server.text.document import PositionEncoding
from fim_server.text.hidden import escaped
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.supervisor import Supervisor
from fim_server.workers.worker import CompletionWorker

SERVER_NAME = "fim-server"

MOST_LOGGED = 4_000
"""Most characters of a message in the editor's log."""

WITHOUT_CODE = (LanguageError, MissingLibrary, ModelError)
"""Errors whose messages never quote the user's code."""

NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
"""Errors of reading a message that is not JSON."""

logger = logging.getLogger(__name__)


@cache
def shared_converter() -> Converter:
    """Return the converter of all clients' messages. A new one compiles code for each kind, in 70 ms."""
    made: Converter = made_by(default_converter)
    return made


class FimLanguageServer(LanguageServer):
    """pygls server of one client, with a completion worker and the state of the editor."""

    protocol: DocumentProtocol

    def __init__(
        self, settings: ServerSettings, version: str, models: SharedModels | None = None, covers: bool = True
    ) -> None:
        """Make a server.

        Args:
            settings: Settings of the command line.
            version: Version of the program.
            models: Shared with the other servers of the process.
            covers: Whether the client can replace closers right of the cursor.
        """
        super().__init__(
            SERVER_NAME,
            version,
            protocol_cls=DocumentProtocol,
            converter_factory=shared_converter,
            text_document_sync_kind=SYNC_KIND,
            notebook_document_sync=NOTEBOOK_SYNC,
        )
        self.settings = settings
        self.client = ClientState(settings)
        self.project = Project()
        self.index = IndexState()
        self.worker = CompletionWorker(settings, models or SharedModels(), self.project, covers)
        self.model = ModelState()
        self.answers = AnswerCache(covers=covers)
        self.dismissals = Dismissals()
        self.habits = Habits(cache_folder())
        self.cursors = Places()
        self.requests = RequestState()
        self.usage = Usage()
        self.secrets = SecretDocuments()
        self.checkers = Checkers(
            lambda: self.settings.checker,
            lambda: self.folders,
            self.readable_texts,
            lambda message: self.log_once(types.MessageType.Warning, message),
        )
        self.editor_languages = EditorLanguages(
            self._prepare, lambda message: self.log_once(types.MessageType.Warning, message)
        )
        self.sent = SentStatus()
        self.next_edits = NextEditState()
        self.supervisor = Supervisor(
            self.worker, self.project, self.answers, lambda: self.settings.memory_mb, self.checkers
        )
        self.tasks: set[asyncio.Task[Any]] = set()
        self.watch_client_process: Callable[[int | None], None] = lambda number: None
        """Watch the editor's process, in a process that serves this client alone."""
        self.ends_by: Callable[[BaseException], bool] = lambda error: False
        """End the process of a single client after a lack of memory or threads; else return False."""
        self._logged: set[str] = set()

    def only_insert(self) -> None:
        """Make suggestions replace nothing right of the cursor, in documents that are opened later."""
        self.worker.covers = self.answers.covers = False

    @property
    def learnt(self) -> frozenset[str] | None:
        """Languages that the model knows; None for all, or before it is loaded."""
        return None if self.worker.model is None else self.worker.model.format.languages

    @property
    def encoding(self) -> PositionEncoding:
        """Unit of the client's positions."""
        return PositionEncoding(self.workspace.position_encoding or PositionEncoding.UTF16)

    @property
    def folders(self) -> list[str]:
        """Return the URIs of the workspace's folders; none before `initialize`."""
        try:
            workspace = self.workspace
        except RuntimeError:
            return []
        folders = [folder.uri for folder in workspace.folders.values()]
        return folders or ([] if self.index.folders_changed else [workspace.root_uri or ""])

    def file_of(self, uri: str) -> str:
        """Return the path of a document below the workspace's folder, if it is in one, else its whole path."""
        path = path_of(uri)
        if path is None:
            return name_in(uri)
        folders = (folder for folder in map(path_of, self.folders) if folder is not None)
        inside = next((folder for folder in folders if path.is_relative_to(folder)), Path(path.anchor))
        return path.relative_to(inside).as_posix()

    def open_document(self, uri: str) -> OpenDocument | None:
        """Return the open document of that name, if any."""
        return self.protocol.opened(uri)

    def readable_texts(self, language: str) -> dict[str, str]:
        """Return the texts of the open documents of a language that may be read, by URI."""
        documents = (self.protocol.opened(uri) for uri in self.workspace.text_documents)
        return {
            one.uri: one.document.text
            for one in documents
            if one is not None
            and one.language_id == language
            and one.notebook is None
            and self.secrets.known(one.uri, self.folders, self.settings.secret_files) is False
        }

    def described(self, uri: str, language: LanguageAt) -> Language | None:
        """Return the language of a document by the editor's own data, if it has no grammar."""
        return None if language.has_grammar else self.editor_languages.of(uri)

    def log(self, kind: types.MessageType, message: str) -> None:
        """Write to the editor's log and to our own, with hidden characters escaped and long messages cut off."""
        message = escaped(message, MOST_LOGGED)
        logger.log(logging.ERROR if kind is types.MessageType.Error else logging.INFO, "%s", message)
        self.window_log_message(types.LogMessageParams(type=kind, message=message))

    def log_once(self, kind: types.MessageType, message: str) -> None:
        """Write a message to both logs, if it is new."""
        if message not in self._logged:
            self._logged.add(message)
            self.log(kind, message)

    def _prepare(self, language: Language) -> None:
        """Prepare a language for the loaded model. Safe to call from other threads."""
        from fim_server.tokens import masks

        if (model := self.worker.model) is not None:
            masks.prepare(language, model.vocabulary)

    def close(self) -> None:
        """Stop all work, also in other processes, and send nothing more."""
        self.protocol.abandon()
        for task in self.tasks:
            task.cancel()
        self.worker.close()
        self.project.close()
        self.editor_languages.close()
        self.checkers.close()
        self.supervisor.close()
        if self.model.fetcher is not None:
            with contextlib.suppress(ProcessLookupError):
                self.model.fetcher.terminate()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error of pygls, which would show it on the user's screen; answer a message that is not JSON."""
        cause = sys.exception() or error  # pygls reports a new error in place of the handler's
        if self.ends_by(cause):
            return
        logger.warning("a message could not be handled: %s", type(cause).__name__)
        if isinstance(error, NO_JSON):
            self.protocol.refuse_text()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a task beside the handlers; its errors are logged."""
        task = asyncio.ensure_future(self._guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a task that is cancelled before its first step awaits nothing

    def with_answer(self, tell: Callable[[], object]) -> None:
        """Call :meth:`.AnsweringProtocol.with_answer`; errors of ``tell`` are logged."""
        self.protocol.with_answer(lambda: self._attempt(tell))

    def once_answered(self, work: Callable[[], object]) -> None:
        """Call :meth:`.AnsweringProtocol.once_answered`; errors of ``work`` are logged."""
        self.protocol.once_answered(lambda: self._attempt(work))

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in it
            self.report_failure(error)

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in it
            self.report_failure(error)

    def report_failure(self, error: Exception) -> None:
        """Log the error of a request and its place, without the user's code unless the settings allow that."""
        if self.ends_by(error):
            return
        self.usage.failed += 1
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
        detail = f": {error}" if self.settings.log_code or isinstance(error, WITHOUT_CODE) else ""
        self.log(types.MessageType.Error, f"a request failed: {type(error).__name__}{where}{detail}")
        logger.debug("a request failed", exc_info=error if self.settings.log_code else None)
