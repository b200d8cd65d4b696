"""Supervision of a worker at work: stuck threads are replaced, and memory is kept within its budget."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fim_server.system.process import resident_bytes
from fim_server.workers.budget import MemoryBudget, Step, bytes_for_sessions

if TYPE_CHECKING:
    from fim_server.suggest.answer_cache import AnswerCache
    from fim_server.suggest.sources.project import Project
    from fim_server.workers.worker import CompletionWorker, Replaced

LOOK_SECONDS = 0.5
"""Time between two looks."""

MOST_GIVEN_UP = 2
"""Most threads that were given up and have not come back. Each may keep a processor busy, and only the end of the
process ends it."""

STUCK = 3
"""Exit status of a process with more stuck threads than that."""

FAREWELL_SECONDS = 0.2
"""Time until that process ends, in which its last messages are sent."""


class OtherProcesses(Protocol):
    """Processes that this one has started."""

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that they hold."""

    def close(self) -> None:
        """End them for good."""


class Reports:
    """Callbacks of a supervisor, all on the event loop's thread; by default they do nothing."""

    def looked(self, resident: int | None, allowed: int | None) -> None:
        """Called at each look, with the bytes of memory that the process has and may have."""

    def replaced(self, thread: Replaced) -> None:
        """Called for a stuck thread that was given up."""

    def dropped(self, step: Step, resident: int, allowed: int) -> None:
        """Called after a step towards the budget."""

    def lost(self) -> None:
        """Called when the model has to be loaded again."""

    def overdue(self, is_overdue: bool) -> None:
        """Called when the loading of the model becomes overdue, and when it no longer is."""

    def changed(self) -> None:
        """Called after a look that has replaced or dropped something, unless the model was lost."""

    def ending(self, stuck: int) -> None:
        """Called before the process ends, with the number of stuck threads."""

    def failed(self, error: Exception) -> None:
        """Called with an error of a look."""


class Supervisor:
    """Supervisor of one worker and of the memory of its client."""

    def __init__(
        self,
        worker: CompletionWorker,
        project: Project,
        answers: AnswerCache,
        memory_mb: Callable[[], int | None],
        others: OtherProcesses | None = None,
    ) -> None:
        """``memory_mb``: return the setting of that name. ``others``: processes that count as well."""
        self._others = others
        self._worker, self._project, self._answers, self._memory_mb = worker, project, answers, memory_mb
        self.reports = Reports()
        self.budget = MemoryBudget(worker.models.resident)
        self.end_process: Callable[[int], object] = os._exit
        self.is_ending = False
        """True once the process is about to end because of its stuck threads."""
        self.task: asyncio.Task[None] | None = None
        """The latest watch."""
        self._was_overdue = False

    @property
    def allowed(self) -> int | None:
        """Bytes of memory that the process may have; None if that is not known."""
        return self.budget.bytes_for(self._memory_mb())

    @property
    def resident(self) -> int | None:
        """Bytes of memory that the process and the others hold; None if unknown."""
        own = resident_bytes()
        return own if own is None or self._others is None else own + self._others.resident_bytes

    def begin(self) -> None:
        """Watch the worker until it has nothing left to do."""
        if self.task is None or self.task.done():
            self.task = asyncio.ensure_future(self._keep_looking())

    def close(self) -> None:
        """Stop watching, unless the worker's threads are still at work: other clients may share the model."""
        if self.task is not None and not self._worker.is_at_work:
            self.task.cancel()

    async def _keep_looking(self) -> None:
        """Look at regular times, and once more when all work is done."""
        goes_on = True
        while goes_on:
            await asyncio.sleep(LOOK_SECONDS)
            goes_on = self._worker.is_at_work or self._project.is_reading
            try:
                goes_on = self.look() or goes_on
            except Exception as error:  # noqa: BLE001  # whatever goes wrong in it, the next look comes
                self.reports.failed(error)
            if self.is_ending:
                return

    def look(self) -> bool:
        """Replace stuck threads and drop memory over the budget; return whether there was any."""
        worker, reports = self._worker, self.reports
        replaced = worker.replace_stuck()
        for thread in replaced:
            reports.replaced(thread)
        if worker.given_up > MOST_GIVEN_UP:
            self._end()
            return True
        if worker.is_closed:
            return bool(replaced)
        allowed, resident = self.allowed, self.resident
        worker.session_memory.most = bytes_for_sessions(allowed)
        reports.looked(resident, allowed)
        # The memory that a model needs is not known before it is loaded.
        has_others = self._others is not None and self._others.resident_bytes > 0
        step = None if worker.is_loading else self.budget.next_step(resident, allowed, has_others)
        if step is not None:
            self._drop(step)
        if worker.was_lost:
            worker.was_lost = False
            reports.lost()
        elif replaced or step is not None:
            reports.changed()
        if worker.is_overdue != self._was_overdue:
            self._was_overdue = worker.is_overdue
            reports.overdue(worker.is_overdue)
        return bool(replaced) or step is not None

    def _end(self) -> None:
        """End the process, which has too many stuck threads."""
        self.is_ending = True
        self.reports.ending(self._worker.given_up)
        logging.shutdown()
        asyncio.get_running_loop().call_later(FAREWELL_SECONDS, self.end_process, STUCK)

    def _drop(self, step: Step) -> None:
        """Take a step towards the budget."""
        resident, allowed = self.resident or 0, self.allowed or 0
        self._answers.clear()
        match step:
            case Step.CHECKERS:
                if self._others is not None:
                    self._others.close()
            case Step.CACHES:
                self._worker.forget_caches()
            case Step.SESSIONS:
                self._worker.forget_sessions()
            case Step.PROJECT:
                self._project.shrink()
            case Step.WORKER:
                self._worker.lose()
        if step is not Step.CACHES:
            gc.collect()
        self.reports.dropped(step, resident, allowed)
