"""The one thread that completes: it loads the model once and then serves one request at a time, the latest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Language, Stop
from fim_server.language.shapes import SINGLE_LINE
from fim_server.server.contexts import Contexts, Opened, before_unopened, fits, without_repetition
from fim_server.server.memory import Offer
from fim_server.server.place import Place, quiet, wants_single_line
from fim_server.server.prompts import Prompts
from fim_server.server.shared_models import SharedModels
from fim_server.server.work import Explained, Job, PromptTokens, Request, Work, answer_of
from fim_server.text.document import Split
from fim_server.tokens import masks

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel
    from fim_server.server.settings import ServerSettings

T = TypeVar("T")

WARM_UP = Split("def first(values):\n    return ", "\n")

LANGUAGE_SECONDS, MOST_LANGUAGES = 5.0, 256
"""How long it is remembered which language, in which version, a document is in, and for how many documents."""

ENGINE_SECONDS = 5.0
"""How long opening a cursor's contexts may take. What takes longer gets no suggestions, and nobody waits for it."""

CANDIDATES = 12
"""Tokens of the model that an explanation shows."""


@dataclass(frozen=True, slots=True)
class Task:
    """A request at work.

    Attributes:
        inside: `comment` or `string`: what the cursor is inside of.
        began: When the work on it began, by ``time.perf_counter``.
    """

    request: Request
    model: FimModel
    language: Language
    opened: Opened
    inside: str | None
    cancelled: Stop
    began: float


