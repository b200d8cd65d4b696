"""Random small languages, and brute force over them.

The oracle lexes by trying every prefix with the `regex` package and parses by spans; it shares nothing with the engine.
Lexemes overlap, share prefixes and have priorities; half of the languages have no separator, so that the longest match
of one symbol depends on the text of the next.
"""

import itertools
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex

from fim_server import _core

LITERALS = ["a", "b", "ab", "ba", "aa", "bb", "aba", "abb", "bab"]
PATTERNS = ["a+", "b+", "ab*", "a*b", "(ab)+", "b(a|b)", "a(ba)*", "[ab]b", "aab?"]
SEPARATOR = "c"


@dataclass(frozen=True)
class Toy:
    """A random language: lexemes as (name, literal, pattern, priority), BNF rules, and whether `c` separates."""

    lexemes: tuple[tuple[str, str | None, str | None, int], ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    separated: bool
    soft: tuple[str, ...] = ()

    def spec(self) -> dict[str, Any]:
        lexemes = [
            {"name": name, "priority": priority, **({"literal": literal} if literal else {"pattern": pattern})}
            for name, literal, pattern, priority in self.lexemes
        ]
        if self.separated:
            lexemes.append({"name": "GAP", "pattern": f"{SEPARATOR}+"})
        return {
            "name": "toy",
            "start": "s",
            "lexemes": lexemes,
            "ignore": ["GAP"] if self.separated else [],
            "rules": [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in self.rules],
            "soft_keywords": list(self.soft),
        }

    @property
    def alphabet(self) -> str:
        return "ab" + (SEPARATOR if self.separated else "")


def random_toy(rng: random.Random) -> Toy:
    lexemes = []
    used = set()
    for index in range(rng.randint(1, 4)):
        literal = rng.choice(LITERALS) if rng.random() < 0.5 else None
        pattern = None if literal else rng.choice(PATTERNS)
        if (literal, pattern) not in used:
            used.add((literal, pattern))
            lexemes.append((f"T{index}", literal, pattern, rng.choice([0, 0, 1])))
    nonterminals = ["s", "x", "y", "z"][: rng.randint(1, 4)]
    symbols = [name for name, *_ in lexemes] * 2 + nonterminals
    rules = set()
    for nonterminal in nonterminals:
        for _ in range(rng.randint(1, 3)):
            rules.add((nonterminal, tuple(rng.choice(symbols) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))))
    soft = tuple(name for name, literal, *_ in lexemes if literal and rng.random() < 0.3)
    return Toy(tuple(lexemes), tuple(sorted(rules)), rng.random() < 0.5, soft)


class Oracle:
    """Brute force over one toy language."""

    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.compiled = [
            (name, literal is not None, priority, regex.compile(regex.escape(literal) if literal else pattern or ""))
            for name, literal, pattern, priority in toy.lexemes
        ]
        if toy.separated:
            self.compiled.append(("GAP", False, 0, regex.compile(f"{SEPARATOR}+")))
        self.member = cache(self._member)

    def lex(self, text: str) -> list[frozenset[str]] | None:
        symbols = []
        at = 0
        while at < len(text):
            for end in range(len(text), at, -1):
                matches = [entry for entry in self.compiled if entry[3].fullmatch(text, at, end)]
                if matches:
                    break
            else:
                return None
            order = {entry[0]: index for index, entry in enumerate(self.compiled)}
            matches.sort(key=lambda entry: (not entry[1], -entry[2], order[entry[0]]))
            chosen = []
            for entry in matches:
                chosen.append(entry[0])
                if entry[0] not in self.toy.soft:
                    break
            if chosen != ["GAP"]:
                symbols.append(frozenset(chosen))
            at = end
        return symbols

    def _member(self, text: str) -> bool:
        symbols = self.lex(text)
        return symbols is not None and self.parses(symbols)

    def parses(self, symbols: list[frozenset[str]]) -> bool:
        count = len(symbols)
        spans: dict[tuple[int, int], set[str]] = {}
        for length in range(count + 1):
            for begin in range(count - length + 1):
                end = begin + length
                found = set(symbols[begin]) if length == 1 else set()
                spans[begin, end] = found
                changed = True
                while changed:
                    changed = False
                    for lhs, rhs in self.toy.rules:
                        if lhs not in found and self.spans_rule(spans, rhs, begin, end):
                            found.add(lhs)
                            changed = True
        return "s" in spans[0, count]

    def spans_rule(self, spans: dict[tuple[int, int], set[str]], rhs: tuple[str, ...], begin: int, end: int) -> bool:
        if not rhs:
            return begin == end
        return any(
            rhs[0] in spans.get((begin, split), ()) and self.spans_rule(spans, rhs[1:], split, end)
            for split in range(begin, end + 1)
        )

    def texts(self, longest: int) -> list[str]:
        return [
            "".join(letters)
            for length in range(longest + 1)
            for letters in itertools.product(self.toy.alphabet, repeat=length)
        ]


def contexts(oracle: Oracle, rng: random.Random, members: list[str]) -> list[tuple[str, str]]:
    found = []
    for _ in range(4):
        text = rng.choice(members)
        begin = rng.randint(0, len(text))
        end = rng.randint(begin, len(text))
        found.append((text[:begin], text[end:]))
    wild = oracle.texts(2)
    found.append((rng.choice(wild), rng.choice(wild)))
    return found


def check_contexts(
    language: _core.Language,
    oracle: Oracle,
    left: str,
    right: str,
    rng: random.Random,
    verdicts: dict[str, int],
    toy: Toy,
) -> None:
    """The engine's verdicts on middles between two contexts, each with a witness or a search for one."""
    session = language.open(left, right)
    completions = oracle.texts(3 if toy.separated else 5)
    for middle in rng.sample(oracle.texts(3), 8):
        where = (toy, left, middle, right)
        viable, complete, rejected_at = session.check(middle)
        assert complete == oracle.member(left + middle + right), where
        verdicts["complete"] += complete
        if viable:
            verdicts["viable"] += 1
            state = session.start()
            assert state.advance(middle.encode()) == len(middle), where
            shortest = state.shortest_completion()
            assert shortest is not None, where
            assert oracle.member(left + middle + shortest.decode() + right), (where, shortest)
            shorter = [text for text in completions if len(text) < len(shortest)]
            assert not any(oracle.member(left + middle + text + right) for text in shorter), (where, shortest)
        else:
            verdicts["refused"] += 1
            assert rejected_at is not None, where
            refused = middle[: rejected_at + 1]
            hit = next((text for text in completions if oracle.member(left + refused + text + right)), None)
            assert hit is None, (where, hit)
