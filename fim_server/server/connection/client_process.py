"""The process of the editor: the server ends with it, also where another process keeps its pipe open.

The Language Server Protocol asks for that (3.17, `InitializeParams.processId`). A handle of the system watches the
process; it never comes to mean another process that got the same number later.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

logger = logging.getLogger(__name__)

LARGEST_ID = (1 << 31) - 1
"""Largest number of a process on any system."""

LOOK_SECONDS = 1.0
"""Time between two checks of a process that the system has no handle for."""

GRACE_SECONDS = 3.0
"""Longest time for the server to stop its work after the editor's process ended; then it ends at once."""

SYNCHRONIZE, FOREVER = 0x0010_0000, 0xFFFF_FFFF
"""Windows: the right to wait for a process, and the longest time to wait."""

STATUS = re.compile(r"\d+ \(.*\) (?P<state>\S)(?: \S+){18} (?P<start>\d+)", re.DOTALL)
"""Linux, proc(5): number, name, which may hold blanks and brackets, state, and starttime as the 22nd field."""


class Handle(Protocol):
    """Process that can be waited for."""

    def wait(self) -> None:
        """Return once the process has ended."""
        ...


class Descriptor:
    """Process by its descriptor (Linux 5.3 and newer), which becomes readable when the process ends."""

    def __init__(self, number: int) -> None:
        self._descriptor: int = os.pidfd_open(number)

    def wait(self) -> None:
        """Return once the process has ended."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.poll()


class Queue:
    """Process by an event of the kernel (macOS and the BSDs)."""

    def __init__(self, number: int) -> None:
        self._queue: Any = vars(select)["kqueue"]()
        names = vars(select)
        event = names["kevent"](
            number, names["KQ_FILTER_PROC"], names["KQ_EV_ADD"] | names["KQ_EV_ONESHOT"], names["KQ_NOTE_EXIT"]
        )
        self._queue.control([event], 0, 0)

    def wait(self) -> None:
        """Return once the process has ended."""
        self._queue.control(None, 1, None)


class WindowsHandle:
    """Process by its handle on Windows."""

    def __init__(self, number: int) -> None:
        self._kernel: Any = vars(ctypes)["WinDLL"]("kernel32", use_last_error=True)
        self._kernel.OpenProcess.restype = ctypes.c_void_p
        self._handle = self._kernel.OpenProcess(SYNCHRONIZE, False, number)
        if not self._handle:
            raise vars(ctypes)["WinError"](vars(ctypes)["get_last_error"]())

    def wait(self) -> None:
        """Return once the process has ended."""
        self._kernel.WaitForSingleObject(ctypes.c_void_p(self._handle), FOREVER)


class Polled:
    """Process by its number and the time of its start, where the system gives no handle."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._began = self._look()
        if self._began is None:
            raise ProcessLookupError

    def wait(self) -> None:
        """Return once the process has ended."""
        while self._look() == self._began:
            time.sleep(LOOK_SECONDS)

    def _look(self) -> str | None:
        """Return the start of the process in the system's words, "" where unknown; None if the process has ended."""
        try:
            os.kill(self._number, 0)
        except PermissionError:
            pass
        except OSError:
            return None
        try:
            text = Path(f"/proc/{self._number}/stat").read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None if Path("/proc/self/stat").exists() else ""
        except OSError:
            return ""
        found = STATUS.match(text)
        return None if found is None or found["state"] in ("Z", "X") else found["start"]


def handle_of(number: int) -> Handle:
    """Return a handle of a process. Raises OSError where there is no such process, or the system forbids the wait."""
    if os.name == "nt":
        return WindowsHandle(number)
    try:
        return Descriptor(number) if hasattr(os, "pidfd_open") else Queue(number)
    except ProcessLookupError:
        raise
    except (OSError, KeyError):  # an older kernel, a sandbox that refuses it, or another system
        return Polled(number)


class ClientProcesses:
    """Watch on the editor's processes, each on a thread of its own; this process ends after the first of them."""

    def __init__(self, ended: Callable[[], object], leave: Callable[[int], object] = os._exit) -> None:
        """Call ``ended`` on a thread after a process has ended; some seconds later, ``leave`` ends this process."""
        self._ended, self._leave = ended, leave
        self._watched: set[int] = set()
        self.has_ended = False
        """Return whether one of the processes has ended."""

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
