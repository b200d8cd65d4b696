"""Process of the editor: the server ends with it, even if another process keeps its pipe open.

The Language Server Protocol asks for that (3.17, `InitializeParams.processId`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from fim_server.system.other_processes import Handle, handle_of

logger = logging.getLogger(__name__)

LARGEST_ID = (1 << 31) - 1
"""Largest number of a process on any system."""

GRACE_SECONDS = 3.0
"""Longest time for the server to stop its work after the editor's process ended; then it ends at once."""


class ClientProcesses:
    """Watch on the editor's processes, each on a thread of its own; this process ends after the first of them."""

    def __init__(self, ended: Callable[[], object], leave: Callable[[int], object] = os._exit) -> None:
        """Call ``ended`` on a thread after a process has ended; some seconds later, ``leave`` ends this process."""
        self._ended, self._leave = ended, leave
        self._watched: set[int] = set()
        self.has_ended = False
        """True once one of the processes has ended."""

    def watch(self, number: int | None) -> None:
        """Watch a process. Log a number that is no process of the editor here, and go on without it.

        An editor may run in another namespace of processes (``docker exec -i``): here its number means nothing, or
        another process.
        """
        if number is None or number in self._watched:
            return
        problem = unwatchable(number)
        if problem is None:
            try:
                handle = handle_of(number)
            except OSError as error:
                problem = (error.strerror or str(error)).lower()
        if problem is not None:
            logger.info("the editor's process, %d, is not watched: %s", number, problem)
            return
        self._watched.add(number)
        threading.Thread(target=self._wait, args=(number, handle), daemon=True, name="fim-client").start()

    def _wait(self, number: int, handle: Handle) -> None:
        handle.wait()
        logger.warning("the editor's process, %d, has ended, and so does the server", number)
        self.has_ended = True
        self._ended()
        time.sleep(GRACE_SECONDS)
        self._leave(0)


def unwatchable(number: int) -> str | None:
    """Return the reason why a number cannot be the editor's process; None if it can be."""
    if not 0 < number <= LARGEST_ID:
        return "not the number of a process"
    if number == os.getpid():
        return "it is the server's own, so that the editor runs in another namespace"
    if os.getppid() == 0:
        return "the server was started from another namespace"
    return None
