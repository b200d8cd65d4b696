"""Known checkers, read from ``checkers.toml``, and the places of their programs."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server.suggest.ranking.findings import Kind

CHECKERS = Path(__file__).with_name("checkers.toml")


@dataclass(frozen=True)
class Entry:
    """A checker; the attributes are the keys of ``checkers.toml``, where they are explained.

    Attributes:
        name: Name of the program.
        kinds: Kinds of the codes that count.
    """

    name: str
    languages: frozenset[str]
    command: tuple[str, ...]
    wait_ms: int
    most_characters: int
    settings: Mapping[str, Any]
    variables: Mapping[str, str]
    kinds: Mapping[str, Kind]

    def program(self, folders: Iterable[str]) -> str | None:
        """Return the path of the program; None if there is none, or if it is in one of the workspace's folders."""
        found = shutil.which(self.command[0])
        if found is None:
            return None
        path = Path(found).resolve()
        return None if any(path.is_relative_to(Path(folder).resolve()) for folder in folders) else str(path)


@cache
def catalogue() -> tuple[Entry, ...]:
    """Return all known checkers."""
    rows = tomllib.loads(CHECKERS.read_text(encoding="utf-8"))
    return tuple(entry_of(name, row) for name, row in rows.items())


def entry_of(name: str, row: Mapping[str, Any]) -> Entry:
    """Return the checker of a table. Raises ValueError for an unknown kind, and TypeError for a wrong key."""
    kinds = {code: Kind(kind) for kind, codes in row["kinds"].items() for code in codes}
    rest = {key: value for key, value in row.items() if key not in ("kinds", "languages", "command")}
    return Entry(name, frozenset(row["languages"]), tuple(row["command"]), kinds=kinds, **rest)


def checker_of(language: str) -> Entry | None:
    """Return the checker of a language; None without one."""
    return next((entry for entry in catalogue() if language in entry.languages), None)
