"""Optional breaks: symbols such as line breaks that may stand between almost all lexemes of a language.

The grammar is written without breaks where they mean nothing. This module adds them between any two symbols of an
alternative, with two exceptions. The grammar marks a symbol that has no break before it (`tight{x}`). And where one of
the two symbols begins or ends with a break by the grammar's own rules, those rules say what a break means.

So the text of a rule that names no break neither begins nor ends with one.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fim_server.errors import LanguageError

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

_TIGHT = "tight{"

TEMPLATE = "\ntight{x}: x\n"
"""Line of Lark's notation that defines the template for symbols without a break before them."""


def with_breaks(
    language: str, rules: Sequence[Rule], a_break: str, hidden: Iterable[str] = (), bare: str | None = None
) -> list[Rule]:
    """Return BNF rules that allow any number of breaks between symbols.

    Raises LanguageError if an alternative begins with a symbol that wants no break before it.

    Args:
        language: The language's name, for messages.
        rules: The rules as they are written.
        a_break: The nonterminal, or lexeme, of one break.
        hidden: Nonterminals of the empty text to step over.
        bare: A symbol that stays in its rules: breaks around it go to its neighbours.
    """
    adder = _Adder(rules, a_break, frozenset(hidden), bare)
    first = ((name, next((one for one in symbols if one not in adder.hidden), "")) for name, symbols in rules)
    if wrong := next((name for name, symbol in first if symbol.startswith(_TIGHT)), None):
        raise LanguageError(f"language {language}: breaks: {wrong} begins with tight, where nothing stands before it")
    return adder.rules(rules)


class _Adder:
    def __init__(self, rules: Sequence[Rule], a_break: str, hidden: frozenset[str], bare: str | None) -> None:
        self._break = a_break
        self._bare = bare
        self.hidden = hidden
        self._nonterminals = {name for name, _ in rules}
        self._bodies = {name: symbols for name, symbols in rules if name.startswith(_TIGHT)}
        deriving = _deriving(rules)
        self._begins = _closure(deriving, a_break, 1)
        self._ends = _closure(deriving, a_break, -1)
        self._added: dict[Rule, None] = {}

    def rules(self, rules: Sequence[Rule]) -> list[Rule]:
        found: dict[Rule, None] = {}
        for name, symbols in rules:
            if name.startswith(_TIGHT):
                continue
            found[name, tuple(self._with_breaks(symbols))] = None
        return [*found, *self._added]

    def _with_breaks(self, symbols: Sequence[str]) -> list[str]:
        """Return the symbols of an alternative with breaks between them, where they may stand."""
        written: list[str] = []
        last = -1  # the last symbol that is not hidden
        for symbol in symbols:
            if symbol in self.hidden:
                written.append(symbol)
                continue
            is_tight = symbol.startswith(_TIGHT)
            if is_tight:
                (symbol,) = self._bodies[symbol]
            if last >= 0 and not is_tight and symbols_meet(written[last], symbol, self._ends, self._begins):
                ends_bare, begins_bare = written[last] == self._bare, symbol == self._bare
                if ends_bare or (not begins_bare and self._goes_before(written[last], symbol)):
                    symbol = self._before(symbol)
                else:
                    written[last] = self._after(written[last])
            last = len(written)
            written.append(symbol)
        return written

    def _goes_before(self, last: str, symbol: str) -> bool:
        """Return whether breaks between two symbols go to the second."""
        return last in self._nonterminals and symbol not in self._nonterminals

    def _after(self, symbol: str) -> str:
        """Return the nonterminal of a symbol and any number of breaks after it."""
        name = f"breaks_after{{{symbol}}}"
        self._added[name, (symbol,)] = None
        self._added[name, (name, self._break)] = None
        return name

    def _before(self, symbol: str) -> str:
        """Return the nonterminal of a symbol and any number of breaks before it."""
        name, several = f"breaks_before{{{symbol}}}", f"breaks{{{self._break}}}"
        self._added[name, (symbol,)] = None
        self._added[name, (several, symbol)] = None
        self._added[several, (self._break,)] = None
        self._added[several, (several, self._break)] = None
        return name


def symbols_meet(before: str, symbol: str, ends: set[str], begins: set[str]) -> bool:
    """Return whether no break stands between two symbols by the grammar's own rules."""
    return before not in ends and symbol not in begins


def _deriving(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules that derive some text."""
    heads, made = {name for name, _ in rules}, set[str]()
    while True:
        found = [rule for rule in rules if all(symbol in made or symbol not in heads for symbol in rule[1])]
        if len(made) == len(made := made | {name for name, _ in found}):
            return found


def _closure(rules: Sequence[Rule], a_break: str, direction: int) -> set[str]:
    """Return the symbols whose texts may begin with a break; with direction -1, those that may end with one."""
    nullable: set[str] = set()
    found = {a_break}
    changed = True
    while changed:
        before = len(nullable) + len(found)
        for name, symbols in rules:
            if all(symbol in nullable for symbol in symbols):
                nullable.add(name)
            for symbol in symbols[::direction]:
                if symbol in found and name != a_break:
                    found.add(name)
                if symbol not in nullable:
                    break
        changed = len(nullable) + len(found) > before
    return found
