"""Reports of the supervisor, for the editor's log and the status."""

from __future__ import annotations

from lsprotocol import types

from fim_server.server.language_server import FimLanguageServer
from fim_server.server.models.indexing import check_reading
from fim_server.server.models.loading import load
from fim_server.server.status import send_status
from fim_server.system.watched_threads import SILENT_LOOKS
from fim_server.workers.budget import MEGABYTE, Step
from fim_server.workers.supervisor import LOOK_SECONDS, Reports
from fim_server.workers.worker import LOADING_LOOKS, Replaced

SILENT_SECONDS, OVERDUE_SECONDS = SILENT_LOOKS * LOOK_SECONDS, LOADING_LOOKS * LOOK_SECONDS

DROPPED = {
    Step.CHECKERS: "the checkers were ended",
    Step.CACHES: "the model's caches and the sessions of idle documents were dropped",
    Step.SESSIONS: "all sessions were dropped",
    Step.PROJECT: "the memory of the project was dropped; the next change reads it again, up to half as much",
    Step.WORKER: "the worker was replaced",
}


class ServerReports(Reports):
    """Reports of the supervisor of one server."""

    def __init__(self, ls: FimLanguageServer) -> None:
        self._ls = ls

    def looked(self, resident: int | None, allowed: int | None) -> None:
        """Check the memory while files of the project are read."""
        check_reading(self._ls, resident, allowed)

    def replaced(self, thread: Replaced) -> None:
        """Log a replaced thread, and send no more requests for its document until it changes or is closed."""
        ls, uri = self._ls, thread.uri
        ls.usage.replaced += 1
        if thread.in_background:
            ls.log(
                types.MessageType.Error,
                f"{uri}: opening the whole file in the background did not respond for {SILENT_SECONDS:g} s and was "
                "given up; suggestions use a part of the file until it changes",
            )
            return
        why = f"its worker did not respond for {SILENT_SECONDS:g} s and was replaced"
        if not thread.left or ls.open_document(uri) is not None:
            why += "; suggestions resume when the file changes"
            ls.requests.suspended[uri] = why
            ls.answers.forget(uri)
        model = "; the worker was using the model, which is loaded again" if thread.model else ""
        ls.log(types.MessageType.Error, f"{uri}: {why}{model}")

    def dropped(self, step: Step, resident: int, allowed: int) -> None:
        """Log a step towards the memory budget."""
        had, may = resident // MEGABYTE, allowed // MEGABYTE
        text = f"{had:,} MB of memory, {may:,} MB allowed (setting memoryMb): {DROPPED[step]}"
        self._ls.log(types.MessageType.Warning, text)

    def lost(self) -> None:
        """Load the model again."""
        self._ls.spawn(load(self._ls))

    def overdue(self, is_overdue: bool) -> None:
        """Report that the loading of the model makes no progress, or does again."""
        ls = self._ls
        ls.model.overdue = f"no progress for {OVERDUE_SECONDS:g} s" if is_overdue else None
        if ls.model.overdue is not None:
            at = ls.model.progress[0] if ls.model.progress is not None else "loading the model"
            ls.log(
                types.MessageType.Warning, f"{at}: {ls.model.overdue}; to stop waiting, reload or choose another model"
            )
        send_status(ls)

    def changed(self) -> None:
        send_status(self._ls)

    def ending(self, stuck: int) -> None:
        ls = self._ls
        ls.model.failure = f"{stuck} workers do not respond and cannot be stopped: the server exits; restart it"
        ls.log(types.MessageType.Error, ls.model.failure)
        send_status(ls)

    def failed(self, error: Exception) -> None:
        self._ls.report_failure(error)
