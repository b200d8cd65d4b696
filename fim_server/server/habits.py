"""Shifts of the threshold by what the user accepts and dismisses, for each language, kept on this machine alone.

A small file in the cache folder holds the shifts. It is read again before each decision is added to it, so that several
servers share it; it is written atomically, and a damaged one counts as missing. Without a cache folder, or with one
that cannot be written, the shifts last as long as the server.
"""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import NamedTuple

from fim_server.language.cache import read_text, write_text
from fim_server.suggest.ranking.personal import decided, limited
from fim_server.system.blocking_pool import BLOCKING_POOL

FILE = "threshold-shifts.json"
MOST_LANGUAGES = 128
"""Most languages whose shift is kept; those with the oldest decisions go first."""

_writing = threading.Lock()
"""Held while a server of this process changes the file. Another process may cost one decision."""


class Decision(NamedTuple):
    """An accepted or dismissed suggestion."""

    language: str
    confidence: float
    is_accepted: bool


class Habits:
    """Shifts of the threshold by language. A thread for disks keeps the file."""

    def __init__(self, folder: Path | None) -> None:
        """``folder``: the cache folder; None for no file."""
        self._path = None if folder is None else folder / FILE
        self._lock = threading.Lock()
        self._kept: dict[str, float] = {}
        self._new: list[Decision] = []
        self._forgets = False

    def shift_of(self, language: str) -> float:
        with self._lock:
            return with_decisions(self._kept, [one for one in self._new if one.language == language]).get(language, 0.0)

    def as_json(self) -> dict[str, float]:
        """Return the shifts by language for `fim-server.statistics`."""
        with self._lock:
            return {name: round(shift, 3) for name, shift in with_decisions(self._kept, self._new).items()}

    def decide(self, decision: Decision) -> None:
        with self._lock:
            self._new.append(decision)
        self.update()

    def forget(self) -> None:
        """Forget all decisions, also in the file."""
        with self._lock:
            self._kept, self._new, self._forgets = {}, [], True
        self.update()

    def update(self) -> None:
        """Read the file, and add new decisions to it, on a thread for disks. If none is free, the next call does so."""
        BLOCKING_POOL.begin(("habits", id(self)), self.merge)

    def merge(self) -> None:
        """Do the work of :meth:`update`, and what comes meanwhile."""
        while self._merge_once():
            pass

    def _merge_once(self) -> bool:
        """Read the file and add what is new; return whether there is more."""
        with _writing:
            with self._lock:
                new, forgets, known = list(self._new), self._forgets, self._kept
            found = None if self._path is None or forgets else read_shifts(self._path)
            kept = with_decisions(known if found is None else found, new)
            if self._path is not None and (new or forgets) and not write_text(self._path, json.dumps(kept)):
                self._path = None
            with self._lock:
                if self._forgets == forgets:  # else the user forgot them meanwhile
                    self._kept, self._new = kept, self._new[len(new) :]
                    self._forgets = False
                return bool(self._new or self._forgets)


def with_decisions(shifts: dict[str, float], decisions: list[Decision]) -> dict[str, float]:
    """Return shifts after decisions, the latest last."""
    shifts = dict(shifts)
    for language, confidence, is_accepted in decisions:
        shifts[language] = decided(shifts.pop(language, 0.0), confidence, is_accepted)
    return dict(list(shifts.items())[-MOST_LANGUAGES:])


def read_shifts(path: Path) -> dict[str, float] | None:
    """Return the shifts in a file; None if it is missing or damaged."""
    try:
        read = json.loads(read_text(path) or "", parse_int=float)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or not all(isinstance(shift, float) for shift in read.values()):
        return None
    shifts = {name: limited(shift) for name, shift in read.items() if math.isfinite(shift)}
    return dict(list(shifts.items())[-MOST_LANGUAGES:])
