"""The server: a pygls server with a completion worker, and what it knows of its editor.

Only the protocol's thread reads and writes it. What the worker has found comes to that thread by a future.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from fim_server.errors import LanguageError, MissingLibrary, ModelError
from fim_server.models.store.catalogue import Entry
from fim_server.models.store.state import State
from fim_server.server.documents.notebooks import SYNC as NOTEBOOKS
from fim_server.server.documents.open_documents import SYNC_KIND, DocumentProtocol, OpenDocument
from fim_server.server.messages import FallbackKinds
from fim_server.server.usage import Usage
from fim_server.suggest.answer_cache import AnswerCache
from fim_server.suggest.context.cursor import Places
from fim_server.suggest.job import Job, Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.text.document import PositionEncoding
from fim_server.text.hidden import escaped
from fim_server.workers.shared_models import SharedModels
from fim_server.workers.supervisor import Supervisor
from fim_server.workers.worker import CompletionWorker

SERVER_NAME = "fim-server"

MOST_LOGGED = 4_000
"""Most characters of a message in the editor's log."""

MAY_BE_SAID = (LanguageError, MissingLibrary, ModelError)
"""Errors whose messages hold nothing of the user's code."""

NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
"""What reading a message raises that is none."""

logger = logging.getLogger(__name__)


@cache
def shared_converter() -> Converter:
    """Return the converter of all clients' messages. It compiles code for each kind: 70 ms with a new one a client."""
    made: Converter = default_converter()
    return made


@dataclass(slots=True)
class UnderWay:
    """What the worker is at."""

    request: Request
    job: Job


@dataclass(slots=True)
class Fetching:
    """A model on its way.

    Attributes:
        message: What is being done for it.
        share: How much of all that is done, from 0 to 1.
    """

    name: str
    message: str = "beginning"
    share: float = 0.0


