"""Random small languages with modes and matched text, and brute force over them.

Names are bound behind a bracket and stay bound up to the one that closes it, and no other lexeme has a bracket in it.
So no two names are bound at once. The oracle parses by places and by the name that is bound around each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, TypeAlias

from fim_server.language.definition.matching import Matching
from support.languages.united_modes import Mode, Moded, Oracle

Fact: TypeAlias = tuple[str, int, int, str | None]
"""A nonterminal, its places in a text, and the name that is bound there."""

MATCHED = {"binds": ("x", "p"), "matches": ("m", "p")}
"""`x` binds a name, `m` matches one, and `p` binds one and matches it itself."""


@dataclass(frozen=True)
class MatchedModed(Moded):
    """A language in which names have to recur: `x` binds one, `m` matches one, and `p` binds one and matches it."""

    @property
    def spec(self) -> dict[str, Any]:
        """The definition as the engine takes it."""
        heads = {lhs for lhs, _ in self.rules}
        matched = {key: [name for name in names if name in heads] for key, names in MATCHED.items()}
        matching = Matching("moded", "s", self.rules, {"symbol": "n", **matched})
        spec = super().spec
        spec["rules"] = [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in matching.rules]
        spec["lexemes"] += [{"name": mark["name"]} for mark in matching.marks()]
        spec["marks"], spec["slotted"] = matching.marks(), matching.slotted()
        spec["modes"] = matching.in_modes(spec["modes"])
        return spec


def random_matched(rng: random.Random, pairs: bool) -> MatchedModed:
    """Return a random language; with `pairs`, only rules of one bracket bind names, and match them themselves."""
    lexemes: list[tuple[str, str | None, str | None]] = [("L(", "(", None), ("L)", ")", None), ("L=", "=", None)]
    modes = []
    others = ["L="]
    owned = rng.random() < 0.6
    if owned:
        modes.append(Mode(("NAME",), code=True))
    if rng.random() < 0.6:
        lexemes.append(("DIVIDE", None, "/"))
        modes.append(Mode(("DIVIDE",), code=True))
        others.append("DIVIDE")
    if rng.random() < 0.6:
        lexemes.append(("REGEX", None, rng.choice(("/[ab]*/", "/", "=/", "[ab]+/"))))
        lacks = () if owned or rng.random() < 0.3 else ("NAME",)
        modes.append(Mode(("REGEX",), code=True, without=lacks))
        others += ["REGEX", "REGEX"]
    if not modes or rng.random() < 0.6:
        lexemes += [("TICK", None, "[ab ]*`"), ("BRACE", None, r"[ab ]*\{")]
        modes.append(Mode(("TICK", "BRACE"), code=False))
        others += ["TICK", "BRACE"]
    lexemes += [("NAME", None, "[ab]+"), ("BLANK", None, " +")]
    rng.shuffle(modes)

    def some(symbols: list[str], most: int) -> tuple[str, ...]:
        return tuple(rng.choice(symbols) for _ in range(rng.randint(0, most)))

    inner = [*others, "b", "b", "y", "p"] if pairs else [*others, "b", "b", "y", "m", "x", "p", "NAME", "n"]
    rules: set[tuple[str, tuple[str, ...]]] = {("n", ("NAME",)), ("b", ())}
    for _ in range(rng.randint(1, 2)):
        before = (*some(["z"], 1), "L(", *some(["z"], 1))
        own = (*some(others, 1), "b", *some(others, 1))
        rules.add(("p", (*before, "n", *own, "n", *some(others, 1), "L)")))
        if rng.random() < 0.4:
            rules.add(("p", ("L(", "n", *some(others, 1), "L)")))
        if not pairs:
            rules.add(("x", (*before, "n", *some([*others, "k"], 1), "b", "L)")))
            rules.add(("m", (*some([*others, "k"], 1), "n", *some([*others, "k"], 1))))
    for _ in range(rng.randint(1, 3)):
        rules.add(("b", some(inner, 3)))
        rules.add(("y", (*some(inner, 1), rng.choice(["p", *others]), *some(inner, 1))))
    rules.add(("b", rng.choice([("b", "p"), ("b", "y"), ("p", "b"), ("b", "p", rng.choice(others))])))
    rules.add(("k", rng.choice([(others[-1], "L="), ("L(", "L)"), (), (others[0],)])))
    rules.add(("z", (rng.choice(others),)))
    rules.add(("z", ("z", rng.choice(others))))
    for _ in range(rng.randint(1, 2)):
        rules.add(("s", some(["p", "s", "k", *([] if pairs else ["x", "NAME"])], 2)))
    rules.add(("s", ("p",) if pairs else (rng.choice("xp"),)))
    return MatchedModed(tuple(lexemes), tuple(modes), tuple(sorted(rules)))


class MatchedOracle(Oracle):
    """Brute force over a language with modes and matched text."""

    def _member(self, text: str) -> bool:
        self.text = text
        self.edges_at: dict[int, list[tuple[str, int, str]]] = {}
        waiting = [0]
        while waiting:
            at = waiting.pop()
            if at not in self.edges_at:
                code = self._after_blanks(text, at)
                self.edges_at[at] = [
                    (name, end, text[at if self.owner[name] in self.texts_of else code : end])
                    for name, end in self.edges(text, at)
                ]
                waiting.extend(end for _, end, _ in self.edges_at[at])
        ends = [at for at in self.edges_at if self._after_blanks(text, at) == len(text)]
        self.known: set[Fact] = set()
        while True:
            before = len(self.known)
            self.tried: set[Fact] = set()
            if any(self.proves(("s", 0, end, None)) for end in ends):
                return True
            if len(self.known) == before:
                return False

    def proves(self, fact: Fact) -> bool:
        """Return whether a nonterminal derives a part where a name is bound; facts under trial count as false."""
        if fact in self.known:
            return True
        if fact in self.tried:
            return False
        self.tried.add(fact)
        lhs, begin, end, name = fact
        rules = [rhs for head, rhs in self.moded.rules if head == lhs]
        if any(self.derives(lhs, rhs, 0, (begin, end), name) for rhs in rules):
            self.known.add(fact)
            return True
        return False

    def derives(self, lhs: str, rhs: tuple[str, ...], at: int, part: tuple[int, int], name: str | None) -> bool:
        """Return whether the symbols of a rule from a place on derive a part."""
        begin, end = part
        if at == len(rhs):
            return begin == end
        symbol = rhs[at]
        if symbol == "n" or symbol in self.owner:
            matches = symbol == "n" and (lhs == "m" or (lhs == "p" and "n" in rhs[:at]))
            binds = symbol == "n" and not matches and lhs in ("x", "p")
            lexeme = "NAME" if symbol == "n" else symbol
            return any(
                self.derives(lhs, rhs, at + 1, (after, end), text if binds else name)
                for found, after, text in self.edges_at[begin]
                if found == lexeme and after <= end and (not matches or text == name)
            )
        return any(
            self.derives(lhs, rhs, at + 1, (split, end), name) and self.proves((symbol, begin, split, name))
            for split in self.edges_at
            if begin <= split <= end
        )

    def sentence_of(self, rng: random.Random, symbol: str = "s", name: str | None = None, depth: int = 9) -> str | None:
        """A random text that the grammar derives, names matched; None where it grows too long."""
        if symbol in self.owner:
            own = rng.choice(["a", "b", "ab", "ba"]) if symbol == "NAME" else rng.choice(self._examples(symbol))
            return own + (" " if rng.random() < 0.2 else "")
        choices = [rhs for lhs, rhs in self.moded.rules if lhs == symbol]
        if depth == 0 or not choices:
            return None
        rhs = rng.choice(choices)
        parts = []
        for at, part in enumerate(rhs):
            if part == "n":
                matches = symbol == "m" or (symbol == "p" and "n" in rhs[:at])
                text = name if matches else rng.choice(["a", "b", "ab", "ba"])
                name = text if symbol in ("x", "p") else name
                parts.append(text and text + (" " if rng.random() < 0.3 else ""))
            else:
                parts.append(self.sentence_of(rng, part, name, depth - 1))
        return None if None in parts else "".join(part for part in parts if part is not None)
