"""Random small languages with modes and without layout, and brute force over them.

The oracle follows the rule of such languages. At a place, each mode contributes its longest match, if that is a lexeme
of its own. Mode 0 owns the lexemes of no mode. Blanks precede lexemes of modes with code alone. It matches with the
`regex` package and tries all spans, so it shares nothing with the engine.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import regex

LITERALS = ("a", "b", "=", "/", "==", "(", ")", "ab", "/=", "}")
SHARED_PATTERNS = ("[ab]", "[ab]+", "a", "/[ab]/")
OWN_PATTERNS = ("/[ab]/", "/[ab=]*/", "/", "/=", "=", "==", "a", "aa", "ab?", "[ab]+", "b=", r"\(a", "=a", r"\)")
TEXT_PATTERNS = ("[ab ]*`", r"[ab ]*\{", "[ab ]*[()]", "[a ]*/", "[b ]*==", "[ab} ]*`")


@dataclass(frozen=True)
class Mode:
    """A mode: its own lexemes, whether it reads code, and the shared lexemes that it is without."""

    lexemes: tuple[str, ...]
    code: bool
    without: tuple[str, ...] = ()
    covers: bool = True


@dataclass(frozen=True)
class Moded:
    """A language: lexemes as (name, literal, pattern), modes, BNF rules, soft keywords."""

    lexemes: tuple[tuple[str, str | None, str | None], ...]
    modes: tuple[Mode, ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    soft: tuple[str, ...] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The definition as the engine takes it."""
        names = [name for name, *_ in self.lexemes]
        brackets = [pair for pair in (("L(", "L)"), ("L{", "L}")) if set(pair) <= set(names)]
        return {
            "name": "moded",
            "start": "s",
            "lexemes": [
                {"name": name, **({"literal": literal} if literal else {"pattern": pattern})}
                for name, literal, pattern in self.lexemes
            ],
            "ignore": ["BLANK"],
            "brackets": brackets,
            "rules": [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in self.rules],
            "soft_keywords": list(self.soft),
            "modes": [
                {
                    "name": f"mode {number}",
                    "lexemes": list(mode.lexemes),
                    "code": mode.code,
                    "without": list(mode.without),
                    "covers": mode.covers,
                }
                for number, mode in enumerate(self.modes)
            ],
        }

    def reordered(self, rng: random.Random) -> Self:
        """The language with its modes in another order."""
        return replace(self, modes=tuple(rng.sample(self.modes, len(self.modes))))

    def uncovered(self) -> Self:
        """The language in which no mode stands for mode 0: the plain way."""
        return replace(self, modes=tuple(replace(mode, covers=False) for mode in self.modes))


def random_moded(rng: random.Random) -> Moded:
    """Return a random language: two or three modes, most of them with code, and a random grammar."""
    lexemes: list[tuple[str, str | None, str | None]] = [
        (f"L{literal}", literal, None) for literal in rng.sample(LITERALS, rng.randint(1, 4))
    ]
    if rng.random() < 0.5:
        lexemes.append(("P", None, rng.choice(SHARED_PATTERNS)))
    shared = [name for name, *_ in lexemes]
    modes = []
    own: list[str] = []
    for number in range(rng.choice((1, 1, 2, 2, 3))):
        code = rng.random() < 0.75
        patterns = rng.sample(OWN_PATTERNS if code else TEXT_PATTERNS, rng.choice((1, 1, 2)))
        names = tuple(f"M{number}_{index}" for index in range(len(patterns)))
        lexemes.extend((name, None, pattern) for name, pattern in zip(names, patterns, strict=True))
        without = [name for name in shared if rng.random() < 0.25] if code else []
        modes.append(Mode(names, code, tuple(without)))
        own.extend(names)
    lexemes.append(("BLANK", None, " +"))
    nonterminals = ["s", "x", "y", "z"][: rng.randint(1, 4)]
    symbols = shared * 2 + own * 3 + nonterminals * 2
    rules = set()
    for nonterminal in nonterminals:
        for _ in range(rng.randint(1, 3)):
            rules.add((nonterminal, tuple(rng.choice(symbols) for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))))
    if rng.random() < 0.5:
        rules.add(("s", ("s", rng.choice(symbols))))
        rules.add(("s", ()))
    soft = tuple(name for name, literal, _ in lexemes if literal and rng.random() < 0.15)
    return Moded(tuple(lexemes), tuple(modes), tuple(sorted(rules)), soft)


