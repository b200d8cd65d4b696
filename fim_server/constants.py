"""Fitted and chosen constants, read from files ``constants.toml``.

An entry has a value, its unit, its purpose, and the data it was fitted on.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

KEYS = frozenset({"value", "unit", "purpose", "fitted"})


def read_constants(kind: type[T], path: Path) -> T:
    """Return the constants of a file as a dataclass. Raises ValueError for a missing or unknown entry, key or type."""
    entries: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    wanted = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
    if entries.keys() != wanted.keys():
        raise ValueError(f"{path}: entries {sorted(entries.keys() ^ wanted.keys())} are missing or unknown")
    for name, entry in entries.items():
        if entry.keys() != KEYS:
            raise ValueError(f"{path}: keys {sorted(entry.keys() ^ KEYS)} of {name} are missing or unknown")
        if type(entry["value"]).__name__ != wanted[name]:
            raise ValueError(f"{path}: the value of {name} is not of type {wanted[name]}")
    return kind(**{name: entry["value"] for name, entry in entries.items()})
