"""Going on with what the model is writing while somebody types that very text.

Each key asks anew. What was typed since the request before is often what is being written for that: then it goes on,
and what comes of it, less what was typed, answers the newer request. Begun again at each key, a model that takes longer
than the keys are apart would never come to an end.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.server.language_server import UnderWay
from fim_server.suggest.context.cursor import MOST_CLOSERS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fim_server.server.language_server import FimLanguageServer
    from fim_server.suggest.answer_cache import Answer
    from fim_server.suggest.job import Request, Work

KEPT_SECONDS = 0.5
"""How long work goes on that nobody waits for: the next request comes a moment after the key that ended the last."""

LOOK_SECONDS = 0.01
"""Between two looks whether what is written is still what is typed."""


def typed_since(before: Request, request: Request) -> str | None:
    """What was typed at the cursor of an earlier request; None where that does not lead to the later one.

    An editor may have closed brackets right of the cursor, or somebody have typed over such a closer.
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
    """Whether what was typed may be what is being written, as far as it is written."""
    written = under_way.job.written()
    return written.startswith(typed) or typed.startswith(written)


def may_go_on(under_way: UnderWay, text: str) -> bool:
    """Whether a document's new text, whose cursor is not known, may come of typing what is being written."""
    split = under_way.request.split
    if under_way.request.invoked or not (text.startswith(split.left) and text.endswith(split.right)):
        return False
    typed = text[len(split.left) : len(text) - len(split.right)]
    # The last of two characters may be the closer that an editor has put right of the cursor.
    return agrees(under_way, typed) or (not is_word(typed[-1:]) and agrees(under_way, typed[:-1]))


def leader_of(ls: FimLanguageServer, request: Request) -> UnderWay | None:
    """What is being written that a request may follow."""
    for known in (ls.running.get(request.uri), ls.left.get(request.uri)):
        if known is not None and not known.job.cancelled.is_set():
            typed = typed_since(known.request, request)
            if typed and agrees(known, typed):
                return known
    return None


def leave(ls: FimLanguageServer, under_way: UnderWay) -> None:
    """Nobody waits for something any more: it goes on for a moment, if it may be followed.

    What comes of it, or has come of it already, is remembered.
    """
    uri, job = under_way.request.uri, under_way.job
    known = ls.running.get(uri)
    if known is not None and known is not under_way and known.job is job:
        return  # a newer request follows it already
    if under_way.request.invoked:
        job.cancelled.set()
        return
    end_left(ls, uri)
    ls.left[uri] = under_way
    ls.spawn(keep(ls, under_way))


async def keep(ls: FimLanguageServer, under_way: UnderWay) -> None:
    """Remember what comes of something that was left, soon, unless it is followed."""
    future, ends = under_way.job.future, time.monotonic() + KEPT_SECONDS
    while ls.left.get(under_way.request.uri) is under_way:
        if future.done():
            del ls.left[under_way.request.uri]
            if (work := work_of(future)) is not None:
                remember(ls, under_way.request, work.answer)
        elif time.monotonic() >= ends:
            end_left(ls, under_way.request.uri)
        else:
            await asyncio.sleep(LOOK_SECONDS)


def remember(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Keep an answer for what is typed next, if it will still hold and the settings are what they were."""
    if found.lasting and request.settings == ls.settings:
        ls.memory.add(found)


def work_of(future: Future[Work | None]) -> Work | None:
    """What has come of some work that is done; None where nothing has."""
    return None if future.cancelled() or future.exception() is not None else future.result()


def end_left(ls: FimLanguageServer, uri: str) -> None:
    """Stop what goes on for a document though nobody waits for it."""
    left = ls.left.pop(uri, None)
    if left is not None:
        left.job.cancelled.set()


async def follow(
    ls: FimLanguageServer, request: Request, leader: UnderWay, overtaken: asyncio.Event
) -> tuple[Work | None, float]:
    """Wait for what is being written as long as it is what is typed; returns what came of it, and the milliseconds.

    ``overtaken``: set by a newer request, which follows itself, or has stopped it.
    """
    left = ls.left.get(request.uri)
    if left is not None and left.job is leader.job:
        del ls.left[request.uri]
    mine = ls.running[request.uri] = UnderWay(leader.request, leader.job)
    typed = typed_since(leader.request, request) or ""
    if request.single_line and not leader.request.single_line:
        leader.job.end_line(len(typed))
    coming = asyncio.wrap_future(leader.job.future)
    coming.add_done_callback(lambda done: done.cancelled() or done.exception())  # others may wait for it, or nobody
    started = time.perf_counter()
    ls.at_work += 1
    try:
        while not leader.job.future.done() and not overtaken.is_set():
            if not agrees(leader, typed):
                leader.job.cancelled.set()
                return None, 1000 * (time.perf_counter() - started)
            await asyncio.wait((coming,), timeout=LOOK_SECONDS)
    except asyncio.CancelledError:
        leave(ls, mine)
        raise
    finally:
        ls.at_work -= 1
        if ls.running.get(request.uri) is mine:
            del ls.running[request.uri]
    waited = 1000 * (time.perf_counter() - started)
    return (work_of(leader.job.future) if leader.job.future.done() else None), waited
