"""Looking after the worker while it is at work: stuck threads are replaced, memory is kept within its budget."""

from __future__ import annotations

import asyncio
import gc
import logging

from lsprotocol import types

from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import look_at_reading
from fim_server.server.models.loading import load
from fim_server.server.status import tell_status
from fim_server.system.process import resident_bytes
from fim_server.system.watched_threads import SILENT_LOOKS
from fim_server.workers.budget import MEGABYTE, Step, bytes_for_sessions
from fim_server.workers.worker import LOADING_LOOKS, Replaced

LOOK_SECONDS = 0.5
"""Between two looks."""

MOST_GIVEN_UP = 2
"""Threads that were given up and have not come back. Each may keep a processor busy, and nothing ends a thread but the
process's end, which is where one more leads."""

STUCK = 3
"""Exit status of a process that ends because of that."""

FAREWELL_SECONDS = 0.2
"""How long it goes on, so that what it has said is sent."""

DROPPED = {
    Step.CACHES: "what the model has read and the sessions of idle documents were dropped",
    Step.SESSIONS: "all sessions were dropped",
    Step.PROJECT: "the memory of the project was dropped, and is read again up to half as much at the next change",
    Step.WORKER: "the worker was replaced",
}


def look_after(ls: FimLanguageServer) -> None:
    """Have the worker looked after until it has nothing to do."""
    if ls.watch is None or ls.watch.done():
        ls.watch = asyncio.ensure_future(keep_looking(ls))


async def keep_looking(ls: FimLanguageServer) -> None:
    """Look every now and then, and once more when all is done."""
    goes_on = True
    while goes_on:
        await asyncio.sleep(LOOK_SECONDS)
        goes_on = ls.worker.is_at_work or ls.project.is_reading
        try:
            goes_on = look(ls) or goes_on
        except Exception as error:  # noqa: BLE001  # whatever goes wrong in it, the next look comes
            ls.report_failure(error)
        if ls.is_ending:
            return


def look(ls: FimLanguageServer) -> bool:
    """Replace threads that are stuck, and drop what is over the budget; returns whether anything was done."""
    replaced = ls.worker.look_after()
    for one in replaced:
        note(ls, one)
    if ls.worker.given_up > MOST_GIVEN_UP:
        give_up(ls)
        return True
    if ls.worker.is_closed:
        return bool(replaced)
    allowed = ls.budget.bytes_for(ls.settings.memory_mb)
    ls.worker.session_memory.most = bytes_for_sessions(allowed)
    resident = resident_bytes()
    look_at_reading(ls, resident, allowed)
    # While a model is loaded it is not known yet what it needs.
    step = None if ls.worker.is_loading else ls.budget.next_step(resident, allowed)
    if step is not None:
        drop(ls, step)
    if ls.worker.was_lost:
        ls.worker.was_lost = False
        ls.spawn(load(ls))
    elif replaced or step is not None:
        tell_status(ls)
    note_overdue(ls)
    return bool(replaced) or step is not None


def note(ls: FimLanguageServer, replaced: Replaced) -> None:
    """Say that a thread was given up, and ask no more about its document until that changes or is closed."""
    ls.usage.replaced += 1
    if replaced.finishing:
        seconds = f"{SILENT_LOOKS * LOOK_SECONDS:g} s"
        what = f"what opened the whole of it in the background has not answered for {seconds} and was given up"
        ls.log(types.MessageType.Error, f"{replaced.uri}: {what}; suggestions go by a part of it until it changes")
        return
    why = f"its worker has not answered for {SILENT_LOOKS * LOOK_SECONDS:g} s and was replaced"
    if not replaced.left or ls.open_document(replaced.uri) is not None:
        why += "; it is asked about again once it changes"
        ls.set_aside[replaced.uri] = why
        ls.memory.forget(replaced.uri)
    model = "; the model was in use, and is loaded again" if replaced.model else ""
    ls.log(types.MessageType.Error, f"{replaced.uri}: {why}{model}")


def note_overdue(ls: FimLanguageServer) -> None:
    """Say that nothing is heard of the loading of the model, or that something is again."""
    was, is_now = ls.overdue, ls.worker.is_overdue
    ls.overdue = f"nothing heard of it for {LOADING_LOOKS * LOOK_SECONDS:g} s" if is_now else None
    if was == ls.overdue:
        return
    if ls.overdue is not None:
        at = ls.loading[0] if ls.loading is not None else "loading the model"
        ls.log(types.MessageType.Warning, f"{at}: {ls.overdue}; it is waited for until the model is loaded again")
    tell_status(ls)


def give_up(ls: FimLanguageServer) -> None:
    """End the process: too many of its threads are stuck."""
    ls.failure = f"{ls.worker.given_up} workers have not answered and cannot be ended: the server ends itself"
    ls.log(types.MessageType.Error, ls.failure)
    ls.is_ending = True
    tell_status(ls)
    logging.shutdown()
    asyncio.get_running_loop().call_later(FAREWELL_SECONDS, ls.end_process, STUCK)


def drop(ls: FimLanguageServer, step: Step) -> None:
    """Take a step towards the budget."""
    resident, allowed = resident_bytes() or 0, ls.budget.bytes_for(ls.settings.memory_mb) or 0
    ls.memory.clear()
    match step:
        case Step.CACHES:
            ls.worker.forget_caches()
        case Step.SESSIONS:
            ls.worker.forget_sessions()
        case Step.PROJECT:
            ls.project.shrink()
        case Step.WORKER:
            ls.worker.lose()
    if step is not Step.CACHES:
        gc.collect()
    had, may = resident // MEGABYTE, allowed // MEGABYTE
    ls.log(types.MessageType.Warning, f"{had:,} MB of memory, {may:,} MB allowed (setting memoryMb): {DROPPED[step]}")
