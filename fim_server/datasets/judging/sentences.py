"""Sentences drawn from a language's own grammar, which its parser has to take.

Cuts of real files cover common code; sentences cover all rules alike. A derivation is drawn, rules that were used less
more often, and its lexemes are written with a blank between any two. The lexer's automaton gives the texts of lexemes
that are no literals.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from typing import Any, TypeAlias

from fim_server.errors import LanguageError
from fim_server.language import Language

TEXTS = 12
"""Number of texts drawn for each lexeme."""

LONGEST = 24
"""Bytes after which a drawn text takes the shortest path to its end."""

SIZES = (3, 10, 20, 40, 100)
"""Sizes of sentences, roughly, in rules."""

MUCH = 5
"""Rules left to spend above which rules without a nonterminal are drawn seldom."""

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal and the right side of one of its rules."""

PRINTABLE = 0.95
"""Share of steps that take a printable ASCII character where there is one."""


class Sentences:
    """Drawer of sentences of a language without layout and modes, where blanks separate any two lexemes."""

    def __init__(self, lowered: dict[str, Any], language: Language, rng: random.Random) -> None:
        """Read the rules, and draw texts of all lexemes.

        Args:
            lowered: The definition as the engine takes it.
            language: The same, compiled.
            rng: Source of all draws.

        Raises:
            LanguageError: The language has layout or modes, or a lexeme without any text found.
        """
        if lowered.get("layout") or lowered.get("modes"):
            raise LanguageError(f"language {lowered['name']}: no sentences are drawn of languages with layout or modes")
        self._rng = rng
        self._start: str = lowered["start"]
        self._rules: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for rule in lowered["rules"]:
            self._rules[rule["lhs"]].append(tuple(rule["rhs"]))
        self._depths = self._least_depths()
        self._ways = self._soonest_ways()
        self.used: Counter[Rule] = Counter()
        self._texts = drawn_texts(lowered, json.loads(language.core.table()), rng)
        # All texts that bind or match are one, so that each is the one that is bound.
        marks = [mark["name"] for mark in lowered.get("marks", []) if self._texts.get(mark["name"])]
        if marks:
            self._texts.update(dict.fromkeys(marks, self._texts[marks[0]][:1]))
        for symbol in sorted({symbol for choices in self._rules.values() for right in choices for symbol in right}):
            if symbol not in self._rules and not self._texts.get(symbol):
                raise LanguageError(f"language {lowered['name']}: no text was found that is read as {symbol}")

    def drawn(self, count: int) -> Iterator[str]:
        """Yield sentences of all sizes; each uses another rule in turn."""
        rules = [(name, right) for name, choices in self._rules.items() for right in choices if name in self._ways]
        self._rng.shuffle(rules)
        for number in range(count):
            yield self.sentence(self._rng.choice(SIZES), rules[number % len(rules)])

    def sentence(self, size: int, rule: Rule | None = None) -> str:
        """Return a sentence of about `size` rules and those that it takes to end; it uses `rule`."""
        way = [] if rule is None else self._way(rule)
        symbols: list[str] = []
        waiting = [(self._start, size, bool(way))]
        while waiting:
            name, share, is_on_way = waiting.pop()
            if name not in self._rules:
                symbols.append(name)
                continue
            right, place = way.pop() if is_on_way else (self._choice(name, share), -1)
            self.used[name, right] += 1
            shares = self._shares(share - 1, sum(symbol in self._rules for symbol in right))
            inner = [
                (symbol, shares.pop() if symbol in self._rules else 0, at == place) for at, symbol in enumerate(right)
            ]
            waiting.extend(reversed(inner))
        return " ".join(self._rng.choice(self._texts[symbol]) for symbol in symbols)

    def _way(self, rule: Rule) -> list[tuple[tuple[str, ...], int]]:
        """Return the rules from the start symbol to one, in reverse, each with the place of the next one in it."""
        name, right = rule
        way = [(right, -1)]
        while name != self._start:
            name, right, place = self._ways[name]
            way.append((right, place))
        return way

    def _soonest_ways(self) -> dict[str, tuple[str, tuple[str, ...], int]]:
        """Return, by nonterminal, the rule and the place in it on the shortest path from the start symbol."""
        ways: dict[str, tuple[str, tuple[str, ...], int]] = {self._start: (self._start, (), -1)}
        waiting = deque([self._start])
        while waiting:
            name = waiting.popleft()
            for right in self._rules[name]:
                for place, symbol in enumerate(right):
                    if symbol in self._rules and symbol not in ways:
                        ways[symbol] = name, right, place
                        waiting.append(symbol)
        return ways

    def _choice(self, name: str, share: int) -> tuple[str, ...]:
        """Return a rule of a nonterminal: a rarely used one or, once the size is spent, one that ends soon."""
        choices = self._rules[name]
        if share <= 0:
            least = min(self._depth(right) for right in choices)
            choices = [right for right in choices if self._depth(right) == least]
        weights = [self._weight(right, share) / (1 + self.used[name, right]) for right in choices]
        return self._rng.choices(choices, weights)[0]

    def _weight(self, right: tuple[str, ...], share: int) -> float:
        """Return a small weight for a rule that ends here while much is left to spend."""
        return 1.0 if share < MUCH or any(symbol in self._rules for symbol in right) else 0.1

    def _shares(self, share: int, count: int) -> list[int]:
        """Return the number of rules that each of some nonterminals may spend."""
        if count == 0 or share <= 0:
            return [0] * count
        cuts = sorted(self._rng.randint(0, share) for _ in range(count - 1))
        return [after - before for before, after in zip([0, *cuts], [*cuts, share], strict=True)]

    def _depth(self, right: tuple[str, ...]) -> int:
        return max((self._depths[symbol] for symbol in right if symbol in self._rules), default=0)

    def _least_depths(self) -> dict[str, int]:
        """Return the depth of each nonterminal's flattest derivation."""
        far = 1 << 30
        depths = dict.fromkeys(self._rules, far)
        changed = True
        while changed:
            changed = False
            for name, choices in self._rules.items():
                least = 1 + min(max((depths.get(symbol, 0) for symbol in right), default=0) for right in choices)
                if least < depths[name]:
                    depths[name], changed = least, True
        return depths


