"""Random small languages with lexemes at the first byte of a file alone, and brute force over them."""

from __future__ import annotations

import random

import regex

from fim_server import _core
from support.languages.definitions import compiled_or_none
from support.languages.toys import Oracle, Toy, random_toy

FIRST = ["a", "b", "ab", "a+b", "b[ab]", "ba?", "(ab)+", "ac*b", "c", "bc+"]
"""Lexemes that a file may begin with: they begin as others do, and hold separators."""


class StartOracle(Oracle):
    """Brute force over a language with first lexemes, of which some are ignored."""

    def __init__(self, toy: Toy, first: dict[str, str], ignored: set[str]) -> None:
        super().__init__(toy)
        self.first = {name: regex.compile(pattern) for name, pattern in first.items()}
        self.ignored = ignored

    def lex(self, text: str) -> list[frozenset[str]] | None:
        for end in range(len(text), 0, -1):
            for name, pattern in self.first.items():
                if pattern.fullmatch(text, 0, end):
                    rest = super().lex(text[end:])
                    read = [] if name in self.ignored else [frozenset([name])]
                    return None if rest is None else read + rest
        return super().lex(text)


def random_language(rng: random.Random) -> tuple[Toy, dict[str, str], set[str]]:
    """A random language, its first lexemes by their names, and those that are ignored."""
    toy = random_toy(rng)
    first = {f"F{index}": pattern for index, pattern in enumerate(rng.sample(FIRST, rng.randint(1, 2)))}
    ignored = {name for name in first if rng.random() < 0.25}
    rules = set(toy.rules)
    symbols = sorted({name for name, _ in rules}) + [name for name, *_ in toy.lexemes]
    for name in sorted(first.keys() - ignored):
        for _ in range(rng.randint(1, 2)):
            lhs = rng.choice(["s", rng.choice(sorted(rules))[0]])
            tail = tuple(rng.choice(symbols) for _ in range(rng.choice([0, 1, 1, 2])))
            rules.add((lhs, (*rng.choice([(), (), (rng.choice(symbols),)]), name, *tail)))
    if rng.random() < 0.5:
        rules.add(("s", ()))
    return Toy(toy.lexemes, tuple(sorted(rules)), toy.separated, toy.soft), first, ignored


def compiled(toy: Toy, first: dict[str, str], ignored: set[str]) -> _core.Language | None:
    spec = toy.spec()
    spec["lexemes"] += [{"name": name, "pattern": pattern} for name, pattern in first.items()]
    spec["first_lexemes"] = sorted(first)
    spec["ignore"] += sorted(ignored)
    return compiled_or_none(spec)
