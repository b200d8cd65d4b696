"""Room for a model: the memory that this process may still take, compared with what loading takes.

A native library or the engine aborts the process when an allocation fails, so a lack of memory has to be found before.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fim_server.errors import ScarceMemoryError
from fim_server.system.process import container_bytes

STATUS = Path("/proc/self/status")

MEGABYTE = 1_000_000

ADDRESSES, ADDRESSES_PER_BYTE = 240 * MEGABYTE, 1.9
"""Addresses that loading takes: a constant, and those for each byte of weights. Under `ulimit -v` the embedded model
(8 MB) aborts with 240 MB and works from 250 MB on; SmolLM2 (140 MB) aborts with 460 MB and works from 500 MB on."""

ADDRESSES_TO_SERVE = 215 * MEGABYTE
"""Addresses that a server takes before it loads a model. With 212 MB, OpenBLAS ended the process by itself."""

RESIDENT, RESIDENT_PER_BYTE = 60 * MEGABYTE, 1.0
"""Memory that loading takes at least. The embedded model takes 85 MB, SmolLM2 336 MB."""


def require_room(name: str, weights: int) -> None:
    """Raise ScarceMemoryError where a model with so many bytes of weights certainly has no room in this process."""
    addresses, resident = free_addresses(), free_of_container()
    lacks_addresses = addresses is not None and addresses < ADDRESSES + ADDRESSES_PER_BYTE * weights
    lacks_memory = resident is not None and resident < RESIDENT + RESIDENT_PER_BYTE * weights
    if not lacks_addresses and not lacks_memory:
        return
    free = min(found for found in (addresses, resident) if found is not None)
    raise ScarceMemoryError(f"{name}: too little memory to load it, {max(0, free) // MEGABYTE} MB are left")


def can_serve() -> bool:
    """Return whether the process may take the addresses that a server needs before it loads a model.

    Under a limit OpenBLAS gets one thread, unless the user says otherwise: each takes 40 MB when NumPy is imported.
    """
    addresses = free_addresses()
    if addresses is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return addresses is None or addresses >= ADDRESSES_TO_SERVE


def bytes_of(folder: Path) -> int:
    """Return the size of the files of a folder, without those of folders in it."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def free_addresses() -> int | None:
    """Return the bytes of addresses that the process may still take; None without a limit.

    Addresses that are only reserved do not count as taken: a memory allocator reserves some for each thread.
    """
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        taken = sizes_of_process("VmData", "VmStk", "VmExe", "VmLib")
        if limit != resource.RLIM_INFINITY and taken is not None:
            return limit - taken
    return None


def free_of_container() -> int | None:
    """Return the bytes of memory that the container leaves to this process at most; None without a limit."""
    limit, resident = container_bytes(), sizes_of_process("VmRSS")
    return None if limit is None or resident is None else limit - resident


def sizes_of_process(*names: str) -> int | None:
    """Return the sum of some sizes of the process in bytes, as Linux names them; None where the system has none."""
    try:
        lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        sizes = {name: int(value.split()[0]) for name, value in (line.split(":", 1) for line in lines if "kB" in line)}
        return 1024 * sum(sizes[name] for name in names)
    except (OSError, ValueError, KeyError, IndexError):
        return None
