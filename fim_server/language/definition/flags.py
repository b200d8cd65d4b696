"""Flags of grammar rules: what a rule may derive depends on where it stands.

A flag is on or off at each place of a derivation, and on at the start. A rule reads it (`on{in}`, `off{in}`: the
alternative exists only where the flag is on, or off) or changes it for one symbol (`set{in, x}`, `clear{in, x}`).
Otherwise the symbols of an alternative inherit it, by its scope: all symbols, or only the first or the last one; the
others have it on. Flags are inherited attributes (Knuth 1968) of two values, so the language stays context-free. Each
nonterminal gets a copy for each combination of the flags that it depends on.

Copies that derive nothing are dropped, and copies that derive the same by equal rules are merged.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from fim_server.errors import LanguageError
from fim_server.language.definition import limits

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

Copy: TypeAlias = tuple[str, frozenset[str]]
"""Nonterminal with the flags that are off, of those it depends on."""

SCOPES = ("all", "first", "last")

_CONDITION = re.compile(r"(on|off)\{(\w+)\}\Z")
_CHANGE = re.compile(r"(set|clear)\{(\w+),")
_ON = ("on", "set")


@dataclass(frozen=True)
class _Use:
    """Symbol in an alternative, with the flags that are changed for it."""

    symbol: str
    changes: Mapping[str, bool]


@dataclass(frozen=True)
class _Alternative:
    conditions: tuple[tuple[str, bool], ...]
    uses: tuple[_Use, ...]


def read_scopes(language: str, spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the scope of each flag, from the table `[flags]` of a language.

    Raises LanguageError if the table is wrong.
    """
    scopes = spec.get("flags", {})
    if not isinstance(scopes, dict):
        raise LanguageError(f"language {language}: flags: expected a table")
    for flag, scope in scopes.items():
        if scope not in SCOPES:
            raise LanguageError(f"language {language}: flags.{flag}: expected one of {', '.join(SCOPES)}")
    return dict(scopes)


def templates(scopes: Mapping[str, str]) -> str:
    """Return the lines of Lark's notation that define the flags and the templates that read or change them."""
    if not scopes:
        return ""
    own = ["on{flag}:", "off{flag}:", "set{flag, x}: x", "clear{flag, x}: x"]
    return "\n".join(["", *own, *(f"{flag}:" for flag in scopes), ""])


def is_condition(symbol: str) -> bool:
    """Return whether a symbol reads a flag: it derives the empty text, and has to be kept."""
    return _CONDITION.match(symbol) is not None


def with_copies(language: str, start: str, rules: Sequence[Rule], scopes: Mapping[str, str]) -> list[Rule]:
    """Return BNF rules without flags that derive the same texts: copies of nonterminals for combinations of flags.

    Raises LanguageError if a flag is unknown, the first or last symbol of an alternative is not certain, or the copies
    have more symbols than the limits allow.

    Args:
        language: The language's name, for messages.
        start: The start nonterminal, where all flags are on.
        rules: The rules with the templates' symbols.
        scopes: By flag, the symbols of an alternative that inherit it: `all`, `first` or `last`.
    """
    copier = _Copier(language, rules, scopes)
    copies = _productive(copier.copies(start))
    # The engine refuses a start symbol from which no text derives.
    return _merged(copies, (start, frozenset())) if (start, frozenset()) in copies else [(start, (start,))]


