"""Token trees read by hand, from left to right: the openings of a language's data, the longest that fits first.

Patterns of the data itself, such as those of words, are matched at their place by `regex`, the longest match first. No
pattern is built from delimiters, as the code under test does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

import regex

from fim_server.language.definition import compile as definitions
from fim_server.language.definition.token_trees.data import (
    BlockComment,
    HereDocument,
    LineComment,
    StringKind,
    TokenTrees,
)
from fim_server.language.definition.variants import Variants

BLANKS = " \t\n\r\f"
VERTICAL_TAB = "\v"
FOREIGN = "\x80-\U0010ffff"
NAMED = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
NUMBER = r"\.?[0-9]([0-9A-Za-z_]|\.[0-9A-Za-z_]|[eEpP][+\-])*"


class OpenError(Exception):
    """An opening whose end is missing, or a character that begins nothing; the place is the argument."""


class Reader:
    """Reader of a language of token trees."""

    def __init__(self, data: TokenTrees, first: Iterable[str] = (), errors: Iterable[str] = ()) -> None:
        """Take a language's data.

        Args:
            data: The data.
            first: Names of opaque lexemes that only the first character of a file begins.
            errors: Names of lexemes that stand nowhere.
        """
        self.data, self.first_names, self.text = data, frozenset(first), ""
        self.errors = [_compiled(data.lexemes[name]) for name in errors]
        self.openings = sorted(self._openings(), key=lambda opening: -len(opening[0]))
        self.closings = {closing for _, closing in data.brackets}
        self.first = [_compiled(pattern) for name, pattern in data.opaque.items() if name in self.first_names]
        self.first += [_compiled(rf"[ \t]*({pattern})") for pattern in data.lines.values()]
        self.lines = [_compiled(pattern) for pattern in data.lines.values()]
        letters = regex.escape(data.letters)
        word = data.word or f"[A-Za-z_{letters}{FOREIGN}][A-Za-z0-9_{letters}{FOREIGN}]*"
        patterns = [word, data.number or NUMBER, *([data.operator] if data.operator else [])]
        patterns += [pattern for name, pattern in data.opaque.items() if name not in self.first_names]
        self.lexemes = [_compiled(pattern) for pattern in patterns]
        patterned = {kind.open for kind in data.strings if kind.pattern}
        self.no_signs = {opening for opening, _ in self.openings if len(opening) == 1} - patterned
        self.no_signs |= {*"".join(map("".join, data.brackets)), *data.no_operators, *data.letters}
        self.no_signs |= {*NAMED, *BLANKS, VERTICAL_TAB}

    def _openings(self) -> Iterator[tuple[str, Callable[[int], int | None]]]:
        """Yield each opening, and the method that returns the end of what it begins, or None to let it be."""
        for line in self.data.line_comments:
            yield line.open, partial(self.line_comment, line)
        for block in self.data.block_comments:
            yield block.open, partial(self.block_comment, block)
        for kind in self.data.strings:
            yield kind.open, partial(self.string, kind)
        for here in self.data.here_documents:
            yield here.open, partial(self.here_document, here)
        for opening, closing in self.data.brackets:
            yield opening, partial(self.bracket, opening, closing)

    def takes(self, text: str) -> bool:
        """Return whether a text is balanced."""
        return self.fault(text) is None

    def fault(self, text: str) -> int | None:
        """Return the place where a text is found not to be balanced; None for a balanced one."""
        self.text = text
        try:
            end = self.code(max(self._matches(self.first, 0), default=0))
        except OpenError as error:
            return int(error.args[0])
        return None if end == len(text) else end

    def code(self, at: int) -> int:
        """Return the end of a run of trees: the place of a closing bracket, or the text's end."""
        starts_line = False
        while at < len(self.text) and not self.sees(self.closings, at):
            start = at
            while at < len(self.text) and self.text[at] in BLANKS:
                at += 1
            blanks = self.text[start:at]
            starts_line = "\n" in blanks and not blanks.rpartition("\n")[2].strip(" \t")
            if blanks or self.text[at] == VERTICAL_TAB:
                at = (max(self._matches(self.lines, at), default=at) if starts_line else at) + (not blanks)
            else:
                at = self.tree(at)
        return at

    def tree(self, at: int) -> int:
        """Return the end of the comment, string, bracket or other lexeme at a place."""
        for opening, end_of in self.openings:
            if self.text.startswith(opening, at):
                end = end_of(at)
                if end is not None:
                    return end
        ends = self._matches(self.lexemes, at)
        if self._matches(self.errors, at):
            raise OpenError(at)
        if not self.data.operator and self.text[at] not in self.no_signs and self.text[at] < "\x80":
            ends.append(at + 1)
        if not ends:
            raise OpenError(at)
        return max(ends)

    def bracket(self, opening: str, closing: str, at: int) -> int:
        end = self.code(at + len(opening))
        if not self.text.startswith(closing, end):
            raise OpenError(at)
        return end + len(closing)

    def line_comment(self, comment: LineComment, at: int) -> int | None:
        if comment.pattern:
            return max(self._matches([_compiled(comment.pattern)], at), default=None)
        at += len(comment.open)
        while at < len(self.text) and self.text[at] not in "\n\v":
            if comment.joined and self.text[at] == "\\":
                if at + 1 == len(self.text):
                    return at
                at += 1
            at += 1
        return at

    def block_comment(self, comment: BlockComment, start: int) -> int:
        at, depth = start + len(comment.open), 1
        while at < len(self.text):
            if self.text.startswith(comment.close, at):
                at, depth = at + len(comment.close), depth - 1
                if not depth:
                    return at
            elif comment.depth > 1 and self.text.startswith(comment.open, at):
                at, depth = at + len(comment.open), depth + 1
                if depth > comment.depth:
                    break
            else:
                at += 1
        raise OpenError(start)

    def string(self, kind: StringKind, start: int) -> int | None:
        if kind.pattern:
            return max(self._matches([_compiled(kind.pattern)], start), default=None)
        closings = {hole.open: hole.close for hole in kind.holes}
        words = sorted({kind.close, *kind.plain, *closings, *([kind.escape] if kind.escape else [])}, key=len)
        at = start + len(kind.open)
        while at < len(self.text):
            word = self.sees(reversed(words), at)
            at += max(len(word), 1)
            if word == kind.close:
                return at + next((n for n in range(kind.more, 0, -1) if self.sees([word[-1] * n], at)), 0)
            if word in closings:
                at = self.code(at)
                if not self.text.startswith(closings[word], at):
                    break
                at += len(closings[word])
            elif word == kind.escape != "":
                if self.sees("\n", at) and not (kind.lines or kind.joined):
                    break
                at += 1
            elif not word and self.text[at - 1] == "\n" and not kind.lines:
                break
        raise OpenError(start)

    def here_document(self, here: HereDocument, start: int) -> int | None:
        """Return the end of a here-document; None where no known word, or no further line, follows the opening."""
        at = start + len(here.open)
        quote = self.sees("\"'", at)
        at += len(quote)
        word = self.sees(sorted(here.words, key=len, reverse=True), at)
        at += len(word + quote)
        is_named = word and self.text.startswith(quote, at - len(quote)) and not self.sees(f"{NAMED}\"'", at)
        line_end = self.text.find("\n", at)
        if not is_named or line_end < 0 or VERTICAL_TAB in self.text[at:line_end]:
            return None
        at = line_end + 1
        while line_end >= 0:
            while here.indented and self.sees(" \t", at):
                at += 1
            if self.text.startswith(word, at) and not self.sees(NAMED, at + len(word)):
                return at + len(word)
            line_end = self.text.find("\n", at)
            if VERTICAL_TAB in self.text[at : line_end if line_end >= 0 else None]:
                break
            at = line_end + 1
        raise OpenError(start)

    def sees(self, texts: Iterable[str], at: int) -> str:
        """Return the first of some texts that stands at a place; empty for none."""
        return next((text for text in texts if self.text.startswith(text, at)), "")

    def _matches(self, patterns: Iterable[regex.Pattern[str]], at: int) -> list[int]:
        """Return the ends of some patterns' matches at a place, without empty ones."""
        found = (pattern.match(self.text, at) for pattern in patterns)
        return [match.end() for match in found if match and match.end() > at]


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """Return a pattern that matches as long a text as it can."""
    return regex.compile(f"(?p){pattern}")


@cache
def reader_of(name: str) -> Reader | None:
    """Return the reader of a builtin language; None for one with a grammar, or with rules of its own."""
    text = definitions.builtin_files(name)[1].read_text(encoding="utf-8")
    spec = tomllib.loads(Variants.of(text).select(text, definitions.builtin_variant(name)))
    data = TokenTrees.from_spec(spec) if "token_trees" in spec else None
    if data is None or data.trees:
        return None
    return Reader(data, spec.get("first_lexemes", []), spec.get("error_lexemes", []))
