"""Matched text: a lexeme that must have the text of an earlier one, as a constructor's name must be its class's.

One rule *binds* a text (`class: "class" NAME class_body`). Wherever a rule below it *matches* (`constructor: NAME
parameters block`), the innermost bound text has to come again. No context-free grammar can say that, because there are
infinitely many texts. But a given right context leaves few that matter: those that it matches without having bound
them.

So the rules below a binding rule are written out once for each of a few *slots*, and the engine decides a text's slot
when it reads the text (`rust_core/src/language/marks.rs`). In the engine's grammar, a text that binds or matches is a
*mark*. A mark is a lexeme without a pattern, read along with the lexemes whose texts may be such names.
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
        matched: `symbol`, a nonterminal of single lexemes; `binds` and `matches`, rules that contain it.
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

    def _mark(self, binds: bool, slot: int) -> str:
        return f"{self._symbol}{{{'binds' if binds else 'matches'} {slot}}}"

    def _error(self, what: str) -> LanguageError:
        return LanguageError(f"language {self._language}: matched: {what}")

    def _check(self) -> None:
        if self._symbol not in self._heads:
            raise self._error(f"symbol: there is no rule {self._symbol}")
        for key, names in (("binds", self._binds), ("matches", self._matches)):
            own = [symbols for name, symbols in self._rules if name in names and self._symbol in symbols]
            if not own:
                raise self._error(f"{key}: none of these rules has {self._symbol} in it")
            if any(symbols.count(self._symbol) > 1 for symbols in own):
                raise self._error(f"{key}: a rule has {self._symbol} in it more than once")
            for symbols in own:
                before = symbols[: symbols.index(self._symbol)]
                if key == "binds" and (not before or any(symbol in self._heads for symbol in before)):
                    raise self._error(f"binds: lexemes have to stand before {self._symbol}, and nothing else")

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
        return name in self._binds and self._symbol in symbols

    def _after_binding(self, name: str, symbols: tuple[str, ...]) -> int:
        """Return the place in a rule from which on its own text is the innermost one; its end if it binds none."""
        return symbols.index(self._symbol) + 1 if self._is_binding(name, symbols) else len(symbols)

    def _find_named(self) -> set[str]:
        """Return the nonterminals below which a text matches that is bound around them."""
        named = {name for name, symbols in self._rules if name in self._matches and self._symbol in symbols}
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
                if name in self._matches and self._symbol in symbols:
                    if slot is None:
                        continue
                    at = symbols.index(self._symbol)
                    symbols_in = (*symbols[:at], self._mark(False, slot), *symbols[at + 1 :])
                    found.append((self._in_slot(name, slot), self._all_in(symbols_in, slot)))
                    continue
                end = self._after_binding(name, symbols)
                inner = symbols[end:]
                if not self._is_binding(name, symbols) or not self._named & set(inner):
                    found.append((self._in_slot(name, slot), self._all_in(symbols, slot)))
                    continue
                for own in range(SLOTS):
                    before = (*self._all_in(symbols[: end - 1], slot), self._mark(True, own))
                    found.append((self._in_slot(name, slot), (*before, *self._all_in(inner, own))))
        return found

    def _in_slot(self, symbol: str, slot: int | None) -> str:
        return symbol if slot is None or symbol not in self._named else f"{symbol}{{{slot}}}"

    def _all_in(self, symbols: Sequence[str], slot: int | None) -> tuple[str, ...]:
        return tuple(self._in_slot(symbol, slot) for symbol in symbols)
