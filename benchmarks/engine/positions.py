"""Named positions: where in a Python file a cursor stands, found by the standard library's own tokenizer."""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from enum import StrEnum

LANGUAGE = "python"
"""Language of the positions: `tokenize` knows no other one."""


class Position(StrEnum):
    """Place of a cursor."""

    IN_STRING = "IN_STRING"
    """Between two characters of a string."""
    IN_FIELD = "IN_FIELD"
    """In the braces of an f-string, before its format spec."""
    IN_COMMENT = "IN_COMMENT"
    """After the hash sign, up to the end."""
    MID_IDENTIFIER = "MID_IDENTIFIER"
    """Between two characters of a name."""
    AFTER_DOT = "AFTER_DOT"
    """Before an attribute's name."""
    AFTER_EQUALS = "AFTER_EQUALS"
    """After an assignment's equals sign."""
    IN_CALL = "IN_CALL"
    """Before an argument, right after the bracket or the comma."""
    LINE_END = "LINE_END"
    """At the end of a statement."""
    LINE_START_IN_BLOCK = "LINE_START_IN_BLOCK"
    """Before a statement in a block, after its indentation."""
    MID_INDENTATION = "MID_INDENTATION"
    """Inside the indentation of such a statement."""
    AFTER_COLON = "AFTER_COLON"
    """At the end of a line that opens a block."""
    BLANK_LINE = "BLANK_LINE"
    """At the start of a line of blanks between statements."""
    FILE_START = "FILE_START"
    FILE_END = "FILE_END"


STRING_PREFIX = re.compile(r"""[a-zA-Z]*("{3}|'{3}|"|')""")
F_STRING_PREFIX = re.compile(r"""(?:f|rf|fr)("{3}|'{3}|"|')""", re.IGNORECASE)
STRINGS = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_START", tokenize.STRING)})
"""Tokens that a string begins with; an f-string is one token up to Python 3.11."""
STRUCTURE = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER})
"""Tokens without a text of their own."""


def find_positions(text: str) -> dict[Position, list[range]]:
    """Every occurrence of every named position: the offsets, in characters, at which the cursor may stand there.

    Raises:
        SyntaxError, tokenize.TokenError: The text is no Python.
    """
    finder = _Finder(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in STRUCTURE:
            finder.take(token)
    return finder.found


class _Finder:
    """Finds positions while a text's tokens, but for those of its structure, are taken one by one."""

    def __init__(self, text: str) -> None:
        self.found: dict[Position, list[range]] = {position: [] for position in Position}
        self._text = text
        self._lines = [0, *(line_break.end() for line_break in re.finditer("\n", text))]
        """Offsets at which the lines start."""
        self._calls: list[bool] = []
        """For each open bracket, True if it is a call's."""
        self._seen: list[tokenize.TokenInfo] = []
        """The last two tokens of code."""
        self._in_definition = False
        self._add(Position.FILE_START, 0, 0)
        self._add(Position.FILE_END, len(text), len(text))

    def take(self, token: tokenize.TokenInfo) -> None:
        line = self._lines[token.start[0] - 1]
        start = line + token.start[1]
        if token.type == tokenize.COMMENT:
            self._add(Position.IN_COMMENT, start + 1, start + len(token.string))
        elif token.type == tokenize.NL:
            if not self._calls and not token.line.strip():
                self._add(Position.BLANK_LINE, line, line)
        else:
            self._take_code(token, line, start)
            self._seen = [*self._seen[-1:], token]

    def _add(self, position: Position, first: int, last: int) -> None:
        if first <= last:
            self.found[position].append(range(first, last + 1))

    def _take_code(self, token: tokenize.TokenInfo, line: int, start: int) -> None:
        before = self._seen[-1] if self._seen else None
        starts_line = before is None or before.type == tokenize.NEWLINE
        if starts_line and token.start[1] and token.type != tokenize.NEWLINE:
            self._add(Position.LINE_START_IN_BLOCK, start, start)
            self._add(Position.MID_INDENTATION, line + 1, start - 1)
        if token.type == tokenize.NEWLINE and before is not None and before.type != tokenize.NEWLINE:
            ends_at = self._lines[before.end[0] - 1] + before.end[1]
            if ends_at == start and token.string:
                self._add(Position.AFTER_COLON if before.string == ":" else Position.LINE_END, start, start)
        elif token.type == tokenize.STRING and (quote := STRING_PREFIX.match(token.string)):
            self._add(Position.IN_STRING, start + quote.end() + 1, start + len(token.string) - len(quote[1]) - 1)
            self._add_fields(start)
        elif token.type in STRINGS:
            self._add_fields(start)
        elif token.type == tokenize.NAME:
            self._take_name(token, start)
        elif token.type == tokenize.OP:
            self._take_operator(token, start + len(token.string))

    def _add_fields(self, start: int) -> None:
        if opened := F_STRING_PREFIX.match(self._text, start):
            for kind, offset in f_string_parts(self._text, opened.end(), opened[1]):
                if kind == "field":
                    self._add(Position.IN_FIELD, offset, offset)

    def _take_name(self, token: tokenize.TokenInfo, start: int) -> None:
        if is_name(token):
            self._add(Position.MID_IDENTIFIER, start + 1, start + len(token.string) - 1)
            match self._seen:
                case [owner, dot] if is_name(owner) and dot.string == "." and dot.end == token.start:
                    self._add(Position.AFTER_DOT, start, start)
        self._in_definition = self._in_definition or token.string in ("def", "class")

    def _take_operator(self, token: tokenize.TokenInfo, end: int) -> None:
        if token.string in "([{":
            before = self._seen[-1] if self._seen else None
            named = before is not None and is_name(before) and before.end == token.start
            self._calls.append(named and token.string == "(" and not self._in_definition)
        elif token.string in ")]}" and self._calls:
            self._calls.pop()
        self._in_definition = False
        if token.string in "(," and self._calls and self._calls[-1]:
            self._add(Position.IN_CALL, end, end)
        elif token.string == "=" and not self._calls:
            self._add(Position.AFTER_EQUALS, end, end)


def f_string_parts(text: str, start: int, quote: str) -> Iterator[tuple[str, int]]:
    """Every offset in an f-string, and whether it is in a `text`, `field`, `bracket` of a field, or format `spec`.

    The text has to parse; what strange but valid strings in fields do to the kinds is not worth a lexer.

    Args:
        text: The text around it.
        start: The offset after its opening quote, in characters.
        quote: That quote.
    """
    nested: list[str] = []
    offset = start
    while offset < len(text):
        inside = nested[-1] if nested else "text"
        yield inside, offset
        character = text[offset]
        if inside in ("text", "spec"):
            if not nested and text.startswith(quote, offset):
                return
            doubled = not nested and text[offset : offset + 2] in ("{{", "}}")
            if character == "{" and not doubled:
                nested.append("field")
            elif character == "}" and nested:
                nested.pop()
            offset += 2 if doubled or character == "\\" else 1
        elif character in "'\"":
            closed = text.find(character, offset + 1)
            offset = closed + 1 if closed > 0 else len(text)
        else:
            if character in "([{":
                nested.append("bracket")
            elif character in ")]}":
                nested.pop()
            elif character == ":" and inside == "field":
                nested[-1] = "spec"
            offset += 1


def is_name(token: tokenize.TokenInfo) -> bool:
    """Return whether a token is an identifier."""
    return token.type == tokenize.NAME and not keyword.iskeyword(token.string)
