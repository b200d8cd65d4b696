"""Names of a grammar's lexemes: the TOML file names a literal by its text, and any other lexeme by its terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from fim_server.errors import LanguageError

_LISTS = ("lexemes", "open", "close")
"""Keys of a mode that name its own lexemes."""


@dataclass(frozen=True)
class LexemeNames:
    """Lexemes of one grammar.

    Attributes:
        language: The language's name, for messages.
        literals: Lexemes of the literals that rules use, by their text.
        lexemes: All lexemes that rules use, are ignored or are errors.
        defined: Terminals that the grammar defines, whether a rule uses them or not.
    """

    language: str
    literals: Mapping[str, str]
    lexemes: Collection[str]
    defined: Collection[str]

    def literal(self, key: str, text: str) -> str:
        """Return the lexeme of a literal. Raises LanguageError if no rule uses the literal."""
        if text not in self.literals:
            raise LanguageError(f"language {self.language}: {key}: no rule uses the literal {text!r}")
        return self.literals[text]

    def lexeme(self, key: str, text: str) -> str:
        """Return the lexeme of a literal or a terminal. Raises LanguageError if no rule uses it."""
        if text in self.literals or text not in self.lexemes:
            return self.literal(key, text)
        return text

    def modes(self, declared: Iterable[dict[str, Any]], used: Set[str]) -> tuple[list[dict[str, Any]], frozenset[str]]:
        """Return the modes with their lexemes' names, and the lexemes of the modes that are left out.

        A mode is left out if no rule uses a lexeme of it: an older version of a language may lack what it is for.
        Raises LanguageError if a mode names a lexeme that does not exist.

        Args:
            declared: The modes of the TOML file.
            used: Lexemes that rules use.
        """
        kept = []
        left_out: set[str] = set()
        for mode in declared:
            key = f"modes.{mode['name']}"
            own = [self._of_mode(key, text) for text in mode["lexemes"]]
            if not used & set(own):
                left_out.update(own)
                continue
            named = {list_: [self._of_mode(key, text) for text in mode[list_]] for list_ in _LISTS if list_ in mode}
            without = [self.lexeme(f"{key}: without", text) for text in mode.get("without", [])]
            kept.append({**mode, **named, "without": without})
        return kept, frozenset(left_out)

    def _of_mode(self, key: str, text: str) -> str:
        found = self.literals.get(text, text)
        if found not in self.lexemes and found not in self.defined:
            raise LanguageError(f"language {self.language}: {key}: there is no lexeme {text!r}")
        return found
