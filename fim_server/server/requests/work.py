"""Work for one request: the project's memory, and the model within the deadline.

Awaiting the worker is what pygls can cancel; that stops the work too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from lsprotocol import types

from fim_server.errors import LanguageError, MissingLibrary, ModelError, StoppedError
from fim_server.models.backend import LostError
from fim_server.models.remote.address import is_remote
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.known_answers import is_prefetched
from fim_server.server.requests.type_through import leave
from fim_server.server.state import UnderWay
from fim_server.server.status import send_state_soon
from fim_server.suggest.job import Costs, Work
from fim_server.suggest.request import Request
from fim_server.text.hidden import on_one_line

GRACE_SECONDS = 1.0
"""Time beyond a request's deadline for work that keeps the deadline itself, except for its last step."""


class LateAnswerError(Exception):
    """Request without an answer at its deadline; the message is the reason."""


async def recall(ls: FimLanguageServer, request: Request) -> Work | None:
    """Return a sure suggestion of the project's memory, if there is one."""
    if is_prefetched(ls, request):
        return None
    job = ls.worker.recall(request)
    if job is None:
        return None
    ls.supervisor.begin()
    running = ls.requests.running[request.uri] = UnderWay(request, job)
    try:
        return await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        job.cancelled.set()
        raise
    except (StoppedError, LanguageError, ModelError):  # the request to the model reports it
        return None
    except Exception as error:  # noqa: BLE001  # the model can answer without it
        ls.report_failure(error)
        return None
    finally:
        forget_running(ls, request.uri, running)


async def run(ls: FimLanguageServer, request: Request, recalls: bool = False) -> Work | None:
    """Have the worker answer; ``recalls``: see `CompletionWorker.submit`."""
    prefetch, is_joined = ls.requests.prefetch, not request.invoked and is_prefetched(ls, request)
    if ls.worker.model is None and ls.model.failure is not None:
        ls.requests.prefetch = None
        return Work(request.answered((), ls.model.failure, lasting=False))
    if not is_joined:
        ls.requests.stop_prefetch()
    ls.requests.prefetch = None
    job = prefetch.job if is_joined and prefetch is not None else ls.worker.submit(request, recalls)
    ls.supervisor.begin()
    running = ls.requests.running[request.uri] = UnderWay(request, job)
    started = time.perf_counter()
    ls.requests.waiting += 1
    send_state_soon(ls)
    waiting = asyncio.wrap_future(job.future)
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be awaited no more
    try:
        work = await on_time(request, waiting, lambda: ls.worker.is_loading)
    except asyncio.CancelledError:
        leave(ls, running)
        raise
    except LateAnswerError as error:
        leave(ls, running)
        reason = str(error)
    except StoppedError as error:  # its thread was given up
        reason = ls.requests.suspended.get(request.uri, str(error))
    except (ModelError, MissingLibrary):  # reported when loading failed
        reason = ls.model.failure or "there is no model"
    except LostError as error:  # an endpoint, which may answer the next request
        ls.log(types.MessageType.Warning, str(error))
        reason = str(error)
    else:
        if is_joined and work is not None:
            # Most of its time was spent before the request: only the wait counts.
            return Work(work.answer.as_prefetched(), Costs(queue_ms=1000 * (time.perf_counter() - started)))
        return work
    finally:
        ls.requests.waiting -= 1
        forget_running(ls, request.uri, running)
        if not ls.requests.waiting:
            send_state_soon(ls)
    return Work(request.answered((), reason, lasting=False))


def forget_running(ls: FimLanguageServer, uri: str, running: UnderWay) -> None:
    """Forget finished work, unless newer work has replaced it."""
    if ls.requests.running.get(uri) is running:
        del ls.requests.running[uri]


async def on_time(
    request: Request, waiting: asyncio.Future[Work | None], is_loading: Callable[[], bool]
) -> Work | None:
    """Wait for a request's work, for an endpoint only until the request's deadline; never cancel it.

    A local model is awaited until it is loaded; an endpoint may never answer. Raises LateAnswerError, and whatever the
    work raises.
    """
    name, deadline_ms = request.settings.model or "", request.deadline_ms
    if not is_remote(name) or not deadline_ms:
        return await asyncio.shield(waiting)
    await asyncio.wait((waiting,), timeout=deadline_ms / 1000)
    if not waiting.done() and not is_loading():
        await asyncio.wait((waiting,), timeout=GRACE_SECONDS)
    if waiting.done():
        return waiting.result()
    state = "its model is still being loaded" if is_loading() else "it has not answered in time"
    raise LateAnswerError(f"{on_one_line(name)}: {state}")
