"""The worker of one client: the model, loaded once, and a lane for each document, which it looks after."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from fim_server.errors import ModelError
from fim_server.language import Language, Stop
from fim_server.language.stop import heed
from fim_server.suggest.context.background_open import Unfinished
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.context.sessions import Contexts
from fim_server.suggest.job import Explained, Job, PromptTokens, Request
from fim_server.suggest.pipeline import Completer, Loaded
from fim_server.suggest.sources.project import Project
from fim_server.system.process import release_memory
from fim_server.system.watched_threads import SILENT_LOOKS, Step, WatchedThread, settle
from fim_server.text.document import Split
from fim_server.text.reuse import SessionMemory
from fim_server.tokens import masks
from fim_server.workers.budget import MemoryBudget, bytes_for_sessions
from fim_server.workers.document_thread import Lane
from fim_server.workers.shared_models import SharedModels

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.store.transfer import Amount
    from fim_server.models.turn import Turn
    from fim_server.suggest.settings import ServerSettings

T = TypeVar("T")

WARM_UP = Split("def first(values):\n    return ", "\n")

MOST_LANES = 8
"""Documents whose sessions are kept."""

MOST_AT_WORK = 4
"""Documents that are worked at at a time. For one more, what has been worked at longest is left."""


LOADING_LOOKS = 60
"""A loading of which nothing was heard in so many looks is said to be overdue: libraries, files and the first pass of a
model take longer than any other work."""


@dataclass(slots=True, eq=False)
class Load:
    """A loading of the model.

    Attributes:
        model: What is being warmed up, once it is there.
        found: What comes of it.
    """

    thread: WatchedThread = field(default_factory=lambda: WatchedThread("fim-load"))
    stop: Stop = field(default_factory=Stop)
    model: FimModel | None = None
    found: Future[Loaded] = field(default_factory=Future)

    @property
    def turn(self) -> Turn | None:
        """The model's turn, where it is in a pass of it."""
        model = self.model
        return model.turn if model is not None and model.turn.is_watched_by(self.stop) else None


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read before anybody asks.

    Attributes:
        lane: That of its document.
        done: Set once it is read, or was stopped.
        read: Reads it, until a stop.
    """

    lane: Lane
    done: Future[None]
    read: Callable[[Stop], None]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A thread that was given up.

    Attributes:
        uri: The document that it was at.
        left: Whether nothing was asked of it any more: the document may be closed, or have another thread.
        model: Whether the model was given up with it, because the thread was in one of its passes.
        finishing: Whether it was opening a text in the background, which nobody waited for.
    """

    uri: str
    left: bool
    model: bool
    finishing: bool = False


