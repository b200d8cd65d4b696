"""Worker of one client: its model, and a watched thread for each document."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from fim_server.errors import ModelError
from fim_server.language import Language, Stop
from fim_server.language.stop import heed
from fim_server.suggest.context.background_open import Unfinished
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.job import Explained, Handle, Loaded, PromptTokens
from fim_server.suggest.next_edit import EditQuestion, NextEdit
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from fim_server.suggest.sources.project import Project
from fim_server.system.blocking_pool import BLOCKING_POOL
from fim_server.system.process import release_memory
from fim_server.system.watched_threads import SILENT_LOOKS, Step, WatchedThread, settle
from fim_server.text.document import Split
from fim_server.text.reuse import SessionMemory
from fim_server.tokens import masks
from fim_server.workers.budget import MemoryBudget, bytes_for_sessions
from fim_server.workers.document_thread import DocumentThread
from fim_server.workers.edit_model import EditModel
from fim_server.workers.shared_models import SharedModels

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.pace import Pace
    from fim_server.models.store.transfer import Amount
    from fim_server.models.turn import Turn
    from fim_server.suggest.settings import ServerSettings

T = TypeVar("T")

WARM_UP_LANGUAGE, WARM_UP = "python", Split("def first(values):\n    return ", "\n")

MOST_THREADS = 8
"""Most documents with a thread, which keeps their sessions."""

MOST_AT_WORK = 4
"""Most documents at work at a time. One more stops the oldest work."""

NEXT_EDITS = "fim-server:next-edits"
"""Name of the thread for next edits, beside those of documents."""

GIVEN_WAY_SECONDS = 0.02
"""Time between two looks whether requests still wait, while the model's pace is to be measured."""

LOADING_LOOKS = 60
"""Looks without a sign of life after which a loading is overdue. Libraries, files and a model's first pass take longer
than any other work."""


