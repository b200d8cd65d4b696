"""Documented differences between a definition and its language's own parser: what is counted apart.

They are data, a file ``differences.toml`` beside a language's two files: tables ``[[difference]]`` with a ``name``,
and ``said``, a regular expression that all of the judge's message matches where the engine takes a text which the
judge does not, with ``where`` beside it, if need be, one that is found in that text; or ``text``, one that is found in
a text which the judge takes and the engine does not.
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
    """The differences of one language: by name, what the judge says, and what a text has."""

    said: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = ()
    text: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Differences:
        """Those of the language in a folder; none where it documents none.

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
        """The name of the difference by which engine and judge disagree about a text; None if it is not a known one."""
        if engine:
            matching = (name for name, message, where in self.said if message.fullmatch(said) and where.search(text))
            return next(matching, None)
        return next((name for name, pattern in self.text if pattern.search(text)), None)
