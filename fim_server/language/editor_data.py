"""Definitions of token trees from an editor's own data of a language: VS Code's language configuration.

The data names comments, brackets and quotes, and does not say what a quote means: an apostrophe may begin a string, a
character or a type. So there are several definitions, and the file at hand chooses the first one that takes it.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any

from fim_server.errors import LanguageError
from fim_server.language.definition import limits
from fim_server.language.definition.compile import BALANCED, Definition
from fim_server.language.definition.token_trees import grammar as token_trees
from fim_server.language.definition.token_trees.patterns import literal
from fim_server.language.language import Language

MOST_DEFINITIONS = 6
"""Most definitions that a file is tried with. Each is compiled once, in some 0.2 s."""

MOST_LANGUAGES = 16
"""Most compiled definitions that are kept, with their token tables."""

MOST_PAIRS = 512
"""Most entries of a list of pairs. Elixir: 50."""

STRING, LOOSE, CHARACTER, SIGN = "string", "loose", "character", "sign"
"""Uses of a quote. String: also of several lines, and three quotes begin one. Loose: a string where the line has
another quote, else a sign. Character: one character between two, else a part of a name."""

NESTED = 4
"""Depth of comments inside each other, where comments nest."""


@dataclass(frozen=True)
class Known:
    """Fields of `editor_data.toml`: the parts of an editor's data that are used."""

    brackets: tuple[str, ...]
    string_quote: str
    apostrophe: str
    quotes: str
    escape: str
    flat_comments: tuple[str, ...]
    unfit: tuple[str, ...]


@cache
def known() -> Known:
    """Return what is known, from the file of that name among the languages."""
    text = (Path(__file__).parents[1] / "languages" / "editor_data.toml").read_text(encoding="utf-8")
    fields: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in tomllib.loads(text).items()
    }
    return Known(**fields)


@dataclass(frozen=True)
class EditorData:
    """Comments, brackets and quotes of a language.

    Attributes:
        name: The editor's name of the language.
        line_comments: Beginnings of comments that end with their line.
        block_comments: Delimiters of other comments.
        brackets: Pairs of brackets.
        quotes: Quotes.
        closed: Those that the editor closes.
    """

    name: str
    line_comments: tuple[str, ...]
    block_comments: tuple[tuple[str, str], ...]
    brackets: tuple[str, ...]
    quotes: str
    closed: str

    @classmethod
    def read(cls, name: str, configuration: object) -> EditorData:
        """Read the fields `comments`, `brackets`, `autoClosingPairs` and `surroundingPairs` of a configuration.

        Raises LanguageError, in one line, if one of them is wrong or passes a limit, or they do not suffice.
        """
        if not isinstance(configuration, Mapping):
            raise _error(name, "an object expected")
        if name in known().unfit:
            raise _error(name, "such files hold text rather than code")
        comments = configuration.get("comments") or {}
        if not isinstance(comments, Mapping):
            raise _error(name, "comments: an object expected")
        line, block = comments.get("lineComment"), comments.get("blockComment")
        line = line.get("comment") if isinstance(line, Mapping) else line
        lines = () if line is None else (_delimiter(name, "comments.lineComment", line),)
        blocks = () if block is None else (_pair(name, "comments.blockComment", block),)
        begin = (*lines, *(opening for opening, _ in blocks))
        for opening in begin:
            if opening[0].isalnum() or opening[-1].isalnum() or {*opening} & {*known().quotes, *string.whitespace}:
                raise _error(name, f"comments: code may begin with {opening!r} as well")
        pairs = {"".join(pair) for pair in _pairs(name, configuration, "brackets") if pair[0] not in begin}
        brackets = tuple(pair for pair in known().brackets if pair in pairs)
        if not brackets:
            raise _error(name, f"brackets: none of {' '.join(known().brackets)}")
        closed, around = (
            {opening for opening, closing in _pairs(name, configuration, key) if opening == closing}
            for key in ("autoClosingPairs", "surroundingPairs")
        )
        quotes = "".join(quote for quote in known().quotes if quote in closed | around)
        return cls(name, lines, blocks, brackets, quotes, "".join(quote for quote in quotes if quote in closed))

    def languages(self, text: str) -> Iterator[Language]:
        """Yield the languages that a file may be in, the likeliest first.

        Raises LanguageError if the data contradicts itself.
        """
        ways = [_uses(self, text, quote) for quote in self.quotes]
        by_rank = sorted(product(*map(enumerate, ways)), key=lambda ranked: sum(rank for rank, _ in ranked))
        depths = [1, NESTED] if self.block_comments else [1]
        if any(opening not in known().flat_comments for opening, _ in self.block_comments):
            depths.reverse()
        choices = ((tuple(use for _, use in ranked), depth) for ranked in by_rank for depth in depths)
        for uses, depth in islice(choices, MOST_DEFINITIONS):
            yield _language(self, uses, depth)

    def definition(self, uses: tuple[str, ...], depth: int) -> Definition:
        """Return the definition with one use of each quote, and comments that nest up to a depth.

        Raises LanguageError if the data contradicts itself.
        """
        strings: list[dict[str, Any]] = []
        opaque: dict[str, str] = {}
        first = rest = ""
        for number, (quote, use) in enumerate(zip(self.quotes, uses, strict=True)):
            mark = literal(quote)
            if use == STRING:
                strings.append({"open": 3 * quote, "escape": known().escape, "lines": True})
            if quote == known().string_quote:
                strings.append({"open": quote, "escape": known().escape, "lines": True})
            elif use in (STRING, LOOSE):
                opaque[f"QUOTED_{number}"] = rf"{mark}([^{mark}\\\n\v]|\\[^\n\v])*{mark}"
            elif use == CHARACTER:
                opaque[f"QUOTED_{number}"] = rf"{mark}(\\[^\n\v][0-9A-Za-z_]*|[^{mark}\\\n\v]){mark}"
            if quote == known().apostrophe and use != SIGN:
                first, rest = (mark if use == CHARACTER else ""), mark
        blocks = [{"open": opening, "close": end, "nested": depth} for opening, end in self.block_comments]
        spec = {
            "name": self.name,
            "suffixes": [],
            "brackets": [list(pair) for pair in self.brackets],
            "token_trees": {
                "line_comments": list(self.line_comments),
                "block_comments": blocks,
                "strings": strings,
                "opaque": opaque,
                "word": rf"[A-Za-z_{first}\x80-\U0010ffff][0-9A-Za-z_{rest}\x80-\U0010ffff]*",
            },
        }
        text, fields = token_trees.written(spec)
        spelling = {"surroundings": [["", ""]]}
        return Definition(self.name, (), text, fields, of_spelling=spelling, guarantee=BALANCED)