class Oracle:
    """Brute force over one language."""

    def __init__(self, moded: Moded) -> None:
        self.moded = moded
        owner = {name: number for number, mode in enumerate(moded.modes, 1) for name in mode.lexemes}
        self.owner = {name: owner.get(name, 0) for name, *_ in moded.lexemes}
        compiled = {
            name: (literal is None, regex.compile(regex.escape(literal) if literal else pattern or ""))
            for name, literal, pattern in moded.lexemes
        }
        order = [name for name, *_ in moded.lexemes]
        self.rank = {name: (compiled[name][0], order.index(name)) for name in order}
        self.patterns = {name: found for name, (_, found) in compiled.items()}
        self.read_in = [[name for name in order if not self.owner[name]]]
        for number, mode in enumerate(moded.modes, 1):
            self.read_in.append(
                [
                    name
                    for name in order
                    if self.owner[name] == number or (mode.code and not self.owner[name] and name not in mode.without)
                ]
            )
        self.codes = [0, *(number for number, mode in enumerate(moded.modes, 1) if mode.code)]
        self.texts_of = [number for number, mode in enumerate(moded.modes, 1) if not mode.code]
        self.alphabet = "ab=/`{}() "
        self.member = cache(self._member)
        self._known: dict[str, list[str]] = {}

    def match(self, mode: int, text: str, at: int) -> tuple[int, list[str]] | None:
        """The end of the longest match in a mode, and its lexemes."""
        for end in range(len(text), at, -1):
            found = [name for name in self.read_in[mode] if self.patterns[name].fullmatch(text, at, end)]
            if found:
                found.sort(key=self.rank.__getitem__)
                chosen = []
                for name in found:
                    chosen.append(name)
                    if name not in self.moded.soft:
                        break
                return end, chosen
        return None

    def _after_blanks(self, text: str, at: int) -> int:
        while (found := self.match(0, text, at)) and found[1] == ["BLANK"]:
            at = found[0]
        return at

    def edges(self, text: str, at: int) -> Iterator[tuple[str, int]]:
        """The lexemes that can be read at a place, with their ends."""
        code = self._after_blanks(text, at)
        for mode in (*self.codes, *self.texts_of):
            found = self.match(mode, text, code if mode in self.codes else at)
            if found:
                yield from ((name, found[0]) for name in found[1] if self.owner[name] == mode)

    def _member(self, text: str) -> bool:
        spans: dict[str, set[tuple[int, int]]] = {lhs: set() for lhs, _ in self.moded.rules}
        places, waiting = set(), [0]
        while waiting:
            at = waiting.pop()
            if at not in places:
                places.add(at)
                for name, end in self.edges(text, at):
                    spans.setdefault(name, set()).add((at, end))
                    waiting.append(end)
        grown = True
        while grown:
            grown = False
            for lhs, rhs in self.moded.rules:
                found = {(at, at) for at in places}
                for symbol in rhs:
                    found = {
                        (begin, end) for begin, via in found for start, end in spans.get(symbol, ()) if via == start
                    }
                if not found <= spans[lhs]:
                    spans[lhs] |= found
                    grown = True
        ends = {end for begin, end in spans["s"] if begin == 0}
        return any(self._after_blanks(text, end) == len(text) for end in ends)

    def texts(self, longest: int) -> list[str]:
        """All texts up to a length."""
        letters = (itertools.product(self.alphabet, repeat=length) for length in range(longest + 1))
        return ["".join(text) for texts in letters for text in texts]

    def sentence(self, rng: random.Random, symbol: str = "s", depth: int = 0) -> str | None:
        """A random text that the grammar derives, whatever the lexer makes of it; None where it grows too long."""
        if symbol in self.owner:
            return rng.choice(self._examples(symbol)) + (" " if rng.random() < 0.15 else "")
        choices = [rhs for lhs, rhs in self.moded.rules if lhs == symbol]
        if depth > 5 or not choices:
            return None
        parts = [self.sentence(rng, one, depth + 1) for one in rng.choice(choices)]
        return None if None in parts else "".join(part for part in parts if part is not None)

    def _examples(self, name: str) -> list[str]:
        """Return short texts of a lexeme."""
        if name not in self._known:
            pattern = self.patterns[name]
            self._known[name] = [text for text in self.texts(3) if text and pattern.fullmatch(text)] or ["?"]
        return self._known[name]