@dataclass(slots=True, eq=False)
class Load:
    """Loading of the model.

    Attributes:
        model: The model while it is warmed up.
    """

    thread: WatchedThread = field(default_factory=lambda: WatchedThread("fim-load"))
    stop: Stop = field(default_factory=Stop)
    model: FimModel | None = None
    found: Future[Loaded] = field(default_factory=Future)

    @property
    def turn(self) -> Turn | None:
        """Turn of the model, if the loading is in a pass."""
        model = self.model
        return model.turn if model is not None and model.turn.is_watched_by(self.stop) else None


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Prompt that is read before a request for it.

    Attributes:
        done: Done when the prompt is read, or its reading stopped.
        read: Read it until a stop.
    """

    thread: DocumentThread
    done: Future[None]
    read: Callable[[Stop], None]


@dataclass(frozen=True, slots=True)
class Replaced:
    """Stuck thread that was given up.

    Attributes:
        left: Whether it was closed before: its document may be closed, or have another thread.
        model: Whether the model was given up too, because the thread was in one of its passes.
        in_background: Whether it was opening a text in the background, for no request.
    """

    uri: str
    left: bool
    model: bool
    in_background: bool = False


class CompletionWorker:
    """Worker with threads of its own, so that the event loop's thread, which alone uses this object, never waits."""

    def __init__(
        self,
        settings: ServerSettings,
        models: SharedModels | None = None,
        project: Project | None = None,
        covers: bool = True,
    ) -> None:
        """Make a worker without work.

        Args:
            settings: The client's settings.
            models: Shared with the other workers of the process.
            project: The client's project.
            covers: Whether a suggestion may replace closers right of the cursor.
        """
        self.covers = covers
        """True if a suggestion may replace closers right of the cursor, in documents that are opened later."""
        self._project = project
        self._settings = settings
        self.models = SharedModels() if models is None else models
        self._afresh = False
        self._prefetch_stop = Stop()
        self._prefetch: Prefetch | None = None
        """Latest prefetch."""
        self._writing_stop = Stop()
        """Stop of the model that writes the latest next edit."""
        self.edit_model = EditModel(self.models)
        self.prompts = PromptTokens()
        self._loading: Future[Loaded] | None = None
        self._loads: list[Load] = []
        """Loadings under way, also those that newer settings or a reload have made needless."""
        self.is_overdue = False
        """True while the loading has shown no sign of life for long."""
        self._loaded_with: ServerSettings | None = None
        self._threads: OrderedDict[str, DocumentThread] = OrderedDict()
        """Threads by document, the last used at the end."""
        self._closed: list[DocumentThread] = []
        """Closed threads that have not come back yet."""
        self.is_closed = False
        self.was_lost = False
        """True once the model was given up and has to be loaded again."""
        self._identities = count(1)
        self.session_memory = SessionMemory(bytes_for_sessions(MemoryBudget().bytes_for(settings.memory_mb)))
        """Memory limit of the sessions of all documents."""
        self.unfinished = Unfinished()
        """Texts that are opened in the background."""
        self.make_contexts: Callable[[], DocumentSessions] = lambda: DocumentSessions(
            None, self.session_memory, self.unfinished, self.covers
        )

    @property
    def model(self) -> FimModel | None:
        loaded = self._loaded()
        return None if loaded is None else loaded.model

    @property
    def is_at_work(self) -> bool:
        """True while a thread has work."""
        threads = (*self._threads.values(), *self._closed, *(load.thread for load in self._loads))
        return any(thread.is_busy for thread in threads) or self.unfinished.is_at_work

    @property
    def is_loading(self) -> bool:
        """True while a model is being loaded."""
        return self._loading is not None and not self._loading.done()

    @property
    def given_up(self) -> int:
        """Number of threads of all workers of the process that were given up and have not come back."""
        self.models.given_up = [thread for thread in self.models.given_up if thread.is_busy]
        return len(self.models.given_up)

    def load(
        self, report: Callable[[str, float], None] = lambda message, share: None, tell: Amount | None = None
    ) -> Future[FimModel]:
        """Start to load the model, if nothing has. The future raises ModelError if that fails, now and ever after.

        ``report`` is called on another thread with a message and the progress from 0 to 1. ``tell`` is called on others
        with the bytes that are downloaded, and all bytes.
        """
        loading = self._load_once(report, tell)
        found: Future[FimModel] = Future()

        def pass_on(loading: Future[Loaded]) -> None:
            error = loading.exception()
            settle(found, None if error else loading.result().model, error)  # it may be cancelled

        loading.add_done_callback(pass_on)
        return found

    def stop_loading(self, reason: str) -> None:
        """Stop the current loading: everything that waits for the model, now and later, gets a ModelError.

        The thread ends by itself, for a download looks at its stop.
        """
        for load in tuple(self._loads):
            if load.found is self._loading and not load.found.done():
                self._loads.remove(load)
                load.thread.give_up(ModelError(reason))

    def loads_like(self, settings: ServerSettings) -> bool:
        """Return whether nothing is loaded yet, or the model of these settings."""
        return self._loaded_with is None or self._loaded_with.loads_like(settings)

    def use(self, settings: ServerSettings) -> None:
        """Take settings for future loads."""
        self._settings = settings

    def forget(self, uri: str) -> None:
        """Forget a document and release its memory."""
        self._prefetch_stop.set()
        if uri in self._threads:
            self._close(uri)

    def reload(self, settings: ServerSettings, afresh: bool = True) -> None:
        """Forget the model and all sessions; :meth:`load` starts again with these settings.

        ``afresh``: load the model from the disk though other clients have it.
        """
        self._prefetch_stop.set()
        self.forget_sessions()
        self._settings = settings
        self._loading = None
        self._afresh = afresh

    def forget_sessions(self) -> None:
        """Stop all work, and forget the sessions of all documents."""
        for uri in list(self._threads):
            self._close(uri)

    def forget_caches(self) -> None:
        """Forget readings, masks and the sessions of idle documents, all of which are soon made again."""
        loaded = self._loaded()
        if loaded is not None:
            loaded.readings.clear()
            for language in {language for thread in self._threads.values() for language in thread.completer.languages}:
                masks.clear(language, loaded.model.vocabulary)
        for uri in [uri for uri, thread in self._threads.items() if not thread.is_busy]:
            self._close(uri)
        release_memory()

    def lose(self) -> None:
        """Forget everything and set :attr:`was_lost`."""
        self.reload(self._settings, afresh=False)
        self.was_lost = True

    def submit(self, request: Request, recalls: bool = False) -> Handle:
        """Queue a request, and stop the document's previous one: only its latest cursor matters.

        ``recalls``: a sure suggestion of the project's memory is an answer too, see :meth:`recall`. The future gives
        None if it is cancelled before it finds an answer. It raises ModelError without a model, and LanguageError
        for an unknown language.
        """
        self._prefetch_stop.set()
        self._writing_stop.set()
        thread = self._thread_of(request.uri)
        cancelled = self._begun(thread.renew_stop())
        self._prefetch_stop = afterwards = Stop()
        loading = self._load_once()
        submitted = time.perf_counter()
        completer = thread.completer
        future = thread.submit(
            cancelled, lambda: completer.answer(loading, request, cancelled, submitted, recalls), is_asked=True
        )
        if request.settings.prefetch:
            self._read(thread, afterwards, lambda stop: completer.read_on(loading, request, cancelled, stop))
        return Handle(
            future,
            cancelled,
            lambda: completer.written_for(cancelled),
            lambda typed: completer.end_line_for(cancelled, typed),
        )

    def recall(self, request: Request) -> Handle | None:
        """Queue a request to the project's memory alone, like :meth:`submit`; None if no memory is in use.

        A prefetch for another document goes on; one for this document pauses.
        """
        if self._project is None or not request.settings.project_memory:
            return None
        thread, prefetch = self._thread_of(request.uri), self._prefetch
        is_reading = prefetch is not None and prefetch.thread is thread and not prefetch.done.done()
        goes_on = is_reading and not self._prefetch_stop.is_set()
        if goes_on:
            self._prefetch_stop.set()
        cancelled = self._begun(thread.renew_stop())
        submitted = time.perf_counter()
        completer = thread.completer
        future = thread.submit(cancelled, lambda: completer.recall(request, cancelled, submitted), is_asked=True)
        if goes_on and prefetch is not None:
            self._prefetch_stop = Stop()
            self._read(thread, self._prefetch_stop, prefetch.read)
        return Handle(future, cancelled)

    def prefetch_prompt(self, request: Request, may_be_pair: bool = False) -> None:
        """Have the model read the prompt of a likely request, after all requests.

        Any request and any other prefetch stops it; with the most documents at work it does not start.
        ``may_be_pair``: the last two characters before the cursor may be a bracket and its closer, with the true cursor
        between them.
        """
        loaded = self._loaded()
        if loaded is None:
            self._prefetch_stop.set()
        else:
            self._begin_prefetch(request.uri, lambda found, stop: found.read_ahead(loaded, request, stop, may_be_pair))

    def prefetch_at_rest(self, request: Request) -> None:
        """Prefetch for a resting cursor: open the session and, if a model is in use, read the short prompt."""
        loaded = self._loaded()
        if loaded is None and request.settings.ask_model:
            self._prefetch_stop.set()
        else:
            self._begin_prefetch(request.uri, lambda found, stop: found.read_at_rest(loaded, request, stop))

    def _begin_prefetch(self, uri: str, read: Callable[[Completer, Stop], None]) -> None:
        self._prefetch_stop.set()
        if len(self._at_work_but(uri)) < MOST_AT_WORK:
            self._prefetch_stop = Stop()
            thread = self._thread_of(uri)
            self._read(thread, self._prefetch_stop, lambda stop: read(thread.completer, stop))

    def _read(self, thread: DocumentThread, stopped: Stop, read: Callable[[Stop], None]) -> None:
        """Queue a prefetch, until ``stopped`` is set."""
        self._prefetch = Prefetch(thread, thread.submit(stopped, lambda: read(stopped)), read)

    def stop_prefetch(self) -> None:
        self._prefetch_stop.set()

    def explain(self, request: Request, tell: Callable[[Explained], T]) -> tuple[Future[T], Stop]:
        """Queue a question about a cursor, which cancels no request; return its answer and its stop.

        ``tell`` makes the answer, on the document's thread. The future raises StoppedError, with a message for the
        user, if the engine would take too long.
        """
        self._prefetch_stop.set()
        thread, loading, cancelled = self._thread_of(request.uri), self._loading, self._begun(Stop())
        future = thread.submit(
            cancelled, lambda: thread.completer.explain(loading, request, cancelled, tell), is_asked=True
        )
        return future, cancelled

    def next_edit(self, request: Request, asked: EditQuestion) -> Future[NextEdit | None]:
        """Queue a question for the next edit, which stops the one before it.

        It has a thread of its own, so that it waits for no model. A request for suggestions stops the model's writing,
        but not the search by rules. The future raises StoppedError once it is stopped.
        """
        thread = self._thread_of(NEXT_EDITS)
        cancelled = self._begun(thread.renew_stop())
        self._writing_stop = stopped = Stop()
        model = self.edit_model.get(request.settings, self.model) if request.settings.ask_model else None
        thread.model = model
        return thread.submit(cancelled, lambda: thread.completer.next_edit(request, asked, model, stopped))

    def replace_stuck(self) -> list[Replaced]:
        """Give up the threads that show no sign of life, and return them; call this at regular times.

        A given-up thread gets no more work, no other thread uses what it holds, and its document gets a new thread. If
        it is in a pass of the model, all clients that share the model lose it; see :attr:`was_lost`. A closed worker
        needs these looks too: its threads may hold the model of other clients.
        """
        replaced = []
        self._check_loads()
        model = self.model
        self._closed = [thread for thread in self._closed if thread.is_busy]
        for thread in (*self._threads.values(), *self._closed):
            step = thread.step
            if not thread.is_stuck() or step is None:
                continue
            at = thread.model or model
            in_model = at is not None and at.turn.is_watched_by(step.stop)
            if in_model and at is not None:
                at.turn.lose()
            left = thread in self._closed
            if left:
                self._closed.remove(thread)
            else:
                del self._threads[thread.uri]
            thread.give_up()
            self.models.given_up.append(thread)
            is_lost = in_model and (thread.uri != NEXT_EDITS or at is model)
            replaced.append(Replaced(thread.uri, left, is_lost))
        for stuck in self.unfinished.replace_stuck():
            self.models.given_up.append(stuck.thread)
            replaced.append(Replaced(stuck.uri, stuck.left, False, in_background=True))
        if model is not None and model.turn.is_lost and not self.is_closed:
            self.lose()
        return replaced

    def close(self) -> None:
        """Stop all work and load nothing more; call :meth:`replace_stuck` as long as :attr:`is_at_work`."""
        self._prefetch_stop.set()
        self._writing_stop.set()
        self.forget_sessions()
        self.is_closed = True
        self.edit_model.close()
        for load in self._loads:
            load.thread.close()

    def _check_loads(self) -> None:
        """Look for signs of life of the loadings.

        A disk that does not answer only makes the wanted model overdue. A pass that does not end is given up, with the
        model, which other clients may have.
        """
        self._loads = [load for load in self._loads if load.thread.is_busy]
        self.is_overdue = False
        for load in tuple(self._loads):
            silent, turn = load.thread.look(), load.turn
            if silent < (SILENT_LOOKS if turn is not None and turn in self.models.warm else LOADING_LOOKS):
                continue
            if turn is not None:
                turn.lose()
                self.models.given_up.append(load.thread)
            elif load.found is self._loading and not self.is_closed:
                self.is_overdue = True
                continue
            self._loads.remove(load)
            load.thread.give_up(ModelError("the model does not answer: its first passes have not ended"))

    def _loaded(self) -> Loaded | None:
        loading = self._loading
        done = loading is not None and loading.done() and loading.exception() is None
        return loading.result() if loading is not None and done else None

    def _load_once(
        self, report: Callable[[str, float], None] = lambda message, share: None, tell: Amount | None = None
    ) -> Future[Loaded]:
        if self._loading is None:
            if self.is_closed:
                raise RuntimeError("the worker is closed")
            self._loaded_with = self._settings
            settings, afresh = self._settings, self._afresh
            # A thread for each, so that no loading waits for one from a disk or a network that does not answer.
            load = Load()
            load.found = self._loading = load.thread.submit(
                load.stop, lambda: self._load(load, settings, heeded(report), afresh, tell)
            )
            self._loads.append(load)
        return self._loading

    def _load(
        self,
        load: Load,
        settings: ServerSettings,
        report: Callable[[str, float], None],
        afresh: bool,
        tell: Amount | None,
    ) -> Loaded:
        report("loading the libraries", 0.05)
        BLOCKING_POOL.begin((WARM_UP_LANGUAGE, "load"), lambda: Language.load(WARM_UP_LANGUAGE))  # beside the model
        import fim_server.decoding.complete  # noqa: F401  # it takes a while, so it is reported first

        while True:
            report("loading the model", 0.4)
            model = load.model = self.models.get(settings, afresh, tell)
            try:
                loaded = self._prepare(model, report, load)
                self.models.warm.add(model.turn)
                return loaded
            except RuntimeError:
                if not model.turn.is_lost:
                    raise
                afresh = False  # a pass of another client does not end: the model is loaded anew in any case

    def _prepare(self, model: FimModel, report: Callable[[str, float], None], load: Load) -> Loaded:
        from fim_server.decoding.complete import complete
        from fim_server.decoding.options import DecodeOptions
        from fim_server.models.pace import first_pace

        # The tables of other languages are prepared when a file is opened: they are many.
        report(f"preparing {WARM_UP_LANGUAGE}", 0.7)
        language = Language.load(WARM_UP_LANGUAGE)
        masks.prepare(language, model.vocabulary)
        report("warming up", 0.8)
        with self.models.warming_up(model.turn):
            pace = self.models.paces.get(model.turn)
            if pace is None:
                # The first pass of a model and the first single line of a language take long.
                found = complete(model, language, WARM_UP, DecodeOptions(max_new_tokens=4, single_line=True))
                cost = found.statistics
                pace = first_pace(model, cost.prefilled_tokens, cost.prefill_ms / 1000)
                self.models.paces[model.turn] = pace
                with suppress(RuntimeError):  # the thread is closed
                    load.thread.submit(load.stop, lambda: self._measure(model, pace))
        return Loaded(model, pace, KeptReadings(model))

    def _measure(self, model: FimModel, pace: Pace) -> None:
        """Measure a model's pace between requests."""
        from fim_server.models.pace import measure

        def give_way() -> None:
            heed()
            while self._is_asked_elsewhere(None):
                time.sleep(GIVEN_WAY_SECONDS)
                heed()

        measure(model, pace, give_way)

    def _thread_of(self, uri: str) -> DocumentThread:
        """Return a document's thread, for work: stop other work if there is too much."""
        thread = self._threads.get(uri)
        if thread is None:
            idle = [known for known, other in self._threads.items() if not other.is_busy]
            if len(self._threads) >= MOST_THREADS and idle:
                self._close(idle[0])
            contexts = self.make_contexts()
            completer = Completer(
                contexts, self.prompts, self._identities, lambda: not self._is_asked_elsewhere(uri), self._project
            )
            thread = self._threads[uri] = DocumentThread(uri, completer)
        self._threads.move_to_end(uri)
        others = self._at_work_but(uri)
        if len(others) >= MOST_AT_WORK:
            # Work without a waiting request goes first.
            self._close(min(others, key=lambda other: (others[other].is_asked, others[other].began)))
        return thread

    def _begun(self, stop: Stop) -> Stop:
        """Return the stop of new work, which is set if the worker is closed: nothing would stop the work later."""
        if self.is_closed:
            stop.set()
        return stop

    def _at_work_but(self, uri: str | None) -> dict[str, Step]:
        """Return the work for other documents. Safe on any thread."""
        steps = {known: thread.step for known, thread in list(self._threads.items()) if known != uri}
        return {known: step for known, step in steps.items() if step is not None}

    def _close(self, uri: str) -> None:
        """Close a document's thread, which is watched until it comes back."""
        thread = self._threads.pop(uri)
        thread.model = thread.model or self.model
        thread.close()
        self._closed = [one for one in (*self._closed, thread) if one.is_busy]

    def _is_asked_elsewhere(self, uri: str | None) -> bool:
        """Return whether a request for another document, or for any, waits. Safe on any thread."""
        return any(step.is_asked for step in self._at_work_but(uri).values())


def heeded(report: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """Return a report that is also a sign of life, and raises StoppedError on a stop."""

    def report_alive(message: str, share: float) -> None:
        heed()
        report(message, share)

    return report_alive