def language_of(data: EditorData, text: str) -> Language | None:
    """Return the first language of the data that takes a file; None if none does.

    Raises LanguageError if the data contradicts itself.
    """
    return next((language for language in data.languages(text) if language.open(text, "").check("").complete), None)


@lru_cache(maxsize=MOST_LANGUAGES)
def _language(data: EditorData, uses: tuple[str, ...], depth: int) -> Language:
    language = Language(data.definition(uses, depth))
    language.spelling = replace(language.spelling, whole_files=True)
    return language


def _uses(data: EditorData, text: str, quote: str) -> list[str]:
    """Return the uses that a quote may have in a file, the likeliest first."""
    if quote == known().string_quote:
        return [STRING, LOOSE]
    pairs, others = count_quotes(data, text, quote)
    blocks = [STRING] if pairs and 3 * quote in text else []
    if quote != known().apostrophe:
        return [*blocks, LOOSE, SIGN]
    is_string = not others and (pairs > 0 or quote in data.closed)
    return [*blocks, LOOSE, CHARACTER, SIGN] if is_string else [CHARACTER, LOOSE, SIGN, *blocks]


def count_quotes(data: EditorData, text: str, quote: str) -> tuple[int, int]:
    """Return the number of strings on one line that a quote begins, and of quotes that begin or end no such string.

    Comments and usual strings do not count. A quote before a letter ends no string, and an apostrophe after one begins
    none.
    """
    closing, usual = dict(data.block_comments), known().string_quote
    others_begin = [*closing, *data.line_comments, *(usual if usual in data.quotes else "")]
    marks = [re.escape(mark) for mark in sorted(others_begin, key=len, reverse=True)]
    marks.append(rf"(?<!\w){quote}" if quote == known().apostrophe else quote)
    escaped = re.escape(known().escape)
    begins = re.compile("|".join(marks))
    usual_string = re.compile(rf"(?:{escaped}[\s\S]|[^{usual}{escaped}])*{usual}")
    on_line = re.compile(rf"(?:{escaped}.|[^{quote}{escaped}\n])*{quote}(\w?)")
    pairs = others = at = 0
    unended = -1  # end of a line whose other quotes are all escaped, so that none ends a string
    while (found := begins.search(text, at)) is not None:
        mark, at = found[0], found.end()
        if mark == quote:
            ended = on_line.match(text, at) if at > unended else None
            is_string = ended is not None and not ended[1]
            pairs, others = pairs + is_string, others + (not is_string)
            if ended is not None:
                at = ended.start(1)
            elif at > unended:
                line_end = text.find("\n", at)
                unended = len(text) if line_end < 0 else line_end
            continue
        if mark == usual:
            ended = usual_string.match(text, at)
            end = -1 if ended is None else ended.end()
        else:
            end = text.find(closing.get(mark, "\n"), at)
        if end < 0:
            break
        at = end
    return pairs, others


def _pairs(name: str, configuration: Mapping[str, object], key: str) -> list[tuple[str, str]]:
    found = configuration.get(key) or []
    if not isinstance(found, list):
        raise _error(name, f"{key}: a list expected")
    limits.check(name, f"entries of {key}", len(found), MOST_PAIRS)
    return [_pair(name, key, pair) for pair in found]


def _pair(name: str, key: str, pair: object) -> tuple[str, str]:
    texts = [pair.get("open"), pair.get("close")] if isinstance(pair, Mapping) else pair
    if not isinstance(texts, list) or len(texts) != 2:
        raise _error(name, f"{key}: two texts expected")
    return _delimiter(name, key, texts[0]), _delimiter(name, key, texts[1])


def _delimiter(name: str, key: str, text: object) -> str:
    """Return a delimiter without the blanks around it."""
    if not isinstance(text, str) or not text.strip():
        raise _error(name, f"{key}: a text expected")
    limits.check(name, f"characters of a text of {key}", len(text.strip()), limits.TREE_DELIMITER)
    return text.strip()


def _error(name: str, what: str) -> LanguageError:
    return LanguageError(f"language {name}: the editor's data: {what}")
