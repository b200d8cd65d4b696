"""Known FIM formats: the tokens around the two contexts, their order, and the tokens that end a middle.

The formats are data (``formats.toml``, one row a model family). A vocabulary needs the names of their tokens, which are
never text; :mod:`fim_server.models.prompt` binds a row to a tokenizer and makes prompts of it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any


class Slot(StrEnum):
    """Place of a context in a prompt."""

    PREFIX = "{prefix}"
    SUFFIX = "{suffix}"


@dataclass(frozen=True, slots=True)
class Repository:
    """Format of other files in a prompt, for a model that was trained on several files in one prompt.

    Pieces are names of tokens and, where they hold a placeholder, text: `{repository}`, `{path}`, `{text}`.
    """

    file: tuple[str, ...]
    """Pieces of each excerpt."""
    begin: tuple[str, ...] = ()
    """Pieces before the first excerpt."""
    own: tuple[str, ...] = ()
    """Pieces between the last excerpt and the prompt."""
    head: str = ""
    """Text that begins the prefix."""

    @property
    def tokens(self) -> list[str]:
        """Return the names of all its tokens."""
        return [piece for piece in (*self.begin, *self.file, *self.own) if not is_text(piece)]


def is_text(piece: str) -> bool:
    """Return whether a piece is text with placeholders, not a token's name."""
    return any(name in piece for name in ("{repository}", "{path}", "{text}"))


@dataclass(frozen=True, slots=True)
class Format:
    """Row of ``formats.toml``."""

    family: str
    pieces: tuple[str, ...]
    """Prompt: token names and :class:`Slot` values."""
    stop: tuple[str, ...]
    guard: str = ""
    repository: Repository | None = None
    languages: frozenset[str] | None = None
    """Languages that the family knows; None: all."""

    @property
    def tokens(self) -> list[str]:
        """Return the names of all its tokens, in order of appearance."""
        return [piece for piece in (*self.pieces, *self.stop) if piece not in tuple(Slot)]


@cache
def known_formats() -> tuple[Format, ...]:
    """Return the rows of ``formats.toml`` in order, each with its preferred order of contexts."""
    table = tomllib.loads(resources.files(__package__).joinpath("formats.toml").read_text(encoding="utf-8"))
    return tuple(
        Format(
            family=row["family"],
            pieces=tuple(row.get("suffix_first") or row["prefix_first"]),
            stop=tuple(row["stop"]),
            guard=row.get("guard", ""),
            repository=repository(row["repository"]) if "repository" in row else None,
            languages=known_languages(row, table["least_first_lexeme"]),
        )
        for row in table["format"]
    )


def known_languages(row: dict[str, Any], least: float) -> frozenset[str] | None:
    """Return the languages that a family knows, by all their names; None for all.

    ``least``: the least share of first lexemes that are right in a language that counts as known, in %.
    """
    if "languages" not in row and "measured" not in row:
        return None
    known = set(row.get("languages", ()))
    for name, figures in row.get("measured", {}).items():
        if figures["first_lexeme"] >= least:
            known |= {name, *figures.get("names", ())}
    return frozenset(known)


def repository(table: dict[str, Any]) -> Repository:
    file, begin, own = (tuple(table.get(key, ())) for key in ("file", "begin", "own"))
    return Repository(file, begin, own, table.get("head", ""))
