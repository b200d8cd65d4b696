"""Documented differences between a definition and its language's own parser, which are counted apart.

They are data, a file ``differences.toml`` beside a language's two files, with a ``name`` in each table
``[[difference]]``. ``said`` is a regular expression for the judge's whole message about a text that only the engine
takes; ``where`` may be another one that such a text contains. ``text`` is one that a text contains which only the judge
takes.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from fim_server.errors import LanguageError

FILE = "differences.toml"


@dataclass(frozen=True)
class Differences:
    """Differences of one language by name, with patterns of the judge's message and of the text."""

    said: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = ()
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
                (str(row["name"]), re.compile(row["said"]), re.compile(row.get("where", "")))
                for row in rows
                if "said" in row
            )
            text = tuple((str(row["name"]), re.compile(row["text"])) for row in rows if "text" in row)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, re.error) as error:
            raise LanguageError(f"{path}: {error}") from error
        return cls(said, text)

    def name(self, text: str, engine: bool, said: str) -> str | None:
        """Return the name of the difference that explains a disagreement about a text; None if it is not documented."""
        if engine:
            matching = (name for name, message, where in self.said if message.fullmatch(said) and where.search(text))
            return next(matching, None)
        return next((name for name, pattern in self.text if pattern.search(text)), None)
