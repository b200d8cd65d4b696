"""Sentences of a language's own grammar, spelt out: layout, modes, blanks, comments and line joins included.

A derivation is drawn from the rules, and then written down. Where two symbols may touch, and whether a sampled lexeme
is the one that was meant, is asked of the plain twin's lexer.
"""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any

from support.languages.grammar_twin import Grammar

# For what a pattern leaves open, such as [^'].
_CHARACTERS = "abxzNU059 _-.,:;!?#%&()[]{}*+<>=@^`|~$/'\"\\\n\r\t\fé€\u0663😀"
_CLASSES = {r"[_\p{XID_Start}]": "[_a-zé\u03b1\u4e2d]", r"\p{XID_Continue}": "[_a-z0-9é\u0301\u0663]"}
_MOST_REPEATS = 3
_SLACK = 2  # how much deeper than the shortest way a rule may go, once the size is spent
_OVERDRAFT = 15  # rules on a way after that, before the shortest way is taken
_NAMES = ["x", "y", "match", "case", "type", "print", "__", "é"]
_NAMED = re.compile(r"\\N\{[^{}]*\}")
_INDENTS = [" ", "  ", "   ", "    ", "     ", "      ", "       ", "        ", "\t", "\t ", " \t", "    \t"]
_BLANKS = [" ", " ", " ", "  ", "\t", "\f", " \t "]
_COMMENTS = ["#", "# c", "# it's", '#"""', "#{é}\\"]
_QUOTES = ("'", '"')


class Sampler:
    """Texts that a regular expression matches."""

    def __init__(self, pattern: str) -> None:
        for name, characters in _CLASSES.items():
            pattern = pattern.replace(name, characters)
        # The standard library's own parser: no published sampler knows the grammar's character properties.
        self._parsed: Any = import_module("re._parser").parse(pattern)

    def sample(self, rng: random.Random) -> str:
        return self._sequence(rng, self._parsed)

    def _sequence(self, rng: random.Random, parsed: Any) -> str:
        return "".join(self._one(rng, str(operation), argument) for operation, argument in parsed)

    def _one(self, rng: random.Random, operation: str, argument: Any) -> str:
        match operation:
            case "LITERAL":
                return chr(argument)
            case "NOT_LITERAL":
                return rng.choice(_CHARACTERS.replace(chr(argument), ""))
            case "IN":
                return self._character(rng, [(str(kind), value) for kind, value in argument])
            case "BRANCH":
                return self._sequence(rng, rng.choice(argument[1]))
            case "SUBPATTERN":
                return self._sequence(rng, argument[-1])
            case "MAX_REPEAT":
                least, most, repeated = argument
                count = rng.randint(least, min(int(most), least + _MOST_REPEATS))
                return "".join(self._sequence(rng, repeated) for _ in range(count))
        raise NotImplementedError(operation)

    def _character(self, rng: random.Random, items: list[tuple[str, Any]]) -> str:
        spans = [(value, value) if kind == "LITERAL" else value for kind, value in items if kind != "NEGATE"]
        if len(spans) == len(items):
            return chr(rng.randint(*rng.choice(spans)))
        return rng.choice([c for c in _CHARACTERS if not any(low <= ord(c) <= high for low, high in spans)])


