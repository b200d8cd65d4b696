"""The process's memory: what it has, what its machine has, and giving back what is free."""

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
    """Have a function asked no more often than so, and its last answer given in between."""

    def asked_less(ask: Callable[[], T]) -> Callable[[], T]:
        known: list[tuple[float, T]] = []

        def answer() -> T:
            now = time.monotonic()
            if not known or now - known[-1][0] >= seconds:
                known[:] = [(now, ask())]
            return known[-1][1]

        return answer

    return asked_less


def resident_bytes() -> int | None:
    """Bytes of memory that the process holds now; None where the system does not tell (all but Linux)."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


resident_lately = lately(1.0)(resident_bytes)
"""As :func:`resident_bytes` was, a second ago at most: for what is told with each answer."""


@lately(10.0)
def machine_bytes() -> int | None:
    """Bytes of memory of the machine, or of the container where it has less; None where the system does not tell."""
    found: list[int] = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in (*found, container_bytes()) if size), default=None)


def container_bytes() -> int | None:
    """Return the container's limit of memory in bytes; None without one."""
    found: list[int] = []
    for path in CONTROL_GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")))
    return min((size for size in found if size > 0), default=None)


def release_memory() -> None:
    """Give back to the system what the engine and the C library hold free (the latter with glibc alone)."""
    _core.release_memory()
    trim = c_library_trim()
    if trim is not None:
        trim(0)


@cache
def c_library_trim() -> Any:
    """``malloc_trim``, where the C library has it."""
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).malloc_trim
    return None
