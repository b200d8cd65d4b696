"""Answers to requests: from the cache, from work under way, from the project's memory, or from the model.

Text, version and cursor are those of the moment when the request arrived; an answer for an older version is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace

from fim_server.server.documents.retention import SentText
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.checked import checked
from fim_server.server.requests.held import hold, revealing
from fim_server.server.requests.known_answers import look_up, remember
from fim_server.server.requests.prefetch import confirm, prefetch_next
from fim_server.server.requests.request import IncomingRequest, build_request
from fim_server.server.requests.secret_files import secret_reason
from fim_server.server.requests.type_through import follow, leader_of
from fim_server.server.requests.work import recall, run
from fim_server.server.state import UnderWay
from fim_server.server.status import report_answered, report_declined
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.job import Costs, Work
from fim_server.suggest.ranking.display import display
from fim_server.suggest.request import Request, language_name
from fim_server.text.document import Split

PROJECT_MEMORY = "project memory"
"""Source of a recalled text in the statistics, where others have the model's name."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer, the cut it is for, the time it took, and its origin: `model`, `memory`, `prefetch` or `cache`."""

    answer: Answer
    split: Split
    costs: Costs
    origin: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Request without an answer: the reason for the user, and whether an error of the server is the cause."""

    reason: str
    has_failed: bool = False


SUPERSEDED = Unanswered("a newer request for the document came, or the document has changed")
FAILED = Unanswered("the request failed; the server's log says more", has_failed=True)


class SupersededError(Exception):
    """Request whose answer is not needed: there is a newer one, or the document has changed."""


async def answer(ls: FimLanguageServer, incoming: IncomingRequest) -> Answered | Unanswered:
    """Answer a request; log any error."""
    ls.usage.requests += 1
    known, uri = ls.requests, incoming.owner
    before, running = known.superseded.get(uri), known.running.get(uri)
    if before is not None:
        before.set()
    superseded = known.superseded[uri] = asyncio.Event()
    try:
        return await find_answer(ls, incoming, superseded, running)
    except SupersededError:
        ls.usage.superseded += 1
        return SUPERSEDED
    except asyncio.CancelledError:
        ls.usage.cancelled += 1
        raise
    except Exception as error:  # noqa: BLE001  # one request's failure is not the server's
        ls.report_failure(error)
        return FAILED
    finally:
        if known.superseded.get(uri) is superseded:
            del known.superseded[uri]


async def find_answer(
    ls: FimLanguageServer, incoming: IncomingRequest, superseded: asyncio.Event, running: UnderWay | None
) -> Answered | Unanswered:
    """Answer a request, or decline it. Raises SupersededError and other errors.

    ``superseded``: set by a newer request for the same document. ``running``: work that an older request waits for.
    """

    def require_current() -> None:
        if superseded.is_set() or not incoming.is_current(ls):
            raise SupersededError

    secret = await secret_reason(ls, incoming.owner)
    if superseded.is_set():
        raise SupersededError
    incoming = revealing(ls, incoming)
    request = secret or build_request(ls, incoming)
    leader = None if isinstance(request, str) or look_up(ls, request) is not None else leader_of(ls, request)
    if leader is None:  # also for a cached answer, and for a declined request
        ls.requests.stop_unclaimed(incoming.owner)
        if running is not None:
            running.job.cancelled.set()
    if isinstance(request, str):
        report_declined(ls, incoming.uri, incoming.arrived, request)
        return Unanswered(request)
    ls.cursors.note(incoming.uri, request.offset)
    cached = look_up(ls, request)
    if cached is not None:
        return await conclude(ls, incoming, request, Work(cached), from_model=False)
    followed_ms = 0.0
    if leader is not None:
        led, followed_ms = await follow(ls, request, leader, superseded)
        if led is not None:
            remember(ls, leader.request, led.answer)
        require_current()
        cached = look_up(ls, request)
        if cached is not None:
            return await conclude(ls, incoming, request, Work(cached, Costs(decode_ms=followed_ms)), from_model=True)
    # A model that can begin at once reads the prompt while the project's memory is asked.
    pause_ms = 0.0 if incoming.invoked else pause_of(ls, incoming.owner)
    together = request.settings.ask_model and ls.worker.model is not None and pause_ms <= 0
    recalls = not (incoming.invoked and request.settings.ask_model)
    recalled = await recall(ls, request) if recalls and not together else None
    require_current()
    if recalled is not None:
        recalled.costs.queue_ms += followed_ms
        remember(ls, request, recalled.answer)
        return await conclude(ls, incoming, request, recalled, from_model=False)
    if not request.settings.ask_model:
        reason = "the project's memory has no suggestion, and no model is asked (setting askModel)"
        nothing = Work(request.answered((), reason, lasting=False), origin="memory")
        return await conclude(ls, incoming, request, nothing, from_model=False)
    waited_ms = await debounce(pause_ms, superseded)
    require_current()
    work = await run(ls, request, recalls and together)
    if work is not None:
        work.costs.debounce_ms = waited_ms
        work.costs.queue_ms += followed_ms
        remember(ls, request, work.answer)
    if work is None or superseded.is_set():
        raise SupersededError
    return await conclude(ls, incoming, request, work, work.origin != "memory" and not work.answer.prefetched)


def pause_of(ls: FimLanguageServer, uri: str) -> float:
    """Return the debounce of an automatic request, in milliseconds."""
    pause = ls.settings.debounce_ms
    return ls.usage.debounce_ms(ls.protocol.typing_pause_ms(uri)) if pause is None else pause


async def debounce(pause_ms: float, superseded: asyncio.Event) -> float:
    """Wait for a pause or a newer request; return the milliseconds waited."""
    if pause_ms <= 0:
        return 0.0
    before = time.perf_counter()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(superseded.wait(), pause_ms / 1000)
    return 1000 * (time.perf_counter() - before)


async def conclude(
    ls: FimLanguageServer, incoming: IncomingRequest, request: Request, work: Work, from_model: bool
) -> Answered:
    """Return the shown part of a checked answer, count and report it, and prefetch what follows.

    An answer that is held has no suggestions for the client. Raises SupersededError.
    """
    elapsed_ms = 1000 * (time.perf_counter() - incoming.arrived)
    work.answer = await checked(ls, request, work.answer, elapsed_ms, waits=work.origin != "memory")
    if not incoming.is_current(ls):
        raise SupersededError
    found = display(work.answer, request)
    work.costs.total_ms = 1000 * (time.perf_counter() - incoming.arrived)
    ls.usage.count_answer(work.costs, from_model)
    is_recalled = work.origin == "memory"
    if not from_model and not is_recalled:
        ls.usage.answered_from_cache += 1
    is_held = request.is_held and bool(found.suggestions)
    if is_held:
        hold(ls, incoming)
    elif found.suggestions:
        ls.answers.saw(found.suggestions[0], request.split.left)
        ls.dismissals.note(incoming, request, found.suggestions)
        ls.usage.count_sent(found.suggestions)
        follow_if_accepted(ls, incoming, request, found)
    origin = "memory" if is_recalled else "model" if from_model else "prefetch" if found.prefetched else "cache"
    report_answered(ls, incoming.uri, work.costs, found, origin, is_held)

    def go_on() -> None:
        if incoming.is_current(ls) and is_recalled:
            confirm(ls, request, work.answer)
        elif incoming.is_current(ls) and not is_held:
            prefetch_next(ls, request, found)

    if found.suggestions:
        ls.once_answered(go_on)
    sent = replace(found, suggestions=()) if is_held else found
    return Answered(sent, request.own, work.costs, origin)


def follow_if_accepted(ls: FimLanguageServer, incoming: IncomingRequest, request: Request, found: Answer) -> None:
    """Have the texts of an answer counted later, if they are accepted."""
    model = "none" if ls.worker.model is None else ls.worker.model.name
    for one in found.suggestions:
        origin = PROJECT_MEMORY if one.is_recalled else model
        sent = SentText(incoming.uri, request.offset, one.text, language_name(request), origin)
        ls.protocol.retention().note_sent(one.identity, sent)
