"""Documented differences between a definition and its language's own parser, which are counted apart.

They are data, a file ``differences.toml`` beside a language's two files, with a ``name`` in each table
``[[difference]]``. ``said`` is a regular expression for the judge's whole message about a text that only the engine
takes. ``where`` may be another one for the text near the place that the message names, as ``(line:column)`` at its end,
and ``anywhere`` one for the whole text. ``text`` is a regular expression for the text near the place where the engine
refuses a text that only the judge takes. In texts near a place, ``‸`` marks the place. Where it is unknown, the whole
text counts, without a mark.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import LanguageError

if TYPE_CHECKING:
    from fim_server.language import Language

FILE = "differences.toml"

_NEAR = 60
"""Characters before and behind a place that are near it."""

_BEFORE_REFUSAL = 400
"""Characters before a place of a refusal: comments may stand between it and its cause."""

_PLACE = re.compile(r" \((\d+):(\d+)\)\Z")
"""A message's place: the line from 1 on, and the column from 0 on."""

_LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")


@dataclass(frozen=True)
class Said:
    """Difference about texts that only the engine takes; patterns of the message, and of the text."""

    name: str
    message: re.Pattern[str]
    where: re.Pattern[str]
    anywhere: re.Pattern[str]


@dataclass(frozen=True)
class Differences:
    """Differences of one language by name, with patterns of the judge's message and of the text."""

    said: tuple[Said, ...] = ()
    text: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Differences:
        """Read the differences of the language in a folder; none where it documents none.

        Raises:
            LanguageError: The file is wrong.
        """
        path = folder / FILE
        if not path.is_file():
            return cls()
        try:
            rows = tomllib.loads(path.read_text(encoding="utf-8")).get("difference", [])
            said = tuple(
                Said(str(row["name"]), *(re.compile(row.get(key, "")) for key in ("said", "where", "anywhere")))
                for row in rows
                if "said" in row
            )
            text = tuple((str(row["name"]), re.compile(row["text"])) for row in rows if "text" in row)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, re.error) as error:
            raise LanguageError(f"{path}: {error}") from error
        return cls(said, text)

    def name(self, text: str, engine: bool, said: str, refused_at: int | None = None) -> str | None:
        """Return the name of the difference that explains a disagreement about a text; None if it is not documented.

        Args:
            text: The text.
            engine: Whether the engine takes it.
            said: The judge's message.
            refused_at: Offset at which the engine refuses it; None if unknown.
        """
        if not engine:
            near = _near(text, refused_at, _BEFORE_REFUSAL)
            return next((name for name, pattern in self.text if pattern.search(near)), None)
        near = _near(text, place_of(said, text))
        return next(
            (
                one.name
                for one in self.said
                if one.message.fullmatch(_PLACE.sub("", said)) and one.where.search(near) and one.anywhere.search(text)
            ),
            None,
        )


def place_of(said: str, text: str) -> int | None:
    """Return the offset in a text that a message names; None if it names none."""
    place = _PLACE.search(said)
    if place is None:
        return None
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    line = min(int(place[1]), len(starts))
    return min(starts[line - 1] + int(place[2]), len(text))


def refused_at(language: Language, text: str) -> int:
    """Return the offset at which a language refuses a text; its end if it ends too early."""
    at = language.open("", "").check(text).rejected_at
    return len(text) if at is None else at


def _near(text: str, place: int | None, before: int = _NEAR) -> str:
    return text if place is None else f"{text[max(0, place - before) : place]}‸{text[place : place + _NEAR]}"
