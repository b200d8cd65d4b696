"""Families generated from a language's own grammar: each recursive rule repeated.

A rule `A -> α X β` whose X has an A in it makes texts of any length. They are α and the path from X down to A again and
again, an A in the middle, and the ends of all that in reverse. Everything else is spelled by shortest derivations, so
the text is the repetition and little more.

Equal families count once. Rules that differ in one literal stand for each other (`x+x`, `x-x`), and so do instances of
a template. Where one side is repeated, the elements of lists are repeated in each of their forms (`x[a:b,a:b]` beside
`x[a,a]`). Where both sides nest, a step that is part of a shorter family makes none of its own.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from benchmarks.families.derivations import Derivations, Lexemes, Rule, Way
from benchmarks.families.spelling import Speller
from benchmarks.families.texts import CannotGrowError, Written
from fim_server.language import Language
from fim_server.language.definition import compile as grammar

MOST_USERS = 6
"""Rules that may use an element whose forms are repeated one by one: one that everything uses has the grammar in it."""

CHECKED_REPETITIONS = 3
"""With which a family is parsed before it is measured."""

TEMPLATE = re.compile(r"\{(.*)\}")
HELPER = re.compile(r"_(?:star|plus)_\d+$")
"""End of the names of Lark's rules for `x*` and `x+`."""


@dataclass(frozen=True)
class Row:
    """A list in which nests that can be no deeper stand side by side.

    Attributes:
        before: What the text begins with, the list's first element included.
        unit: What stands around each nest.
        after: What the text ends with.
    """

    before: Lexemes
    unit: Way
    after: Lexemes


