"""How many threads a model on the CPU may use."""

from __future__ import annotations

import os
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")


def free_cores(most: int) -> int:
    """The threads to use of at most ``most``: as many as cores are free, unless the user has chosen.

    Two torch threads on two cores collapse (392 ms a token instead of 3) when another process holds one of them.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return most
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(most, len(usable_cpus()) - round(load)))


def usual_threads() -> int:
    """The threads that torch would use by default: the user's ``OMP_NUM_THREADS``, or one a core."""
    chosen = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(chosen) if chosen.isdecimal() and int(chosen) else cores()


def usable_cpus() -> list[int]:
    """The numbers of the CPUs, hyperthreads counted, that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores() -> int:
    """Cores that this process may run on, hyperthreads of one counted once where the system says which they are."""
    cpus = usable_cpus()
    try:
        siblings = {(TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii") for cpu in cpus}
    except OSError:
        return len(cpus)
    return len(siblings)
