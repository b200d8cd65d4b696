"""Loading the model in the background, and saying how far that is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from lsprotocol import types

from fim_server.errors import AwayError, FimServerError
from fim_server.models.remote.client import SilentError
from fim_server.models.store.folders import cached_damage, damaged
from fim_server.models.store.state import State, to_be_got
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.messages import MOST_OF_NAME
from fim_server.server.models.indexing import read_project
from fim_server.server.state import Fetching
from fim_server.server.status import offer_in_words, tell_status
from fim_server.system.blocking_pool import BLOCKING_POOL
from fim_server.system.process import resident_bytes
from fim_server.text.hidden import on_one_line

if TYPE_CHECKING:
    from fim_server.suggest.settings import ServerSettings

T = TypeVar("T")

OFFER_SECONDS = 2.0
"""How long is waited for the disk to say whether a better model can be had."""

DOWNLOAD_BEGINS, DOWNLOAD_ENDS = 0.4, 0.7
"""Where in the progress of loading a download is."""

MEGABYTE = 1_000_000

AWAY_SECONDS = (5.0, 10.0, 20.0, 40.0, 60.0)
"""How long is waited before it is asked again whether an endpoint is there: at last, time after time."""

MOST_LOOKS = 24 * 60
"""How often it is asked: for a day."""

THERE_SECONDS = 90.0
"""How long it may take to say so."""


async def load(ls: FimLanguageServer, looks: int = 0) -> None:
    """Load the model; without one the server lives on and says why it offers nothing.

    An endpoint that does not answer is waited for. ``looks``: how often it was asked for since, so that people know.
    """
    loop = asyncio.get_running_loop()
    ls.model.newer_load.set()
    newer = ls.model.newer_load = asyncio.Event()
    ls.model.failure, ls.model.downloading = None, None
    name = ls.settings.model or ""
    progress = await begin_progress(ls, f"{SERVER_NAME}: loading", "loading")

    def report(message: str, share: float) -> None:
        loop.call_soon_threadsafe(told, message, share)

    def arrive(done: int, total: int) -> None:
        loop.call_soon_threadsafe(arrived, done, total)

    def arrived(done: int, total: int) -> None:
        if newer.is_set() or future.done():
            return
        share = done / max(1, total)
        words = f"downloading {name}: {amount_in_words(done, total)}"
        told(words, DOWNLOAD_BEGINS + (DOWNLOAD_ENDS - DOWNLOAD_BEGINS) * share, Fetching(name, words, share))

    def told(message: str, share: float, downloading: Fetching | None = None) -> None:
        if newer.is_set():
            return
        message = on_one_line(message)
        ls.model.downloading = downloading
        ls.model.progress = (message, share)
        tell_status(ls)
        if progress is not None:
            value = types.WorkDoneProgressReport(message=message, percentage=round(100 * share))
            ls.work_done_progress.report(progress, value)

    try:
        if newer.is_set():
            return
        future = ls.worker.load(report, arrive)
        ls.supervisor.begin()
        tell_status(ls)
        model = await unless(newer, asyncio.wrap_future(future))
    except (AwayError, SilentError) as error:
        if not newer.is_set() and not ls.worker.is_closed:
            fail(ls, str(error), quietly=looks > 0)
            ls.spawn(load_once_there(ls, newer, looks))
    except FimServerError as error:
        if not newer.is_set() and not ls.worker.is_closed and not ls.ends_by(error):
            fail(ls, str(error))
    except Exception as error:  # noqa: BLE001  # a broken library, too little memory: the server lives on
        if not newer.is_set() and not ls.worker.is_closed and not ls.ends_by(error):
            detail = str(error).strip().split("\n", 1)[0]
            fail(ls, f"the model cannot be loaded ({type(error).__name__}{detail and ': '}{detail})")
    else:
        if model is None:
            return
        if ls.learnt is not None:
            read_project(ls)  # which languages these are was not known before
        ls.supervisor.budget.note_loaded(resident_bytes(), (model.name, model.device, model.runtime))
        name = on_one_line(model.name, MOST_OF_NAME)
        ls.log(
            types.MessageType.Info,
            f"model {name} ready on {model.device} ({model.runtime}, {model.format.family} format)",
        )
    finally:
        if not newer.is_set():
            ls.model.progress, ls.model.downloading = None, None
            await look_for_offer(ls)
        if progress is not None:
            ls.work_done_progress.end(progress, types.WorkDoneProgressEnd())
        tell_status(ls)


async def load_once_there(ls: FimLanguageServer, newer: asyncio.Event, looks: int) -> None:
    """Load the model once its endpoint answers, unless another is loaded before.

    One that answers and cannot be loaded yet is asked for the more rarely the more often it was.
    """
    for look in range(looks, MOST_LOOKS):
        await unless(newer, asyncio.ensure_future(asyncio.sleep(AWAY_SECONDS[min(look, len(AWAY_SECONDS) - 1)])))
        if newer.is_set() or ls.worker.is_closed:
            return
        if await is_there_now(ls.settings):
            if not newer.is_set() and not ls.worker.is_closed:
                ls.worker.reload(ls.settings)
                await load(ls, look + 1)
            return


async def is_there_now(settings: ServerSettings) -> bool:
    """Whether the endpoint of the settings answers; asked aside, for it may take its time."""
    from fim_server.models.remote.load import is_there

    name, options = settings.model or "", settings.load_options
    begun = BLOCKING_POOL.begin(("endpoint", name), lambda: is_there(name, options))
    try:
        return begun is not None and await asyncio.wait_for(asyncio.wrap_future(begun), THERE_SECONDS)
    except (FimServerError, TimeoutError):
        return False


async def unless(event: asyncio.Event, found: asyncio.Future[T]) -> T | None:
    """What a future gives, or None once an event is set before: what never comes is not waited for then."""
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
    ls.worker.reload(ls.settings)
    await load(ls)


def fail(ls: FimLanguageServer, message: str, quietly: bool = False) -> None:
    """Say once that there is no model; ``quietly``: not on the user's screen."""
    message = ls.model.failure = on_one_line(message)
    ls.log(types.MessageType.Error, message)
    if quietly:
        return
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"{SERVER_NAME}: {message}"))


