"""Lexemes written down: the shortest text of each, blanks only where two would run together, lines and indentation."""

from __future__ import annotations

import json
import string
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fim_server import _core
from fim_server.language import Language

FIRST_CHOICES = "x1ab" + string.ascii_letters + string.digits + '\n "' + string.punctuation
"""Characters that are tried first as a lexeme's text, so that names and numbers are plain ones."""

INDENTATION = " "
"""A block's step: one blank, so that nested blocks are more construct than blanks."""


class Speller:
    """Writes lexemes of a language."""

    def __init__(self, language: Language, spec: Mapping[str, Any]) -> None:
        """Reads what is a lexeme's mode.

        Args:
            language: The language, compiled.
            spec: The same, lowered (`fim_server.language.definition.compile.lower`).
        """
        self._core = language.core
        self._lexemes: dict[str, dict[str, Any]] = {lexeme["name"]: lexeme for lexeme in spec["lexemes"]}
        self._modes = {
            name: number for number, mode in enumerate(spec.get("modes", ()), start=1) for name in mode["lexemes"]
        }
        self._text_lexemes = {
            name for mode in spec.get("modes", ()) if not mode.get("code") for name in mode["lexemes"]
        }  # fmt: skip
        layout = spec.get("layout") or {}
        self._newline = layout.get("newline")
        self.indent: str | None = layout.get("indent")
        self.dedent: str | None = layout.get("dedent")
        self._texts: dict[str, str] = dict.fromkeys((self.indent or "", self.dedent or ""), "")
        self._touching: dict[tuple[str, str], bool] = {}

    def cost(self, name: str) -> int:
        """Characters of a lexeme; an indented line costs more than one that goes on."""
        return len(INDENTATION) if name == self.indent else len(self.text(name))

    def text(self, name: str) -> str:
        """A short text that is read as a lexeme.

        Raises:
            KeyError: There is no such lexeme.
        """
        known = self._texts.get(name)
        if known is None:
            known = self._texts[name] = self._found(self._lexemes[name])
        return known

    def write(self, lexemes: Sequence[str], places: Collection[int] = ()) -> tuple[str, dict[int, int]]:
        """Lexemes as a text, and where some of them begin in it, what separates them included.

        Args:
            lexemes: Their names.
            places: Indices of lexemes, or their number for the end.

        Returns:
            The text, and by place the offset in characters of the end of what comes before it.
        """
        pieces: list[str] = []
        offsets: dict[int, int] = {}
        length = level = 0
        before: str | None = None  # the lexeme before on the line
        for place, name in enumerate(lexemes):
            if place in places:
                offsets[place] = length
            if name == self.indent:
                level += 1
                continue
            if name == self.dedent:
                level -= 1
                continue
            if before is None:
                piece = INDENTATION * level + self.text(name)
            else:
                piece = self.text(name) if self._may_touch(before, name) else " " + self.text(name)
            pieces.append(piece)
            length += len(piece)
            before = None if name == self._newline else name
        if len(lexemes) in places:
            offsets[len(lexemes)] = length
        return "".join(pieces), offsets

    def _may_touch(self, before: str, name: str) -> bool:
        if name in self._text_lexemes:  # what stands before it would be part of it
            return True
        known = self._touching.get((before, name))
        if known is None:
            first = self.text(before).encode()
            found = self._core.longest_match(first + self.text(name).encode(), self._modes.get(before, 0))
            known = self._touching[before, name] = found is not None and found[0] == len(first)
        return known

    def _found(self, lexeme: Mapping[str, Any]) -> str:
        literal = lexeme.get("literal")
        if literal is not None:
            return str(literal)
        name = str(lexeme["name"])
        for character in FIRST_CHOICES:
            if self._reads(character, name):
                return character
        # A language of this lexeme alone, whose shortest text the engine finds.
        alone = {"name": name, "start": "text", "lexemes": [lexeme], "ignore": [], "layout": None}
        rules = [{"lhs": "text", "rhs": [name]}]
        found = _core.Language(json.dumps(alone | {"rules": rules})).open("", "").start().shortest_completion()
        return (found or b"").decode()

    def _reads(self, text: str, name: str) -> bool:
        found = self._core.longest_match(text.encode(), self._modes.get(name, 0))
        return found is not None and found[0] == len(text) and name in found[1]