class Sentences:
    """Draws sentences. Rules that were used less are drawn more often; `used` counts them."""

    def __init__(self, grammar: Grammar, rng: random.Random) -> None:
        self.grammar = grammar
        self.used: Counter[int] = Counter()
        self._rng = rng
        layout = grammar.spec["layout"]
        self._newline, self._indent, self._dedent = (layout[kind] for kind in ("newline", "indent", "dedent"))
        self._lexemes = {lexeme.name: lexeme for lexeme in grammar.lexemes}
        self._samplers: dict[str, Sampler] = {}
        self._text_lexemes = {
            name
            for mode in grammar.spec.get("modes", ())
            if not mode.get("code", False)
            for name in mode["lexemes"]
        }  # fmt: skip
        self._choices: dict[str, list[int]] = {left: [] for left, _ in grammar.rules}
        for number, (left, right) in enumerate(grammar.rules):
            if right:  # the empty text says little
                self._choices[left].append(number)

    @cached_property
    def _depths(self) -> list[int]:
        least = self.grammar.recognizer.least_depth
        return [max((least[name] for name, is_rule in right if is_rule), default=0) for _, right in self.grammar.rules]

    @cached_property
    def _ways(self) -> dict[str, tuple[int, int]]:
        """For each nonterminal but the start: a rule, and the place in it, by which a derivation soonest gets there."""
        ways: dict[str, tuple[int, int]] = {}
        todo = deque([self.grammar.start])
        while todo:
            for number in self._choices[todo.popleft()]:
                for place, (name, is_rule) in enumerate(self.grammar.rules[number][1]):
                    if is_rule and name not in ways and name != self.grammar.start:
                        ways[name] = number, place
                        todo.append(name)
        return ways

    def one_of_each_rule(self, size: int) -> Iterator[str]:
        """A sentence for every rule, in which it is used."""
        for number, (_, right) in enumerate(self.grammar.rules):
            if right:
                yield self.sentence(size, number)

    def sentence(self, size: int, rule: int | None = None) -> str:
        """One sentence of about `size` rules and of as many more as it takes to end; it uses `rule`."""
        return self._spelt(self._derivation(size, rule))

    def _derivation(self, size: int, rule: int | None) -> list[str]:
        """The lexemes of a random derivation."""
        forced: list[tuple[int, int]] = []  # outermost last: a rule and which of its symbols goes on
        if rule is not None:
            forced.append((rule, -1))
            while (left := self.grammar.rules[forced[-1][0]][0]) != self.grammar.start:
                forced.append(self._ways[left])
        symbols: list[str] = []
        todo: list[tuple[str, bool, int, bool]] = [(self.grammar.start, True, size, bool(forced))]
        while todo:
            name, is_rule, share, is_forced = todo.pop()
            if not is_rule:
                symbols.append(name)
                continue
            number, place = forced.pop() if is_forced else (self._choice(name, share), -1)
            self.used[number] += 1
            right = self.grammar.rules[number][1]
            shares = self._shares(share - 1, sum(is_rule for _, is_rule in right))
            children = [
                (child, is_rule, shares.pop() if is_rule else 0, index == place)
                for index, (child, is_rule) in enumerate(right)
            ]
            todo.extend(reversed(children))
        return symbols

    def _choice(self, name: str, share: int) -> int:
        choices = self._choices[name]
        if share <= 0:  # short ways to the end, and at last the shortest ones
            least = min(self._depths[number] for number in choices) + (_SLACK if share > -_OVERDRAFT else 0)
            choices = [number for number in choices if self._depths[number] <= least]
            return self._rng.choices(choices, [len(self.grammar.rules[number][1]) ** -3 for number in choices])[0]
        weights = [1 / (1 + self.used[number]) for number in choices]
        return self._rng.choices(choices, weights)[0]

    def _shares(self, size: int, count: int) -> list[int]:
        if size <= 0:
            return [size] * count
        cuts = [0, *sorted(self._rng.randint(0, size) for _ in range(count - 1)), size]
        return [end - begin for begin, end in pairwise(cuts)]

    # ---------------------------------------------------------------- writing it down

    def _spelt(self, symbols: list[str]) -> str:
        rng = self._rng
        line_break = rng.choice(["\n", "\n", "\n", "\r\n", "\r"])
        left = len([name for name in symbols if name not in (self._indent, self._dedent)])
        pieces: list[str] = self._empty_lines(line_break)
        columns = [""]
        depth = 0
        before: tuple[str, str] | None = None  # the symbol before this one on the line
        for name in symbols:
            if name == self._indent:
                columns.append(columns[-1] + rng.choice(_INDENTS))
                continue
            if name == self._dedent:
                columns.pop()
                continue
            left -= 1
            if name == self._newline:
                pieces.append(self._end_of_line())
                if left or rng.random() < 0.7:
                    pieces += [line_break, *self._empty_lines(line_break)]
                before = None
                continue
            text = self._spelling(name)
            if before is None:
                pieces.append(rng.choice(["", "", "", "", "\f"]) + columns[-1])
            elif name not in self._text_lexemes:
                pieces.append(self._between(before, text, line_break, depth > 0))
            elif not self._may_touch(before, text) and self._is_spelt(name, f" {text}"):
                text = f" {text}"
            pieces.append(text)
            depth += self.grammar.depth_by.get(name, 0)
            before = name, text
        return "".join(pieces)

    def _empty_lines(self, line_break: str) -> list[str]:
        rng = self._rng
        lines = []
        while rng.random() < 0.1:
            lines.append(rng.choice(["", *_INDENTS]) + rng.choice(["", *_COMMENTS]) + line_break)
        return lines

    def _end_of_line(self) -> str:
        return self._rng.choice(["", "", "", "", " ", "\t", self._rng.choice(_COMMENTS)])

    def _between(self, before: tuple[str, str], text: str, line_break: str, in_brackets: bool) -> str:
        rng = self._rng
        if rng.random() < 0.9:
            pieces = [rng.choice(["", "", " "])]
        else:
            breaks = [line_break, rng.choice(_COMMENTS) + line_break] if in_brackets else []
            pieces = rng.choices([*_BLANKS, "\\" + line_break, *breaks], k=rng.randint(1, 3))
        return "".join(pieces) or ("" if self._may_touch(before, text) else " ")

    def _may_touch(self, before: tuple[str, str], text: str) -> bool:
        name, first = before
        if first.endswith(_QUOTES) and text.startswith(_QUOTES):
            return False
        if first.endswith(".") and text.startswith("."):  # two are no lexeme, and three are one
            return False
        return self.grammar.lexeme_at(first + text, 0, self._mode(name)).end == len(first)

    def _mode(self, name: str) -> Any:
        return self.grammar.modes[self.grammar.mode_of.get(name, self.grammar.default_mode)]

    def _spelling(self, name: str) -> str:
        lexeme = self._lexemes[name]
        if lexeme.literal is not None:
            return lexeme.literal
        if name == "NAME" and self._rng.random() < 0.8:
            return self._rng.choice(_NAMES)
        sampler = self._samplers.get(name)
        if sampler is None:
            sampler = self._samplers[name] = Sampler(lexeme.pattern.pattern.removeprefix("(?p)"))
        while True:
            text = _NAMED.sub(r"\\N{BULLET}", sampler.sample(self._rng))
            if self._is_spelt(name, text):
                return text

    def _is_spelt(self, name: str, text: str) -> bool:
        found = self.grammar.lexeme_at(text, 0, self._mode(name))
        return name in found.lexemes and found.end == len(text)
