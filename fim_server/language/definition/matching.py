"""Matched text: a lexeme that must have the text of an earlier one, as a constructor's name must be its class's.

One rule *binds* a text (`class: "class" NAME class_body`). Wherever a rule below it *matches* (`constructor: NAME
parameters block`), the innermost bound text has to come again. No context-free grammar can say that, because there are
infinitely many texts. But a given right context leaves few that matter: those that it matches without having bound
them.

So the rules below a binding rule are written out once for each of a few *slots*, and the engine decides a text's slot
when it reads the text (`rust_core/src/language/marks.rs`). In the engine's grammar, a text that binds or matches is a
*mark*. A mark is a lexeme without a pattern, read along with the lexemes whose texts may be such names. It belongs to
the mode of these lexemes.

A rule may also bind a text and match it itself, as an element does whose end tag has its name (`element: "<" NAME ">"
content "</" NAME ">"`). Its part from the name on becomes a rule of its own, which begins where the text does. The
rules below need no copies, and right of the cursor the engine compares any number of texts
(`rust_core/src/requirement/named.rs`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from fim_server.errors import LanguageError

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

SLOTS = 5
"""One slot for other texts, one for those that the cursor may cut, two for R's own, and one for R's own that the cursor
may cut."""


class Matching:
    """Rules with marks in place of the texts that bind and match.

    Attributes:
        rules: Rules for the engine.

    Raises LanguageError if a rule is not of the required form.

    Args:
        language: The language's name, for messages.
        start: The start nonterminal.
        rules: The rules as they are written.
        matched: `symbol`, a nonterminal of single lexemes; `binds` and `matches`, rules that contain it. A rule of both
            binds the first and matches the second.
    """

    def __init__(self, language: str, start: str, rules: Sequence[Rule], matched: Mapping[str, Any]) -> None:
        self._language = language
        self._rules = rules
        self._symbol = str(matched["symbol"])
        self._binds = set(matched["binds"])
        self._matches = set(matched["matches"])
        self._heads = {name for name, _ in rules}
        self._check()
        self._lexemes = self._lexemes_of(self._symbol, set())
        self._named = self._find_named()
        self.rules: list[Rule] = list(dict.fromkeys(self._written(start)))

    def marks(self) -> list[dict[str, Any]]:
        """Return the engine's data on each mark: its name, the lexemes that it is read along with, its slot."""
        return [
            {"name": self._mark(binds, slot), "of": sorted(self._lexemes), "binds": binds, "slot": slot}
            for binds in (True, False)
            for slot in range(SLOTS)
        ]

    def slotted(self) -> list[list[str]]:
        """Return the nonterminals that are written out for each slot, those of one together."""
        return [[self._in_slot(name, slot) for slot in range(SLOTS)] for name in sorted(self._named)]

    def in_modes(self, modes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the modes with the marks among their lexemes, and among those that they are without.

        Raises LanguageError if the lexemes of the symbol are read in different modes.
        """
        found = []
        for mode in modes:
            added = {}
            for key in ("lexemes", "without"):
                shared = self._lexemes & set(mode[key])
                if shared and shared != self._lexemes:
                    raise self._error(f"symbol: the lexemes of {self._symbol} differ in {key} of mode {mode['name']}")
                added[key] = [*mode[key], *(mark["name"] for mark in self.marks() if shared)]
            found.append({**mode, **added})
        return found

    def _mark(self, binds: bool, slot: int) -> str:
        return f"{self._symbol}{{{'binds' if binds else 'matches'} {slot}}}"

    def _error(self, what: str) -> LanguageError:
        return LanguageError(f"language {self._language}: matched: {what}")

    def _check(self) -> None:
        if self._symbol not in self._heads:
            raise self._error(f"symbol: there is no rule {self._symbol}")
        nullable = self._nullable()
        for key, names in (("binds", self._binds), ("matches", self._matches)):
            own = [rule for rule in self._rules if _base(rule[0]) in names and self._symbol in rule[1]]
            if key == "matches":
                own = [rule for rule in own if not self._is_both(rule[0]) or rule[1].count(self._symbol) > 1]
            if not own:
                raise self._error(f"{key}: none of these rules has {self._symbol} in it")
            for name, symbols in own:
                if symbols.count(self._symbol) > (2 if self._is_both(name) else 1):
                    raise self._error(f"{key}: a rule has {self._symbol} in it too often")
                before = symbols[: symbols.index(self._symbol)]
                if key == "binds" and all(symbol in nullable for symbol in before):
                    raise self._error(f"binds: lexemes have to stand before {self._symbol}")

    def _nullable(self) -> set[str]:
        """Return the nonterminals that derive the empty text."""
        found: set[str] = set()
        while more := {name for name, symbols in self._rules if found.issuperset(symbols)} - found:
            found |= more
        return found

    def _lexemes_of(self, symbol: str, seen: set[str]) -> set[str]:
        """Return the lexemes that a nonterminal stands for."""
        if symbol not in self._heads:
            return {symbol}
        if symbol in seen:
            return set()
        seen.add(symbol)
        found = set()
        for name, symbols in self._rules:
            if name == symbol:
                if len(symbols) != 1:
                    raise self._error(f"symbol: {self._symbol} has to come to single lexemes")
                found |= self._lexemes_of(symbols[0], seen)
        return found

    def _is_binding(self, name: str, symbols: tuple[str, ...]) -> bool:
        return _base(name) in self._binds and self._symbol in symbols

    def _is_matching(self, name: str, symbols: tuple[str, ...]) -> bool:
        """Return whether a rule matches a text that is bound around it."""
        return _base(name) in self._matches - self._binds and self._symbol in symbols

    def _is_both(self, name: str) -> bool:
        return _base(name) in self._matches & self._binds

    def _after_binding(self, name: str, symbols: tuple[str, ...]) -> int:
        """Return the place in a rule from which on its own text is the innermost one; its end if it binds none."""
        return symbols.index(self._symbol) + 1 if self._is_binding(name, symbols) else len(symbols)

    def _find_named(self) -> set[str]:
        """Return the nonterminals below which a text matches that is bound around them."""
        named = {name for name, symbols in self._rules if self._is_matching(name, symbols)}
        while True:
            more = {name for name, symbols in self._rules if named & set(symbols[: self._after_binding(name, symbols)])}
            if more <= named:
                return named
            named |= more

    def _written(self, start: str) -> list[Rule]:
        found: list[Rule] = []
        for name, symbols in self._rules:
            slots: list[int | None] = [*range(SLOTS)] if name in self._named else []
            # Where nothing is bound, nothing matches.
            outside = name not in self._named or start in self._named
            for slot in [*([None] if outside else []), *slots]:
                if self._is_matching(name, symbols):
                    if slot is None:
                        continue
                    found.append((self._in_slot(name, slot), self._all_in(self._with_match(symbols, slot), slot)))
                    continue
                end = self._after_binding(name, symbols)
                inner = symbols[end:]
                if not self._is_binding(name, symbols) or not {*self._named, self._symbol} & set(inner):
                    found.append((self._in_slot(name, slot), self._all_in(symbols, slot)))
                    continue
                # A rule that matches its own text begins with it, so that its beginning in R tells the text.
                is_own = self._symbol in inner
                head = self._in_slot(name, slot)
                lhs = f"__{head}_{len(found)}" if is_own else head
                before = self._all_in(symbols[: end - 1], slot)
                if is_own:
                    found.append((head, (*before, lhs)))
                    before = ()
                for own in range(SLOTS):
                    behind = self._all_in(self._with_match(inner, own), own)
                    found.append((lhs, (*before, self._mark(True, own), *behind)))
        return found

    def _with_match(self, symbols: Sequence[str], slot: int) -> tuple[str, ...]:
        return tuple(self._mark(False, slot) if symbol == self._symbol else symbol for symbol in symbols)

    def _in_slot(self, symbol: str, slot: int | None) -> str:
        return symbol if slot is None or symbol not in self._named else f"{symbol}{{{slot}}}"

    def _all_in(self, symbols: Sequence[str], slot: int | None) -> tuple[str, ...]:
        return tuple(self._in_slot(symbol, slot) for symbol in symbols)


def _base(name: str) -> str:
    """Return the name of a rule without the arguments of a template and the flags of a copy."""
    return name.partition("{")[0]
