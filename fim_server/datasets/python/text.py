"""Python file with its characters, symbols, blocks and syntax tree on one scale.

`ast` counts columns in UTF-8 bytes and `tokenize` in characters; f-strings are one token up to Python 3.11 and many
from 3.12 on. Here all positions are character offsets into the text. A string is one symbol whatever its prefix, so
every interpreter cuts a file the same way.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from bisect import bisect_left
from functools import cached_property
from io import BytesIO
from typing import NamedTuple

from fim_server.datasets.holes import LONGEST_FILE, Refused
from fim_server.text.lined_text import LinedText

LANGUAGE = "python"
"""Name of the language in samples."""


class Symbol(NamedTuple):
    """Terminal symbol of Python's grammar with text: a name, keyword, number, string, operator or line end.

    Comments, blank lines and line breaks inside brackets are none: the grammar does not know them.
    """

    start: int
    """Offset of the first character."""
    end: int
    """Offset after the last one."""
    block: int
    """Number of its indented block, 0 for the module; inner blocks have numbers of their own."""
    is_string: bool


# Of Python 3.12 and 3.14; older interpreters have no such tokens.
_STRING_STARTS = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
_STRING_ENDS = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
_PLAIN = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP, tokenize.NEWLINE})


class PythonText(LinedText):
    """File that `ast.parse` takes, whose line ends are "\\n"."""

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            Refused: It is longer than `LONGEST_FILE`, or `ast.parse` refuses it.
        """
        if len(text) > LONGEST_FILE:
            raise Refused("too long")
        super().__init__(text)
        tree = parse_or_none(text)
        if tree is None:
            raise Refused("refused by ast.parse")
        self.tree = tree

    def offset_of_bytes(self, line: int, column: int) -> int:
        """Return the offset of a position of `ast`: lines from 1, columns in UTF-8 bytes."""
        content = self.lines[line - 1]
        if not content.isascii():
            column = len(content.encode()[:column].decode(errors="replace"))
        return self.line_starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the offsets of a node's first character and after its last one."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.offset_of_bytes(node.lineno, node.col_offset)
        return start, self.offset_of_bytes(node.end_lineno, node.end_col_offset)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """All symbols in order.

        Raises:
            Refused: `tokenize` refuses the file, or misplaces its tokens.
        """
        symbols: list[Symbol] = []
        blocks, count = [0], 1
        string_start, depth = 0, 0
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type in _STRING_STARTS:
                    string_start = string_start if depth else self._offset(token.start)
                    depth += 1
                elif token.type in _STRING_ENDS:
                    depth -= 1
                    if depth == 0:
                        symbols.append(Symbol(string_start, self._offset(token.end), blocks[-1], True))
                elif depth:
                    continue  # inside a string of many tokens
                elif token.type == tokenize.INDENT:
                    blocks.append(count)
                    count += 1
                elif token.type == tokenize.DEDENT:
                    blocks.pop()
                elif token.type == tokenize.ERRORTOKEN:
                    raise Refused("refused by tokenize")
                elif token.type in _PLAIN and token.string:
                    start = self._offset(token.start)
                    end = start + len(token.string)
                    if self.text[start:end] != token.string:
                        raise Refused("refused by tokenize")
                    symbols.append(Symbol(start, end, blocks[-1], token.type == tokenize.STRING))
        except (tokenize.TokenError, SyntaxError, IndexError):
            raise Refused("refused by tokenize") from None
        return symbols

    @cached_property
    def symbol_starts(self) -> list[int]:
        return [symbol.start for symbol in self.symbols]

    def first_symbol_from(self, offset: int) -> int:
        """Return the index of the first symbol that starts at or after an offset."""
        return bisect_left(self.symbol_starts, offset)

    def _offset(self, position: tuple[int, int]) -> int:
        line, column = position
        return self.line_starts[line - 1] + column

    @cached_property
    def lines_in_strings(self) -> frozenset[int]:
        """Numbers (from 0) of the lines that share a string with another line."""
        shared: set[int] = set()
        for symbol in self.symbols:
            if symbol.is_string and "\n" in self.text[symbol.start : symbol.end]:
                shared.update(range(self.line_at(symbol.start), self.line_at(symbol.end - 1) + 1))
        return frozenset(shared)

    @cached_property
    def whole_lines(self) -> list[tuple[int, int]]:
        """Offsets of the first character that is no blank and of the end of each line with a symbol.

        Lines that share a string with another line are left out.
        """
        numbers = sorted({self.line_at(symbol.start) for symbol in self.symbols if self.text[symbol.start] != "\n"})
        return self.spans_of(number for number in numbers if number not in self.lines_in_strings)


def parse_or_none(text: str, mode: str = "exec") -> ast.AST | None:
    """Return the syntax tree, or None where this interpreter's `ast.parse` refuses the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like
        try:
            tree: ast.AST = ast.parse(text, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return tree


def is_expression(text: str) -> bool:
    """Return whether a text is one expression, as it may stand in parentheses."""
    return not text.isspace() and text != "" and parse_or_none(f"({text}\n)", "eval") is not None


def decode(content: bytes | str | None) -> str | None:
    """Return the text without byte order mark; None where it is not in its declared encoding.

    Its line ends are "\\n".
    """
    if isinstance(content, bytes):
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
            content = content.decode(encoding)
        except (SyntaxError, LookupError, ValueError):
            return None
    if content is None:
        return None
    try:
        content.encode()
    except UnicodeEncodeError:
        return None  # lone surrogates
    # CPython reads a lone "\r" as a line end, too.
    return content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
