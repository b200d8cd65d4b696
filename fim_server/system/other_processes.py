"""Other processes: whether one is alive, and a wait for its end.

A handle of the system watches a process. It never comes to mean another process that gets the same number later.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import sys
import time
from pathlib import Path
from typing import Protocol

LOOK_SECONDS = 1.0
"""Time between two checks of a process that the system has no handle for."""

SYNCHRONIZE, QUERY, FOREVER = 0x0010_0000, 0x1000, 0xFFFF_FFFF
"""Windows: the rights to wait for a process and to query it, and the longest time to wait."""

STATUS = re.compile(r"\d+ \(.*\) (?P<state>\S)(?: \S+){18} (?P<start>\d+)", re.DOTALL)
"""Linux, proc(5): number, name, which may hold blanks and brackets, state, and starttime as the 22nd field."""


def is_alive(number: int) -> bool:
    """Return whether a process with that number runs."""
    alive = True
    if sys.platform == "win32":
        handle = ctypes.windll.kernel32.OpenProcess(QUERY, False, number)  # os.kill would end it
        alive = bool(handle)
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
    else:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            alive = False
        except OSError:  # another user's
            pass
    return alive


class Handle(Protocol):
    """Process that can be waited for."""

    def wait(self) -> None:
        """Return once the process has ended."""
        ...


if sys.platform == "win32":

    class SystemHandle:
        """Process by its handle on Windows."""

        def __init__(self, number: int) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.OpenProcess.restype = ctypes.c_void_p
            self._handle = self._kernel.OpenProcess(SYNCHRONIZE, False, number)
            if not self._handle:
                raise ctypes.WinError(ctypes.get_last_error())

        def wait(self) -> None:
            """Return once the process has ended."""
            self._kernel.WaitForSingleObject(ctypes.c_void_p(self._handle), FOREVER)

elif sys.platform == "linux":

    class SystemHandle:
        """Process by its descriptor (Linux 5.3 and newer), which becomes readable when the process ends."""

        def __init__(self, number: int) -> None:
            self._descriptor = os.pidfd_open(number)

        def wait(self) -> None:
            """Return once the process has ended."""
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            poll.poll()

else:

    class SystemHandle:
        """Process by an event of the kernel (macOS and the BSDs)."""

        def __init__(self, number: int) -> None:
            self._queue = select.kqueue()
            flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
            self._queue.control([select.kevent(number, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)], 0, 0)

        def wait(self) -> None:
            """Return once the process has ended."""
            self._queue.control(None, 1, None)


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
        if not is_alive(self._number):
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
    try:
        return SystemHandle(number)
    except ProcessLookupError:
        raise
    except (OSError, AttributeError):  # an older kernel, a sandbox that refuses it, or another system
        return Polled(number)