def drawn_texts(lowered: dict[str, Any], table: dict[str, Any], rng: random.Random) -> dict[str, list[str]]:
    """Return texts of each lexeme: a literal's own, or random walks through the automaton that end at it."""
    lexemes = lowered["lexemes"]
    automaton = _Automaton(table)
    found: dict[str, list[str]] = {}
    for number, lexeme in enumerate(lexemes):
        if "literal" in lexeme:
            found[lexeme["name"]] = [lexeme["literal"]]
            continue
        at_start = lexeme["name"] in lowered.get("first_lexemes", [])
        texts = {automaton.text(number, rng, at_start) for _ in range(TEXTS)}
        found[lexeme["name"]] = sorted(text for text in texts if text is not None)
    return found


class _Automaton:
    """Automaton of the lexer, from the start of ordinary code or of the file."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._count: int = table["class_count"]
        self._next: list[int] = table["next"]
        self._accepts = [table["accept_sets"][accept] if accept else [] for accept in table["accept"]]
        self._starts: tuple[int, int | None] = table["starts"][0], table["file_start"]
        self._bytes: dict[int, list[int]] = defaultdict(list)
        for byte, of_class in enumerate(table["class_of"]):
            self._bytes[of_class].append(byte)
        self._distances: dict[int, dict[int, int]] = {}

    def _ways(self, state: int) -> list[tuple[int, int]]:
        ways = ((of_class, self._next[state * self._count + of_class]) for of_class in self._bytes)
        return [(of_class, after) for of_class, after in ways if after]

    def _distance(self, lexeme: int) -> dict[int, int]:
        """Return, by state, the fewest bytes to a state whose first choice is the lexeme."""
        known = self._distances.get(lexeme)
        if known is not None:
            return known
        before: dict[int, list[int]] = defaultdict(list)
        for state in range(len(self._accepts)):
            for _, after in self._ways(state):
                before[after].append(state)
        ends = [state for state, accepts in enumerate(self._accepts) if accepts and lexeme in accepts]
        found = dict.fromkeys(ends, 0)
        waiting = deque(ends)
        while waiting:
            state = waiting.popleft()
            for other in before[state]:
                if other not in found:
                    found[other] = found[state] + 1
                    waiting.append(other)
        self._distances[lexeme] = found
        return found

    def text(self, lexeme: int, rng: random.Random, at_start: bool = False) -> str | None:
        """Return a random text of a lexeme; None where there is none, or it is no UTF-8."""
        distance = self._distance(lexeme)
        state, data = self._starts[at_start], bytearray()
        if state is None or state not in distance:
            return None
        wanted = rng.choice((1, 1, 2, 3, 5, 8, 12))
        while True:
            if distance[state] == 0 and len(data) >= wanted:
                break
            ways = [(of_class, after) for of_class, after in self._ways(state) if after in distance]
            if not ways:
                break
            if len(data) >= wanted:
                least = min(distance[after] for _, after in ways)
                ways = [way for way in ways if distance[way[1]] == least]
            of_class, state = rng.choice(ways)
            choices = self._bytes[of_class]
            plain = [byte for byte in choices if 32 < byte < 127]
            data.append(rng.choice(plain if plain and rng.random() < PRINTABLE else choices))
            if len(data) > LONGEST:
                wanted = 0
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return None
