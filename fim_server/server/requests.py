"""One request's way: taken in as it arrived, answered from memory or by the worker, told of, and what follows prepared.

Awaiting the worker is what pygls can cancel; cancelling sets what stops it there. Text, version and cursor are those of
the moment the request arrived; an answer for an older version is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace

from lsprotocol import types

from fim_server.errors import DocumentError, LanguageError, MissingLibrary, ModelError, StoppedError
from fim_server.language import Language
from fim_server.language.texts import is_word
from fim_server.models.backend import LostError
from fim_server.server.documents.cell_check import kept_in_cell
from fim_server.server.documents.notebooks import cut_of
from fim_server.server.documents.open_documents import OpenDocument
from fim_server.server.language_server import FimLanguageServer, UnderWay
from fim_server.server.on_time import LateAnswerError, on_time
from fim_server.server.status import tell_answered, tell_declined, tell_state_soon
from fim_server.server.type_through import end_left, follow, leader_of, leave, remember
from fim_server.suggest.answer_cache import Answer, Suggestion
from fim_server.suggest.context.cursor import Place, silent, wants_single_line
from fim_server.suggest.job import LANGUAGES, Costs, Request, Work, answer_of
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.ranking.display import asked_for, shown
from fim_server.text.document import LINE_BREAK, Split
from fim_server.text.notebook import Notebook


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

    @property
    def notebook(self) -> Notebook | None:
        """Notebook of the cell when the request arrived."""
        return None if self.document is None else self.document.notebook

    @property
    def owner(self) -> str:
        """Document that holds the program: for a cell its notebook."""
        return self.uri if self.notebook is None else self.notebook.uri


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and the cut it is for."""

    answer: Answer
    split: Split


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
    if document is not None and selected is not None:
        selected = types.SelectedCompletionInfo(document.clamped_range(selected.range), selected.text)
    return Asked(
        uri=params.text_document.uri,
        position=params.position if document is None else document.clamped(params.position),
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
    before, running = ls.overtaken.get(asked.owner), ls.running.get(asked.owner)
    if before is not None:
        before.set()
    overtaken = ls.overtaken[asked.owner] = asyncio.Event()
    try:
        return await find_answer(ls, asked, overtaken, running)
    except asyncio.CancelledError:
        ls.usage.cancelled += 1
        raise
    except Exception as error:  # noqa: BLE001  # one request's failure is not the server's
        ls.report_failure(error)
        return None
    finally:
        if ls.overtaken.get(asked.owner) is overtaken:
            del ls.overtaken[asked.owner]


async def find_answer(
    ls: FimLanguageServer, asked: Asked, overtaken: asyncio.Event, running: UnderWay | None
) -> Answered | None:
    """Answer a request; None where there is nothing to say to it. What goes wrong in it is raised.

    ``overtaken``: set by a newer request for the same document. ``running``: what an older one waits for.
    """
    request = request_of(ls, asked)
    leader = None if isinstance(request, str) or look_up(ls, request) is not None else leader_of(ls, request)
    if leader is None:  # also where the memory knows what is asked now, or nothing is to be offered
        end_left(ls, asked.owner)
        if running is not None:
            running.job.cancelled.set()
    if isinstance(request, str):
        tell_declined(ls, asked.uri, asked.arrived, request)
        return None
    ls.places.note(asked.uri, request.offset)
    remembered = look_up(ls, request)
    if remembered is not None:
        return conclude(ls, asked, request, Work(remembered), from_model=False)
    followed_ms = 0.0
    if leader is not None:
        led, followed_ms = await follow(ls, request, leader, overtaken)
        if led is not None:
            remember(ls, leader.request, led.answer)
        if overtaken.is_set() or not is_current(ls, asked):
            ls.usage.superseded += 1
            return None
        remembered = look_up(ls, request)
        if remembered is not None:
            return conclude(ls, asked, request, Work(remembered, Costs(decode_ms=followed_ms)), from_model=True)
    # Where the model can begin to read at once, it does so while the project's memory is asked.
    pause_ms = 0.0 if asked.invoked else pause_of(ls, asked.owner)
    together = request.settings.ask_model and ls.worker.model is not None and pause_ms <= 0
    recalls = not (asked.invoked and request.settings.ask_model)
    recalled = await recall(ls, request) if recalls and not together else None
    if overtaken.is_set() or not is_current(ls, asked):
        ls.usage.superseded += 1
        return None
    if recalled is not None:
        recalled.costs.queue_ms += followed_ms
        remember(ls, request, recalled.answer)
        return conclude(ls, asked, request, recalled, from_model=False)
    if not request.settings.ask_model:
        nothing = answer_of(request, (), "nothing is recalled, and no model asked (setting askModel)", lasting=False)
        return conclude(ls, asked, request, Work(nothing, origin="memory"), from_model=False)
    waited_ms = await debounce(pause_ms, overtaken)
    if overtaken.is_set() or not is_current(ls, asked):
        ls.usage.superseded += 1
        return None
    work = await run(ls, request, recalls and together)
    if work is None or overtaken.is_set():
        ls.usage.superseded += 1
        if work is not None:
            remember(ls, request, work.answer)
        return None
    work.costs.debounce_ms = waited_ms
    work.costs.queue_ms += followed_ms
    remember(ls, request, work.answer)
    return conclude(ls, asked, request, work, work.origin != "memory" and not work.answer.prefetched)


def pause_of(ls: FimLanguageServer, uri: str) -> float:
    """How many milliseconds the model waits whether somebody types on."""
    pause = ls.settings.debounce_ms
    return ls.usage.debounce_ms(ls.protocol.typing_pause_ms(uri)) if pause is None else pause


async def debounce(pause_ms: float, overtaken: asyncio.Event) -> float:
    """Wait whether somebody types on, no longer than until the request is overtaken; returns milliseconds."""
    if pause_ms <= 0:
        return 0.0
    before = time.perf_counter()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(overtaken.wait(), pause_ms / 1000)
    return 1000 * (time.perf_counter() - before)


def request_of(ls: FimLanguageServer, asked: Asked) -> Request | str:
    """What the worker is asked, or why it is not, in words."""
    document = asked.document
    if document is None:
        return "the document is not open"
    if asked.owner in ls.set_aside:
        return ls.set_aside[asked.owner]
    text = document.document
    characters = len(text.text) if asked.notebook is None else asked.notebook.characters
    if characters > ls.settings.max_file_characters:
        size = f"more than {ls.settings.max_file_characters:,} characters (setting maxFileCharacters)"
        ls.log_once(types.MessageType.Info, f"{asked.uri}: {size}: no completions")
        return f"the document has {size}"
    name = document.language_id or ""
    try:
        language = name if name in LANGUAGES else Language.name_for_path(document.path or "")
    except LanguageError as error:
        return str(error)
    problem = silent(language, asked.invoked, ls.settings, ls.learnt)
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
        split = text.split(offset, Language.keeps_returns(language))
    except DocumentError as error:
        return str(error)
    cut = cut_of(document, split)
    if isinstance(cut, str):
        return cut
    split, lines = cut.split, asked.takes_lines and not cut.one_line
    single_line = not lines or wants_single_line(Place.of(split), ls.settings, owes_block(split, language))
    word_ends = asked.selected is not None and is_word(split.left[-1:])
    return Request(cut.uri, split, name, cut.path, asked.invoked, single_line, ls.settings, word_ends, cut.cell)


def look_up(ls: FimLanguageServer, request: Request) -> Answer | None:
    """An answer that was found before and holds here."""
    several = request.invoked and request.settings.alternatives > 1
    split = request.split
    place = request.key, split.left, split.right, request.single_line
    found = ls.memory.find(*place, several, asked=request.invoked, word_ends=request.word_ends)
    if found is not None and found.moved and not request.invoked and not as_shown(found, request).suggestions:
        # What was typed since rules out what begins otherwise: asked again, it may be sure enough.
        return None
    return found


async def recall(ls: FimLanguageServer, request: Request) -> Work | None:
    """What the project's memory is sure of, before anybody waits for the model."""
    if ls.prefetching is not None and is_same(ls.prefetching.request, request):
        return None
    job = ls.worker.recall(request)
    if job is None:
        return None
    ls.supervisor.begin()
    running = ls.running[request.uri] = UnderWay(request, job)
    try:
        return await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        job.cancelled.set()
        raise
    except StoppedError:  # its thread was given up: who asks next is told
        return None
    except (LanguageError, ModelError):
        return None  # told by who asks the model
    except Exception as error:  # noqa: BLE001  # the model can answer without it
        ls.report_failure(error)
        return None
    finally:
        if ls.running.get(request.uri) is running:
            del ls.running[request.uri]


async def run(ls: FimLanguageServer, request: Request, recalls: bool = False) -> Work | None:
    """Have the worker answer; a cancelled request stops it there too. ``recalls``: as in `CompletionWorker.submit`."""
    prefetching, ls.prefetching = ls.prefetching, None
    if ls.worker.model is None and ls.failure is not None:
        return Work(answer_of(request, (), ls.failure, lasting=False))
    joined = prefetching is not None and not request.invoked and is_same(prefetching.request, request)
    if prefetching is not None and not joined:
        prefetching.job.cancelled.set()
    job = prefetching.job if joined and prefetching is not None else ls.worker.submit(request, recalls)
    ls.supervisor.begin()
    running = ls.running[request.uri] = UnderWay(request, job)
    started = time.perf_counter()
    ls.at_work += 1
    tell_state_soon(ls)
    waiting = asyncio.wrap_future(job.future)
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it any more
    try:
        work = await on_time(request, waiting, lambda: ls.worker.is_loading)
    except asyncio.CancelledError:
        leave(ls, running)
        raise
    except LateAnswerError as error:
        leave(ls, running)
        return Work(answer_of(request, (), str(error), lasting=False))
    except StoppedError as error:  # its thread was given up
        return Work(answer_of(request, (), ls.set_aside.get(request.uri, str(error)), lasting=False))
    except (ModelError, MissingLibrary):  # said when loading failed
        return Work(answer_of(request, (), ls.failure or "there is no model", lasting=False))
    except LostError as error:  # an endpoint, which may answer the next request
        ls.log(types.MessageType.Warning, str(error))
        return Work(answer_of(request, (), str(error), lasting=False))
    finally:
        ls.at_work -= 1
        if ls.running.get(request.uri) is running:
            del ls.running[request.uri]
        if not ls.at_work:
            tell_state_soon(ls)
    if joined and work is not None:
        # Most of its time was spent before anybody asked: what counts is what was waited.
        return Work(work.answer.as_prefetched(), Costs(queue_ms=1000 * (time.perf_counter() - started)))
    return work


def is_same(some: Request, other: Request) -> bool:
    """Whether two requests have the same answer."""
    return (some.key, some.split.left, some.split.right, some.single_line, some.settings, some.word_ends) == (
        other.key,
        other.split.left,
        other.split.right,
        other.single_line,
        other.settings,
        other.word_ends,
    )


def is_current(ls: FimLanguageServer, asked: Asked) -> bool:
    """Whether the document is as it was when a request arrived, and is still to be completed.

    Versions alone say little: some clients count them backwards, or not at all.
    """
    current = ls.open_document(asked.uri)
    same = current is not None and asked.document is not None and current.source == asked.document.source
    same = same and current is not None and current.notebook == asked.notebook
    return current is not None and same and current.version == asked.version and ls.settings.enabled


def conclude(ls: FimLanguageServer, asked: Asked, request: Request, work: Work, from_model: bool) -> Answered | None:
    """Send an answer on its way: unless the document has changed, note it and prepare what follows."""
    if not is_current(ls, asked):
        ls.usage.superseded += 1
        return None
    found = as_shown(work.answer, request)
    work.costs.total_ms = 1000 * (time.perf_counter() - asked.arrived)
    ls.usage.count_answer(work.costs, from_model)
    if not from_model and work.origin != "memory":
        ls.usage.answered_from_cache += 1
    if found.suggestions:
        ls.memory.saw(found.suggestions[0], request.split.left)
        ls.usage.count_offers(found.suggestions)
    origin = "model" if from_model else "prefetch" if found.prefetched else "cache"
    if work.origin == "memory":
        origin = work.origin
    tell_answered(ls, asked.uri, work.costs, found, origin)

    def go_on() -> None:
        if is_current(ls, asked) and work.origin == "memory":
            confirm(ls, request, work.answer)
        elif is_current(ls, asked):
            prefetch(ls, request, found)

    if found.suggestions:
        ls.once_answered(go_on)
    return Answered(found, request.own)


def as_shown(found: Answer, request: Request) -> Answer:
    """What of an answer is shown: to somebody who has asked some of each offer, else what is likely enough to be right.

    What somebody has asked for, and types, goes on to be shown: of several alternatives the first that is typed.
    """
    return kept_in_cell(likely(found, request), request.cell)


def likely(found: Answer, request: Request) -> Answer:
    """Return the items of :func:`as_shown`, whatever they do to a cell."""
    split, least = request.split, request.settings.min_confidence
    if request.invoked or (found.complete and found.moved):
        asked: dict[str, Suggestion] = {}
        for offer in found.suggestions if request.invoked else found.suggestions[:1]:
            part = asked_for(offer, split.right[: offer.covered], least)
            asked.setdefault(part.text, part)
        return replace(found, suggestions=tuple(asked.values()))
    offers = [shown(offer, split.right[: offer.covered], least) for offer in found.suggestions]
    kept = tuple(offer for offer in offers if offer is not None)
    if kept or not found.suggestions:
        return replace(found, suggestions=kept[:1])
    return replace(found, suggestions=(), reason="the model is not sure enough (setting minConfidence)")


def prefetch(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Prepare what follows the first offer, while the user reads it; anything that is asked meanwhile goes first."""
    prefetches = request.settings.prefetch and request.settings.ask_model
    if not prefetches or ls.at_work or ls.prefetching is not None:
        return
    offer = found.suggestions[0]
    left, right = offer.document(request.split)
    split = Split(left, right, request.split.version, request.split.newline)
    one_line = request.cell is not None and request.cell.one_line
    following = Request(
        request.uri,
        split,
        request.language_id,
        request.path,
        False,
        one_line or wants_single_line(Place.of(split), request.settings, owes_block(split, request.language_id)),
        request.settings,
        cell=None if request.cell is None else request.cell.with_text(offer.text, offer.covered),
    )
    if ls.memory.find(following.key, left, right, following.single_line, False) is not None:
        return
    ls.spawn(remember_prefetched(ls, prepare(ls, following)))


def confirm(ls: FimLanguageServer, request: Request, recalled: Answer) -> None:
    """Have the model say what it would have offered where the project's memory was asked alone, which is seen already.

    Whatever else is asked goes first; typing what is offered asks for nothing.
    """
    if not request.settings.prefetch or not request.settings.ask_model or ls.at_work:
        return
    if ls.prefetching is not None:  # it follows another offer
        ls.prefetching.job.cancelled.set()
    ls.spawn(remember_confirmed(ls, prepare(ls, request), recalled))


def prepare(ls: FimLanguageServer, request: Request) -> UnderWay:
    """Ask the worker for what nobody waits for."""
    ls.prefetching = UnderWay(request, ls.worker.submit(request))
    ls.supervisor.begin()
    return ls.prefetching


async def prepared(ls: FimLanguageServer, prefetching: UnderWay) -> Work | None:
    """What was prepared; None where something else was asked before it was done."""
    try:
        return await asyncio.wrap_future(prefetching.job.future)
    except (ModelError, MissingLibrary, StoppedError, asyncio.CancelledError):
        return None
    finally:
        if ls.prefetching is prefetching:
            ls.prefetching = None


async def remember_prefetched(ls: FimLanguageServer, prefetching: UnderWay) -> None:
    """Put what was prepared into the memory."""
    work = await prepared(ls, prefetching)
    if work is not None:
        remember(ls, prefetching.request, work.answer.as_prefetched())


async def remember_confirmed(ls: FimLanguageServer, prefetching: UnderWay, recalled: Answer) -> None:
    """Put what the model says beside what is seen into the memory, and prepare what follows that."""
    work = await prepared(ls, prefetching)
    if work is not None:
        found = confirmed(recalled, work.answer, prefetching.request)
        remember(ls, prefetching.request, found)
        prefetch(ls, prefetching.request, found)


def confirmed(recalled: Answer, written: Answer, request: Request) -> Answer:
    """What is seen and what the model has written, as one answer: nothing that is seen changes while it is typed.

    What the model would rather have comes behind, for who types something else; what it adds to the same line before.
    """

    def seen(offer: Suggestion) -> str:
        part = shown(offer, request.split.right[: offer.covered], request.settings.min_confidence)
        return "" if part is None else part.text

    first, *rest = recalled.suggestions
    others = [offer for offer in (*written.suggestions, *rest) if offer.text != first.text]
    if any(offer.text == first.text and not offer.recalled for offer in written.suggestions):
        first = replace(first, recalled=False)  # the model says the same
    for offer in others:
        more = offer.text.removeprefix(first.text)
        if not offer.recalled and more != offer.text and "\n" not in more and seen(offer).startswith(seen(first)):
            return replace(written, suggestions=(offer, first, *(one for one in others if one is not offer)))
    return replace(written, suggestions=(first, *others))
