"""Handlers of the protocol.

The completion handler is a coroutine that awaits a thread of its own: pygls can cancel that, and cancelling sets the
flag the decode loop looks at before every forward pass. Text, version and cursor are those of the moment the request
arrived; an answer for an older version is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
import traceback
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from fim_server.errors import DocumentError, LanguageError, ModelError
from fim_server.language.session import Language
from fim_server.server.documents import SYNC_KIND, DocumentProtocol, OpenDocument
from fim_server.server.memory import Answer, Memory
from fim_server.server.messages import (
    ACCEPTED,
    FallbackKinds,
    explanation_json,
    inline_items,
    latency_json,
    list_items,
    model_json,
)
from fim_server.server.place import Place, silent, wants_single_line
from fim_server.server.settings import SECTION, ServerSettings, own_fields
from fim_server.server.usage import Usage
from fim_server.server.worker import LANGUAGES, CompletionWorker, Costs, Job, Request, Work, answer_of
from fim_server.text.document import LINE_BREAK, PositionEncoding, Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fim_server.models.load import FimModel

SERVER_NAME = "fim-server"
BAD_INPUT = 2

TYPED_MS = 500.0
"""A request for the suggestion list that comes this soon after a change was made by typing."""

STATUS = "fim-server/status"
EXPLAIN, STATISTICS = "fim-server.explainAt", "fim-server.statistics"
SET_ENABLED, RELOAD = "fim-server.setEnabled", "fim-server.reload"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for completions, in whichever form it came."""

    uri: str
    position: types.Position
    invoked: bool
    selected: types.SelectedCompletionInfo | None
    takes_lines: bool
    """Whether the client can take texts of several lines."""
    arrived: float
    document: OpenDocument | None
    version: int | None


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and the cut it is for."""

    answer: Answer
    split: Split


@dataclass(slots=True)
class UnderWay:
    """What the worker is at."""

    request: Request
    job: Job


class FimLanguageServer(LanguageServer):
    """A pygls server with a completion worker, and what it knows of its editor."""

    protocol: DocumentProtocol

    def __init__(self, settings: ServerSettings, version: str) -> None:
        super().__init__(SERVER_NAME, version, protocol_cls=DocumentProtocol, text_document_sync_kind=SYNC_KIND)
        self.started_with = settings
        """The command line's settings, which stand above the editor's."""
        self.settings = settings
        self.worker = CompletionWorker(settings)
        self.memory = Memory()
        self.usage = Usage()
        self.fallback: FallbackKinds | None = None
        """How the suggestion list takes texts; None where the client has inline completion."""
        self.fallback_is_needed = True
        """Whether the client has not shown yet that it has inline completion after all."""
        self.failure: str | None = None
        """Why there is no model, in words."""
        self.last: dict[str, Any] | None = None
        self.said: set[str] = set()
        self.turn = 0
        """Counts requests: a number that is no longer this one has been overtaken."""
        self.overtaken = asyncio.Event()
        self.prefetching: UnderWay | None = None
        """What is being prepared before anybody asked."""
        self.running: UnderWay | None = None
        """What somebody waits for."""
        self.at_work = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self.loading: tuple[str, float] | None = None
        self.loads = 0
        """Counts loadings: one that is no longer this one has nothing to say."""
        self.initial_settings: dict[str, Any] = {}
        """What the editor set when it began."""
        self.client_settings: dict[str, Any] = {}
        """What it has set now."""

    @property
    def encoding(self) -> PositionEncoding:
        """The unit of the client's positions."""
        return PositionEncoding(self.workspace.position_encoding or PositionEncoding.UTF16)

    def open_document(self, uri: str) -> OpenDocument | None:
        """The document an editor has open under that name, if any."""
        return self.protocol.opened(uri)

    def log(self, kind: types.MessageType, message: str) -> None:
        """Write to the editor's log and to our own."""
        logger.log(logging.ERROR if kind is types.MessageType.Error else logging.INFO, "%s", message)
        self.window_log_message(types.LogMessageParams(type=kind, message=message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what pygls could not handle; its own way would be a message on the user's screen."""
        logger.warning("a message could not be handled: %s", type(error).__name__)

    def log_once(self, kind: types.MessageType, message: str) -> None:
        """The same, but for messages that were said before."""
        if message not in self.said:
            self.said.add(message)
            self.log(kind, message)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside the handlers; what goes wrong there is logged."""
        task = asyncio.ensure_future(guarded(self, work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def tell_status(self) -> None:
        """Send the status as it is now."""
        model = self.worker.model
        status: dict[str, Any] = {"state": self.state, "message": self.status_message}
        if self.loading is not None and self.state == "loading":
            status["progress"] = self.loading[1]
        if model is not None:
            status["model"] = model_json(model)
        if self.last is not None:
            status["last"] = self.last
        self.protocol.notify(STATUS, status)

    @property
    def state(self) -> str:
        """One word for the status."""
        if not self.settings.enabled:
            return "off"
        if self.failure is not None:
            return "error"
        if self.worker.model is None:
            return "loading"
        return "busy" if self.at_work else "ready"

    @property
    def status_message(self) -> str:
        """One line for the status."""
        match self.state:
            case "off":
                return "switched off"
            case "error":
                return self.failure or ""
            case "loading":
                return self.loading[0] if self.loading is not None else "starting"
            case "busy":
                return "completing"
            case _:
                model = self.worker.model
                return f"ready: {model.name} on {model.device}" if model is not None else "ready"


def create_server(settings: ServerSettings, version: str = "") -> FimLanguageServer:
    """A server with all handlers registered, not started yet."""
    server = FimLanguageServer(settings, version)
    server.feature(types.INITIALIZE)(on_initialize)
    server.feature(types.INITIALIZED)(on_initialized)
    server.feature(types.SHUTDOWN)(on_shutdown)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(on_settings_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(on_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(on_closed)
    # Without options pygls does not advertise the feature.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(on_inline_completion)
    server.command(ACCEPTED)(on_accepted)
    server.command(EXPLAIN)(on_explain)
    server.command(STATISTICS)(on_statistics)
    server.command(SET_ENABLED)(on_set_enabled)
    server.command(RELOAD)(on_reload)
    return server


def serve(settings: ServerSettings, address: tuple[str, int] | None = None, version: str = "") -> int:
    """Run a server on standard input and output, or on a TCP address, and end the process with it.

    Returns an exit status only where it could not start.
    """
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    server = create_server(settings, version)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: without_code(record, server.settings.log_code))
    logging.getLogger("asyncio").addFilter(is_no_end)
    try:
        if address is None:
            output = sys.stdout.buffer
            sys.stdout = sys.stderr  # a library's print would break the protocol's frames
            server.start_io(stdout=output)
        else:
            server.start_tcp(*address)
    except OSError as error:
        where = "" if address is None else f"{address[0]}:{address[1]}: "
        print(f"{SERVER_NAME}: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return BAD_INPUT
    finally:
        server.worker.close()
    # Unloading torch takes seconds, and a model that is still being loaded cannot be stopped: nobody waits for either.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def is_no_end(record: logging.LogRecord) -> bool:
    """Whether a log record is about anything but the end of a connection.

    On the exit message pygls raises SystemExit in a callback; where the editor has gone, a pipe breaks in one, or a
    handler is cancelled.
    """
    error = record.exc_info[0] if record.exc_info else None
    return error is None or not issubclass(error, SystemExit | ConnectionError | asyncio.CancelledError)


def without_code(record: logging.LogRecord, log_code: bool) -> bool:
    """Take the messages' contents, which hold the user's code, out of what pygls logs about them."""
    if not log_code and record.name.startswith("pygls"):
        plain = (str, int, float)
        if isinstance(record.args, tuple):
            shown = (
                one if isinstance(one, plain) and len(str(one)) < 100 else type(one).__name__ for one in record.args
            )
            record.args = tuple(shown)
        record.msg, record.args = record.getMessage().split("\n", 1)[0], ()
        record.exc_info, record.exc_text = None, None
    return True


async def guarded(ls: FimLanguageServer, work: Coroutine[Any, Any, Any]) -> None:
    """Await something whose failure must not be lost, and must not end the server."""
    try:
        await work
    except Exception as error:  # noqa: BLE001  # whatever goes wrong in it
        report_failure(ls, error)


def report_failure(ls: FimLanguageServer, error: Exception) -> None:
    """Log what went wrong in a request: where, but none of the user's code unless that is asked for."""
    ls.usage.failed += 1
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    detail = f": {error}" if ls.settings.log_code or isinstance(error, ModelError | LanguageError) else ""
    ls.log(types.MessageType.Error, f"a request failed: {type(error).__name__}{where}{detail}")
    logger.debug("a request failed", exc_info=error if ls.settings.log_code else None)


# --- the server's life --------------------------------------------------------------------------------------------


def on_initialize(ls: FimLanguageServer, params: types.InitializeParams) -> None:
    """Keep documents by our own positions; pygls has made its workspace just before.

    Clients without inline completion get the suggestion list instead, and only they.
    """
    ls.protocol.replace_workspace()
    take_settings(ls, params.initialization_options)
    ls.initial_settings = ls.client_settings
    text_document = params.capabilities.text_document
    if text_document is None or text_document.inline_completion is None:
        ls.fallback = FallbackKinds(params.capabilities)
        ls.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(on_completion)


async def on_initialized(ls: FimLanguageServer, params: types.InitializedParams) -> None:
    """Take the client's settings, then load the model in the background."""
    await ask_for_settings(ls)
    if ls.worker.loads_like(ls.settings):
        await load(ls)
    else:  # somebody asked for completions before, and it has begun with other settings
        await reload(ls)


async def load(ls: FimLanguageServer) -> None:
    """Load the model; without one the server lives on and says why it offers nothing."""
    loop = asyncio.get_running_loop()
    ls.loads += 1
    this = ls.loads
    ls.failure = None
    progress = await begin_progress(ls)

    def report(message: str, share: float) -> None:
        loop.call_soon_threadsafe(told, message, share)

    def told(message: str, share: float) -> None:
        if this != ls.loads:
            return
        ls.loading = (message, share)
        ls.tell_status()
        if progress is not None:
            value = types.WorkDoneProgressReport(message=message, percentage=round(100 * share))
            ls.work_done_progress.report(progress, value)

    future = ls.worker.load(report)
    ls.tell_status()
    try:
        model: FimModel = await asyncio.wrap_future(future)
    except ModelError as error:
        if this == ls.loads:
            fail(ls, str(error))
    except Exception as error:  # noqa: BLE001  # a broken library, too little memory: the server lives on
        if this == ls.loads:
            detail = str(error).strip().split("\n", 1)[0]
            fail(ls, f"the model cannot be loaded ({type(error).__name__}{detail and ': '}{detail})")
    else:
        ls.log(
            types.MessageType.Info,
            f"model {model.name} ready on {model.device} ({model.runtime}, {model.format.family} format)",
        )
    finally:
        if this == ls.loads:
            ls.loading = None
        if progress is not None:
            ls.work_done_progress.end(progress, types.WorkDoneProgressEnd())
        ls.tell_status()


def fail(ls: FimLanguageServer, message: str) -> None:
    """Say once that there is no model."""
    ls.failure = message
    ls.log(types.MessageType.Error, message)
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"{SERVER_NAME}: {message}"))


