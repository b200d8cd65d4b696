"""Loading of the model in the background, with its progress."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from lsprotocol import types

from fim_server.errors import AwayError, FimServerError
from fim_server.models.remote.client import SilentError
from fim_server.models.store.folders import embedded_instead
from fim_server.models.store.state import State, to_be_got
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.models.indexing import read_project
from fim_server.server.models.preparing import prepare_opened
from fim_server.server.state import Fetching
from fim_server.server.status import MOST_OF_NAME, better_in_words, send_status
from fim_server.system.blocking_pool import BLOCKING_POOL
from fim_server.system.process import resident_bytes
from fim_server.text.hidden import on_one_line

if TYPE_CHECKING:
    from fim_server.suggest.settings import ServerSettings

T = TypeVar("T")

BETTER_SECONDS = 2.0
"""Longest wait for the disk when looking for a better model."""

DOWNLOAD_BEGINS, DOWNLOAD_ENDS = 0.4, 0.7
"""Shares of the loading's progress between which a download is."""

MEGABYTE = 1_000_000

AWAY_SECONDS = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Delays before an endpoint that is away is tried again; the last one repeats."""

MOST_TRIES = 24 * 60
"""Most of these tries: a day of them."""

THERE_SECONDS = 90.0
"""Longest wait for such an endpoint's answer."""

PROGRESS_SECONDS = 2.0
"""Longest wait for a client to open a progress bar."""


async def load(ls: FimLanguageServer, tries: int = 0) -> None:
    """Load the model; without one the server goes on and reports why it has no suggestions.

    An endpoint that does not answer is tried again; ``tries``: the number of earlier tries.
    """
    loop = asyncio.get_running_loop()
    state = ls.model
    state.newer_load.set()
    newer = state.newer_load = asyncio.Event()
    state.failure, state.downloading = None, None
    name = ls.settings.model or ""
    progress = await begin_progress(ls, f"{SERVER_NAME}: loading", "loading")

    def report(message: str, share: float) -> None:
        loop.call_soon_threadsafe(show, message, share)

    def arrive(done: int, total: int) -> None:
        loop.call_soon_threadsafe(show_download, done, total)

    def show_download(done: int, total: int) -> None:
        if newer.is_set() or future.done():
            return
        share = done / max(1, total)
        words = f"downloading {name}: {amount_in_words(done, total)}"
        show(words, DOWNLOAD_BEGINS + (DOWNLOAD_ENDS - DOWNLOAD_BEGINS) * share, Fetching(name, words, share))

    def show(message: str, share: float, downloading: Fetching | None = None) -> None:
        if newer.is_set():
            return
        message = on_one_line(message)
        state.downloading = downloading
        state.progress = (message, share)
        send_status(ls)
        if progress is not None:
            value = types.WorkDoneProgressReport(message=message, percentage=round(100 * share))
            ls.work_done_progress.report(progress, value)

    def is_wanted() -> bool:
        return not newer.is_set() and not ls.worker.is_closed

    try:
        if newer.is_set():
            return
        future = ls.worker.load(report, arrive)
        ls.supervisor.begin()
        send_status(ls)
        model = await unless(newer, asyncio.wrap_future(future))
    except (AwayError, SilentError) as error:
        if is_wanted():
            fail(ls, str(error), quietly=tries > 0)
            ls.spawn(load_once_there(ls, newer, tries))
    except FimServerError as error:
        if is_wanted() and not ls.ends_by(error):
            fail(ls, str(error))
    except Exception as error:  # noqa: BLE001  # a broken library, too little memory: the server goes on
        if is_wanted() and not ls.ends_by(error):
            detail = str(error).strip().split("\n", 1)[0]
            fail(ls, f"the model cannot be loaded ({type(error).__name__}{detail and ': '}{detail})")
    else:
        if model is None:
            return
        if ls.learnt is not None:
            read_project(ls)  # the languages to read are known only now
        prepare_opened(ls)
        ls.supervisor.budget.note_loaded(resident_bytes(), (model.name, model.device, model.runtime))
        name = on_one_line(model.name, MOST_OF_NAME)
        ls.log(
            types.MessageType.Info,
            f"model {name} ready on {model.device} ({model.runtime}, {model.format.family} format)",
        )
    finally:
        if not newer.is_set():
            state.progress, state.downloading = None, None
            await look_for_better(ls)
        if progress is not None:
            ls.work_done_progress.end(progress, types.WorkDoneProgressEnd())
        send_status(ls)


