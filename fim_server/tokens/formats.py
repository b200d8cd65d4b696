"""The known FIM formats: which tokens stand around the two contexts, in which order, and which end a middle.

The formats are data (``formats.toml``, one row a model family). A vocabulary asks for the names of their tokens, which
are never text; :mod:`fim_server.models.prompt` binds a row to a tokenizer and makes prompts of it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources


class Slot(StrEnum):
    """The place of a context in a prompt."""

    PREFIX = "{prefix}"
    SUFFIX = "{suffix}"


@dataclass(frozen=True, slots=True)
class Format:
    """One row of ``formats.toml``."""

    family: str
    pieces: tuple[str, ...]
    """The prompt: token names and :class:`Slot` values."""
    stop: tuple[str, ...]
    guard: str = ""

    @property
    def tokens(self) -> list[str]:
        """Every token the format needs, in order of appearance."""
        return [piece for piece in (*self.pieces, *self.stop) if piece not in tuple(Slot)]


@cache
def known_formats() -> tuple[Format, ...]:
    """The rows of ``formats.toml`` in order, with the preferred order of each."""
    text = resources.files(__package__).joinpath("formats.toml").read_text(encoding="utf-8")
    return tuple(
        Format(
            family=row["family"],
            pieces=tuple(row.get("suffix_first") or row["prefix_first"]),
            stop=tuple(row["stop"]),
            guard=row.get("guard", ""),
        )
        for row in tomllib.loads(text)["format"]
    )
