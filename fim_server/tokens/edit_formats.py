"""Known formats of models that write the next edit: rows of ``edit_formats.toml``, which explains them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

TOKEN = re.compile(r"<[^{}\n]+>")


@dataclass(frozen=True, slots=True)
class EditFormat:
    """Row of ``edit_formats.toml``."""

    family: str
    names: tuple[str, ...]
    above: int
    below: int
    edit: tuple[str, ...]
    prompt: tuple[str, ...]
    head: tuple[str, ...] = ()
    cursor: str = ""
    whole: bool = False
    kept: bool = False
    end: str = ""

    @property
    def tokens(self) -> list[str]:
        """Return the names of tokens in its prompt."""
        pieces = (*self.prompt, *self.edit, *self.head, self.cursor)
        return list(dict.fromkeys(piece for piece in pieces if is_token(piece)))


def is_token(piece: str) -> bool:
    """Return whether a piece is the name of a token, and no text."""
    return TOKEN.fullmatch(piece) is not None


@cache
def known_edit_formats() -> tuple[EditFormat, ...]:
    """Return the rows of ``edit_formats.toml`` in order."""
    table = tomllib.loads(resources.files(__package__).joinpath("edit_formats.toml").read_text(encoding="utf-8"))
    return tuple(EditFormat(**tuples(row)) for row in table["format"])


def tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def edit_format_of(names: tuple[str, ...]) -> EditFormat | None:
    """Return the format of a model by its names; None for one that is not trained to write edits."""
    lower = [name.lower() for name in names]
    return next(
        (row for row in known_edit_formats() if any(part in name for part in row.names for name in lower)), None
    )
