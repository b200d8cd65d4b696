"""The memory budget: what is dropped, and in which order, where the process has more than it may."""

from __future__ import annotations

from enum import StrEnum

from fim_server.system.process import machine_bytes

MEGABYTE = 1 << 20

SHARE, LEAST_MB = 4, 1024
"""By default a server may have one part in so many of the machine's memory, and at least so much."""

SESSIONS_SHARE = 4
"""The sessions of all documents may hold one part in so many of what a server may have."""

ROOM_MB = 512
"""What a server may have in any case besides what it had when its model was loaded."""


def bytes_for_sessions(allowed: int | None) -> int:
    """What the sessions of all documents may hold, by what the server may have; None: nothing is known of that."""
    return (LEAST_MB * MEGABYTE if allowed is None else allowed) // SESSIONS_SHARE


class Step(StrEnum):
    """What is dropped, the mildest first."""

    CACHES = "caches"
    SESSIONS = "sessions"
    PROJECT = "project"
    WORKER = "worker"


STEPS = tuple(Step)


class MemoryBudget:
    """Which step is next. A step is taken where the one before was not enough."""

    def __init__(self, loaded: dict[object, int] | None = None) -> None:
        """``loaded``: what :meth:`note_loaded` was told, shared by the budgets of a process."""
        self._taken = 0
        self._loaded = {} if loaded is None else loaded
        self._floor = 0
        self.last: Step | None = None
        """The last step that was taken."""

    def bytes_for(self, setting_mb: int | None) -> int | None:
        """The budget by the setting; None where nothing is known of the machine and nothing is set."""
        if setting_mb is None:
            machine = machine_bytes()
            if machine is None:
                return None
            setting = max(LEAST_MB * MEGABYTE, machine // SHARE)
        else:
            setting = setting_mb * MEGABYTE
        return max(setting, self._floor + ROOM_MB * MEGABYTE)

    def note_loaded(self, resident: int | None, model: object = None) -> None:
        """What the process had when a model was loaded, which is named by anything: less it will not have.

        Of several times that the same one was loaded the least counts. A worker is replaced, and its model loaded
        again, because there is too much: what has not gone back to the system by then is no reason to allow more. Nor
        is what the process has for another client.
        """
        if resident is not None:
            self._floor = self._loaded[model] = min(resident, self._loaded.get(model, resident))

    def next_step(self, resident: int | None, allowed: int | None) -> Step | None:
        """What to drop now, if anything. The worker is replaced once, until there was enough memory again."""
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
