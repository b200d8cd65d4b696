"""Lines that define a name, as languages describe them.

The table `[definitions]` of a language's TOML file describes such lines, so that a suggestion does not define a name
again that is defined near the cursor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from fim_server.errors import LanguageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_LINE = 400
"""Characters of a line to look at."""


@dataclass(frozen=True)
class Defining:
    """Description of the lines that define a name.

    Attributes:
        words: Words that stand before the name.
        before: Words that may stand before those.
        marks: Beginnings of a line above a definition that may then be one of several of its name.
        repeatable: Names that may be defined several times.
        key: Text behind a quoted name at the beginning of a line that defines it; empty if none does.
        quotes: Quotes of such a name.
    """

    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    repeatable: frozenset[str] = frozenset()
    key: str = ""
    quotes: tuple[str, ...] = ()
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        patterns = []
        if self.words:
            before = f"(?:(?:{_one_of(self.before)})(?:\\([^()]*\\))?\\s+)*" if self.before else ""
            patterns.append(rf"\s*{before}({_one_of(self.words)})\s+(\([^()]*\)\s*)?(\w+)")
        if self.key:
            patterns += [
                rf"\s*({re.escape(quote)})([^{re.escape(quote)}]*)(){re.escape(quote)}\s*{re.escape(self.key)}"
                for quote in self.quotes
                if len(quote) == 1
            ]
        object.__setattr__(self, "_patterns", tuple(map(re.compile, patterns)))

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Read the optional table `[definitions]` of a language.

        Raises LanguageError if a field is unknown or wrong.
        """
        table, name = spec.get("definitions", {}), spec.get("name")
        if not isinstance(table, dict):
            raise LanguageError(f"language {name}: definitions: expected a table")
        for key, value in table.items():
            if key == "key":
                right = isinstance(value, str)
            elif key in ("words", "before", "marks", "repeatable"):
                right = isinstance(value, list) and all(isinstance(text, str) and text for text in value)
            else:
                raise LanguageError(f"language {name}: definitions.{key}: unknown key")
            if not right:
                expected = "a text" if key == "key" else "a list of texts"
                raise LanguageError(f"language {name}: definitions.{key}: expected {expected}")
        return cls(
            words=tuple(table.get("words", ())),
            before=tuple(table.get("before", ())),
            marks=tuple(table.get("marks", ())),
            repeatable=frozenset(table.get("repeatable", ())),
            key=table.get("key", ""),
            quotes=tuple(spec.get("quotes", ())),
        )

    def defined(self, line: str) -> tuple[str, ...] | None:
        """Return the word, the receiver and the name of a definition; None if the line defines nothing."""
        found = self.search(line)
        return None if found is None else found.groups("")

    def search(self, line: str) -> re.Match[str] | None:
        """Return the definition that a line begins with, with the groups of :meth:`defined`."""
        for pattern in self._patterns:
            found = pattern.match(line[:_LONGEST_LINE])
            if found is not None and not self.repeatable.intersection(found.groups("")):
                return found
        return None

    def is_mark(self, line: str) -> bool:
        """Return whether the definition below a line may be one of several of its name."""
        return line.strip().startswith(self.marks) if self.marks else False


def _one_of(texts: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, texts))


NOTHING_DEFINED = Defining()
"""Description under which no line defines a name."""