async def load_once_there(ls: FimLanguageServer, newer: asyncio.Event, tries: int) -> None:
    """Load the model once its endpoint answers, unless a newer loading begins before."""
    for number in range(tries, MOST_TRIES):
        await unless(newer, asyncio.ensure_future(asyncio.sleep(AWAY_SECONDS[min(number, len(AWAY_SECONDS) - 1)])))
        if newer.is_set() or ls.worker.is_closed:
            return
        if await is_there_now(ls.settings):
            if not newer.is_set() and not ls.worker.is_closed:
                ls.worker.reload(ls.settings)
                await load(ls, number + 1)
            return


async def is_there_now(settings: ServerSettings) -> bool:
    """Return whether the endpoint of the settings answers."""
    from fim_server.models.remote.load import is_there

    name, options = settings.model or "", settings.load_options
    begun = BLOCKING_POOL.begin(("endpoint", name), lambda: is_there(name, options))
    try:
        return begun is not None and await asyncio.wait_for(asyncio.wrap_future(begun), THERE_SECONDS)
    except (FimServerError, TimeoutError):
        return False


async def unless(event: asyncio.Event, found: asyncio.Future[T]) -> T | None:
    """Return a future's result, or None if an event is set before."""
    is_set = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((found, is_set), return_when=asyncio.FIRST_COMPLETED)
        return found.result() if found.done() else None
    finally:
        is_set.cancel()
        found.cancel()


async def reload(ls: FimLanguageServer) -> None:
    """Forget everything and load the model again."""
    ls.answers.clear()
    ls.dismissals.clear()
    ls.worker.reload(ls.settings)
    await load(ls)


def fail(ls: FimLanguageServer, message: str, quietly: bool = False) -> None:
    """Report that there is no model; ``quietly``: only in the log and the status."""
    message = ls.model.failure = on_one_line(message)
    ls.log(types.MessageType.Error, message)
    if not quietly:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"{SERVER_NAME}: {message}"))


def amount_in_words(done: int, total: int) -> str:
    """Return an amount of bytes and its total for the user."""
    return f"{done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB"


async def look_for_better(ls: FimLanguageServer) -> None:
    """Look for a better model, and log it; give up on a disk that does not answer."""
    wanted = ls.settings.model
    begun = BLOCKING_POOL.begin(("better", wanted), lambda: to_be_got(wanted))
    try:
        # Not on a thread of the loop's own, for which its end waits.
        ls.model.better = None if begun is None else await asyncio.wait_for(asyncio.wrap_future(begun), BETTER_SECONDS)
    except Exception as error:  # noqa: BLE001  # a cache that cannot be read, a broken library
        ls.model.better = None
        ls.log_once(types.MessageType.Warning, f"the cache of models cannot be read ({type(error).__name__})")
    if ls.model.better is None:
        return
    entry, state = ls.model.better
    damage = embedded_instead(entry) if state is State.DAMAGED else None
    if damage is None:
        ls.log_once(types.MessageType.Info, better_in_words(entry, state))
    else:
        ls.log_once(types.MessageType.Error, damage)


async def begin_progress(ls: FimLanguageServer, title: str, of: str, cancellable: bool = False) -> str | None:
    """Open a progress bar, if the client has one; return its token, which names the work."""
    window = ls.client_capabilities.window
    if window is None or not window.work_done_progress:
        return None
    token = f"{SERVER_NAME}/{of}/{time.monotonic_ns()}"
    try:
        await asyncio.wait_for(ls.work_done_progress.create_async(token), PROGRESS_SECONDS)
    except Exception:  # noqa: BLE001  # a client that cannot after all, or does not answer
        return None
    begin = types.WorkDoneProgressBegin(title=title, percentage=0, cancellable=cancellable)
    ls.work_done_progress.begin(token, begin)
    return token