class FimLanguageServer(LanguageServer):
    """A pygls server of one client, with a completion worker, and what it knows of its editor."""

    protocol: DocumentProtocol

    def __init__(self, settings: ServerSettings, version: str, models: SharedModels | None = None) -> None:
        super().__init__(
            SERVER_NAME,
            version,
            protocol_cls=DocumentProtocol,
            converter_factory=shared_converter,
            text_document_sync_kind=SYNC_KIND,
            notebook_document_sync=NOTEBOOKS,
        )
        self.started_with = settings
        """The command line's settings, which stand above the editor's."""
        self.settings = settings
        models = SharedModels() if models is None else models
        self.project = Project()
        self.folders_changed = False
        """Whether the client has told of other folders than those it began with, one of which may be its root."""
        self.resident_told = 0
        """Bytes of the process in the last status that was sent while files were read."""
        self.reads_soon = False
        """Whether what has changed of it on the disk is about to be read."""
        self.worker = CompletionWorker(settings, models, self.project)
        self.memory = AnswerCache()
        self.places = Places()
        self.usage = Usage()
        self.fallback: FallbackKinds | None = None
        """How the suggestion list takes texts; None where the client has inline completion."""
        self.fallback_is_needed = True
        """Whether the client has not shown yet that it has inline completion after all."""
        self.failure: str | None = None
        """Why there is no model, in words."""
        self.offer: tuple[Entry, State] | None = None
        """The better model that can be had, and whether it is missing or outdated."""
        self.fetching: Fetching | None = None
        """The model that is being fetched."""
        self.downloading: Fetching | None = None
        """The model of the hub that is being downloaded, to be loaded."""
        self.fetcher: asyncio.subprocess.Process | None = None
        """What fetches it."""
        self.unwanted = asyncio.Event()
        """Set when it is wanted no more."""
        self.state_told = ""
        """The state of the last status that was sent."""
        self.last: dict[str, Any] | None = None
        self.said: set[str] = set()
        self.overtaken: dict[str, asyncio.Event] = {}
        """By document, what is set when a newer request than its latest one comes."""
        self.prefetching: UnderWay | None = None
        """What is being prepared before anybody asked."""
        self.running: dict[str, UnderWay] = {}
        """By document, what somebody waits for."""
        self.left: dict[str, UnderWay] = {}
        """By document, what nobody waits for any more, and the next request may follow."""
        self.set_aside: dict[str, str] = {}
        """Documents that are not asked about until they change, and why, in words."""
        self.supervisor = Supervisor(self.worker, self.project, self.memory, lambda: self.settings.memory_mb)
        self.at_work = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self.watch_client_process: Callable[[int | None], None] = lambda number: None
        """Function that makes this process end with the client's, where it serves that client alone."""
        self.ends_by: Callable[[BaseException], bool] = lambda error: False
        """Function that ends the process of one client at an error for lack of memory or threads; else false."""
        self.loading: tuple[str, float] | None = None
        self.newer_load = asyncio.Event()
        """Set where another loading takes the place of the latest one, which has nothing more to say."""
        self.overdue: str | None = None
        """That nothing is heard of the loading, in words."""
        self.initial_settings: dict[str, Any] = {}
        """What the editor set when it began."""
        self.client_settings: dict[str, Any] = {}
        """What it has set now."""

    @property
    def learnt(self) -> frozenset[str] | None:
        """The languages that the model has learnt; None for all, or before it is loaded."""
        return None if self.worker.model is None else self.worker.model.format.languages

    @property
    def encoding(self) -> PositionEncoding:
        """The unit of the client's positions."""
        return PositionEncoding(self.workspace.position_encoding or PositionEncoding.UTF16)

    def open_document(self, uri: str) -> OpenDocument | None:
        """The document an editor has open under that name, if any."""
        return self.protocol.opened(uri)

    def log(self, kind: types.MessageType, message: str) -> None:
        """Write to the editor's log and to our own: hidden characters as escapes, long messages cut off."""
        message = escaped(message, MOST_LOGGED)
        logger.log(logging.ERROR if kind is types.MessageType.Error else logging.INFO, "%s", message)
        self.window_log_message(types.LogMessageParams(type=kind, message=message))

    def close(self) -> None:
        """Stop what is under way, also in other processes, and send nothing more.

        The worker is looked after until its threads have come back: others may share the model that one of them is in.
        """
        self.protocol.abandon()
        for task in self.tasks:
            task.cancel()
        self.worker.close()
        self.project.close()
        self.supervisor.close()
        if self.fetcher is not None:
            with contextlib.suppress(ProcessLookupError):
                self.fetcher.terminate()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what pygls could not handle; its own way would be a message on the user's screen.

        What it could not read is answered.
        """
        if self.ends_by(error):
            return
        logger.warning("a message could not be handled: %s", type(error).__name__)
        if isinstance(error, NO_JSON):
            self.protocol.refuse_text()

    def log_once(self, kind: types.MessageType, message: str) -> None:
        """Write a message to both logs, unless it was written before."""
        if message not in self.said:
            self.said.add(message)
            self.log(kind, message)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside the handlers; what goes wrong there is logged."""
        task = asyncio.ensure_future(self._guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a task that is cancelled before its first step awaits nothing

    def with_answer(self, tell: Callable[[], object]) -> None:
        """:meth:`.AnsweringProtocol.with_answer`; what goes wrong there is logged."""
        self.protocol.with_answer(lambda: self._attempt(tell))

    def once_answered(self, work: Callable[[], object]) -> None:
        """:meth:`.AnsweringProtocol.once_answered`; what goes wrong there is logged."""
        self.protocol.once_answered(lambda: self._attempt(work))

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in it
            self.report_failure(error)

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        """Await something whose failure must not be lost, and must not end the server."""
        try:
            await work
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in it
            self.report_failure(error)

    def report_failure(self, error: Exception) -> None:
        """Log what went wrong in a request: where, but none of the user's code unless that is asked for."""
        if self.ends_by(error):
            return
        self.usage.failed += 1
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
        detail = f": {error}" if self.settings.log_code or isinstance(error, MAY_BE_SAID) else ""
        self.log(types.MessageType.Error, f"a request failed: {type(error).__name__}{where}{detail}")
        logger.debug("a request failed", exc_info=error if self.settings.log_code else None)
