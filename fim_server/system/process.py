"""Memory of this process and of its machine, and the return of free memory to the system."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from fim_server import _core

T = TypeVar("T")

CONTROL_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Limits of Linux for the processes of a container, by its versions."""


def lately(seconds: float) -> Callable[[Callable[[], T]], Callable[[], T]]:
    """Decorate a function so that its answer is reused for some seconds."""

    def decorate(ask: Callable[[], T]) -> Callable[[], T]:
        known: list[tuple[float, T]] = []

        def answer() -> T:
            now = time.monotonic()
            if not known or now - known[-1][0] >= seconds:
                known[:] = [(now, ask())]
            return known[-1][1]

        return answer

    return decorate


def resident_bytes(process: int | str = "self") -> int | None:
    """Return the bytes of memory that a process holds, by default this one; None on systems other than Linux."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
    return None


resident_lately = lately(1.0)(resident_bytes)
"""Return :func:`resident_bytes`, at most a second old: for the status that goes with each answer."""


@lately(10.0)
def machine_bytes() -> int | None:
    """Return the bytes of memory of the machine, or of the container if it has less; None if unknown."""
    found: list[int] = []
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in (*found, container_bytes()) if size), default=None)


def available_bytes() -> int | None:
    """Return the bytes of memory that programs can still get; None if unknown."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
        return min(free, container_bytes() or free)
    return machine_bytes()


def container_bytes() -> int | None:
    """Return the container's limit of memory in bytes; None without one."""
    found: list[int] = []
    for path in CONTROL_GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")))
    return min((size for size in found if size > 0), default=None)


def release_memory() -> None:
    """Return the free memory of the engine and of the C library (glibc only) to the system."""
    _core.release_memory()
    trim = c_library_trim()
    if trim is not None:
        trim(0)


@cache
def c_library_trim() -> Any:
    """Return ``malloc_trim``, if the C library has it."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            return ctypes.CDLL(None).malloc_trim
    return None
