"""The lexer against its plain twin: the `regex` package's matching and partial matching of every lexeme by itself.

The twin tries each lexeme alone and picks the longest match. Of equal matches it picks the literal, then the higher
priority, then the first. Behind a soft keyword it picks the next best one too. The engine joins all lexemes into one
automaton over bytes.
"""

import os
import random
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import pytest
import regex

from fim_server import Language
from fim_server.language.definition import compile as grammar
from support.engine.corpus import sources

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
SNIPPETS = 20_000 if LONG else 1_500
LIMIT = 40_000  # bytes of a file
LONGEST = 60  # characters of a snippet


def words(text: str) -> list[str]:
    return text.split(" ")


# Beginnings of every kind of lexeme, and characters that end one. Texts of one to four bytes a character.
PIECES = words(
    "' \" ''' \"\"\" \\ \\\\ \\' \\\" \\x4 \\x41 \\u00e9 \\U0010FFFF \\U0011 \\N{ \\N{DASH} } { {{ }} "
    "f' F\" rb' Rb\" bR' u' t\" 0 00 07 0x 0xF 0o 0o7 0b 0b1 1 12 1_0 1__0 1. .5 1e 1e5 1e+ 1E-3 1j 1.5J "
    "0as 1from 0or 1if . .. ... "
    "match case type _ __ not in is if import import_ None lambda async é ß 变 量 \u0301 · 😀 \u2028 ª "
    "< << <<= <= <> = == := : -> - -= * ** **= *= / // //= @ @= & && | ^ ~ ! != % %= + ++ , ; ( ) [ ] $ ? ` # #! a A z9"
)
PIECES += [
    "\u00a0",
    " ",
    "  ",
    "\t",
    "\f",
    "\n",
    "\r",
    "\r\n",
    "\\\n",
    "\\\r\n",
    "\\\r",
    "\v",
    "\0",
    "\ufeff",
    "# c\n",
    "''",
    '""',
]


@dataclass(frozen=True)
class Lexeme:
    name: str
    literal: str | None
    pattern: Any
    rank: tuple[bool, int, int]

    def longest(self, text: str) -> int:
        """Characters of the longest match, 0 for none."""
        if self.literal is not None:
            return len(self.literal) if text.startswith(self.literal) else 0
        return max((end for end in range(1, len(text) + 1) if self.pattern.fullmatch(text, 0, end)), default=0)

    def matches_partially(self, text: str) -> bool:
        if self.literal is not None:
            return self.literal.startswith(text)
        return self.pattern.fullmatch(text, partial=True) is not None


@cache
def definition() -> dict[str, Any]:
    return grammar.lower(grammar.read_builtin("python"))


MODES = range(len(definition()["modes"]) + 1)


def read_in(mode: int) -> set[str]:
    """Names of the lexemes that are read in a mode."""
    modes = definition()["modes"]
    default = {lexeme["name"] for lexeme in definition()["lexemes"]}.difference(*(it["lexemes"] for it in modes))
    if mode == 0:
        return default
    chosen = modes[mode - 1]
    return set(chosen["lexemes"]) | (default - set(chosen["without"]) if chosen.get("code") else set())


@cache
def lexemes(mode: int = 0) -> list[Lexeme]:
    names = read_in(mode)
    found = []
    for index, lexeme in enumerate(definition()["lexemes"]):
        if lexeme["name"] not in names:
            continue
        literal, pattern = lexeme.get("literal"), lexeme.get("pattern")
        if literal is not None or pattern is not None:
            compiled = None if pattern is None else regex.compile(pattern, regex.VERSION1)
            rank = (literal is None, -lexeme["priority"], index)
            found.append(Lexeme(lexeme["name"], literal, compiled, rank))
    return found


@cache
def soft_keywords() -> frozenset[str]:
    return frozenset(definition()["soft_keywords"])


def twin_longest_match(text: str, mode: int = 0) -> tuple[int, list[str]] | None:
    lengths = [(lexeme.longest(text), lexeme) for lexeme in lexemes(mode)]
    longest = max(length for length, _ in lengths)
    if longest == 0:
        return None
    names = []
    for lexeme in sorted((lexeme for length, lexeme in lengths if length == longest), key=lambda it: it.rank):
        names.append(lexeme.name)
        if lexeme.name not in soft_keywords():
            break
    return len(text[:longest].encode()), sorted(names)


