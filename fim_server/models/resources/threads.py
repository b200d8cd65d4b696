"""Number of threads of a model on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")


def free_cores(most: int) -> int:
    """Return the number of free cores, at most ``most``; ``most`` where the user has set ``OMP_NUM_THREADS``.

    With another process on one of two cores, two torch threads take 392 ms a token instead of 3.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return most
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(most, len(usable_cpus()) - round(load)))


def usual_threads() -> int:
    """Return torch's default number of threads: the user's ``OMP_NUM_THREADS``, or one a core."""
    chosen = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(chosen) if chosen.isdecimal() and int(chosen) else cores()


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on; hyperthreads count."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores() -> int:
    """Return the number of cores that this process may run on.

    Hyperthreads of a core count once where the system tells.
    """
    cpus = usable_cpus()
    try:
        siblings = {(TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii") for cpu in cpus}
    except OSError:
        return len(cpus)
    return len(siblings)
