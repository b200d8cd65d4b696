"""Typing along with a suggestion while the model writes it.

Each key sends a new request. If the text typed since the previous request begins the text that the model writes for it,
that work goes on. Its result, less what was typed, answers the newer request. Started anew at each key, a model slower
than the keys would never finish.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.server.constants import SERVER
from fim_server.server.requests.known_answers import remember
from fim_server.server.state import UnderWay
from fim_server.suggest.context.cursor import MOST_CLOSERS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fim_server.server.language_server import FimLanguageServer
    from fim_server.suggest.job import Work
    from fim_server.suggest.request import Request

LOOK_SECONDS = 0.01
"""Time between two comparisons of the written text with the typed one."""


def typed_since(before: Request, request: Request) -> str | None:
    """Return the text typed at the cursor of an earlier request; None if that does not lead to the later one.

    The editor may have closed brackets right of the cursor, or the user may have typed over such a closer.
    """
    if before.invoked or request.invoked or request.word_ends or before.word_ends:
        return None
    if before.key != request.key or before.settings != request.settings:
        return None
    was, now = before.split, request.split
    if not now.left.startswith(was.left):
        return None
    if not (now.right.endswith(was.right) or was.right.endswith(now.right)):
        return None
    return now.left[len(was.left) :] if abs(len(now.right) - len(was.right)) <= MOST_CLOSERS else None


def agrees(under_way: UnderWay, typed: str) -> bool:
    """Return whether the typed text may be the written one, as far as that is written."""
    written = under_way.job.written()
    return written.startswith(typed) or typed.startswith(written)


def may_go_on(under_way: UnderWay, text: str) -> bool:
    """Return whether a document's new text, with an unknown cursor, may come from typing the written text."""
    split = under_way.request.split
    if under_way.request.invoked or not (text.startswith(split.left) and text.endswith(split.right)):
        return False
    typed = text[len(split.left) : len(text) - len(split.right)]
    # The last of two characters may be a closer that the editor has put right of the cursor.
    return agrees(under_way, typed) or (not is_word(typed[-1:]) and agrees(under_way, typed[:-1]))


def leader_of(ls: FimLanguageServer, request: Request) -> UnderWay | None:
    """Return the work that a request may follow."""
    for known in ls.requests.of(request.uri):
        if not known.job.cancelled.is_set():
            typed = typed_since(known.request, request)
            if typed and agrees(known, typed):
                return known
    return None


def leave(ls: FimLanguageServer, under_way: UnderWay) -> None:
    """Make the work of a cancelled request unclaimed; it goes on for a moment if a request may follow it."""
    uri, job = under_way.request.uri, under_way.job
    known = ls.requests.running.get(uri)
    if known is not None and known is not under_way and known.job is job:
        return  # a newer request follows it already
    if under_way.request.invoked:
        job.cancelled.set()
        return
    ls.requests.stop_unclaimed(uri)
    ls.requests.unclaimed[uri] = under_way
    ls.spawn(keep(ls, under_way))


async def keep(ls: FimLanguageServer, under_way: UnderWay) -> None:
    """Cache the result of unclaimed work, or stop the work, unless a request follows it before."""
    unclaimed, uri = ls.requests.unclaimed, under_way.request.uri
    future, ends = under_way.job.future, time.monotonic() + SERVER.unclaimed_seconds
    while unclaimed.get(uri) is under_way:
        if future.done():
            del unclaimed[uri]
            if (work := work_of(future)) is not None:
                remember(ls, under_way.request, work.answer)
        elif time.monotonic() >= ends:
            ls.requests.stop_unclaimed(uri)
        else:
            await asyncio.sleep(LOOK_SECONDS)


def work_of(future: Future[Work | None]) -> Work | None:
    """Return the result of finished work; None if it has none."""
    return None if future.cancelled() or future.exception() is not None else future.result()


async def follow(
    ls: FimLanguageServer, request: Request, leader: UnderWay, superseded: asyncio.Event
) -> tuple[Work | None, float]:
    """Wait for work while it writes what is typed; return its result, and the milliseconds.

    ``superseded``: set by a newer request, which follows the work itself, or has stopped it.
    """
    unclaimed = ls.requests.unclaimed.get(request.uri)
    if unclaimed is not None and unclaimed.job is leader.job:
        del ls.requests.unclaimed[request.uri]
    mine = ls.requests.running[request.uri] = UnderWay(leader.request, leader.job)
    typed = typed_since(leader.request, request) or ""
    if request.single_line and not leader.request.single_line:
        leader.job.end_line(len(typed))
    coming = asyncio.wrap_future(leader.job.future)
    coming.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be awaited no more
    started = time.perf_counter()
    ls.requests.waiting += 1
    try:
        while not leader.job.future.done() and not superseded.is_set():
            if not agrees(leader, typed):
                leader.job.cancelled.set()
                return None, 1000 * (time.perf_counter() - started)
            await asyncio.wait((coming,), timeout=LOOK_SECONDS)
    except asyncio.CancelledError:
        leave(ls, mine)
        raise
    finally:
        ls.requests.waiting -= 1
        if ls.requests.running.get(request.uri) is mine:
            del ls.requests.running[request.uri]
    waited = 1000 * (time.perf_counter() - started)
    return (work_of(leader.job.future) if leader.job.future.done() else None), waited