def engine_longest_match(text: str, mode: int = 0) -> tuple[int, list[str]] | None:
    found = Language.load("python").core.longest_match(text.encode(), mode)
    return None if found is None else (found[0], sorted(found[1]))


def twin_matches_partially(text: str, mode: int = 0) -> bool:
    return any(lexeme.matches_partially(text) for lexeme in lexemes(mode))


def engine_matches_partially(text: str, mode: int = 0) -> bool:
    return Language.load("python").core.matches_partially(text.encode(), mode)


def mode_of(index: int) -> int:
    """Half the snippets are read as code, the others in each of the other modes in turn."""
    return index // 2 % len(MODES) if index % 2 else 0


@cache
def snippets() -> list[str]:
    """Half from the standard library, at any place; half pieces of lexemes in a row."""
    rng = random.Random(SEED)
    found = []
    for source in islice(sources(rng, LIMIT), SNIPPETS // 40):
        for _ in range(20):
            start = rng.randrange(len(source.text) + 1)
            found.append(source.text[start : start + rng.randrange(1, LONGEST)])
    while len(found) < SNIPPETS:
        found.append("".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 6))))
    return [text for text in found if text]


def test_longest_match_of_random_snippets() -> None:
    wrong = []
    matched = soft = 0
    for index, text in enumerate(snippets()):
        mode = mode_of(index)
        expected, found = twin_longest_match(text, mode), engine_longest_match(text, mode)
        matched += expected is not None
        soft += expected is not None and len(expected[1]) > 1
        if found != expected:
            wrong.append((text, mode, expected, found))
    print(f"{len(snippets())} snippets, {matched} matched, {soft} soft keywords")
    assert not wrong, wrong[:10]
    assert matched
    assert soft


def test_partial_matches_of_random_snippets() -> None:
    """Every prefix at a character's end, up to the first one that matches nothing any more, and one beyond."""
    wrong = []
    prefixes = 0
    for index, text in enumerate(snippets()):
        mode = mode_of(index)
        for end in range(1, len(text) + 1):
            prefix = text[:end]
            expected = twin_matches_partially(prefix, mode)
            prefixes += 1
            if engine_matches_partially(prefix, mode) != expected:
                wrong.append((prefix, mode, expected))
            if not expected:
                break
    print(f"{prefixes} prefixes in {len(MODES)} modes")
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("name", [lexeme.name for lexeme in lexemes() if lexeme.literal is not None])
def test_a_literal_is_itself(name: str) -> None:
    literal = next(lexeme.literal for lexeme in lexemes() if lexeme.name == name)
    assert literal is not None
    found = engine_longest_match(literal)
    assert found is not None
    assert found[0] == len(literal.encode())
    assert name in found[1]
    assert all(engine_matches_partially(literal[:end]) for end in range(1, len(literal) + 1))


def test_a_mode_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=f"no mode {len(MODES)}"):
        Language.load("python").core.longest_match(b"x", len(MODES))


def test_bytes_that_are_no_text_match_nothing() -> None:
    core = Language.load("python").core
    for data in (b"\x80", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8", b"\xc3a", b"'\xff'"):
        assert core.longest_match(data) is None
        assert not core.matches_partially(data)


def test_a_character_cut_in_two_is_a_partial_match_only() -> None:
    core = Language.load("python").core
    for character in ("é", "变", "𝐱"):
        encoded = character.encode()
        for end in range(1, len(encoded)):
            assert core.matches_partially(encoded[:end])
            assert core.longest_match(encoded[:end]) is None
            assert core.longest_match(b"a" + encoded[:end]) == (1, ["NAME"])
        assert core.longest_match(encoded) == (len(encoded), ["NAME"])


def test_the_twin_notices_a_difference() -> None:
    """The comparison can fail: without its rank or its partner a lexeme is found out."""
    name = next(lexeme for lexeme in lexemes() if lexeme.name == "NAME")
    assert replace(name, pattern=regex.compile("[a-z]")).longest("ab1") != name.longest("ab1")
    assert twin_longest_match("match") == engine_longest_match("match")
    assert twin_longest_match("match") != (5, ["MATCH"])
