"""A language that lines are typed in: its files, the lexemes of a line, and an editor's settings for it."""

from __future__ import annotations

import re
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache, cached_property

from benchmarks.server.played_editor import PYTHON as PYTHON_KEYBOARD
from benchmarks.server.played_editor import Keyboard
from fim_server.datasets.defined.text import DefinedText, Lexemes
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.datasets.python.text import PythonText
from fim_server.language.definition.paths import suffixes_of
from fim_server.text.lined_text import LinedText

KEYBOARDS = {
    PYTHON: PYTHON_KEYBOARD,
    "go": Keyboard(quotes="\"'`"),
    "javascript": Keyboard(quotes="\"'`"),
    "jsx": Keyboard(quotes="\"'`"),
    "rust": Keyboard(quotes='"'),
    "tsx": Keyboard(quotes="\"'`"),
    "typescript": Keyboard(quotes="\"'`"),
}
"""Settings of VS Code for languages whose settings differ from :class:`Keyboard`'s."""

_PYTHON_LEXEME = re.compile(tokenize.PseudoToken)
"""A lexeme of Python's own tokenizer with the blanks before it; a string that is not closed on its line is none."""

_STRING = re.compile(r"(?P<quote>[\"'])(?:\\.|(?!(?P=quote))[^\\])*(?P=quote)")


class TypedLanguage(ABC):
    """Language that lines are typed in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.suffixes = suffixes_of(name)
        self.keyboard = KEYBOARDS.get(name, Keyboard())

    @abstractmethod
    def read(self, text: str) -> LinedText:
        """Return a text whose lines can be told.

        Raises:
            Refused: It is no text of the language, or too long.
        """

    @abstractmethod
    def code_of_lines(self, source: LinedText) -> dict[int, tuple[int, int]]:
        """Return the start and the end of each line's code, by the line's number (from 0).

        Without blank lines and comments, lines of lexemes that others share (docstrings among them), and those that are
        nothing but a string.
        """

    @abstractmethod
    def lexeme_end(self, line: str, column: int) -> int | None:
        """Return the end of the lexeme in or before which a cursor stands, or None at the line's end."""


class PythonLines(TypedLanguage):
    """Python, by its own tokenizer."""

    def __init__(self) -> None:
        super().__init__(PYTHON)

    def read(self, text: str) -> PythonText:
        source = PythonText(text)
        _ = source.symbols  # which raises as well
        return source

    def code_of_lines(self, source: LinedText) -> dict[int, tuple[int, int]]:
        assert isinstance(source, PythonText)
        symbols = ((one.start, one.end, one.is_string) for one in source.symbols)
        return _code(source, symbols, source.lines_in_strings)

    def lexeme_end(self, line: str, column: int) -> int | None:
        """Return the end of the lexeme in or before which a cursor stands, or None at the line's end.

        >>> python = PythonLines()
        >>> python.lexeme_end("return x", 2), python.lexeme_end("return x", 6), python.lexeme_end("return x", 8)
        (6, 8, None)
        """
        if not line[column:].strip():
            return None
        at = 0
        while at <= column:
            match = _PYTHON_LEXEME.match(line, at)
            if match is None or match.end() == at or not match[1]:
                return len(line.rstrip())  # a string that goes on, or what no Python is
            at = match.end()
        return at


class DefinedLines(TypedLanguage):
    """Language of the package, by the lexemes of its definition.

    A string with a construct of its own inside is one lexeme here, where it ends on its line.
    """

    @cached_property
    def _lexemes(self) -> Lexemes:
        return Lexemes(self.name)

    def read(self, text: str) -> DefinedText:
        return DefinedText(text, self._lexemes)

    def code_of_lines(self, source: LinedText) -> dict[int, tuple[int, int]]:
        assert isinstance(source, DefinedText)
        symbols = ((one.start, one.end, source.text[one.start] in "\"'`") for one in source.symbols)
        return _code(source, symbols, source.shared_lines)

    def lexeme_end(self, line: str, column: int) -> int | None:
        if not line[column:].strip():
            return None
        passed = 0
        for start, end, _ in self._lexemes.of(line):
            if start < passed:
                continue
            text = line[start:end]
            if text in ('"', "'"):
                string = _STRING.match(line, start)
                end = len(line.rstrip()) if string is None else string.end()
            if end > column and text.strip():
                return end
            passed = end
        return len(line.rstrip())


def _code(
    source: LinedText, symbols: Iterator[tuple[int, int, bool]], shared: frozenset[int]
) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    strings: dict[int, bool] = {}
    for begin, end, is_string in symbols:
        if source.text[begin:end].isspace():
            continue  # the line's end is a symbol as well
        line = source.line_at(begin)
        start, _ = found.get(line, (begin, 0))
        found[line] = start, end
        strings[line] = strings.get(line, True) and is_string
    return {line: span for line, span in found.items() if line not in shared and not strings[line]}


@cache
def typed(name: str) -> TypedLanguage:
    """Return a language of the package. Raises LanguageError if there is none of that name."""
    return PythonLines() if name == PYTHON else DefinedLines(name)
