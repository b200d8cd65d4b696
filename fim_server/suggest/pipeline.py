"""Pipeline from a cursor to ranked suggestions: context, sources, decoding with postprocessing, ranking.

The stages extend one record, :class:`.Job`. Each document has a pipeline of its own, on its own thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Language, Stop
from fim_server.suggest import limits
from fim_server.suggest.context.cursor import Place
from fim_server.suggest.context.stage import ContextStage
from fim_server.suggest.decode import Decoder
from fim_server.suggest.explain import explain
from fim_server.suggest.job import Explained, Job, Loaded, PromptTokens, Work
from fim_server.suggest.next_edit import EditQuestion, NextEdit, next_edit, next_edit_elsewhere
from fim_server.suggest.postprocess.stage import Postprocess
from fim_server.suggest.ranking.display import quiet
from fim_server.suggest.ranking.stage import rank
from fim_server.suggest.read_ahead import ReadAhead
from fim_server.suggest.request import Request
from fim_server.suggest.sources.scope_cache import ScopeCache
from fim_server.suggest.sources.stage import Sources
from fim_server.system.blocking_pool import wait_for

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.suggest.context.sessions import DocumentSessions, Opened
    from fim_server.suggest.sources.project import Project
    from fim_server.suggest.suggestion import Suggestion

T = TypeVar("T")

CANCELLED = "the request was cancelled, or its document was closed"
"""Message for a cancelled explanation."""


class Completer:
    """Pipeline of one document. Used by its thread alone, except where a method says otherwise.

    Its methods raise StoppedError once the stop that watches the thread is set.
    """

    def __init__(
        self,
        contexts: DocumentSessions,
        tokens: PromptTokens,
        identities: count[int],
        is_wanted: Callable[[], bool],
        project: Project | None = None,
    ) -> None:
        """Make a pipeline.

        Args:
            contexts: Opens the document's sessions.
            tokens: Counts the tokens of prompts.
            identities: Names of suggestions.
            is_wanted: Returns whether there is time to read ahead.
            project: The client's project.
        """
        scopes = ScopeCache()
        self._project = project
        self.context = ContextStage(contexts, project)
        self.postprocess = Postprocess(identities, scopes, project)
        self.sources = Sources(project, scopes, self.postprocess)
        self.decoder = Decoder(self.sources, self.postprocess, tokens)
        self._ahead = ReadAhead(self.context, self.postprocess, project, tokens, is_wanted)

    @property
    def contexts(self) -> DocumentSessions:
        return self.context.contexts

    @property
    def languages(self) -> list[Language]:
        """Return the languages that are in use. Safe to call from other threads."""
        return self.context.languages

    def written_for(self, cancelled: Stop) -> str:
        """Return the text that the model has written so far for a request. Safe to call from other threads."""
        return self.decoder.written_for(cancelled)

    def end_line_for(self, cancelled: Stop, typed: int) -> None:
        """End a text as :attr:`.Handle.end_line` tells. Safe to call from other threads."""
        self.decoder.end_line_for(cancelled, typed)

    def give_back(self) -> None:
        """Let other threads use the prompts that were read, and the memory of sessions."""
        self.context.give_back()

    def read_ahead(self, loaded: Loaded, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        """Read the prompts of a request, as :meth:`.ReadAhead.prompts`."""
        self._ahead.prompts(loaded, request, cancelled, may_be_pair)

    def read_at_rest(self, loaded: Loaded | None, request: Request, cancelled: Stop) -> None:
        """Prepare for a cursor at rest, as :meth:`.ReadAhead.at_rest`."""
        self._ahead.at_rest(loaded, request, cancelled)

    def answer(
        self, loading: Future[Loaded], request: Request, cancelled: Stop, submitted: float, recalls: bool = False
    ) -> Work | None:
        """Return the outcome of a request; None if it is ``cancelled``.

        Raises ModelError without a model, and LanguageError for an unknown language.

        ``recalls``: try :meth:`recall` first, while the model reads the prompt.
        """
        try:
            return self._answer(loading, request, cancelled, submitted, recalls)
        except StoppedError:
            return None if cancelled.is_set() else Work(request.answered((), limits.too_long(), lasting=False))

    def recall(self, request: Request, cancelled: Stop, submitted: float) -> Work | None:
        """Return suggestions of which the project's memory is sure enough without the model; None if there are none.

        If no model is asked, return the most valuable ones.
        """
        started = time.perf_counter()
        place, settings = Place.of(request.split), request.settings
        if self._project is None or quiet(place, None, request.invoked, settings) is not None:
            return None
        try:
            language = self.context.language(request, self.context.loaded)
            with Stop(limits.ENGINE_SECONDS):
                opened = self.context.open(request, language)
                if quiet(place, opened.session.inside, request.invoked, settings) is not None:
                    return None
                best = self.sources.project.surest(request, opened, language)
        except StoppedError:
            return None
        if not best or cancelled.is_set():
            return None
        work = Work(request.answered(best, lasting=not opened.is_unfinished), origin="memory")
        work.costs.queue_ms = 1000 * (started - submitted)
        work.costs.open_ms = 1000 * (time.perf_counter() - started)
        return work

    def read_on(self, loading: Future[Loaded], request: Request, cancelled: Stop, stopped: Stop) -> None:
        """Read the long prompt of a request after its answer, until ``stopped``; not if it was ``cancelled``."""
        if not cancelled.is_set() and loading.done() and loading.exception() is None:
            self.read_ahead(loading.result(), request, stopped, False)

    def next_edit(
        self, request: Request, asked: EditQuestion, model: FimModel | None, stopped: Stop
    ) -> NextEdit | None:
        """Return the edit that may follow the latest one: by rule, also in another document, else as a model writes it.

        ``stopped`` stops the model alone. Raises LanguageError for an unknown language.
        """
        loaded = self.context.loaded
        language = self.context.language(request, loaded)
        found = next_edit(self.contexts, language, asked)
        found = found or next_edit_elsewhere(self.contexts, lambda one: self.context.language(one, loaded), asked)
        if found is not None or model is None or model.format.edits is None:
            return found
        from fim_server.suggest.written_edit import written_edit

        return written_edit(self.contexts, language, asked, model, stopped)

    def explain(
        self, loading: Future[Loaded] | None, request: Request, cancelled: Stop, tell: Callable[[Explained], T]
    ) -> T:
        """Return the result of ``tell`` for the explanation of a cursor.

        Raises StoppedError, with a message for the user, if the engine takes too long, or the work is ``cancelled``.
        """
        try:
            explained = explain(self.context, loading, request, cancelled)
            with Stop(limits.ENGINE_SECONDS):
                return tell(explained)
        except StoppedError as error:
            raise StoppedError(CANCELLED if cancelled.is_set() else limits.too_long()) from error

    def _surest(self, request: Request, opened: Opened, language: Language) -> tuple[Suggestion, ...]:
        """Return what :meth:`recall` would; if nothing, prepare the recalled suggestions while the model reads."""
        project = self.sources.project
        with suppress(StoppedError), Stop(limits.ENGINE_SECONDS):
            if best := project.surest(request, opened, language):
                return best
            project.likeliest(request, opened, language)
        return ()

    def _open_meanwhile(self, request: Request) -> None:
        """Open a request's session while the model is loaded. Errors are left to the request."""
        with suppress(LanguageError, StoppedError), Stop(limits.ENGINE_SECONDS):
            self.context.open(request, self.context.language(request, None))

    def _answer(
        self, loading: Future[Loaded], request: Request, cancelled: Stop, submitted: float, recalls: bool
    ) -> Work | None:
        started = time.perf_counter()
        if not loading.done():
            self._open_meanwhile(request)
        loaded = wait_for(loading)
        began = time.perf_counter()  # the deadline does not include the loading of the model
        language = self.context.language(request, loaded)
        prompts = self.context.prompts(loaded)
        healing = self.context.healing(request, loaded)
        options = self.context.options(request, loaded, language, None)
        options, readings = prompts.reach(request, healing.split, options, bool(healing.text))
        place, work = Place.of(request.split), Work(request.answered(()))
        if quiet(place, None, request.invoked, request.settings) is None:
            prefill = self.context.begin_prefill(loaded, healing, options, readings)
        else:
            prefill = None  # nothing is shown here, whatever the cursor is inside of
        try:
            opening = time.perf_counter()
            with Stop(limits.ENGINE_SECONDS):
                opened = self.context.open(request, language)
            work.costs.queue_ms = 1000 * (started - submitted)
            work.costs.open_ms = 1000 * (time.perf_counter() - opening)
            reason = quiet(place, opened.session.inside, request.invoked, request.settings)
            if reason is not None or prefill is None:
                suppressed = () if reason is None else (reason,)
                work.answer = request.answered((), None if reason is None else reason.message, suppressed=suppressed)
                return work
            if recalls and (best := self._surest(request, opened, language)):
                work.answer = request.answered(best, lasting=not opened.is_unfinished)
                work.origin = "memory"
                return None if cancelled.is_set() else work
            job = Job(request, loaded, cancelled, began, language, healing, options, readings, prefill, opened, work)
            deadline_ms = options.deadline_ms
            with Stop(limits.ENGINE_SECONDS + deadline_ms / 1000) if deadline_ms else cancelled:
                is_written = self.decoder.run(job, prompts.drafts_pay)
                rank(job, self.sources.project, is_written, self.decoder.is_enough(cancelled))
        finally:
            if prefill is not None:
                prefill.stop()
        return None if cancelled.is_set() else work
