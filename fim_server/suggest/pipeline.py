"""Work for one document on its own thread: opening sessions, prefill, decoding, making suggestions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from fim_server.decoding.ending.trimming.indentation import starts_line
from fim_server.decoding.ending.trimming.trimmed import THERE_ALREADY, roughly_trimmed, trimmed
from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Language, Stop
from fim_server.language.shapes import SINGLE_LINE
from fim_server.language_support.registry import support_of
from fim_server.models.backend import LostError
from fim_server.suggest.answer_cache import Suggestion
from fim_server.suggest.context.cross_file import BeyondFile
from fim_server.suggest.context.cursor import Place, is_fresh, quiet, wants_single_line
from fim_server.suggest.context.other_cells import OtherCells
from fim_server.suggest.context.prompts import KeptReadings, Prompts, takes_no_comments
from fim_server.suggest.context.sessions import PATIENCE, Contexts, Opened, before_unopened, fits, refusal
from fim_server.suggest.job import Explained, PromptTokens, Request, Work, answer_of
from fim_server.suggest.postprocess.blocks import (
    is_header,
    once_typed,
    owes_block,
    with_empty_block,
    without_unsure_block,
)
from fim_server.suggest.postprocess.endings import with_any_ending, with_shortest_ending
from fim_server.suggest.postprocess.identifiers import Names, own_names
from fim_server.suggest.postprocess.short_texts import beginning_of, of_a_short_text, with_time_to_end
from fim_server.suggest.postprocess.trailing_comma import with_last_comma
from fim_server.suggest.ranking.display import Ends, ends_of, least_likelihood, without_lines_below, worth
from fim_server.suggest.ranking.rank import goes_on, others_of, together
from fim_server.suggest.ranking.red_flags import REPEATS_ITSELF, of_loop
from fim_server.suggest.ranking.regenerate import THOUGHTS_ON_REQUEST, second_thought, without_repeats
from fim_server.suggest.ranking.rescore import given_written
from fim_server.suggest.sources.definition_marks import with_marks
from fim_server.suggest.sources.missing_names import doubt_of, with_imports
from fim_server.suggest.sources.project import Project
from fim_server.suggest.sources.project_suggestions import Recalls
from fim_server.suggest.sources.scope_cache import Preferences
from fim_server.system.blocking_pool import BLOCKING_POOL, wait_for
from fim_server.text.hidden import hidden_in, known_at
from fim_server.tokens import masks

if TYPE_CHECKING:
    from fim_server.decoding.bias.undefined_names import UndefinedNames
    from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
    from fim_server.decoding.loop.healing import Healing
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Drafts, NameBias, ProjectBias
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel
    from fim_server.models.pace import Pace
    from fim_server.models.project_context import ProjectContext
    from fim_server.models.reading import Lent
    from fim_server.suggest.ranking.red_flags import Doubt

T = TypeVar("T")

LANGUAGE_SECONDS, MOST_LANGUAGES = 5.0, 256
"""How long it is remembered which language, in which version, a document is in, and for how many documents."""

ENGINE_SECONDS = 5.0
"""How long opening a cursor's contexts may take, and all else that the engine is asked for a request besides. What
takes longer gets no suggestions."""

EXPLAIN_MODEL_MS = 3000.0
"""How long the model may read for an explanation, which goes without its candidates after that."""

LEFT = "nobody waits for it any more, or its document was closed"
"""Why a question is not answered."""

CANDIDATES = 12
"""Tokens of the model that an explanation shows."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model, and what the threads of a worker share of it."""

    model: FimModel
    pace: Pace
    readings: KeptReadings


@dataclass(frozen=True, slots=True)
class Task:
    """A request at work.

    Attributes:
        inside: `comment` or `string`: what the cursor is inside of.
        began: When the work on it began, by ``time.perf_counter``.
        beside: What reads its prompt since then.
    """

    request: Request
    model: FimModel
    language: Language
    opened: Opened
    inside: str | None
    cancelled: Stop
    began: float
    healing: Healing
    options: DecodeOptions
    readings: Lent
    beside: ConcurrentPrefill


