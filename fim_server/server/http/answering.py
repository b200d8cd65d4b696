"""Answers to HTTP requests: a queue in which a client's newest request wins, deadlines, and the texts to insert."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePath
from typing import TYPE_CHECKING

from fim_server.decoding.results import StopReason
from fim_server.models.source import name_of
from fim_server.server.http.bodies import RefusedError
from fim_server.server.http.languages import PLAIN, named_language, shown_name
from fim_server.server.http.wanted import Served, Text, Wanted
from fim_server.server.items import visible_suggestions
from fim_server.server.requests.answer import SUPERSEDED, Answered, Unanswered, answer
from fim_server.server.status import MOST_OF_NAME
from fim_server.text.hidden import on_one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fim_server.server.http.client import HttpClient, HttpClients
    from fim_server.suggest.settings import ServerSettings
    from fim_server.suggest.suggestion import Suggestion

MOST_AT_WORK = 4
"""Most requests that are answered at a time."""

MOST_WAITING = 32
"""Most requests that wait for their turn; one more is refused."""

LOADING_SECONDS = 20.0
"""Longest wait of a request for the loading of the model."""

ANSWER_SECONDS = 60.0
"""Longest time for an answer, beyond all deadlines of its stages."""

LOADING = "the model is still being loaded: try again later"


@dataclass(slots=True, eq=False)
class Job:
    """Answer under way, for all requests that are alike.

    Attributes:
        owner: The client's name.
        number: Its place in the order of arrival.
        task: Its work.
        is_waiting: Whether it waits for its turn.
        waiters: Number of the requests.
    """

    owner: tuple[str, ...]
    number: int
    task: asyncio.Future[Served] = field(default_factory=asyncio.Future)
    is_waiting: bool = True
    waiters: int = 0


@dataclass(slots=True)
class Queue:
    """Jobs under way. Used by the event loop's thread."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_WORK))
    jobs: dict[tuple[object, ...], Job] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        return sum(job.is_waiting for job in self.jobs.values())

    @property
    def running(self) -> int:
        return len(self.jobs) - self.waiting

    @property
    def is_full(self) -> bool:
        """Return whether a new job has to wait."""
        return self.places.locked() or self.running >= MOST_AT_WORK


