"""Shortest derivations of a lowered grammar: of each nonterminal, of what stands around it, and from one to another.

Shortest is what the fewest characters spell, blanks not counted; of equals it is the one whose rule comes first. The
shortest derivations of all nonterminals are found by Knuth's generalisation of Dijkstra's algorithm (1977), the ways
between them by Dijkstra's own.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Lexemes = tuple[str, ...]
"""Names of lexemes, in the order of a text."""


@dataclass(frozen=True)
class Rule:
    """One BNF rule."""

    left: str
    right: tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """Symbols left and right of a nonterminal in its shortest derivation from another one."""

    before: Lexemes
    after: Lexemes
    steps: tuple[tuple[str, str], ...] = ()
    """The nonterminals of the way, each with the one below it."""

    def then(self, way: Way) -> Way:
        """This way, and from its end another one."""
        return Way(self.before + way.before, way.after + self.after, self.steps + way.steps)


class Derivations:
    """The shortest derivations of a grammar."""

    def __init__(self, spec: Mapping[str, Any], cost: Callable[[str], int]) -> None:
        """Finds the shortest text of each nonterminal.

        Args:
            spec: A language, lowered (`fim_server.language.definition.compile.lower`).
            cost: Characters of a lexeme's text.
        """
        self.start: str = spec["start"]
        self.rules = [Rule(rule["lhs"], tuple(rule["rhs"])) for rule in spec["rules"]]
        self.nonterminals = dict.fromkeys(rule.left for rule in self.rules)
        self._cost = cost
        self.shortest: dict[str, Lexemes] = {}
        """By nonterminal; those that derive no text at all are missing."""
        self._find_shortest()
        self._ways: dict[str, dict[str, Way]] = {}
        self._uses: dict[str, list[tuple[Rule, int]]] = defaultdict(list)
        for rule in self.rules:
            for place, symbol in enumerate(rule.right):
                if symbol in self.nonterminals:
                    self._uses[symbol].append((rule, place))

    def text(self, symbols: Sequence[str]) -> Lexemes:
        """The shortest text of some symbols.

        Raises:
            KeyError: A nonterminal derives no text.
        """
        return tuple(itertools.chain.from_iterable(self._lexemes(symbol) for symbol in symbols))

    def around(self, rule: Rule, place: int) -> Way:
        """The shortest texts of what a rule has left and right of one of its symbols, as a way of one step.

        Raises:
            KeyError: A nonterminal derives no text.
        """
        step = (rule.left, rule.right[place])
        return Way(self.text(rule.right[:place]), self.text(rule.right[place + 1 :]), (step,))

    def ways_to(self, target: str) -> dict[str, Way]:
        """The shortest way to a nonterminal from each that has it in a derivation; its own is empty."""
        known = self._ways.get(target)
        if known is None:
            known = self._ways[target] = self._find_ways(target)
        return known

    def context(self, nonterminal: str) -> Way | None:
        """The shortest texts around a nonterminal in a whole text; None where no text has it."""
        return self.ways_to(nonterminal).get(self.start)

    def _lexemes(self, symbol: str) -> Lexemes:
        return self.shortest[symbol] if symbol in self.nonterminals else (symbol,)

    def length(self, lexemes: Sequence[str]) -> int:
        """Characters of some lexemes, blanks between them not counted."""
        return sum(map(self._cost, lexemes))

    def _find_shortest(self) -> None:
        waiting: dict[str, list[int]] = defaultdict(list)
        missing = [0] * len(self.rules)
        queue: list[tuple[int, int]] = []

        def offer(number: int) -> None:
            heapq.heappush(queue, (self.length(self.text(self.rules[number].right)), number))

        for number, rule in enumerate(self.rules):
            below = {symbol for symbol in rule.right if symbol in self.nonterminals}
            missing[number] = len(below)
            for symbol in below:
                waiting[symbol].append(number)
            # Only the start may be empty (the engine's rule), and an empty text has nothing in it to repeat.
            if not below and rule.right:
                offer(number)
        while queue:
            _, number = heapq.heappop(queue)
            rule = self.rules[number]
            if rule.left in self.shortest:
                continue
            self.shortest[rule.left] = self.text(rule.right)
            for other in waiting[rule.left]:
                missing[other] -= 1
                if not missing[other]:
                    offer(other)

    def _find_ways(self, target: str) -> dict[str, Way]:
        found: dict[str, Way] = {}
        order = itertools.count()  # of equals the one found first, so that no texts are compared
        queue = [(0, next(order), target, Way((), ()))]
        while queue:
            length, _, symbol, way = heapq.heappop(queue)
            if symbol in found:
                continue
            found[symbol] = way
            for rule, place in self._uses[symbol]:
                if rule.left in found or any(each not in self.shortest for each in rule.right if self._is_rule(each)):
                    continue
                around = self.around(rule, place)
                more = length + self.length(around.before) + self.length(around.after)
                heapq.heappush(queue, (more, next(order), rule.left, around.then(way)))
        return found

    def _is_rule(self, symbol: str) -> bool:
        return symbol in self.nonterminals
