"""A Python file as the constructions see it: characters, symbols, blocks and syntax tree, on one scale.

`ast` counts columns in UTF-8 bytes and `tokenize` in characters; f-strings are one token up to Python 3.11 and many
from 3.12 on. Here all positions are character offsets into the text, and a string is one symbol whatever its prefix,
so that a file is cut the same way whichever interpreter builds the set.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from bisect import bisect_left
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

LONGEST_FILE = 5_000_000
"""Characters. CPython's parser takes some hundred bytes for each, so that this bounds the memory of a build."""


class Refused(Exception):
    """A file that no hole is cut into; the message says why, in a few words and the same for all of its kind."""


class Symbol(NamedTuple):
    """A terminal symbol of Python's grammar that has text: a name, keyword, number, string, operator or line end.

    Comments, blank lines and line breaks inside brackets are none: the grammar does not know them.
    """

    start: int
    """Offset of the first character."""
    end: int
    """Offset after the last one."""
    block: int
    """Number of the indented block that it stands in, 0 for the module: blocks inside it have numbers of their own."""
    is_string: bool


# Of Python 3.12 and 3.14; older interpreters have no such tokens.
_STRING_STARTS = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
_STRING_ENDS = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
_PLAIN = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP, tokenize.NEWLINE})


class PythonText:
    """A file that `ast.parse` takes, whose line ends are "\\n"."""

    def __init__(self, text: str) -> None:
        """Parse it.

        Raises:
            Refused: it is longer than `LONGEST_FILE`, or `ast.parse` refuses it.
        """
        if len(text) > LONGEST_FILE:
            raise Refused("too long")
        self.text = text
        tree = parse_or_none(text)
        if tree is None:
            raise Refused("refused by ast.parse")
        self.tree = tree

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends. Not `str.splitlines`, which also breaks at form feeds and other marks."""
        return self.text.split("\n")

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of each line's first character."""
        return [0, *accumulate(len(line) + 1 for line in self.lines[:-1])]

    def line_at(self, offset: int) -> int:
        """Number (from 0) of the line that has this offset; a line's end belongs to it."""
        return bisect_left(self.line_starts, offset + 1) - 1

    def line_end(self, line: int) -> int:
        """Offset of the end of a line (from 0), before its "\\n"."""
        return self.line_starts[line] + len(self.lines[line])

    def offset_of_bytes(self, line: int, column: int) -> int:
        """Offset of a position of `ast`: lines from 1, columns in UTF-8 bytes."""
        content = self.lines[line - 1]
        if not content.isascii():
            column = len(content.encode()[:column].decode(errors="replace"))
        return self.line_starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Offsets of a node's first character and after its last one."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.offset_of_bytes(node.lineno, node.col_offset)
        return start, self.offset_of_bytes(node.end_lineno, node.end_col_offset)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """All symbols, in their order.

        Raises:
            Refused: `tokenize` refuses the file, or its tokens are not where they say.
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
        """Offsets of the symbols."""
        return [symbol.start for symbol in self.symbols]

    def first_symbol_from(self, offset: int) -> int:
        """Index of the first symbol that starts at or after an offset."""
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


def parse_or_none(text: str, mode: str = "exec") -> ast.AST | None:
    """The syntax tree, or None where this interpreter's `ast.parse` refuses the text, for whatever reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like
        try:
            tree: ast.AST = ast.parse(text, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return tree


def is_expression(text: str) -> bool:
    """Whether a text is one expression, as it may stand in parentheses."""
    return not text.isspace() and text != "" and parse_or_none(f"({text}\n)", "eval") is not None


# --- replacement fields of f-strings -------------------------------------------------------------------------------


def replacement_fields(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Offsets of the expressions in the outermost replacement fields of the f-string at ``text[start:end]``.

    Blanks around them, ``!r``, ``=`` and format specifications are outside. Empty for other strings, and for one whose
    fields are not understood. Python 3.11 has no tokens for them, and its syntax tree does not place them reliably.
    """
    quote_at = next((at for at in range(start, end) if text[at] in "\"'"), end)
    prefix = text[start:quote_at].lower()
    if "f" not in prefix:
        return []
    scanner = _FieldScanner(text, end)
    try:
        scanner.string(quote_at, prefix)
    except IndexError:
        return []
    return [span for span in scanner.fields if is_expression(text[slice(*span)])]


_PREFIXES = frozenset({"b", "br", "f", "fr", "r", "rb", "rf", "t", "tr", "rt", "u"})


class _FieldScanner:
    """Reads one f-string; IndexError at its end says that it was not understood."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text[:end]
        self.fields: list[tuple[int, int]] = []

    def string(self, at: int, prefix: str, inner: bool = False) -> int:
        """Read a string from its opening quote on; returns the offset after its closing quote."""
        text = self._text
        quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
        at += len(quote)
        while not text.startswith(quote, at):
            if "f" in prefix:
                at = self._literal(at, "r" in prefix, inner)
            else:
                at += 2 if text[at] == "\\" else 1
        return at + len(quote)

    def _literal(self, at: int, raw: bool, inner: bool, specification: bool = False) -> int:
        """Read one character, escape or field of the literal part; returns where it ends."""
        text = self._text
        if text[at] == "\\":
            if not raw and text.startswith("N{", at + 1):
                return text.index("}", at) + 1 if "}" in text[at:] else len(text)
            return at + (1 if text[at + 1] in "{}" else 2)
        if text[at] == "{" and (specification or text[at + 1] != "{"):
            return self._field(at + 1, raw, inner or specification)
        return at + (2 if text[at] in "{}" else 1)

    def _field(self, start: int, raw: bool, inner: bool) -> int:
        """Read a field from its expression on; returns the offset after its closing brace."""
        text, at = self._text, self._expression(start)
        if not inner:
            expression = text[start:at]
            blanks = len(expression) - len(expression.lstrip())
            self.fields.append((start + blanks, start + len(expression.rstrip())))
        while text[at] not in ":}":
            at += 1  # "=", blanks, "!r"
        if text[at] == ":":
            at += 1
            while text[at] != "}":
                at = self._literal(at, raw, inner, specification=True)
        return at + 1

    def _expression(self, at: int) -> int:
        """Read an expression; returns the offset of what ends it: "}", ":", "!" or the "=" of a debugging field."""
        text, depth = self._text, 0
        while True:
            character = text[at]
            if character in "\"'":
                letters = at
                while text[letters - 1].isalpha():
                    letters -= 1
                prefix = text[letters:at].lower()
                at = self.string(at, prefix if prefix in _PREFIXES else "", inner=True)
            elif character == "#":
                at = text.index("\n", at) if "\n" in text[at:] else len(text)
            elif character in "([{":
                depth += 1
                at += 1
            elif depth:
                depth -= character in ")]}"
                at += 1
            elif text.startswith(("==", "!=", "<=", ">="), at):
                at += 2
            elif character in "}:!" or (character == "=" and text[at + 1 :].lstrip()[:1] in ("}", ":", "!")):
                return at
            else:
                at += 1