class CompletionWorker:
    """Completes on threads of its own, so that the protocol's thread, which alone uses this object, always answers."""

    def __init__(
        self, settings: ServerSettings, models: SharedModels | None = None, project: Project | None = None
    ) -> None:
        """``models``: those of the process, shared with other workers. ``project``: what is known of the client's."""
        self._project = project
        self._settings = settings
        self.models = SharedModels() if models is None else models
        """Those of the process."""
        self._afresh = False
        self._ahead = Stop()
        """Stops what is read before anybody asks."""
        self._reading: Reading | None = None
        """What that is, or was."""
        self.prompts = PromptTokens()
        """What the model has read."""
        self._loading: Future[Loaded] | None = None
        self._loads: list[Load] = []
        """Those under way, also where other settings or a reload have made them needless."""
        self.is_overdue = False
        """Whether nothing has been heard of the loading for long."""
        self._loaded_with: ServerSettings | None = None
        self._lanes: OrderedDict[str, Lane] = OrderedDict()
        """Those used last at the end."""
        self._closed: list[Lane] = []
        """Those that were closed and have not come back yet."""
        self.is_closed = False
        self.was_lost = False
        """Whether the model was given up and is to be loaded again."""
        self._identities = count(1)
        self.session_memory = SessionMemory(bytes_for_sessions(MemoryBudget().bytes_for(settings.memory_mb)))
        """What the sessions of all documents may hold."""
        self.unfinished = Unfinished()
        """What is opened in the background."""
        self.make_contexts: Callable[[], Contexts] = lambda: Contexts(None, self.session_memory, self.unfinished)

    @property
    def model(self) -> FimModel | None:
        """The model, once it is loaded."""
        loaded = self._loaded()
        return None if loaded is None else loaded.model

    @property
    def is_at_work(self) -> bool:
        """Whether a thread is at something, or has something to do."""
        threads = (*self._lanes.values(), *self._closed, *(load.thread for load in self._loads))
        return any(thread.is_busy for thread in threads) or self.unfinished.is_at_work

    @property
    def is_loading(self) -> bool:
        """Whether the model is on its way."""
        return self._loading is not None and not self._loading.done()

    @property
    def given_up(self) -> int:
        """How many threads that were given up have not come back, those of the process's other workers among them."""
        self.models.given_up = [thread for thread in self.models.given_up if thread.is_busy]
        return len(self.models.given_up)

    def load(
        self, report: Callable[[str, float], None] = lambda message, share: None, tell: Amount | None = None
    ) -> Future[FimModel]:
        """Start loading the model, once. The future raises ModelError if that fails, now and ever after.

        ``report`` is told what is being done and how far it is, from 0 to 1, on another thread. ``tell`` is told how
        many bytes of how many have come, where the model is downloaded, on others.
        """
        loading = self._load_once(report, tell)
        found: Future[FimModel] = Future()

        def pass_on(loading: Future[Loaded]) -> None:
            error = loading.exception()
            settle(found, None if error else loading.result().model, error)  # nobody may wait for it any more

        loading.add_done_callback(pass_on)
        return found

    def leave_loading(self, reason: str) -> None:
        """Stop the loading that is under way. Who waits for the model, now and later, gets a ModelError that says why.

        The thread is left to itself: it looks at its stop where it downloads.
        """
        for load in tuple(self._loads):
            if load.found is self._loading and not load.found.done():
                self._loads.remove(load)
                load.thread.give_up(ModelError(reason))

    def loads_like(self, settings: ServerSettings) -> bool:
        """Whether nothing is loaded yet, or what these settings ask for."""
        return self._loaded_with is None or self._loaded_with.loads_like(settings)

    def use(self, settings: ServerSettings) -> None:
        """Take other settings for what is loaded from now on."""
        self._settings = settings

    def forget(self, uri: str) -> None:
        """Forget what is known of a document, and give its memory back."""
        self._ahead.set()
        if uri in self._lanes:
            self._close(uri)

    def reload(self, settings: ServerSettings, afresh: bool = True) -> None:
        """Forget the model and everything that came of it; `load` starts again, with other settings.

        ``afresh``: load it from the disk though others have it.
        """
        self._ahead.set()
        self.forget_sessions()
        self._settings = settings
        self._loading = None
        self._afresh = afresh

    def forget_sessions(self) -> None:
        """Leave what is under way, and forget all documents' sessions."""
        for uri in list(self._lanes):
            self._close(uri)

    def forget_caches(self) -> None:
        """Forget what can be had again soon: what the model has read, masks, and the sessions of idle documents."""
        loaded = self._loaded()
        if loaded is not None:
            loaded.readings.clear()
            for language in {language for lane in self._lanes.values() for language in lane.completer.languages}:
                masks.clear(language, loaded.model.vocabulary)
        for uri in [uri for uri, lane in self._lanes.items() if not lane.is_busy]:
            self._close(uri)
        release_memory()

    def lose(self) -> None:
        """Forget everything, as if all had to be given up; see `was_lost`."""
        self.reload(self._settings, afresh=False)
        self.was_lost = True

    def submit(self, request: Request, recalls: bool = False) -> Job:
        """Queue a request and stop the document's one before: only its latest cursor matters.

        ``recalls``: what the project's memory is sure of is an answer as well, see :meth:`recall`.
        The job's future gives None where it was cancelled before it came to anything, and raises ModelError where there
        is no model, LanguageError where the language is not one of ours.
        """
        self._ahead.set()
        lane = self._lane(request.uri)
        if lane.asked is not None:
            lane.asked.set()
        lane.asked = cancelled = Stop()
        self._ahead = afterwards = Stop()
        loading = self._load_once()
        submitted = time.perf_counter()
        completer = lane.completer
        future = lane.submit(
            cancelled, lambda: completer.answer(loading, request, cancelled, submitted, recalls), is_asked=True
        )
        if request.settings.prefetch:
            self._read(lane, afterwards, lambda stop: completer.read_on(loading, request, cancelled, stop))
        return Job(
            future,
            cancelled,
            lambda: completer.written_for(cancelled),
            lambda typed: completer.end_line_for(cancelled, typed),
        )

    def recall(self, request: Request) -> Job | None:
        """Queue a question to the project's memory alone, before the model's; as :meth:`submit`.

        What is read ahead of other documents goes on; of this one it makes room, and goes on afterwards. None where
        there is nothing to ask.
        """
        if self._project is None or not request.settings.project_memory:
            return None
        lane, reading = self._lane(request.uri), self._reading
        is_reading = reading is not None and reading.lane is lane and not reading.done.done()
        goes_on = is_reading and not self._ahead.is_set()
        if goes_on:
            self._ahead.set()
        if lane.asked is not None:
            lane.asked.set()
        lane.asked = cancelled = Stop()
        submitted = time.perf_counter()
        completer = lane.completer
        future = lane.submit(cancelled, lambda: completer.recall(request, cancelled, submitted), is_asked=True)
        if goes_on and reading is not None:
            self._ahead = Stop()
            self._read(lane, self._ahead, reading.read)
        return Job(future, cancelled)

    def read_ahead(self, request: Request, may_be_pair: bool = False) -> None:
        """Have the prompt of a request read that nobody has made yet, after all that was asked for.

        Nothing is read while as many documents are at work as may be. Stopped by whatever is asked for, and by another
        call. ``may_be_pair``: the last two characters left of the
        cursor may be a bracket and its closer, between which the cursor stands in truth.
        """
        self._ahead.set()
        loaded = self._loaded()
        if loaded is None or len(self._at_work_but(request.uri)) >= MOST_AT_WORK:
            return
        self._ahead = cancelled = Stop()
        lane = self._lane(request.uri)
        self._read(lane, cancelled, lambda stop: lane.completer.read_ahead(loaded, request, stop, may_be_pair))

    def read_at_rest(self, request: Request) -> None:
        """As :meth:`read_ahead`, where a cursor rests: the short prompt alone is read, and the session opened.

        Where no model is asked the latter alone.
        """
        self._ahead.set()
        loaded = self._loaded()
        if (loaded is None and request.settings.ask_model) or len(self._at_work_but(request.uri)) >= MOST_AT_WORK:
            return
        self._ahead = cancelled = Stop()
        lane = self._lane(request.uri)
        self._read(lane, cancelled, lambda stop: lane.completer.read_at_rest(loaded, request, stop))

    def _read(self, lane: Lane, stopped: Stop, read: Callable[[Stop], None]) -> None:
        """Have something read that nobody has asked for, until it is ``stopped``."""
        self._reading = Reading(lane, lane.submit(stopped, lambda: read(stopped)), read)

    def rest(self) -> None:
        """Read nothing that nobody has asked for."""
        self._ahead.set()

    def explain(self, request: Request, tell: Callable[[Explained], T]) -> tuple[Future[T], Stop]:
        """Queue a question about a cursor, which cancels nothing; returns what ends it as well.

        ``tell`` words the answer, on the document's thread. The future raises StoppedError, with a message for people,
        where the engine would take too long.
        """
        self._ahead.set()
        lane, loading, cancelled = self._lane(request.uri), self._loading, Stop()
        future = lane.submit(
            cancelled, lambda: lane.completer.explain(loading, request, cancelled, tell), is_asked=True
        )
        return future, cancelled

    def look_after(self) -> list[Replaced]:
        """Look whether the threads at work still do something, and give up those that do not; to be called regularly.

        A thread that is given up is left to itself: nothing is asked of it any more, nothing it holds is used by
        others, and its document gets a new one. Where it is in a pass of the model, that is given up, too, for all who
        share it; see `was_lost`. Also for a worker that is closed: its threads may hold the model of others.
        """
        replaced = []
        self._look_after_loads()
        model = self.model
        self._closed = [lane for lane in self._closed if lane.is_busy]
        for lane in (*self._lanes.values(), *self._closed):
            step = lane.step
            if not lane.is_stuck() or step is None:
                continue
            at = lane.model or model
            in_model = at is not None and at.turn.is_watched_by(step.stop)
            if in_model and at is not None:
                at.turn.lose()
            left = lane in self._closed
            if left:
                self._closed.remove(lane)
            else:
                del self._lanes[lane.uri]
            lane.give_up()
            self.models.given_up.append(lane)
            replaced.append(Replaced(lane.uri, left, in_model))
        for stuck in self.unfinished.look_after():
            self.models.given_up.append(stuck.thread)
            replaced.append(Replaced(stuck.uri, stuck.left, False, finishing=True))
        if model is not None and model.turn.is_lost and not self.is_closed:
            self.lose()
        return replaced

    def close(self) -> None:
        """Stop what is under way and load nothing more; :meth:`look_after` goes on for as long as `is_at_work`."""
        self._ahead.set()
        self.forget_sessions()
        self.is_closed = True
        for load in self._loads:
            load.thread.close()

    def _look_after_loads(self) -> None:
        """Look whether something is heard of what is being loaded.

        A disk that does not answer is waited for, as long as somebody wants the model. A pass that does not end is
        given up, with the model, which others may have.
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
            # A thread for each: one that loads from a disk or a network that does not answer keeps no other waiting.
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
        import fim_server.decoding.complete  # noqa: F401  # they take a while, which is said before

        while True:
            report("loading the model", 0.4)
            model = load.model = self.models.get(settings, afresh, tell)
            try:
                loaded = self._prepare(model, settings, report)
                self.models.warm.add(model.turn)
                return loaded
            except RuntimeError:
                if not model.turn.is_lost:
                    raise
                afresh = False  # others had it, and one of their passes has not ended: it is loaded anew in any case

    def _prepare(self, model: FimModel, settings: ServerSettings, report: Callable[[str, float], None]) -> Loaded:
        from fim_server.decoding.complete import complete
        from fim_server.decoding.options import DecodeOptions
        from fim_server.models.pace import measure

        # The first run builds the token tables, a second or two for a large vocabulary: not while someone waits.
        learnt = model.format.languages
        names = [name for name in Language.names() if settings.remembers(name, learnt)]
        for index, name in enumerate(names):
            report(f"preparing {name}", 0.7 + 0.3 * index / len(names))
            masks.prepare(Language.load(name, version=settings.versions.get(name)), model.vocabulary)
        report("warming up", 0.99)
        with self.models.warming_up(model.turn):
            pace = self.models.paces.get(model.turn)
            if pace is None:
                # The first pass of a model, and the first single line of a language, take long: no request should wait
                # for them.
                complete(model, Language.load("python"), WARM_UP, DecodeOptions(max_new_tokens=4, single_line=True))
                pace = self.models.paces[model.turn] = measure(model)
        return Loaded(model, pace, KeptReadings(model))

    def _lane(self, uri: str) -> Lane:
        """A document's lane, with room for it to work: somebody asks."""
        lane = self._lanes.get(uri)
        if lane is None:
            idle = [known for known, other in self._lanes.items() if not other.is_busy]
            if len(self._lanes) >= MOST_LANES and idle:
                self._close(idle[0])
            contexts = self.make_contexts()
            completer = Completer(
                contexts, self.prompts, self._identities, lambda: not self._is_asked_elsewhere(uri), self._project
            )
            lane = self._lanes[uri] = Lane(uri, completer)
        self._lanes.move_to_end(uri)
        others = self._at_work_but(uri)
        if len(others) >= MOST_AT_WORK:
            # What nobody waits for goes first.
            self._close(min(others, key=lambda other: (others[other].is_asked, others[other].began)))
        return lane

    def _at_work_but(self, uri: str) -> dict[str, Step]:
        """What is done for the other documents, by their names. From any thread."""
        steps = {known: lane.step for known, lane in list(self._lanes.items()) if known != uri}
        return {known: step for known, step in steps.items() if step is not None}

    def _close(self, uri: str) -> None:
        """Close a document's lane. Its thread is looked after until it comes back."""
        lane = self._lanes.pop(uri)
        lane.model = self.model
        lane.close()
        self._closed = [one for one in (*self._closed, lane) if one.is_busy]

    def _is_asked_elsewhere(self, uri: str) -> bool:
        """Whether somebody waits for another document. From any thread."""
        return any(step.is_asked for step in self._at_work_but(uri).values())


def heeded(report: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """A report of what is being done, which shows as well that the thread goes on, and is left where it is to stop."""

    def told(message: str, share: float) -> None:
        heed()
        report(message, share)

    return told