class CompletionWorker:
    """Completes on a thread of its own, so that the protocol's thread always answers."""

    def __init__(self, settings: ServerSettings, models: SharedModels | None = None) -> None:
        """``models``: those of the process, shared with its other workers."""
        self._settings = settings
        self._models = SharedModels() if models is None else models
        self._afresh = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fim-complete")
        self._latest = Stop()
        self._ahead = Stop()
        """Stops what is read before anybody asks."""
        self.prompts = PromptTokens()
        """What the model has read; written on the worker's thread."""
        self._loading: Future[FimModel] | None = None
        self._loaded_with: ServerSettings | None = None
        self._model: FimModel | None = None
        self._prompts: Prompts | None = None
        self._contexts = Contexts()
        self._languages: dict[tuple[str, str, str | None], tuple[Language, float]] = {}
        self._identities = count(1)

    @property
    def model(self) -> FimModel | None:
        """The model, once it is loaded."""
        return self._model

    def load(self, report: Callable[[str, float], None] = lambda message, share: None) -> Future[FimModel]:
        """Start loading the model, once. The future raises ModelError if that fails, now and ever after.

        ``report`` is told what is being done and how far it is, from 0 to 1, on the worker's thread.
        """
        if self._loading is None:
            self._loaded_with = self._settings
            self._loading = self._executor.submit(self._load, self._settings, report, self._afresh)
        return self._loading

    def loads_like(self, settings: ServerSettings) -> bool:
        """Whether nothing is loaded yet, or what these settings ask for."""
        return self._loaded_with is None or self._loaded_with.loads_like(settings)

    def use(self, settings: ServerSettings) -> None:
        """Take other settings for what is loaded from now on."""
        self._settings = settings

    def forget(self, uri: str) -> None:
        """Forget what is known of a document."""
        self._ahead.set()
        self._executor.submit(self._contexts.forget, uri)

    def reload(self, settings: ServerSettings) -> None:
        """Forget the model and everything that came of it; `load` starts again, with other settings."""
        self._latest.set()
        self._ahead.set()
        self._settings = settings
        self._loading = None
        self._model = None
        self._afresh = True
        self._executor.submit(self._forget)

    def submit(self, request: Request) -> Job:
        """Queue a request and cancel the one before: only the latest cursor matters.

        The job's future gives None where it was cancelled before it came to anything, and raises ModelError where there
        is no model, LanguageError where the language is not one of ours.
        """
        self._latest.set()
        self._ahead.set()
        self._latest = cancelled = Stop()
        self._ahead = afterwards = Stop()
        loading = self.load()
        submitted = time.perf_counter()
        future = self._executor.submit(self._work, loading, request, cancelled, submitted)
        if request.settings.prefetch:
            self._executor.submit(self._read_on, loading, request, cancelled, afterwards)
        return Job(future, cancelled)

    def read_ahead(self, request: Request, may_be_pair: bool = False) -> None:
        """Have the prompt of a request read that nobody has made yet, after all that was asked for.

        Stopped by whatever is asked for, and by another call. ``may_be_pair``: the last two characters left of the
        cursor may be a bracket and its closer, between which the cursor stands in truth.
        """
        self._ahead.set()
        loading = self._loading
        if loading is None or self._model is None:
            return
        self._ahead = cancelled = Stop()
        self._executor.submit(self._read_ahead, self._model, request, cancelled, may_be_pair)

    def rest(self) -> None:
        """Read nothing that nobody has asked for."""
        self._ahead.set()

    def explain(self, request: Request, tell: Callable[[Explained], T]) -> Future[T]:
        """Queue a question about a cursor; it cancels nothing. ``tell`` words the answer, on the same thread.

        The future raises StoppedError, with a message for people, where the engine would take too long.
        """
        self._ahead.set()
        return self._executor.submit(self._told, request, tell)

    def close(self) -> None:
        """Stop what is under way and take nothing more."""
        self._latest.set()
        self._ahead.set()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._contexts.close()

    def _load(self, settings: ServerSettings, report: Callable[[str, float], None], afresh: bool) -> FimModel:
        report("loading the libraries", 0.05)
        from fim_server.decoding.complete import complete
        from fim_server.decoding.options import DecodeOptions
        from fim_server.models.pace import measure

        report("loading the model", 0.4)
        model = self._models.get(settings, afresh)
        # The first run builds the token tables, a second or two for a large vocabulary: not while someone waits.
        names = Language.names()
        for index, name in enumerate(names):
            report(f"preparing {name}", 0.7 + 0.3 * index / len(names))
            version = settings.python_version if name == "python" else None
            masks.prepare(Language.load(name, version=version), model.vocabulary)
        report("warming up", 0.99)
        # The first pass of a model, and the first single line of a language, take a while that nobody should wait for.
        complete(model, Language.load("python"), WARM_UP, DecodeOptions(max_new_tokens=4, single_line=True))
        self._prompts = Prompts(model, measure(model))
        self._model = model
        return model

    def _forget(self) -> None:
        self._prompts = None
        self._contexts.clear()

    def _work(self, loading: Future[FimModel], request: Request, cancelled: Stop, submitted: float) -> Work | None:
        if cancelled.is_set():
            return None
        try:
            with cancelled:
                return self._answer(loading, request, cancelled, submitted)
        except StoppedError:
            if cancelled.is_set():
                return None
            return Work(answer_of(request, (), too_long(), lasting=False))

    def _answer(self, loading: Future[FimModel], request: Request, cancelled: Stop, submitted: float) -> Work | None:
        """The same, watched; raises StoppedError where it is to be left."""
        started = time.perf_counter()
        model = loading.result()  # queued on this same thread before, so it is there
        language = self._language(request)
        with Stop(ENGINE_SECONDS):
            opened = self._contexts.open(request.uri, language, request.split)
        work = Work(answer_of(request, ()))
        work.costs.queue_ms = 1000 * (started - submitted)
        work.costs.open_ms = 1000 * (time.perf_counter() - started)
        inside = opened.session.inside
        reason = quiet(Place.of(request.split), inside, request.invoked, request.settings)
        if reason is not None:
            work.answer = answer_of(request, (), reason)
            return work
        # A deadline is for the work, not for the model's loading: what comes late then still comes.
        self._decode(Task(request, model, language, opened, inside, cancelled, started), work)
        return None if cancelled.is_set() else work

    def _decode(self, task: Task, work: Work) -> None:
        """Have the model write, and put what came of it into ``work``."""
        from fim_server.decoding.alternatives import alternatives
        from fim_server.decoding.closing import Closing
        from fim_server.decoding.healing import Healing

        request = task.request
        healing = Healing.of(task.model, request.split)
        offers: list[Offer] = []
        reason = None
        opened = task.opened
        prompts = self._prompts
        assert prompts is not None, "the model was loaded on this thread"
        options = prompts.options(request, 1000 * (time.perf_counter() - task.began), task.inside)
        options, readings = prompts.reach(request, healing.split, options, bool(healing.text))
        for completion in alternatives(
            task.model,
            opened.session,
            healing.split,
            request.settings.alternatives if request.invoked else 1,
            replace(options, closing=Closing.of(opened.session, opened.left, opened.right)),
            task.cancelled,
            readings=readings,
            healing=healing.text,
        ):
            completion = healing.undo(completion)
            work.completions.append(completion)
            self.prompts.count(completion.statistics)
            prompts.note(completion.statistics.prefilled_tokens, completion.statistics.prefill_ms / 1000)
            offer = self._offer(completion, request, task.opened)
            if isinstance(offer, str):
                reason = reason or offer
            elif all(offer.text != other.text for other in offers):
                offers.append(offer)
        work.count_decoding()
        late = any(completion.stop_reason == "deadline" for completion in work.completions)
        # What was found on a part of the text is asked again: the next key finds the whole.
        lasting = (bool(offers) or not late) and not opened.is_unfinished
        work.answer = answer_of(request, tuple(offers), None if offers else reason, lasting)

    def _read_on(self, loading: Future[FimModel], request: Request, cancelled: Stop, stopped: Stop) -> None:
        """Read the long prompt of a request that was answered, until somebody asks for something else."""
        if not cancelled.is_set() and loading.exception() is None:
            self._read_ahead(loading.result(), request, stopped, False)

    def _read_ahead(self, model: FimModel, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        """The same, on the worker's thread; what goes wrong is said when somebody asks."""
        if cancelled.is_set() or self._prompts is None or model is not self._model:
            return
        try:
            language = self._language(request)
        except LanguageError:
            return
        if may_be_pair and request.split.left[-1:] in language.spelling.closers:
            request = between_pair(request)
        with suppress(StoppedError), cancelled, Stop(ENGINE_SECONDS):
            self._read_prompts(model, language, request, cancelled)

    def _read_prompts(self, model: FimModel, language: Language, request: Request, cancelled: Stop) -> None:
        from fim_server.decoding.healing import Healing

        prompts = self._prompts
        assert prompts is not None, "who calls has looked"
        opened = self._contexts.open(request.uri, language, request.split)
        inside = opened.session.inside
        if cancelled.is_set() or quiet(Place.of(request.split), inside, False, request.settings) is not None:
            return
        healing = Healing.of(model, request.split)
        options = prompts.options(request, 0, inside)
        read = prompts.read_ahead(request, healing.split, options, cancelled, bool(healing.text))
        self.prompts.ahead += read
        if read and not cancelled.is_set() and request.single_line and opened.guarantee != "none":
            opened.session.matcher(model.vocabulary, shape=SINGLE_LINE)  # the first one reads the file once more

    def _language(self, request: Request) -> Language:
        """The request's language. Which one it is says the project's own file, which is not read at every keystroke."""
        key = (request.path, request.language_id, request.settings.python_version)
        now = time.monotonic()
        known = self._languages.get(key)
        if known is None or now - known[1] > LANGUAGE_SECONDS:
            if len(self._languages) >= MOST_LANGUAGES:
                self._languages.clear()
            known = self._languages[key] = (request.language(), now)
        return known[0]

    def _offer(self, completion: Completion, request: Request, opened: Opened) -> Offer | str:
        """A completion as an offer, or why it is none."""
        if completion.text is None:
            return completion.reason or "there is no text"
        text = completion.text
        if opened.guarantee == "none":
            shown = text.split("\n", 1)[0] if request.single_line else text
            text = before_unopened(shown, opened.session.spelling.brackets)
        if opened.guarantee != "none":
            text = without_repetition(text, request.split.right, lambda shorter: opened.session.check(shorter).complete)
        if not text.strip():
            return "the model inserts nothing here"
        problem = fits(text, request.split, opened)
        if problem is not None:
            return problem
        return Offer(
            str(next(self._identities)),
            text,
            opened.covered,
            opened.guarantee,
            completion,
            opened.session.spelling.closers,
            opened.covered_lines,
        )

    def _told(self, request: Request, tell: Callable[[Explained], T]) -> T:
        try:
            explained = self._explain(request)
            with Stop(ENGINE_SECONDS):
                return tell(explained)
        except StoppedError as error:
            raise StoppedError(too_long()) from error

    def _explain(self, request: Request) -> Explained:
        from fim_server.decoding.alternatives import candidates

        language = request.language()
        with Stop(ENGINE_SECONDS):
            opened = self._contexts.open(request.uri, language, request.split)
        model, prompts = self._model, self._prompts
        if model is None or prompts is None or not request.settings.enabled:
            return Explained(language, opened, [])
        options = prompts.options(request, 0, opened.session.inside)
        found = candidates(model, opened.session, request.split, CANDIDATES, options, prompts.short)
        return Explained(
            language,
            opened,
            [
                (one.text, one.probability, one.allowed, None if one.allowed else refusal(opened, one.text))
                for one in found
            ],
        )


def too_long() -> str:
    """Why there is no answer about a file that takes too long to read."""
    return f"the file takes more than {ENGINE_SECONDS:g} s to read"


def between_pair(request: Request) -> Request:
    """A request with its cursor one character further left."""
    split = request.split
    moved = replace(split, left=split.left[:-1], right=split.left[-1] + split.right)
    single_line = request.single_line or wants_single_line(Place.of(moved), request.settings)
    return replace(request, split=moved, single_line=single_line)


def refusal(opened: Opened, text: str) -> str:
    """Why a token is refused, in words; the empty text is an end token."""
    if opened.guarantee == "none":
        return "nothing is known of what may come here"
    if text == "":
        return "the text cannot end here"
    explanation = opened.session.start().explain(text)
    rest = text[len(explanation.accepted) :]
    place = f"after {explanation.accepted!r}" if explanation.accepted else "here"
    return f"{rest[:1]!r} cannot come {place}" if rest else "it holds a part of a character"