class Completer:
    """What a document's thread has: its sessions, and its share of what the model has read. Used by that thread alone.

    All its methods are left, with StoppedError, once the stop that watches the thread is set.
    """

    def __init__(
        self,
        contexts: Contexts,
        tokens: PromptTokens,
        identities: count[int],
        is_wanted: Callable[[], bool],
        project: Project | None = None,
    ) -> None:
        """What it shares with others.

        ``tokens`` are counted there; ``identities``: names of suggestions. ``is_wanted``: whether there is time to read
        ahead. ``project``: what is known of the client's.
        """
        self._project = project
        self.contexts = contexts
        self._tokens = tokens
        self._identities = identities
        self._is_wanted = is_wanted
        self._names = Names()
        self._cells = OtherCells()
        self._beyond = BeyondFile()
        self._preferences = Preferences()
        self._recalls = Recalls(project, lambda *said: self._suggestion(*said), self._preferences)
        self._loaded: Loaded | None = None
        self._prompts: Prompts | None = None
        self._reading: ConcurrentPrefill | None = None
        """What reads the prompt of the last request that was answered."""
        self._languages: dict[tuple[object, ...], tuple[Language, float]] = {}
        self._writing: tuple[Stop | None, str] = (None, "")
        """What the model has written so far, and what stops it."""
        self._line_wanted: tuple[Stop | None, int] = (None, 0)
        """For the work that a stop watches: after how many characters the end of a line is the end."""

    def written_for(self, cancelled: Stop) -> str:
        """What the model has written so far where it is at the work that a stop watches. From any thread."""
        stop, text = self._writing
        return text if stop is cancelled else ""

    def end_line_for(self, cancelled: Stop, typed: int) -> None:
        """As :attr:`.Job.end_line`, of the work that a stop watches. From any thread."""
        self._line_wanted = cancelled, typed

    def _is_enough(self, cancelled: Stop, text: str) -> bool:
        """Whether no more is wanted of what the model writes for the work that a stop watches."""
        stop, typed = self._line_wanted
        return stop is cancelled and "\n" in text[typed:]

    @property
    def languages(self) -> list[Language]:
        """The languages it has to do with. From any thread."""
        return [language for language, _ in tuple(self._languages.values())]

    def give_back(self) -> None:
        """Let other threads use what the model has read, and the memory of sessions; the answer is on its way."""
        self.contexts.rest()
        self._end_reading()
        if self._prompts is not None:
            self._prompts.give_back()

    def answer(
        self, loading: Future[Loaded], request: Request, cancelled: Stop, submitted: float, recalls: bool = False
    ) -> Work | None:
        """What comes of a request; None where it is ``cancelled``.

        ``recalls``: what :meth:`recall` would give comes before the model's, which reads meanwhile.
        Raises ModelError where there is no model, LanguageError where the language is not one of ours.
        """
        try:
            return self._answer(loading, request, cancelled, submitted, recalls)
        except StoppedError:
            if cancelled.is_set():
                return None
            return Work(answer_of(request, (), too_long(), lasting=False))

    def recall(self, request: Request, cancelled: Stop, submitted: float) -> Work | None:
        """What the project's memory is so sure of that no model need be asked; None where it is of nothing.

        Where no model is asked at all, what is worth most of what it recalls.
        """
        started = time.perf_counter()
        if self._project is None or quiet(Place.of(request.split), None, request.invoked, request.settings) is not None:
            return None
        try:
            language = self._language(request, self._loaded)
            with Stop(ENGINE_SECONDS):
                opened = self._open(request, language)
                if quiet(Place.of(request.split), opened.session.inside, request.invoked, request.settings) is not None:
                    return None
                best = self._recalls.surest(request, opened, language)
        except StoppedError:
            return None
        if not best or cancelled.is_set():
            return None
        work = Work(answer_of(request, best, lasting=not opened.is_unfinished), origin="memory")
        work.costs.queue_ms = 1000 * (started - submitted)
        work.costs.open_ms = 1000 * (time.perf_counter() - started)
        return work

    def read_ahead(self, loaded: Loaded, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        """Have the prompts of a request read; what goes wrong is said when somebody asks."""
        try:
            language = self._language(request, loaded)
        except (LanguageError, StoppedError):
            return
        if may_be_pair and request.split.left[-1:] in language.spelling.closers:
            request = between_pair(request)
        with suppress(StoppedError), Stop(ENGINE_SECONDS):
            self._read_prompts(loaded, language, request, cancelled)

    def read_at_rest(self, loaded: Loaded | None, request: Request, cancelled: Stop) -> None:
        """Have the short prompt of a request read, and its session opened; without a model the latter alone.

        Read the document's names as well, because the first suggestion needs them, and a large file's take 20 ms.
        Also send the document to the project's memory, which does not know it before the first request.
        """
        with suppress(LanguageError, StoppedError), Stop(ENGINE_SECONDS):
            language = self._language(request, loaded)
            if self._project is not None and request.settings.project_memory:
                self._project.tell(request.uri, request.split, language.name)
            if loaded is not None:
                self._read_prompts(loaded, language, request, cancelled, both=False)
            elif not cancelled.is_set():
                self._open(request, language)
            if not cancelled.is_set() and request.settings.names != "off" and own_names(language.name) is not None:
                self._names.read(request.named)
                self._preferences.scope(request, language.name)

    def read_on(self, loading: Future[Loaded], request: Request, cancelled: Stop, stopped: Stop) -> None:
        """Read the long prompt of a request that was answered, until ``stopped``; not if it was ``cancelled``."""
        if not cancelled.is_set() and loading.done() and loading.exception() is None:
            self.read_ahead(loading.result(), request, stopped, False)

    def explain(
        self, loading: Future[Loaded] | None, request: Request, cancelled: Stop, tell: Callable[[Explained], T]
    ) -> T:
        """What ``tell`` makes of what there is to say about a cursor.

        Raises StoppedError, with a message for people, where the engine would take too long, or it was ``cancelled``.
        """
        try:
            explained = self._explain(loading, request, cancelled)
            with Stop(ENGINE_SECONDS):
                return tell(explained)
        except StoppedError as error:
            raise StoppedError(LEFT if cancelled.is_set() else too_long()) from error

    def _answer(
        self, loading: Future[Loaded], request: Request, cancelled: Stop, submitted: float, recalls: bool
    ) -> Work | None:
        from fim_server.decoding.loop.healing import Healing

        started = time.perf_counter()
        loaded = wait_for(loading)
        # A deadline is for the work, not for the model's loading: what comes late then still comes.
        began = time.perf_counter()
        model = loaded.model
        language = self._language(request, loaded)
        prompts = self._prompts_of(loaded)
        healing = Healing.of(model, request.split, request.healable)
        options = prompts.options(request, 0, None, self._context(request, model, language))
        options, readings = prompts.reach(request, healing.split, options, bool(healing.text))
        place = Place.of(request.split)
        work = Work(answer_of(request, ()))
        # Where nothing will be offered whatever the cursor is inside of, nothing need be read.
        silent = quiet(place, None, request.invoked, request.settings) is not None
        beside = None if silent else self._prefill(model, healing, options, readings)
        try:
            opening = time.perf_counter()
            with Stop(ENGINE_SECONDS):
                opened = self._open(request, language)
            work.costs.queue_ms = 1000 * (started - submitted)
            work.costs.open_ms = 1000 * (time.perf_counter() - opening)
            inside = opened.session.inside
            reason = quiet(place, inside, request.invoked, request.settings)
            if reason is not None or beside is None:
                work.answer = answer_of(request, (), reason)
                return work
            if recalls:
                with suppress(StoppedError), Stop(ENGINE_SECONDS):
                    if best := self._recalls.surest(request, opened, language):
                        work.answer = answer_of(request, best, lasting=not opened.is_unfinished)
                        work.origin = "memory"
                        return None if cancelled.is_set() else work
                    self._recalls.likeliest(request, opened, language)  # for after the model's, while it reads
            with Stop(ENGINE_SECONDS + (options.deadline_ms or 0) / 1000) if options.deadline_ms else cancelled:
                self._decode(
                    Task(
                        request,
                        model,
                        language,
                        opened,
                        inside,
                        cancelled,
                        began,
                        healing,
                        options,
                        readings,
                        beside,
                    ),
                    work,
                )
        finally:
            if beside is not None:
                beside.stop()
        return None if cancelled.is_set() else work

    def _prefill(self, model: FimModel, healing: Healing, options: DecodeOptions, readings: Lent) -> ConcurrentPrefill:
        """Have the prompt read from now on, while the session is opened."""
        from fim_server.decoding.concurrent_prefill import ConcurrentPrefill

        self._reading = ConcurrentPrefill(model, healing.split, options, readings, bool(healing.text))
        return self._reading

    def _end_reading(self) -> None:
        """Wait for the end of a pass that goes on though the answer is there: the reading can be used again then."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()

    def _decode(self, task: Task, work: Work) -> None:
        """Have the model write, and put what came of it into ``work``."""
        from fim_server.decoding.ending.rest_of_line import RestOfLine
        from fim_server.decoding.ending.right_closer import RightCloser
        from fim_server.decoding.loop.conclusion import decoded
        from fim_server.decoding.loop.watch import Interrupted
        from fim_server.decoding.results import StopReason
        from fim_server.decoding.strategies.alternatives import alternatives

        request, opened, options = task.request, task.opened, task.options
        suggestions, loops = list[Suggestion](), list[Suggestion]()
        repeats: list[Completion] = []
        reason: str | None = None
        prompts = self._prompts
        assert prompts is not None, "the prompt is one of its"
        elapsed_ms = 1000 * (time.perf_counter() - task.began)
        options = replace(
            options,
            right_closer=RightCloser.of(opened.session, opened.left, opened.right),
            rest_of_line=RestOfLine.of(opened.session, opened.right),
            undefined_names=naming_of(request, opened, task.language),
            scored=True,
            project_bias=self._advice(request, task.language),
            name_bias=self._preference(request, task.language, task.inside),
            drafts=self._drafts(request, task.language) if prompts.drafts_pay else None,
            word_ends=request.word_ends,
            invisible=known_at(request.split.left, request.split.right),
            least_likelihood=least_likelihood(
                request,
                is_fresh(request.split, opened.session.spelling),
                owes_block(request.split, task.language.name),
                is_header(request.split, task.language.name),
            ),
            unlikely_if_nothing=not request.invoked,
            no_comments=takes_no_comments(request, task.inside),
            line_begun=starts_line(opened.session, request.split),
            deadline_ms=None if options.deadline_ms is None else max(0.0, options.deadline_ms - elapsed_ms),
        )
        began = time.perf_counter()

        def left_ms() -> float | None:
            elapsed_ms = 1000 * (time.perf_counter() - began)
            return None if options.deadline_ms is None else max(0.0, options.deadline_ms - elapsed_ms)

        def note(tokens: Sequence[int]) -> None:
            text = decoded(task.model.vocabulary, tokens, strict=False)
            written = text[len(task.healing.text) :]
            self._writing = task.cancelled, written
            if self._is_enough(task.cancelled, written):
                raise Interrupted(StopReason.DEADLINE)

        def take(completion: Completion) -> None:
            """Make a suggestion of what the model has written."""
            completion = self._ended(task.healing.undo(completion), task)
            work.completions.append(completion)
            self._tokens.count(completion.statistics)
            prompts.note(completion.statistics.prefilled_tokens, completion.statistics.prefill_ms / 1000)
            add(completion)

        def add(completion: Completion) -> None:
            """Make a suggestion of a text."""
            nonlocal reason
            suggestion = self._suggestion(completion, request, opened, task.language)
            if isinstance(suggestion, str):
                reason = reason or suggestion
                repeats.extend([completion] if suggestion == THERE_ALREADY else [])
            elif suggestion.doubt.is_loop:
                loops.append(suggestion)
                reason = reason or REPEATS_ITSELF
            elif all(suggestion.text != other.text for other in suggestions):
                suggestions.append(suggestion)

        written = partial(
            alternatives,
            task.model,
            opened.session,
            task.healing.split,
            request.settings.alternatives if request.invoked else 1,
            cancelled=task.cancelled,
            on_token=note,
            readings=task.readings,
            healing=task.healing.text,
        )
        for completion in written(with_time_to_end(options) if request.invoked else options, prefill=task.beside):
            take(completion)
        for _ in range(THOUGHTS_ON_REQUEST if request.invoked else 1):
            unlike = second_thought(suggestions or loops, repeats, options.name_bias, request.invoked)
            if unlike is None or work.completions[-1].stop_reason.is_interruption:
                break
            unlikely = replace(options, name_bias=unlike, deadline_ms=left_ms())
            with suppress(StoppedError, LostError):  # the first text is there
                take(next(written(unlikely, on_token=lambda tokens: None)))
        if request.invoked and not suggestions and not task.cancelled.is_set():
            short = of_a_short_text(options, opened.session, task.model.vocabulary, left_ms())
            with suppress(StoppedError, LostError):
                take(next(written(short, on_token=lambda tokens: None)))
        is_written = bool(suggestions)
        if (
            (request.invoked or loops)
            and not suggestions
            and opened.guarantee != "none"
            and not task.cancelled.is_set()
        ):
            begun = beginning_of(work.completions, loops)
            add(with_any_ending(begun, opened.session, request.split.right[: opened.covered]))
        suggestions = without_repeats(suggestions) if request.invoked else suggestions
        if not task.cancelled.is_set():
            with suppress(StoppedError):  # what the model has written is there
                suggestions = self._with_recalled(suggestions, task)
        work.count_decoding(hidden_ms=1000 * task.beside.seconds_before(began))
        late = any(completion.stop_reason == "deadline" for completion in work.completions)
        # What was found on a part of the text is asked again: the next key finds the whole.
        lasting = ((bool(suggestions) and (is_written or not request.invoked)) or not late) and not opened.is_unfinished
        if self._is_enough(task.cancelled, self.written_for(task.cancelled)):
            request = replace(request, single_line=True)
        work.answer = answer_of(request, tuple(suggestions), None if suggestions else reason, lasting)

    def _ended(self, completion: Completion, task: Task) -> Completion:
        """What the model has written, with an end where it has none that somebody would take."""
        request, session, language = task.request, task.opened.session, task.language.name
        if completion.begun and (request.invoked or completion.stop_reason in ("unlikely", "repetition")):
            owes = owes_block(once_typed(request.split, completion.begun), language)
            if owes:
                completion = with_empty_block(completion, session, request.split)
            return with_shortest_ending(completion, session, request.split, owes)
        if not request.invoked and owes_block(request.split, language):
            return without_unsure_block(completion, session, request.split)
        return completion

    def _advice(self, request: Request, language: Language) -> ProjectBias | None:
        """What is known of each token besides: by the project's memory, and by what the file lacks."""
        project = self._project if request.settings.project_memory else None
        advice = None
        if project is not None:
            project.tell(request.uri, request.split, language.name)
            advice = project.advice(request.uri, request.split.left, language.name)
        if request.settings.names == "off":
            return advice
        modules = self._preferences.modules(request, language.name, project)
        scope = self._preferences.scope(request, language.name)
        found = with_imports(advice, language.name, request, project, modules, scope)
        return with_marks(found, language.name, request.split)

    def _preference(self, request: Request, language: Language, inside: str | None) -> NameBias | None:
        """What is thought of tokens by the names that they write; ``inside``: what the cursor is inside of."""
        if request.settings.names == "off" or inside is not None:
            return None
        project = self._project if request.settings.project_memory else None
        return self._preferences.at(request, language.name, project)

    def _drafts(self, request: Request, language: Language) -> Drafts | None:
        """What the project's memory has the model check several tokens of in a pass."""
        if self._project is None or not request.settings.project_memory:
            return None
        return self._project.drafts(request.uri, request.split.left, language.name)

    def _context(self, request: Request, model: FimModel, language: Language) -> ProjectContext | None:
        """What the model is shown of other files."""
        wanted = request.settings.project_context
        if wanted == "auto":
            wanted = "off" if model.format.repository is None else "on"
        if self._project is None or wanted == "off" or not request.settings.project_memory:
            return None
        self._project.tell(request.uri, request.split, language.name)
        return self._beyond.context(self._project, request, language)

    def _with_recalled(self, suggestions: list[Suggestion], task: Task) -> list[Suggestion]:
        """The model's suggestions and those of the project's memory; unasked the one that is worth most first."""
        request = task.request
        others = others_of(suggestions, self._recalls.likeliest(request, task.opened, task.language))
        closers = request.split.right[: task.opened.covered]
        if request.invoked:
            return together(suggestions, others, closers, request.settings.alternatives)
        least = request.settings.min_confidence
        others = [given_written(suggestion, suggestions) for suggestion in others]
        return sorted(suggestions + others, key=lambda suggestion: -worth(suggestion, closers, least))

    def _read_prompts(
        self, loaded: Loaded, language: Language, request: Request, cancelled: Stop, both: bool = True
    ) -> None:
        from fim_server.decoding.loop.healing import Healing

        if cancelled.is_set() or not self._is_wanted():
            return
        prompts = self._prompts_of(loaded)
        opened = self._open(request, language)
        inside = opened.session.inside
        if cancelled.is_set() or quiet(Place.of(request.split), inside, False, request.settings) is not None:
            return
        healing = Healing.of(loaded.model, request.split, request.healable)
        options = prompts.options(request, 0, inside, self._context(request, loaded.model, language))
        read = prompts.read_ahead(request, healing.split, options, cancelled, bool(healing.text), both)
        self._tokens.count_ahead(read)
        if not cancelled.is_set() and opened.guarantee != "none":
            # The first one reads the file once more, and the first letter of a line wants it.
            opened.session.matcher(loaded.model.vocabulary, shape=SINGLE_LINE)

    def _prompts_of(self, loaded: Loaded) -> Prompts:
        """This thread's share of what the model has read."""
        self._end_reading()
        if self._loaded is not loaded or self._prompts is None:
            self._loaded, self._prompts = loaded, Prompts(loaded.model, loaded.pace, loaded.readings)
        return self._prompts

    def _language(self, request: Request, loaded: Loaded | None) -> Language:
        """The request's language, ready for the model that is ``loaded``.

        Which one it is says the project's own file, which is not read at every keystroke.
        """
        versions = tuple(sorted(request.settings.language_versions.items()))
        key = (request.path, request.language_id, request.settings.python_version, versions, loaded is None)
        now = time.monotonic()
        known = self._languages.get(key)
        if known is None or now - known[1] > LANGUAGE_SECONDS:
            if len(self._languages) >= MOST_LANGUAGES:
                self._languages.clear()
            # The name of what is kept alive by what is done for it.
            language = BLOCKING_POOL.run((*key, id(loaded)), lambda: prepared(request, loaded))
            known = self._languages[key] = (language, now)
        return known[0]

    def _open(self, request: Request, language: Language) -> Opened:
        """The session of a request's cursor: who asks for several lines gets them whole, others what is typed next."""
        stands_in = request.single_line or not request.invoked
        patience, floor = PATIENCE if request.invoked else 1.0, request.settings.floor
        opened = self.contexts.open(request.uri, language, request.contexts, floor, stands_in, patience)
        return opened if request.cell is None else self._cells.judged(opened, request.cell, language)

    def _suggestion(
        self, completion: Completion, request: Request, opened: Opened, language: Language
    ) -> Suggestion | str:
        """A completion as a suggestion, or why it is none."""
        if completion.text is None:
            return completion.reason or "there is no text"
        text, written, loop = completion.text, completion.written, 0
        if opened.guarantee == "none":
            line = text.split("\n", 1)[0] if request.single_line else text
            shown = roughly_trimmed(line, request.split, opened.session)
            text = before_unopened(shown, opened.session.spelling.brackets)
        else:
            found = trimmed(text, written, opened.session, request.split)
            if found.text is None:
                return found.reason or ""
            text, written, loop = found.text, found.written, found.loop

            def is_complete(shorter: str) -> bool:
                return opened.session.check(shorter).complete

            text = with_last_comma(text, request.split, opened.session.spelling, is_complete)
        if not text.strip():
            return "the model inserts nothing here"
        if hidden_in(text, known_at(request.split.left, request.split.right)) is not None:
            return "it has a hidden character"
        problem = fits(text, request.split, opened)
        if problem is not None:
            return problem
        ends = ends_of(text, opened.session, takes_no_comments(request, opened.session.inside), request.split.right)
        own, ends = own_names(language.name), without_lines_below(ends, text, request.split)
        naming = naming_of(request, opened, language)
        if naming is not None:
            bound = tuple(end for end in ends.cuts if not naming.unbound(text[:end]))
            if not bound:
                return "it would load a name that nothing binds"
            text, ends = text[: bound[-1]], Ends(bound, tuple(end for end in ends.lexemes if end <= bound[-1]))
            problem = fits(text, request.split, opened)
            if problem is not None:
                return problem
        at = once_typed(request.split, text) if "\n" in text else request.split
        return Suggestion(
            str(next(self._identities)),
            text,
            opened.covered,
            opened.guarantee,
            completion,
            opened.session.spelling.closers,
            opened.covered_lines,
            opened.stand_in,
            ends.cuts,
            ends.lexemes,
            goes_on(ends.cuts, text, completion, own, request.split.right, opened.session.spelling),
            written,
            unknown := self._unknown_names(language, request, text, opened),
            of_loop(loop, self._doubt(language, request, text, opened, unknown)),
            is_fresh(request.split, opened.session.spelling),
            header=is_header(at, language.name),
            owes_block=owes_block(at, language.name),
        )

    def _unknown_names(self, language: Language, request: Request, text: str, opened: Opened) -> tuple[int, ...]:
        """The ends of the names in a text that nobody knows, where that counts."""
        takes_all = request.cell is not None and request.cell.takes_all
        if request.settings.names == "off" or own_names(language.name) is None or takes_all:
            return ()
        return self._names.unknown(language.name, request.named, text, opened.session)

    def _doubt(
        self, language: Language, request: Request, text: str, opened: Opened, unknown: tuple[int, ...]
    ) -> Doubt:
        """From where on a text is hardly meant; what it covers right of the cursor is its own."""
        split = replace(request.named, right=request.split.right[opened.covered :])
        scope = None if request.settings.names == "off" else self._preferences.scope(request, language.name)
        return doubt_of(language.name, opened.session.spelling, split, text, unknown, scope)

    def _explain(self, loading: Future[Loaded] | None, request: Request, cancelled: Stop) -> Explained:
        from fim_server.decoding.loop.healing import Healing
        from fim_server.decoding.strategies.alternatives import candidates

        is_loaded = loading is not None and loading.done() and loading.exception() is None
        language = self._language(request, loading.result() if loading is not None and is_loaded else None)
        place, owes = Place.of(request.split), owes_block(request.split, language.name)
        single_line = request.single_line or wants_single_line(place, request.settings, owes)
        with Stop(ENGINE_SECONDS):
            opened = self._open(replace(request, single_line=single_line), language)  # as for a completion
        if loading is None or not is_loaded or not request.settings.enabled:
            return Explained(language, opened, [])
        loaded = loading.result()
        prompts = self._prompts_of(loaded)
        context = self._context(request, loaded.model, language)
        options = prompts.options(request, 0, opened.session.inside, context)
        options = replace(options, deadline_ms=EXPLAIN_MODEL_MS)
        model, session = loaded.model, opened.session
        with Stop(ENGINE_SECONDS + EXPLAIN_MODEL_MS / 1000):
            healing = Healing.of(model, request.split, request.healable)  # as for a completion
            found = candidates(
                model, session, healing.split, CANDIDATES, options, prompts.short, cancelled, healing.text
            )
            return Explained(
                language,
                opened,
                [
                    (one.text, one.probability, one.allowed, None if one.allowed else refusal(opened, one.text))
                    for one in found
                ],
            )


def naming_of(request: Request, opened: Opened, language: Language) -> UndefinedNames | None:
    """What the texts of a request may load, where no unbound name may be loaded."""
    if request.settings.names != "require":
        return None
    split = request.named
    return _naming(language.name, split.left, split.right[opened.covered :], opened.guarantee)


@lru_cache(maxsize=4)
def _naming(language: str, left: str, right: str, guarantee: str) -> UndefinedNames | None:
    from fim_server.decoding.bias.undefined_names import UndefinedNames

    return UndefinedNames.of(language, left, right, guarantee)


def prepared(request: Request, loaded: Loaded | None) -> Language:
    """A request's language, with what is known of its names and the table of the tokens, which may take seconds."""
    language = request.language()
    own_names(language.name)
    support_of(language.name)
    if loaded is not None:
        masks.prepare(language, loaded.model.vocabulary)
    return language


def too_long() -> str:
    """Why there is no answer about a file that takes too long to read."""
    return f"the file takes more than {ENGINE_SECONDS:g} s to read"


def between_pair(request: Request) -> Request:
    """A request with its cursor one character further left."""
    split = request.split
    moved = replace(split, left=split.left[:-1], right=split.left[-1] + split.right)
    cell = None if request.cell is None else request.cell.one_back()
    single_line = request.single_line or wants_single_line(
        Place.of(moved), request.settings, owes_block(moved, request.language_id)
    )
    return replace(request, split=moved, single_line=single_line, cell=cell)
