"""File of a language that is defined by data: its symbols, and its blocks between brackets."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from fim_server.datasets.holes import LONGEST_FILE, Refused
from fim_server.datasets.judging.judge import Judge
from fim_server.language import Language
from fim_server.language.definition.compile import lower, read_builtin
from fim_server.text.lined_text import LinedText

WINDOW = 256
"""Bytes of a text in which a lexeme is looked for first; longer ones get more."""


WORD = re.compile(r"\w+|[^\w\s]")
"""Symbol of a language without a grammar."""


class Symbol(NamedTuple):
    """Lexeme of a file that is neither blank nor a comment."""

    start: int
    """Offset of the first character."""
    end: int
    """Offset after the last one."""
    block: int
    """Number of its block, 0 for the file; inner blocks have numbers of their own."""


class Block(NamedTuple):
    """Pair of brackets on different lines: offsets after the first and before the second."""

    brackets: str
    start: int
    end: int


class Reader(Protocol):
    """Reader of a language's symbols."""

    brackets: Mapping[str, str]

    def of(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the offsets of each lexeme of a text that is not blank, and whether it is a symbol or a comment."""


class ToldSymbols:
    """Symbols that a language's own parser tells, for languages whose lexemes depend on the rules around them."""

    def __init__(self, command: Sequence[str], brackets: Mapping[str, str]) -> None:
        """Start the parser's program (`symbols` in `fim_server/datasets/judging/programs.toml`).

        Raises:
            JudgeError: It cannot be started.
        """
        self._program = Judge(command, longest_message=None)
        self.brackets = brackets

    def of(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the offsets of each symbol and comment, and whether it is a symbol.

        Raises:
            Refused: The parser refuses the text.
        """
        taken, told = self._program.answer(text)
        if not taken:
            raise Refused("refused by tokenize")
        numbers = iter(json.loads(told))
        for start, end, is_symbol in zip(numbers, numbers, numbers, strict=True):
            yield start, end, bool(is_symbol)

    def close(self) -> None:
        self._program.close()


class Lexemes:
    """Lexemes of a language, by the longest match alone."""

    def __init__(self, language: str, version: str | None = None) -> None:
        """Load a language of the package in one of its versions (None: the newest).

        Raises:
            LanguageError: There is no such language, or no such version of it.
        """
        self._language = Language.load(language, version)
        definition = read_builtin(language, self._language.version)
        self.brackets: Mapping[str, str] = dict(self._language.spelling.brackets)
        self._comments = tuple(comment["prefix"].encode() for comment in definition.spec.get("comments", []))
        comments = frozenset(definition.spec.get("comment_symbols", []))
        self._unseen = frozenset(lower(definition)["ignore"]) | comments | self._names(b"\n")

    def _names(self, text: bytes) -> frozenset[str]:
        found = self._language.core.longest_match(text)
        return frozenset() if found is None or found[0] < len(text) else frozenset(found[1])

    def of(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the offsets of each lexeme of a text, and whether it is a symbol.

        Ignored lexemes, comments and the lexeme of a line break are no symbols. In languages whose line breaks are
        symbols, a comment may be a part of one. A character that begins no lexeme is a symbol of its own.
        """
        encoded = text.encode()
        one_to_one = len(encoded) == len(text)
        at = characters = 0
        while at < len(encoded):
            length, names = self._longest(encoded, at)
            count = length if one_to_one else len(encoded[at : at + length].decode())
            unseen = self._unseen.intersection(names) or encoded.startswith(self._comments, at)
            yield characters, characters + count, not unseen
            at += length
            characters += count

    def _longest(self, text: bytes, at: int) -> tuple[int, list[str]]:
        size = WINDOW
        while True:
            piece = text[at : at + size]
            if at + size >= len(text) or not self._language.core.matches_partially(piece):
                break
            size *= 4
        found = self._language.core.longest_match(piece)
        if found is not None and found[0] > 0:
            return found
        length = next((n for n in range(1, 4) if at + n >= len(text) or text[at + n] & 0xC0 != 0x80), 4)
        return length, []


class Words:
    """Symbols of a language without a grammar: words, and every other character that is no blank."""

    def __init__(self) -> None:
        self.brackets: Mapping[str, str] = {}

    def of(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the offsets of each symbol; none is a comment."""
        return ((found.start(), found.end(), True) for found in WORD.finditer(text))


class DefinedText(LinedText):
    """File of a language that is defined by data; its line ends are "\\n"."""

    def __init__(self, text: str, lexemes: Reader) -> None:
        """Keep a text, which is read at the first use.

        Raises:
            Refused: It is longer than `LONGEST_FILE`.
        """
        if len(text) > LONGEST_FILE:
            raise Refused("too long")
        super().__init__(text)
        self._lexemes = lexemes

    @cached_property
    def _read(self) -> list[tuple[int, int, bool]]:
        return list(self._lexemes.of(self.text))

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [(start, end) for start, end, is_symbol in self._read if is_symbol]

    @cached_property
    def _pairs(self) -> dict[int, tuple[int, str]]:
        """Partner and texts of each opening bracket whose partner is on another line, by the indices of symbols."""
        opened: list[int] = []
        pairs: dict[int, tuple[int, str]] = {}
        closing = set(self._lexemes.brackets.values())
        for index, (start, end) in enumerate(self._spans):
            text = self.text[start:end]
            if text in self._lexemes.brackets:
                opened.append(index)
            elif text in closing and opened:
                first = self.text[slice(*self._spans[opened[-1]])]
                if self._lexemes.brackets[first] == text:
                    begin = opened.pop()
                    if self.line_at(self._spans[begin][0]) != self.line_at(start):
                        pairs[begin] = index, first + text
        return pairs

    @cached_property
    def symbols(self) -> list[Symbol]:
        """All symbols in order. Brackets belong to the block around theirs."""
        closing = {end for end, _ in self._pairs.values()}
        inside, blocks = [0], 0
        symbols = []
        for index, (start, end) in enumerate(self._spans):
            if index in closing:
                inside.pop()
            symbols.append(Symbol(start, end, inside[-1]))
            if index in self._pairs:
                blocks += 1
                inside.append(blocks)
        return symbols

    @cached_property
    def blocks(self) -> list[Block]:
        """Pairs of brackets on different lines, in the order in which they open."""
        return [
            Block(brackets, self._spans[begin][1], self._spans[end][0])
            for begin, (end, brackets) in sorted(self._pairs.items())
        ]

    def between(self, start: int, end: int) -> list[Symbol]:
        first = bisect_left(self._starts, start)
        return self.symbols[first : bisect_left(self._starts, end, first)]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self._spans]

    @cached_property
    def shared_lines(self) -> frozenset[int]:
        """Numbers (from 0) of the lines that share a lexeme that is not blank with another line."""
        shared: set[int] = set()
        for start, end, _ in self._read:
            content = self.text[start:end].strip()
            if "\n" in content:
                begin = start + self.text[start:end].index(content)
                shared.update(range(self.line_at(begin), self.line_at(begin + len(content) - 1) + 1))
        return frozenset(shared)

    @cached_property
    def whole_lines(self) -> list[tuple[int, int]]:
        """Offsets of the first character that is no blank and of the end of each line with a symbol.

        Lines that share a lexeme with another line are left out.
        """
        numbers = sorted({self.line_at(start) for start, _ in self._spans})
        return self.spans_of(number for number in numbers if number not in self.shared_lines)