@dataclass(frozen=True)
class Generated:
    """A family of a grammar's.

    Attributes:
        name: The rule and what is repeated.
        speller: That of the language.
        context: What stands around it.
        unit: What is repeated, left and right of `core`.
        core: What is innermost.
        deepest: Repetitions that the limits of the language allow within each other.
        row: Where more of them stand; None where there is no place.
    """

    name: str
    speller: Speller
    context: Way
    unit: Way
    core: Lexemes
    deepest: float = math.inf
    row: Row | None = None
    parses: bool = True

    def written(self, repetitions: int) -> Written:
        """See `Family.written`."""
        if repetitions <= self.deepest:
            return self._nested(repetitions)
        if self.row is None or self.deepest < 1:
            raise CannotGrowError(self.name)
        return self._in_a_row(self.row, int(self.deepest), repetitions)

    def _nested(self, repetitions: int) -> Written:
        before, after = self.unit.before, self.unit.after
        start = len(self.context.before)
        lexemes = self.context.before + before * repetitions + self.core + after * repetitions + self.context.after
        innermost = start + len(before) * repetitions + len(self.core)
        if before and after:
            middle, end = innermost - len(self.core), innermost
        elif before:
            middle, end = start + len(before) * (repetitions // 2), innermost
        else:
            middle, end = innermost + len(after) * (repetitions // 2), innermost + len(after) * repetitions
        return self._spelt(lexemes, start + 1, middle, end)

    def _in_a_row(self, row: Row, depth: int, repetitions: int) -> Written:
        nest = self.unit.before * depth + self.core + self.unit.after * depth
        element = row.unit.before + nest + row.unit.after
        elements = max(1, round(repetitions / depth))
        lexemes = row.before + element * elements + row.after
        first = len(row.before) + len(row.unit.before)
        innermost = first + len(self.unit.before) * depth
        middle = innermost + len(element) * (elements // 2)
        end = innermost + len(element) * (elements - 1) + len(self.core)
        return self._spelt(lexemes, first + 1, middle, end)

    def _spelt(self, lexemes: Lexemes, opening: int, middle: int, end: int) -> Written:
        beyond = middle
        while beyond < len(lexemes) and lexemes[beyond] in (self.speller.indent, self.speller.dedent):
            beyond += 1
        beyond = min(beyond + 1, len(lexemes))
        text, offsets = self.speller.write(lexemes, {opening, middle, beyond, end})
        return Written(text, offsets[opening], offsets[middle], offsets[beyond], offsets[end])


@dataclass(frozen=True)
class Generation:
    """Families of a grammar.

    Attributes:
        families: Families to measure.
        occurrences: Places in rules through which their own left side can be reached again.
        left_out: Reasons for left-out families.
    """

    families: list[Generated]
    occurrences: int
    left_out: dict[str, str]


def generated(language_name: str) -> Generation:
    """The families of a language that comes with the package.

    Raises:
        LanguageError: There is no such language.
    """
    spec = grammar.lower(grammar.read_builtin(language_name))
    return _Generator(Language.load(language_name), spec).generation()


class _Generator:
    def __init__(self, language: Language, spec: Mapping[str, Any]) -> None:
        self._language = language
        self._speller = Speller(language, spec)
        self._derivations = Derivations(spec, self._speller.cost)
        self._depths = _Depths(spec)
        literals = {lexeme["name"] for lexeme in spec["lexemes"] if "literal" in lexeme}
        self._rules = list(_told_apart(self._derivations.rules, literals))
        self._by_left: dict[str, list[Rule]] = defaultdict(list)
        for rule in self._rules:
            self._by_left[rule.left].append(rule)
        self._users: dict[str, set[str]] = defaultdict(set)
        for rule in self._derivations.rules:
            for symbol in rule.right:
                self._users[symbol].add(TEMPLATE.sub("", rule.left))

    def generation(self) -> Generation:
        found = list(self._occurrences())
        families: dict[str, Generated] = {}
        names: set[str] = set()
        left_out: dict[str, str] = {}
        for rule, unit in self._chosen(found):
            family = self._family(rule, unit)
            text = family.written(2).text
            if text in families:
                continue
            if family.name in names:
                family = replace(family, name=f"{family.name} in {self._shown(family.context)}")
            names.add(family.name)
            families[text] = family
            reason = self._trouble(family)
            if reason is not None:
                left_out[family.name] = reason
        measured = [family for family in families.values() if family.name not in left_out]
        return Generation(measured, len(found), left_out)

    def _occurrences(self) -> Iterator[tuple[Rule, int, Way]]:
        """Every place in a rule from which its left side is reached, and the way there."""
        for rule in self._rules:
            if self._derivations.context(rule.left) is None:
                continue
            ways = self._derivations.ways_to(rule.left)
            for place, symbol in enumerate(rule.right):
                if symbol in ways:
                    yield rule, place, self._derivations.around(rule, place).then(ways[symbol])

    def _chosen(self, found: Sequence[tuple[Rule, int, Way]]) -> Iterator[tuple[Rule, Way]]:
        nested: list[tuple[Rule, int, Way]] = []
        for rule, place, unit in found:
            if unit.before and unit.after:
                nested.append((rule, place, unit))
            elif unit.before or unit.after:
                yield rule, unit
                yield from ((rule, other) for other in self._other_elements(rule, place))
        nested.sort(key=lambda each: self._derivations.length(each[2].before + each[2].after))
        covered: set[tuple[str, str]] = set()
        for rule, place, unit in nested:
            if (rule.left, rule.right[place]) not in covered:
                covered.update(unit.steps)
                yield rule, unit

    def _other_elements(self, rule: Rule, place: int) -> Iterator[Way]:
        """The units of a list with other elements than the shortest one."""
        if rule.right[place] != rule.left:
            return
        rest = [index for index, symbol in enumerate(rule.right) if index != place and symbol in self._by_left]
        if len(rest) != 1 or len(self._users[rule.right[rest[0]]]) > MOST_USERS:
            return
        forms: dict[object, Lexemes] = {}
        for form in self._by_left[rule.right[rest[0]]]:
            below = sorted(symbol for symbol in form.right if symbol in self._by_left)
            alike = tuple(below), None if form.right[0] in below else form.right[0]
            text = self._derivations.text(form.right)
            if alike not in forms or self._derivations.length(text) < self._derivations.length(forms[alike]):
                forms[alike] = text
        for text in forms.values():
            parts = [self._derivations.text((symbol,)) for symbol in rule.right]
            parts[rest[0]] = text
            yield Way(sum(parts[:place], ()), sum(parts[place + 1 :], ()))

    def _family(self, rule: Rule, unit: Way) -> Generated:
        context = self._derivations.context(rule.left)
        assert context is not None, "only rules that a text can have are repeated"
        core = self._derivations.shortest[rule.left]
        name = f"{_plain(rule.left)}: {self._shown(unit)}"
        family = Generated(name, self._speller, context, unit, core)
        deepest = self._depths.deepest(context.before, unit.before, core)
        if deepest == math.inf:
            return family
        row = self._row(rule.left)
        if row is not None:
            deepest = min(deepest, self._depths.deepest(row.before + row.unit.before, unit.before, core))
        return replace(family, deepest=deepest, row=row)

    def _row(self, nonterminal: str) -> Row | None:
        """The shortest list whose elements can have a nonterminal in them."""
        found: list[tuple[int, Row]] = []
        ways = self._derivations.ways_to(nonterminal)
        for rule in self._rules:
            context = self._derivations.context(rule.left)
            if rule.right[:1] != (rule.left,) or context is None:
                continue
            for place, symbol in enumerate(rule.right[1:], start=1):
                if symbol in ways:
                    around = Way(
                        self._derivations.text(rule.right[1:place]), self._derivations.text(rule.right[place + 1 :])
                    )
                    unit = around.then(ways[symbol])
                    length = self._derivations.length(unit.before + unit.after + context.before + context.after)
                    before = context.before + self._derivations.shortest[rule.left]
                    found.append((length, Row(before, unit, context.after)))
        return min(found, key=lambda each: each[0], default=(0, None))[1]

    def _trouble(self, family: Generated) -> str | None:
        """Return the reason why a family cannot be measured, or None."""
        repetitions = [CHECKED_REPETITIONS]
        if family.deepest != math.inf:
            repetitions.append(2 * int(family.deepest))
        for count in repetitions:
            try:
                text = family.written(count).text
            except CannotGrowError:
                return "deeper than the language's limits, and no list to stand in"
            if not self._language.open(text, "").check("").complete:
                return f"does not parse with {count} repetitions: {text[:60]!r}"
        return None

    def _shown(self, way: Way) -> str:
        sides = (self._speller.write(side)[0] for side in (way.before, way.after))
        return '"' + ("…" if way.before and way.after else "").join(sides).replace("\n", "\\n") + '"'


def _plain(nonterminal: str) -> str:
    return HELPER.sub("", TEMPLATE.sub("", nonterminal)).removeprefix("__")


def _told_apart(rules: Sequence[Rule], literals: set[str]) -> Iterator[Rule]:
    """Rules without those that are an earlier one's, but for a literal or a template's arguments."""
    seen: set[object] = set()
    for rule in rules:
        found = TEMPLATE.search(rule.left)
        arguments = found[1].split(",") if found else []

        def named(symbol: str, arguments: Sequence[str] = arguments) -> str:
            if symbol in arguments:
                return f"#{arguments.index(symbol)}"
            return _plain(symbol) if TEMPLATE.search(symbol) else symbol

        left, right = named(rule.left), tuple(map(named, rule.right))
        alike: list[object] = [(left, right)]
        alike += [
            (left, right[:place], right[place + 1 :]) for place, symbol in enumerate(rule.right) if symbol in literals
        ]
        if not any(each in seen for each in alike):
            seen.update(alike)
            yield rule


class _Depths:
    """Depth to which lexemes nest brackets and blocks."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        limits = spec.get("limits", {})
        layout = spec.get("layout") or {}
        brackets = dict.fromkeys((pair[0] for pair in spec.get("brackets", ())), 1)
        brackets |= dict.fromkeys((pair[1] for pair in spec.get("brackets", ())), -1)
        for mode in spec.get("modes", ()):
            brackets |= dict.fromkeys(mode.get("open", ()), 1) | dict.fromkeys(mode.get("close", ()), -1)
        blocks = {layout.get("indent"): 1, layout.get("dedent"): -1}
        self._kinds: tuple[tuple[float, Mapping[str | None, int]], ...] = (
            (limits.get("brackets", math.inf), brackets),
            (limits.get("blocks", math.inf), blocks),
        )

    def deepest(self, context: Lexemes, unit: Lexemes, core: Lexemes) -> float:
        """Return the most repetitions of a unit's left side within a context; infinity for any number."""
        found = math.inf
        for most, steps in self._kinds:
            rise, highest = _climb(unit, steps)
            if rise > 0 and most != math.inf:
                inside = max(highest - rise, _climb(core, steps)[1])
                found = min(found, (most - _climb(context, steps)[0] - inside) // rise)
        return found


def _climb(lexemes: Lexemes, steps: Mapping[str | None, int]) -> tuple[int, int]:
    """Return the depth after some lexemes, and the greatest depth among them."""
    depths = [0, *accumulate(steps.get(name, 0) for name in lexemes)]
    return depths[-1], max(depths)