class Answerer:
    """Answers of all clients."""

    def __init__(self, clients: HttpClients, settings: ServerSettings) -> None:
        self.clients = clients
        self.settings = settings
        self.queue = Queue()
        self._numbers = count()
        self._configured = PurePath(name_of(settings.model)).name or str(settings.model)

    @property
    def model_name(self) -> str:
        """The model's name; until it is loaded, the last part of the configured name, path or address."""
        model = self.clients.model
        return on_one_line(self._configured if model is None else model.name, MOST_OF_NAME)

    async def serve(self, name: tuple[str, ...], wanted: Wanted) -> Served:
        """Answer a request of a client. Raises RefusedError.

        Equal requests at the same time get the same answer. A client's older requests that still wait for their turn
        are dropped; those for the same document are superseded.
        """
        key = (*name, wanted)
        job = self.queue.jobs.get(key)
        if job is None:
            job = self._begin(key, name, wanted)
        job.waiters += 1
        try:
            await asyncio.wait((job.task,))
        finally:
            job.waiters -= 1
            if not job.waiters:
                job.task.cancel()
                if self.queue.jobs.get(key) is job:  # an equal request must not join what is being cancelled
                    del self.queue.jobs[key]
        return self._without_text(wanted, SUPERSEDED) if job.task.cancelled() else job.task.result()

    def _begin(self, key: tuple[object, ...], name: tuple[str, ...], wanted: Wanted) -> Job:
        """Begin a job. Raises RefusedError if too many wait."""
        if not wanted.reads_only:
            waiting = [other for other, one in self.queue.jobs.items() if one.owner == name and one.is_waiting]
            for older in waiting:
                self.queue.jobs.pop(older).task.cancel()
        if self.queue.waiting >= MOST_WAITING:
            raise RefusedError(503, "too many requests wait: try again later")
        is_waiting = self.queue.is_full  # the place of a job that has not run yet is still free
        job = self.queue.jobs[key] = Job(name, next(self._numbers), is_waiting=is_waiting)
        job.task = asyncio.ensure_future(self._in_turn(job, name, wanted))
        job.task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be awaited no more
        return job

    async def _in_turn(self, job: Job, name: tuple[str, ...], wanted: Wanted) -> Served:
        async with self.queue.places:
            job.is_waiting = False
            client = self.clients.find(name, self.settings)
            client.running += 1
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._answer(client, job, wanted)
            except TimeoutError:
                raise RefusedError(503, f"no answer within {ANSWER_SECONDS:g} s") from None
            finally:
                client.running -= 1

    async def _answer(self, client: HttpClient, job: Job, wanted: Wanted) -> Served:
        if wanted.prefix.endswith("\r") and wanted.suffix.startswith("\n"):
            raise RefusedError(400, "the cursor is inside a line break")
        await loaded(client)
        await client.remember(wanted)
        if wanted.reads_only:
            return self._without_text(wanted, READ_ONLY)
        document = await client.document_of(wanted)
        if document.number > job.number:  # a newer request was faster
            return self._without_text(wanted, SUPERSEDED)
        document.number = job.number
        answered = await answer(client.server, client.take(wanted, document))
        if isinstance(answered, Unanswered):
            if answered.has_failed:
                raise RefusedError(500, answered.reason)
            return self._without_text(wanted, answered, document.language)
        return self._served(wanted, answered, shown_name(document.language))

    def _served(self, wanted: Wanted, answered: Answered, language: str) -> Served:
        """Return the texts of an answer that fit between prefix and suffix as the client sent them."""
        visible = [one for one in visible_suggestions(answered.answer, answered.split) if not one.covered]
        ended: dict[str, Suggestion] = {}
        for one in visible:
            ended.setdefault(before_stops(one, wanted.stops), one)  # several may end alike
        found = [(one, text) for text, one in ended.items() if text][: wanted.count]
        reason = None if found else answered.answer.reason or (NO_STOP if visible else "there is no suggestion")
        first = found[0][0] if found else None
        return Served(
            texts=tuple(Text(answered.split.restore(text), is_cut(one)) for one, text in found) or (Text(""),),
            language=language,
            model=self.model_name,
            guarantee="none" if first is None else first.origin.guarantee,
            reason=reason,
            origin=answered.origin,
            covered_lines=() if first is None else first.origin.covered_lines,
            costs=answered.costs,
            statistics=None if first is None or answered.origin != "model" else first.origin.completion.statistics,
        )

    def _without_text(self, wanted: Wanted, unanswered: Unanswered, language: str = "") -> Served:
        """Return the answer to a request that gets no text; ``language``: the guessed one, if it was guessed."""
        shown = shown_name(language or named_language(wanted) or PLAIN)
        return Served((Text(""),), shown, self.model_name, reason=unanswered.reason)


READ_ONLY = Unanswered("no token was asked for")
NO_STOP = "no beginning of the text before the given stop fits"


async def loaded(client: HttpClient) -> None:
    """Wait for a client's model. Raises RefusedError if there is none, or not yet."""
    server = client.server
    loop = asyncio.get_running_loop()
    ends = loop.time() + LOADING_SECONDS
    while server.worker.model is None:
        if server.model.failure is not None:
            raise RefusedError(503, server.model.failure)
        if loop.time() > ends:
            raise RefusedError(503, LOADING)
        await asyncio.sleep(0.02)


def before_stops(suggestion: Suggestion, stops: tuple[str, ...]) -> str:
    """Return a suggestion's text up to the last place before all stops where it fits; empty if there is none."""
    text = suggestion.text
    found = [at for at in (text.find(stop) for stop in stops) if at >= 0]
    if not found:
        return text
    return text[: max((cut for cut in suggestion.ends.cuts if cut <= min(found)), default=0)]


def is_cut(suggestion: Suggestion) -> bool:
    """Return whether a limit has ended a text."""
    return suggestion.origin.completion.stop_reason in (StopReason.BUDGET, StopReason.DEADLINE)


async def unless_gone(work: Awaitable[Served], gone: Callable[[], Awaitable[None]]) -> Served | None:
    """Return the result of work; stop it and return None if the client has gone before."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, RefusedError):
            await asyncio.gather(working, leaving, return_exceptions=True)
