"""Memory budget of a server: its size, and the steps taken where the process is over it."""

from __future__ import annotations

from enum import StrEnum

from fim_server.system.process import machine_bytes

MEGABYTE = 1 << 20

SHARE, LEAST_MB = 4, 1024
"""Default budget: this part of the machine's memory, and at least so much."""

SESSIONS_SHARE = 4
"""Part of the budget that the sessions of all documents may hold."""

ROOM_MB = 512
"""Least budget besides the memory of the process when its model was loaded."""


def bytes_for_sessions(allowed: int | None) -> int:
    """Return the bytes that the sessions of all documents may hold, by the server's budget."""
    return (LEAST_MB * MEGABYTE if allowed is None else allowed) // SESSIONS_SHARE


class Step(StrEnum):
    """Steps, the mildest first."""

    CACHES = "caches"
    SESSIONS = "sessions"
    PROJECT = "project"
    WORKER = "worker"


STEPS = tuple(Step)


class MemoryBudget:
    """Budget of one server, and its next step. A step follows where the one before was not enough."""

    def __init__(self, loaded: dict[object, int] | None = None) -> None:
        """``loaded`` is shared by the budgets of a process, see :meth:`note_loaded`."""
        self._taken = 0
        self._loaded = {} if loaded is None else loaded
        self._floor = 0
        self.last: Step | None = None
        """Last step taken."""

    def bytes_for(self, setting_mb: int | None) -> int | None:
        """Return the budget for a setting; None if neither the setting nor the machine's memory is known."""
        if setting_mb is None:
            machine = machine_bytes()
            if machine is None:
                return None
            setting = max(LEAST_MB * MEGABYTE, machine // SHARE)
        else:
            setting = setting_mb * MEGABYTE
        return max(setting, self._floor + ROOM_MB * MEGABYTE)

    def note_loaded(self, resident: int | None, model: object = None) -> None:
        """Note the memory of the process when a model was loaded: it will not have less.

        Of several loads of one model the least counts. A worker over its budget loads its model again; memory that has
        not gone back to the system by then is no reason to allow more. Nor is the memory used for another client.
        """
        if resident is not None:
            self._floor = self._loaded[model] = min(resident, self._loaded.get(model, resident))

    def next_step(self, resident: int | None, allowed: int | None) -> Step | None:
        """Return the next step, if any. Each is taken once until the memory is within the budget again."""
        if resident is None or allowed is None:
            return None
        if resident <= allowed:
            self._taken = 0
            return None
        if self._taken == len(STEPS):
            return None
        self.last = STEPS[self._taken]
        self._taken += 1
        return self.last
