"""The command that gets a better model: downloaded and built by a process of its own, then loaded.

A process of its own, because building takes a processor and hundreds of megabytes for a while: completions go on beside
it, and the memory goes back. Ending it leaves no half a model (see ``fim_server.models.store``).
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
from fim_server.server.status import tell_status

if TYPE_CHECKING:
    from asyncio import Future

GET = [sys.executable, "-P", "-m", "fim_server", "models", "get", "--json"]
"""Without -P a file of the folder that the editor has open could be run."""

ENDING_SECONDS = 10.0
"""How long the process may take to end when it is told to."""

LOOK_SECONDS = 0.05
"""Between two looks whether it has."""

DOWNLOADING_SHARE = 0.7
"""Of the progress that is shown: the rest is for building, whose end is not known beforehand."""


@dataclass(frozen=True)
class Outcome:
    """What came of getting a model.

    Attributes:
        problem: Why it is not there, in one line; None where it is.
    """

    problem: str | None = None
    cancelled: bool = False

    def as_json(self, name: str) -> dict[str, Any]:
        """The command's answer."""
        done = self.problem is None and not self.cancelled
        return {"name": name, "done": done, "cancelled": self.cancelled, "problem": self.problem}


async def get_model(ls: FimLanguageServer, entry: Entry) -> dict[str, Any]:
    """Get a model and have it serve, where no other is chosen; returns the command's answer."""
    if ls.model.fetching is not None:
        return Outcome(problem=f"{ls.model.fetching.name} is being fetched already").as_json(entry.name)
    ls.model.fetching = Fetching(entry.name)
    ls.model.cancelled.clear()
    tell_status(ls)
    ls.log(types.MessageType.Info, f"getting {entry.name}")
    token = await begin_progress(ls, f"{SERVER_NAME}: getting {entry.title}", "getting", cancellable=True)
    try:
        outcome = await run(ls, entry, token)
    finally:
        ls.model.fetching = None
        if token is not None:
            ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
        tell_status(ls)
    if outcome.cancelled:
        ls.log(types.MessageType.Info, f"getting {entry.name}: cancelled; what has been downloaded is kept")
    elif outcome.problem is not None:
        ls.log(types.MessageType.Error, f"getting {entry.name}: {outcome.problem}")
    else:
        ls.log(types.MessageType.Info, f"{entry.name} is here")
        ls.model.better = None
        if ls.settings.model in (None, DEFAULT_NAME):
            ls.spawn(reload(ls))  # the answer does not wait for it: a cancelled request must not end it half-way
    return outcome.as_json(entry.name)


def stop_getting(ls: FimLanguageServer, entry: Entry) -> dict[str, Any]:
    """Cancel that, or the download of the model that is being loaded; returns the command's answer.

    pygls does not tell a command that its request is cancelled, and not every editor shows progress.
    """
    if ls.model.fetching is None and ls.model.downloading is not None:
        name = ls.model.downloading.name
        ls.worker.leave_loading(f"{name}: the download was cancelled")
        return Outcome(cancelled=True).as_json(name)
    if ls.model.fetching is None:
        return Outcome(problem="nothing is being fetched").as_json(entry.name)
    ls.model.cancelled.set()
    return Outcome(cancelled=True).as_json(ls.model.fetching.name)


async def stop_and_wait(ls: FimLanguageServer) -> None:
    """Cancel what is being fetched, and have its request answered: pygls fails to shut down while a command runs."""
    ls.model.cancelled.set()
    for _ in range(round(ENDING_SECONDS / LOOK_SECONDS)):
        if ls.model.fetching is None:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def run(ls: FimLanguageServer, entry: Entry, token: str | None) -> Outcome:
    """Run the process to its end, or to where somebody cancels it."""

    def report(message: str, share: float) -> None:
        ls.model.fetching = Fetching(entry.name, message, share)
        tell_status(ls)
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
    """Report what the process tells of its progress; returns what came of it."""
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(process.stderr.read())
    share = 0.0
    async for line in process.stdout:
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            message = told.get("stage")
            if message is None:
                continue
            if told.get("total"):
                share = DOWNLOADING_SHARE * told["done"] / told["total"]
                message += f": {amount_in_words(told['done'], told['total'])}"
            elif share:
                share = DOWNLOADING_SHARE
            report(message, share)
    said = (await complaints).decode("utf-8", "replace").strip().splitlines()
    if await process.wait() == 0:
        return Outcome()
    return Outcome(problem=said[-1].removeprefix("fim-server: ") if said else "it failed and says nothing")


async def end(process: Process) -> None:
    """Have the process end, if it has not."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), ENDING_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
