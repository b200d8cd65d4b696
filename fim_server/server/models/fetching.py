"""Command that gets a better model: another process downloads and builds it, then the server loads it.

Building takes a processor and hundreds of megabytes for a while. In another process it leaves completions alone and
returns the memory. Ending that process leaves no half-built model (see ``fim_server.models.store``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.models.store.catalogue import DEFAULT_NAME, Entry
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.models.loading import amount_in_words, begin_progress, reload
from fim_server.server.state import Fetching
from fim_server.server.status import send_status

if TYPE_CHECKING:
    from asyncio import Future

GET = [sys.executable, "-P", "-m", "fim_server", "models", "get", "--json"]
"""Without -P, Python could run a file of the editor's folder."""

ENDING_SECONDS = 10.0
"""Longest wait for the end of the process."""

LOOK_SECONDS = 0.05
"""Time between two looks for its end."""

WITHOUT_MESSAGE = "it failed without a message; run `fim-server models get` in a terminal"

DOWNLOADING_SHARE = 0.7
"""Share of the download in the progress; the rest is for building, of unknown length."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of getting a model.

    Attributes:
        problem: Reason for failing, in one line.
    """

    problem: str | None = None
    cancelled: bool = False

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the command's answer."""
        done = self.problem is None and not self.cancelled
        return {"name": name, "done": done, "cancelled": self.cancelled, "problem": self.problem}


async def get_model(ls: FimLanguageServer, entry: Entry) -> dict[str, Any]:
    """Get a model, load it unless another one is chosen, and return the command's answer."""
    if ls.model.fetching is not None:
        return Outcome(problem=f"{ls.model.fetching.name} is being fetched already").as_json(entry.name)
    ls.model.fetching = Fetching(entry.name)
    ls.model.cancelled.clear()
    send_status(ls)
    ls.log(types.MessageType.Info, f"getting {entry.name}")
    token = await begin_progress(ls, f"{SERVER_NAME}: getting {entry.title}", "getting", cancellable=True)
    try:
        outcome = await run(ls, entry, token)
    finally:
        ls.model.fetching = None
        if token is not None:
            ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
        send_status(ls)
    if outcome.cancelled:
        ls.log(types.MessageType.Info, f"getting {entry.name}: cancelled; what has been downloaded is kept")
    elif outcome.problem is not None:
        ls.log(types.MessageType.Error, f"getting {entry.name}: {outcome.problem}")
    else:
        ls.log(types.MessageType.Info, f"{entry.name} is installed")
        is_default = entry.name == DEFAULT_NAME
        if is_default:
            ls.model.better = None
        if ls.settings.model == entry.name or (is_default and ls.settings.model is None):
            ls.spawn(reload(ls))  # not awaited: a cancelled request must not end it half-way
    return outcome.as_json(entry.name)


def stop_getting(ls: FimLanguageServer, entry: Entry) -> dict[str, Any]:
    """Cancel the fetching, or the download of the model that is being loaded; return the command's answer.

    pygls does not pass a command's cancellation on, and not every editor shows progress.
    """
    if ls.model.fetching is None and ls.model.downloading is not None:
        name = ls.model.downloading.name
        ls.worker.stop_loading(f"{name}: the download was cancelled")
        return Outcome(cancelled=True).as_json(name)
    if ls.model.fetching is None:
        return Outcome(problem="nothing is being fetched").as_json(entry.name)
    ls.model.cancelled.set()
    return Outcome(cancelled=True).as_json(ls.model.fetching.name)


async def stop_and_wait(ls: FimLanguageServer) -> None:
    """Cancel the fetching and wait for its answer: pygls fails to shut down while a command runs."""
    ls.model.cancelled.set()
    for _ in range(round(ENDING_SECONDS / LOOK_SECONDS)):
        if ls.model.fetching is None:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def run(ls: FimLanguageServer, entry: Entry, token: str | None) -> Outcome:
    """Run the process until it ends or is cancelled."""

    def report(message: str, share: float) -> None:
        ls.model.fetching = Fetching(entry.name, message, share)
        send_status(ls)
        if token is not None:
            value = types.WorkDoneProgressReport(message=message, percentage=round(100 * share), cancellable=True)
            ls.work_done_progress.report(token, value)

    try:
        process = await asyncio.create_subprocess_exec(*GET, entry.name, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        return Outcome(problem=f"{GET[0]}: {(error.strerror or str(error)).lower()}")
    ls.model.fetcher = process
    following = asyncio.ensure_future(follow(process, report))
    unwanted = asyncio.ensure_future(ls.model.cancelled.wait())
    waited: set[Future[Any]] = {following, unwanted}
    if token is not None:
        waited.add(asyncio.wrap_future(ls.work_done_progress.tokens[token]))
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            return await following
        return Outcome(cancelled=True)
    finally:
        for one in waited:
            one.cancel()
        await end(process)
        ls.model.fetcher = None


async def follow(process: Process, report: Callable[[str, float], None]) -> Outcome:
    """Report the progress that the process prints; return its outcome."""
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(process.stderr.read())
    share = 0.0
    async for line in process.stdout:
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            message = event.get("stage")
            if message is None:
                continue
            if event.get("total"):
                share = DOWNLOADING_SHARE * event["done"] / event["total"]
                message += f": {amount_in_words(event['done'], event['total'])}"
            elif share:
                share = DOWNLOADING_SHARE
            report(message, share)
    complaint_lines = (await complaints).decode("utf-8", "replace").strip().splitlines()
    if await process.wait() == 0:
        return Outcome()
    return Outcome(problem=complaint_lines[-1].removeprefix("fim-server: ") if complaint_lines else WITHOUT_MESSAGE)


async def end(process: Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), ENDING_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
