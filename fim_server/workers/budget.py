"""Memory budget of a server: its size, and the steps taken where the process is over it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fim_server.constants import read_constants
from fim_server.system.process import machine_bytes

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class BudgetConstants:
    """Sizes and shares of the budget."""

    memory_share: int
    least_memory_mb: int
    sessions_share: int
    room_mb: int


BUDGET = read_constants(BudgetConstants, Path(__file__).parent / "constants.toml")


def bytes_for_sessions(allowed: int | None) -> int:
    """Return the bytes that the sessions of all documents may hold, by the server's budget."""
    return (BUDGET.least_memory_mb * MEGABYTE if allowed is None else allowed) // BUDGET.sessions_share


class Step(StrEnum):
    """Steps, the mildest first."""

    CHECKERS = "checkers"
    CACHES = "caches"
    SESSIONS = "sessions"
    PROJECT = "project"
    WORKER = "worker"


STEPS = tuple(step for step in Step if step is not Step.CHECKERS)


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
            setting = max(BUDGET.least_memory_mb * MEGABYTE, machine // BUDGET.memory_share)
        else:
            setting = setting_mb * MEGABYTE
        return max(setting, self._floor + BUDGET.room_mb * MEGABYTE)

    def note_loaded(self, resident: int | None, model: object = None) -> None:
        """Note the memory of the process when a model was loaded: it will not have less.

        Of several loads of one model, the least counts. A worker over its budget loads its model again. Memory that has
        not gone back to the system by then does not raise the budget, and neither does memory for another client.
        """
        if resident is not None:
            self._floor = self._loaded[model] = min(resident, self._loaded.get(model, resident))

    def next_step(self, resident: int | None, allowed: int | None, has_checkers: bool = False) -> Step | None:
        """Return the next step, if any. Each is taken once until the memory is within the budget again.

        ``has_checkers``: whether checkers run. They are ended before anything else is dropped.
        """
        if resident is None or allowed is None:
            return None
        if resident <= allowed:
            self._taken = 0
            return None
        if has_checkers:
            self.last = Step.CHECKERS
            return self.last
        if self._taken == len(STEPS):
            return None
        self.last = STEPS[self._taken]
        self._taken += 1
        return self.last
