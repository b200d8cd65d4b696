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
from typing import Any


class Slot(StrEnum):
    """The place of a context in a prompt."""

    PREFIX = "{prefix}"
    SUFFIX = "{suffix}"


@dataclass(frozen=True, slots=True)
class Repository:
    """How a prompt shows other files to a model that was trained on several in one prompt.

    Pieces are names of tokens and, where they hold a placeholder, text: `{repository}`, `{path}`, `{text}`.
    """

    file: tuple[str, ...]
    """Each excerpt."""
    begin: tuple[str, ...] = ()
    """Before the first of them."""
    own: tuple[str, ...] = ()
    """Between the last of them and the prompt."""
    head: str = ""
    """A text that the prefix begins with."""

    @property
    def tokens(self) -> list[str]:
        """Every token that it needs."""
        return [piece for piece in (*self.begin, *self.file, *self.own) if not is_text(piece)]


def is_text(piece: str) -> bool:
    """Whether a piece is text with placeholders, not a token's name."""
    return any(name in piece for name in ("{repository}", "{path}", "{text}"))


@dataclass(frozen=True, slots=True)
class Format:
    """One row of ``formats.toml``."""

    family: str
    pieces: tuple[str, ...]
    """The prompt: token names and :class:`Slot` values."""
    stop: tuple[str, ...]
    guard: str = ""
    repository: Repository | None = None
    languages: frozenset[str] | None = None
    """Languages that the family has learnt, by their names here; None: all."""

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
            repository=repository(row["repository"]) if "repository" in row else None,
            languages=frozenset(row["languages"]) if "languages" in row else None,
        )
        for row in tomllib.loads(text)["format"]
    )


def repository(table: dict[str, Any]) -> Repository:
    """The table ``repository`` of a row."""
    file, begin, own = (tuple(table.get(key, ())) for key in ("file", "begin", "own"))
    return Repository(file, begin, own, table.get("head", ""))