class _Copier:
    def __init__(self, language: str, rules: Sequence[Rule], scopes: Mapping[str, str]) -> None:
        self._language = language
        self._scopes = scopes
        written: dict[str, list[tuple[str, ...]]] = {}
        for name, symbols in rules:
            written.setdefault(name, []).append(symbols)
        self._written = written
        self._by_name = {
            name: [self._alternative(symbols) for symbols in expansions]
            for name, expansions in written.items()
            if _CHANGE.match(name) is None and not is_condition(name)
        }
        self._relevant = self._find_relevant()
        self._check_ends()

    def _flag(self, found: re.Match[str]) -> tuple[str, bool]:
        """Return the flag of a template's symbol, and the value that it asks for or gives."""
        if found[2] not in self._scopes:
            raise LanguageError(f"language {self._language}: {found[1]}: there is no flag {found[2]}")
        return found[2], found[1] in _ON

    def _alternative(self, symbols: Sequence[str]) -> _Alternative:
        conditions, uses = [], []
        for symbol in symbols:
            if condition := _CONDITION.match(symbol):
                conditions.append(self._flag(condition))
                continue
            changes: dict[str, bool] = {}
            inner = symbol
            while change := _CHANGE.match(inner):
                changes.update([self._flag(change)])
                ((inner,),) = self._written[inner]
            uses.append(_Use(inner, changes))
        return _Alternative(tuple(conditions), tuple(uses))

    def _inherited(self, uses: Sequence[_Use]) -> Iterator[tuple[_Use, set[str]]]:
        """Return the symbols of an alternative, each with the flags that it inherits."""
        for at, use in enumerate(uses):
            scopes = {"all"} | ({"first"} if at == 0 else set()) | ({"last"} if at == len(uses) - 1 else set())
            yield use, {flag for flag, scope in self._scopes.items() if scope in scopes and flag not in use.changes}

    def _find_relevant(self) -> dict[str, set[str]]:
        """Return the flags that each nonterminal depends on: the least fixpoint over the rules."""
        relevant: dict[str, set[str]] = {name: set() for name in self._by_name}
        changed = True
        while changed:
            changed = False
            for name, alternatives in self._by_name.items():
                found = relevant[name]
                before = len(found)
                for alternative in alternatives:
                    found.update(flag for flag, _ in alternative.conditions)
                    for use, inherited in self._inherited(alternative.uses):
                        found |= inherited & relevant.get(use.symbol, set())
                changed |= len(found) > before
        return relevant

    def _check_ends(self) -> None:
        """Raise LanguageError if a symbol that may be empty leaves open which symbol is the first or the last one."""
        nullable = self._nullable()
        for name, alternatives in self._by_name.items():
            for uses in (alternative.uses for alternative in alternatives):
                for scope, order in (("first", uses), ("last", uses[::-1])):
                    for before, use in pairwise(order):
                        if before.symbol not in nullable:
                            break
                        flags = [flag for flag in self._relevant.get(use.symbol, ()) if self._scopes[flag] == scope]
                        if unclear := [flag for flag in flags if flag not in use.changes]:
                            raise LanguageError(
                                f"language {self._language}: flags.{min(unclear)}: rule {name} has {use.symbol} as its "
                                f"{scope} symbol only where {before.symbol} is empty; write both cases as alternatives"
                            )

    def _nullable(self) -> set[str]:
        found: set[str] = set()
        changed = True
        while changed:
            more = {
                name
                for name, alternatives in self._by_name.items()
                if any(all(use.symbol in found for use in alternative.uses) for alternative in alternatives)
            }
            changed = more > found
            found |= more
        return found

    def copies(self, start: str) -> dict[Copy, list[tuple[Copy | str, ...]]]:
        """Return the rules of all copies that the start nonterminal needs; lexemes are plain names."""
        found: dict[Copy, list[tuple[Copy | str, ...]]] = {}
        first: Copy = (start, frozenset())
        waiting = [first]
        size = 0
        while waiting:
            copy = waiting.pop()
            if copy in found:
                continue
            name, off = copy
            expansions = found.setdefault(copy, [])
            for alternative in self._by_name.get(name, ()):  # a start symbol may have no rules
                if any((flag in off) == wanted for flag, wanted in alternative.conditions):
                    continue
                expansion = tuple(self._copied(*inherited, off) for inherited in self._inherited(alternative.uses))
                size += len(expansion)
                limits.check(self._language, "symbols of all rules with flags", size, limits.SYMBOLS)
                if expansion not in expansions:
                    expansions.append(expansion)
                waiting.extend(symbol for symbol in expansion if not isinstance(symbol, str))
        return found

    def _copied(self, use: _Use, inherited: set[str], off: frozenset[str]) -> Copy | str:
        """Return the copy of a symbol in an alternative of a copy with some flags off; the name of a lexeme."""
        if use.symbol not in self._by_name:
            return use.symbol
        changed = {flag for flag, is_on in use.changes.items() if not is_on}
        return use.symbol, frozenset((inherited & off | changed) & self._relevant[use.symbol])


def _productive(copies: dict[Copy, list[tuple[Copy | str, ...]]]) -> dict[Copy, list[tuple[Copy | str, ...]]]:
    """Return the copies that derive some text, by rules of such copies alone."""
    made: set[Copy] = set()
    changed = True
    while changed:
        changed = False
        for copy, expansions in copies.items():
            if copy not in made and any(all(isinstance(s, str) or s in made for s in one) for one in expansions):
                made.add(copy)
                changed = True
    return {
        copy: [one for one in expansions if all(isinstance(symbol, str) or symbol in made for symbol in one)]
        for copy, expansions in copies.items()
        if copy in made
    }


def _merged(copies: Mapping[Copy, list[tuple[Copy | str, ...]]], start: Copy) -> list[Rule]:
    """Return the rules of the copies, equal ones merged: the coarsest partition that the rules respect (Hopcroft 1971).

    Copies of one nonterminal begin in one class. A class is divided while its rules lead to different classes.
    """
    classes = _numbered({copy: copy[0] for copy in copies})
    while True:
        counts = Counter(classes.values())
        # A class of one copy needs no rules to be told from others.
        refined = _numbered(
            {
                copy: (at, frozenset(_classed(one, classes) for one in copies[copy]) if counts[at] > 1 else None)
                for copy, at in classes.items()
            }
        )
        if len(set(refined.values())) == len(counts):
            break
        classes = refined
    chosen: dict[int, Copy] = {}
    for copy in sorted(copies, key=lambda copy: (len(copy[1]), sorted(copy[1]))):
        chosen.setdefault(classes[copy], copy)

    def name(symbol: Copy | str) -> str:
        return symbol if isinstance(symbol, str) else _name(chosen[classes[symbol]])

    rules: dict[Rule, None] = {}
    seen: set[Copy] = set()
    waiting = [start]
    while waiting:
        copy = chosen[classes[waiting.pop()]]
        if copy in seen:
            continue
        seen.add(copy)
        for expansion in copies[copy]:
            rules[_name(copy), tuple(map(name, expansion))] = None
            waiting.extend(symbol for symbol in expansion if not isinstance(symbol, str))
    return list(rules)


def _numbered(keys: Mapping[Copy, Hashable]) -> dict[Copy, int]:
    """Return the number of each copy's key; equal keys have one number."""
    numbers: dict[Hashable, int] = {}
    return {copy: numbers.setdefault(key, len(numbers)) for copy, key in keys.items()}


def _classed(expansion: tuple[Copy | str, ...], classes: Mapping[Copy, int]) -> tuple[int | str, ...]:
    return tuple(symbol if isinstance(symbol, str) else classes[symbol] for symbol in expansion)


def _name(copy: Copy) -> str:
    """Return a copy's name; explanations show the part before the brace, as for templates."""
    name, off = copy
    return f"{name}{{{' '.join(f'-{flag}' for flag in sorted(off))}}}" if off else name
