"""The ten holes on which a model is tried: data, in holes.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HOLES = Path(__file__).with_name("holes.toml")


@dataclass(frozen=True)
class Hole:
    """A text with a piece taken out of it.

    Attributes:
        middle: The piece.
        other: The right context of another hole in the same language, unrelated to this one.
    """

    language: str
    left: str
    middle: str
    right: str
    other: str

    @property
    def words(self) -> str:
        """Name of the hole for users: its middle in one line."""
        return " ".join(self.middle.split())


@cache
def holes() -> tuple[Hole, ...]:
    """Return all holes."""
    rows = tomllib.loads(HOLES.read_text(encoding="utf-8"))["hole"]
    rights: dict[str, list[str]] = {}
    for row in rows:
        rights.setdefault(row["language"], []).append(row["right"])
    found = []
    for row in rows:
        others = rights[row["language"]]
        other = others[(others.index(row["right"]) + 1) % len(others)]
        found.append(Hole(row["language"], row["left"], row["middle"], row["right"], other))
    return tuple(found)
