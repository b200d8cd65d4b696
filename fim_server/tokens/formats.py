"""Known FIM formats: the tokens around the two contexts, their order, and the tokens that end a middle.

The formats are data (``formats.toml``, one row a model family). A vocabulary needs the names of their tokens, which are
never text; :mod:`fim_server.models.prompt` binds a row to a tokenizer and makes prompts of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any


class Slot(StrEnum):
    """Place of a context in a prompt."""

    PREFIX = "{prefix}"
    SUFFIX = "{suffix}"


@dataclass(frozen=True, slots=True)
class FixedText:
    """Text that stands between the tokens of every prompt of a family."""

    text: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Facts about a model beside its tokens that tell its family.

    Attributes:
        names: Its names: on the hub, of its folder or file, in its file.
        architecture: ``model_type`` of a ``config.json``, ``general.architecture`` of a GGUF file; "" for unknown.
    """

    names: tuple[str, ...] = ()
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class KnownBy:
    """Marks of a family whose tokens others have, too. One of them is enough."""

    names: tuple[str, ...] = ()
    """Parts of a model's name, in lower case."""
    architectures: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    """Further tokens of the family, all of them."""

    def fits(self, kind: Kind, has: Callable[[str], bool]) -> bool:
        """Return whether a model is of the family. ``has``: whether the model has a token of a name."""
        named = any(part in name.lower() for part in self.names for name in kind.names)
        return named or kind.architecture in self.architectures or (bool(self.tokens) and all(map(has, self.tokens)))


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
    pieces: tuple[str | FixedText, ...]
    """Prompt: token names, :class:`Slot` values and texts."""
    stop: tuple[str, ...]
    guard: str = ""
    known_by: KnownBy | None = None
    """Marks of the family; None: its tokens are enough."""
    repository: Repository | None = None
    languages: frozenset[str] | None = None
    """Languages that the family knows; None: all."""

    @property
    def tokens(self) -> list[str]:
        """Return the names of all its tokens, in order of appearance."""
        pieces = [piece for piece in (*self.pieces, *self.stop) if isinstance(piece, str)]
        return [piece for piece in pieces if piece not in tuple(Slot)]


@cache
def known_formats() -> tuple[Format, ...]:
    """Return the rows of ``formats.toml`` in order, each with its preferred order of contexts."""
    table = read_table()
    return tuple(
        Format(
            family=row["family"],
            pieces=pieces_of(row.get("suffix_first") or row["prefix_first"]),
            stop=tuple(row["stop"]),
            guard=row.get("guard", ""),
            known_by=known_by(row["known_by"]) if "known_by" in row else None,
            repository=repository(row["repository"]) if "repository" in row else None,
            languages=known_languages(row, table["least_first_lexeme"]),
        )
        for row in table["format"]
    )


def known_layouts() -> list[tuple[str | FixedText, ...]]:
    """Return the prompts of all rows, in both orders of contexts where a row has both."""
    orders = ("prefix_first", "suffix_first")
    return [pieces_of(row[order]) for row in read_table()["format"] for order in orders if order in row]


def read_table() -> dict[str, Any]:
    """Return the content of ``formats.toml``."""
    return tomllib.loads(resources.files(__package__).joinpath("formats.toml").read_text(encoding="utf-8"))


def other_order(row: Format) -> Format:
    """Return a format with its contexts, and the tokens before them, in the other order, as no family may use it."""
    slots = [row.pieces.index(slot) for slot in Slot]
    begins = [slot - 1 if slot and row.pieces[slot - 1] in row.tokens else slot for slot in slots]
    (first, end), (second, last) = sorted((begin, slot + 1) for begin, slot in zip(begins, slots, strict=True))
    pieces = row.pieces
    turned = (*pieces[:first], *pieces[second:last], *pieces[end:second], *pieces[first:end], *pieces[last:])
    return replace(row, family=f"{row.family} (other order)", pieces=turned, known_by=None)


def pieces_of(listed: list[str | dict[str, str]]) -> tuple[str | FixedText, ...]:
    return tuple(piece if isinstance(piece, str) else FixedText(piece["text"]) for piece in listed)


def known_by(table: dict[str, list[str]]) -> KnownBy:
    return KnownBy(*(tuple(table.get(key, ())) for key in ("names", "architectures", "tokens")))


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