async def begin_progress(ls: FimLanguageServer) -> str | None:
    """Open a progress bar in clients that have one; returns its token."""
    window = ls.client_capabilities.window
    if window is None or not window.work_done_progress:
        return None
    token = f"{SERVER_NAME}/loading/{time.monotonic_ns()}"
    try:
        await asyncio.wait_for(ls.work_done_progress.create_async(token), 2)
    except Exception:  # noqa: BLE001  # a client that cannot after all, or does not answer
        return None
    ls.work_done_progress.begin(token, types.WorkDoneProgressBegin(title=f"{SERVER_NAME}: loading", percentage=0))
    return token


def on_shutdown(ls: FimLanguageServer, params: None) -> None:
    """Stop what is under way."""
    ls.worker.close()


def on_changed(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Stop what is under way for the text as it was. What is being prepared may still come true."""
    if ls.running is not None and ls.running.request.uri == params.text_document.uri:
        ls.running.job.cancelled.set()


def on_closed(ls: FimLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget what is known of a document."""
    ls.worker.forget(params.text_document.uri)
    ls.memory.forget(params.text_document.uri)


# --- settings -----------------------------------------------------------------------------------------------------


async def ask_for_settings(ls: FimLanguageServer) -> None:
    """Ask the client for its configuration, where it can be asked."""
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    items = [types.ConfigurationItem(section=SECTION)]
    try:
        answer = await asyncio.wait_for(
            ls.workspace_configuration_async(types.ConfigurationParams(items=items)), timeout=5
        )
    except Exception as error:  # noqa: BLE001  # a client that does not answer, or answers with an error
        ls.log(types.MessageType.Warning, f"the editor did not send its settings ({type(error).__name__})")
        return
    if answer and answer[0]:
        take_settings(ls, answer[0])


async def on_settings_changed(ls: FimLanguageServer, params: types.DidChangeConfigurationParams) -> None:
    """Take changed settings: those that were sent, or, where none were, those that the client has."""
    before = ls.settings
    if params.settings:
        take_settings(ls, params.settings)
    else:
        await ask_for_settings(ls)
    if not ls.settings.loads_like(before):
        await reload(ls)
    else:
        ls.tell_status()


def take_settings(ls: FimLanguageServer, values: object) -> None:
    """Put an editor's settings over those it began with, and these over the command line's.

    What is wrong with them is logged. Settings of other servers, and what is set already, change nothing, so that what
    was switched for the moment stays.
    """
    if values is None:
        return
    sent = own_fields(values)
    merged = ls.initial_settings | (sent or {})
    settings, problems = ls.started_with.with_client(merged if sent is not None else values)
    for problem in problems:
        ls.log_once(types.MessageType.Warning, problem)
    if sent is None or merged == ls.client_settings:
        return
    ls.client_settings = merged
    if settings != ls.settings:
        ls.memory.clear()
    ls.settings = settings
    ls.worker.use(settings)


async def reload(ls: FimLanguageServer) -> None:
    """Forget everything and load the model again."""
    ls.memory.clear()
    ls.worker.reload(ls.settings)
    await load(ls)


# --- completions --------------------------------------------------------------------------------------------------


async def on_inline_completion(
    ls: FimLanguageServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Items for the cursor, or none where there is nothing to offer or the document has changed meanwhile."""
    ls.fallback_is_needed = False  # lsp-mode announces the feature with a null, which reads as if it did not
    invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
    asked = take_in(ls, params, invoked, params.context.selected_completion_info, takes_lines=True)
    answered = await answer(ls, asked)
    if answered is None:
        return types.InlineCompletionList(items=[])
    items = inline_items(answered.answer, answered.split, params.position, ls.encoding, asked.selected)
    return types.InlineCompletionList(items=items)


async def on_completion(ls: FimLanguageServer, params: types.CompletionParams) -> types.CompletionList:
    """The same as entries of the suggestion list, for clients without inline completion."""
    kinds = ls.fallback
    assert kinds is not None, "registered only with it"
    if not ls.fallback_is_needed:
        return types.CompletionList(is_incomplete=True, items=[])
    # Clients say that somebody has asked when a letter was typed, too.
    since = ls.protocol.since_change_ms(params.text_document.uri)
    typed = since is not None and since < TYPED_MS
    kind = params.context.trigger_kind if params.context is not None else types.CompletionTriggerKind.Invoked
    invoked = kind is types.CompletionTriggerKind.Invoked and not typed
    asked = take_in(ls, params, invoked, None, takes_lines=kinds.takes_lines)
    answered = await answer(ls, asked)
    if answered is None:
        return types.CompletionList(is_incomplete=True, items=[])
    items = list_items(answered.answer, answered.split, params.position, ls.encoding, kinds)
    return types.CompletionList(is_incomplete=True, items=items)


def take_in(
    ls: FimLanguageServer,
    params: types.InlineCompletionParams | types.CompletionParams,
    invoked: bool,
    selected: types.SelectedCompletionInfo | None,
    takes_lines: bool,
) -> Asked:
    """A request with the document as it was when the request arrived."""
    arrival = ls.protocol.arrival_of(params)
    document = arrival.document
    return Asked(
        uri=params.text_document.uri,
        position=params.position,
        invoked=invoked,
        selected=selected,
        takes_lines=takes_lines,
        arrived=arrival.at,
        document=document,
        version=arrival.version,
    )


async def answer(ls: FimLanguageServer, asked: Asked) -> Answered | None:
    """Answer a request from memory or by the worker. Whatever goes wrong in it is logged, and answered with nothing."""
    ls.usage.requests += 1
    ls.turn += 1
    ls.overtaken.set()
    ls.overtaken = asyncio.Event()
    try:
        return await answer_unguarded(ls, asked, ls.turn, ls.overtaken)
    except asyncio.CancelledError:
        ls.usage.cancelled += 1
        raise
    except Exception as error:  # noqa: BLE001  # one request's failure is not the server's
        report_failure(ls, error)
        return None


async def answer_unguarded(ls: FimLanguageServer, asked: Asked, turn: int, overtaken: asyncio.Event) -> Answered | None:
    """As :func:`answer`, but for what goes wrong."""
    request = request_of(ls, asked)
    if isinstance(request, str):
        decline(ls, asked, request)
        return None
    remembered = look_up(ls, request)
    if remembered is not None:
        return conclude(ls, asked, request, Work(remembered), from_model=False)
    costs_debounce = 0.0
    if not asked.invoked:
        pause = ls.settings.debounce_ms
        if pause is None:
            pause = ls.usage.debounce_ms(ls.protocol.typing_pause_ms(asked.uri))
        if pause > 0:
            before = time.perf_counter()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(overtaken.wait(), pause / 1000)
            costs_debounce = 1000 * (time.perf_counter() - before)
        if turn != ls.turn:
            ls.usage.superseded += 1
            return None
    work = await run(ls, request)
    if work is None or turn != ls.turn:
        ls.usage.superseded += 1
        if work is not None:
            remember(ls, request, work.answer)
        return None
    work.costs.debounce_ms = costs_debounce
    remember(ls, request, work.answer)
    return conclude(ls, asked, request, work, from_model=not work.answer.prefetched)


def request_of(ls: FimLanguageServer, asked: Asked) -> Request | str:
    """What the worker is asked, or why it is not, in words."""
    document = asked.document
    if document is None:
        return "the document is not open"
    text = document.document
    if len(text.text) > ls.settings.max_file_characters:
        size = f"more than {ls.settings.max_file_characters:,} characters (setting maxFileCharacters)"
        ls.log_once(types.MessageType.Info, f"{asked.uri}: {size}: no completions")
        return f"the document has {size}"
    name = document.language_id or ""
    try:
        language = name if name in LANGUAGES else Language.name_for_path(document.path or "")
    except LanguageError as error:
        return str(error)
    problem = silent(language, asked.invoked, ls.settings)
    if problem is not None:
        return problem
    try:
        if asked.selected is None:
            offset = document.offset_of(asked.position)
        else:
            # Completed as if the selected entry were accepted.
            start, end = document.offsets_of(asked.selected.range)
            chosen = LINE_BREAK.sub("\n", asked.selected.text)
            text = text.replace(start, end, chosen)
            offset = start + len(chosen)
        split = text.split(offset)
    except DocumentError as error:
        return str(error)
    single_line = not asked.takes_lines or wants_single_line(Place.of(split), ls.settings)
    return Request(asked.uri, split, name, document.path or "", asked.invoked, single_line, ls.settings)


def remember(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Keep an answer for what is typed next, if it will still hold and the settings are what they were."""
    if found.lasting and request.settings == ls.settings:
        ls.memory.add(found)


def look_up(ls: FimLanguageServer, request: Request) -> Answer | None:
    """An answer that was found before and holds here."""
    several = request.invoked and request.settings.alternatives > 1
    split = request.split
    place = request.key, split.left, split.right, request.single_line
    return ls.memory.find(*place, several, asked=request.invoked)


async def run(ls: FimLanguageServer, request: Request) -> Work | None:
    """Have the worker answer; a cancelled request stops it there too."""
    prefetching, ls.prefetching = ls.prefetching, None
    if ls.worker.model is None and ls.failure is not None:
        return Work(answer_of(request, (), ls.failure, lasting=False))
    joined = prefetching is not None and not request.invoked and is_same(prefetching.request, request)
    job = prefetching.job if joined and prefetching is not None else ls.worker.submit(request)
    running = ls.running = UnderWay(request, job)
    started = time.perf_counter()
    ls.at_work += 1
    ls.tell_status()
    try:
        work = await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        job.cancelled.set()
        raise
    except ModelError:  # said when loading failed
        return Work(answer_of(request, (), ls.failure or "there is no model", lasting=False))
    finally:
        ls.at_work -= 1
        if ls.running is running:
            ls.running = None
        if not ls.at_work:
            ls.tell_status()
    if joined and work is not None:
        # Most of its time was spent before anybody asked: what counts is what was waited.
        return Work(work.answer.as_prefetched(), Costs(queue_ms=1000 * (time.perf_counter() - started)))
    return work


def is_same(some: Request, other: Request) -> bool:
    """Whether two requests have the same answer."""
    return (some.key, some.split.left, some.split.right, some.single_line, some.settings) == (
        other.key,
        other.split.left,
        other.split.right,
        other.single_line,
        other.settings,
    )


def decline(ls: FimLanguageServer, asked: Asked, reason: str) -> None:
    """Note why a request gets nothing."""
    ls.last = last_json(asked.uri, empty_costs(asked), None, "none", reason)
    ls.tell_status()


def empty_costs(asked: Asked) -> Costs:
    """The costs of a request that cost nothing."""
    return Costs(total_ms=1000 * (time.perf_counter() - asked.arrived))


def conclude(ls: FimLanguageServer, asked: Asked, request: Request, work: Work, from_model: bool) -> Answered | None:
    """Send an answer on its way: unless the document has changed, note it and prepare what follows."""
    current = ls.open_document(asked.uri)
    if current is None or current.version != asked.version or not ls.settings.enabled:
        ls.usage.superseded += 1
        return None
    found = work.answer
    work.costs.total_ms = 1000 * (time.perf_counter() - asked.arrived)
    ls.usage.count_answer(work.costs, from_model)
    if not from_model:
        ls.usage.answered_from_cache += 1
    if found.offers:
        ls.usage.count_offers(found.offers)
    origin = "model" if from_model else "prefetch" if found.prefetched else "cache"
    ls.last = last_json(asked.uri, work.costs, found, origin, found.reason)
    log_answer(ls, ls.last)
    ls.tell_status()
    if found.offers:
        prefetch(ls, request, found)
    return Answered(found, request.split)


def last_json(uri: str, costs: Costs, answer: Answer | None, origin: str, reason: str | None) -> dict[str, Any]:
    """The status's field `last`."""
    offers = answer.offers if answer is not None else ()
    completion = offers[0].completion if offers else None
    return {
        "uri": uri,
        "items": len(offers),
        "guarantee": offers[0].guarantee if offers else "none",
        "origin": origin,
        "stopReason": str(completion.stop_reason) if completion is not None else None,
        "reason": reason,
        "tokens": completion.statistics.tokens if completion is not None else 0,
        "refused": completion.statistics.refused_tokens if completion is not None else 0,
        "latency": latency_json(costs),
    }


def log_answer(ls: FimLanguageServer, last: Mapping[str, Any]) -> None:
    """One line an answer: the guarantee, how it ended, and what it cost."""
    cost = last["latency"]
    what = f"guarantee {last['guarantee']}, {last['stopReason']}" if last["items"] else f"nothing ({last['reason']})"
    items = f"{last['items']} item{'s' * (last['items'] != 1)} from the {last['origin']}"
    parts = ", ".join(f"{name.removesuffix('Ms')} {value:g}" for name, value in cost.items() if name != "totalMs")
    ls.log(
        types.MessageType.Log,
        f"{last['uri']}: {items}, {what}, {last['tokens']} tokens, {last['refused']} refused, "
        f"{cost['totalMs']:g} ms ({parts})",
    )


def prefetch(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Prepare what follows the first offer, while the user reads it; anything that is asked meanwhile goes first."""
    if not request.settings.prefetch or ls.at_work or ls.prefetching is not None:
        return
    left, right = found.offers[0].document(request.split)
    split = Split(left, right, request.split.version, request.split.newline)
    following = Request(
        request.uri,
        split,
        request.language_id,
        request.path,
        invoked=False,
        single_line=wants_single_line(Place.of(split), request.settings),
        settings=request.settings,
    )
    if ls.memory.find(following.key, left, right, following.single_line, False) is not None:
        return
    prefetching = UnderWay(following, ls.worker.submit(following))
    ls.prefetching = prefetching
    ls.spawn(remember_prefetched(ls, prefetching))


async def remember_prefetched(ls: FimLanguageServer, prefetching: UnderWay) -> None:
    """Put what was prepared into the memory."""
    try:
        work = await asyncio.wrap_future(prefetching.job.future)
    except (ModelError, asyncio.CancelledError):
        return
    finally:
        if ls.prefetching is prefetching:
            ls.prefetching = None
    if work is not None:
        remember(ls, prefetching.request, work.answer.as_prefetched())


# --- commands -----------------------------------------------------------------------------------------------------


def on_accepted(ls: FimLanguageServer, *arguments: Any) -> None:
    """Count an acceptance."""
    (argument,) = expect(arguments, 1, 1)
    ls.usage.count_acceptance(str(member(argument, "id")))


async def on_explain(ls: FimLanguageServer, *arguments: Any) -> dict[str, Any]:
    """Say what may come at a cursor, and why the rest may not."""
    (argument,) = expect(arguments, 1, 1)
    uri, at = str(member(argument, "uri")), member(argument, "position")
    line, character = member(at, "line"), member(at, "character")
    if not isinstance(line, int) or not isinstance(character, int) or line < 0 or character < 0:
        raise JsonRpcInvalidParams.of(ValueError("position: line and character are whole numbers"))
    text = member(argument, "text", None)
    if text is not None and not isinstance(text, str):
        raise JsonRpcInvalidParams.of(ValueError("text: a text expected"))
    document = ls.open_document(uri)
    if document is None:
        raise JsonRpcInvalidParams.of(ValueError(f"{uri} is not open"))
    if len(document.document.text) > ls.settings.max_file_characters:
        raise JsonRpcInvalidParams.of(ValueError("the document is too large (setting maxFileCharacters)"))
    position = types.Position(line, character)
    try:
        split = document.document.split(document.offset_of(position))
        request = Request(uri, split, document.language_id or "", document.path or "", True, False, ls.settings)
        told = ls.worker.explain(request, lambda explained: explanation_json(uri, position, explained, text))
        return await asyncio.wrap_future(told)
    except (DocumentError, LanguageError) as error:
        raise JsonRpcInvalidParams.of(error) from error


def on_statistics(ls: FimLanguageServer, *arguments: Any) -> dict[str, Any]:
    """Counts and latencies since the server started."""
    expect(arguments, 0, 1)
    return ls.usage.as_json()


def on_set_enabled(ls: FimLanguageServer, *arguments: Any) -> bool:
    """Switch completions on or off, until the settings change."""
    (enabled,) = expect(arguments, 1, 1)
    if not isinstance(enabled, bool):
        raise JsonRpcInvalidParams.of(ValueError("true or false expected"))
    ls.settings = ls.settings.having("enabled", enabled)
    ls.worker.use(ls.settings)
    if not enabled:
        for at_work in (ls.running, ls.prefetching):
            if at_work is not None:
                at_work.job.cancelled.set()
    ls.tell_status()
    return enabled


async def on_reload(ls: FimLanguageServer, *arguments: Any) -> None:
    """Start afresh, without the editor noticing more than a pause."""
    expect(arguments, 0, 1)
    await reload(ls)


def expect(arguments: tuple[Any, ...], least: int, most: int) -> tuple[Any, ...]:
    """A command's arguments. Raises an error for the client where there are too few or too many."""
    if not least <= len(arguments) <= most:
        raise JsonRpcInvalidParams.of(ValueError(f"{least} arguments expected, {len(arguments)} given"))
    return arguments


_REQUIRED = object()


def member(value: Any, name: str, default: Any = _REQUIRED) -> Any:
    """A member of a JSON object, whatever it was made into on its way. Raises an error for the client without one."""
    found = value.get(name, default) if isinstance(value, dict) else getattr(value, name, default)
    if found is _REQUIRED:
        raise JsonRpcInvalidParams.of(ValueError(f"{name}: missing"))
    return found