def amount_in_words(done: int, total: int) -> str:
    """How many bytes of how many there are."""
    return f"{done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB"


async def look_for_offer(ls: FimLanguageServer) -> None:
    """Find out whether a better model can be had; nothing is known of it where the disk does not answer."""
    wanted = ls.settings.model
    begun = BLOCKING_POOL.begin(("offer", wanted), lambda: to_be_got(wanted))
    try:
        # Not on a thread of the loop's own, for which its end waits.
        ls.model.better = None if begun is None else await asyncio.wait_for(asyncio.wrap_future(begun), OFFER_SECONDS)
    except Exception as error:  # noqa: BLE001  # a cache that cannot be read, a broken library: no offer then
        ls.model.better = None
        ls.log_once(types.MessageType.Warning, f"the cache of models cannot be read ({type(error).__name__})")
    if ls.model.better is None:
        return
    entry, state = ls.model.better
    damage = cached_damage(entry.name) if state is State.DAMAGED else None
    if damage is None:
        ls.log_once(types.MessageType.Info, offer_in_words(entry, state))
    else:
        ls.log_once(types.MessageType.Error, f"{damaged(entry, damage)}; the embedded model serves meanwhile")


async def begin_progress(ls: FimLanguageServer, title: str, of: str, cancellable: bool = False) -> str | None:
    """Open a progress bar in clients that have one; returns its token, which names what it is of."""
    window = ls.client_capabilities.window
    if window is None or not window.work_done_progress:
        return None
    token = f"{SERVER_NAME}/{of}/{time.monotonic_ns()}"
    try:
        await asyncio.wait_for(ls.work_done_progress.create_async(token), 2)
    except Exception:  # noqa: BLE001  # a client that cannot after all, or does not answer
        return None
    begin = types.WorkDoneProgressBegin(title=title, percentage=0, cancellable=cancellable)
    ls.work_done_progress.begin(token, begin)
    return token
