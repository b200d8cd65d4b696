"""Flags of grammar rules: what a rule may derive depends on where it stands.

A flag is on or off at each place of a derivation, and on at the start. A rule reads it (`on{in}`, `off{in}`: the
alternative exists only where the flag is on, or off) or changes it for one symbol (`set{in, x}`, `clear{in, x}`).
Otherwise the symbols of an alternative inherit it, by its scope: all symbols, or only the first or the last one; the
others have it on. Flags are inherited attributes (Knuth 1968) of two values, so the language stays context-free. Each
nonterminal gets a copy for each combination of the flags that it depends on.

Copies that derive nothing are dropped, and copies that derive the same by equal rules are merged.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from fim_server.errors import LanguageError
from fim_server.language.definition import limits

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

Flags: TypeAlias = int
"""Set of flags: a bit for each, in the order of the table `[flags]`."""

Copy: TypeAlias = tuple[str, Flags]
"""Nonterminal with the flags that are off, of those it depends on."""

SCOPES = ("all", "first", "last")

_CONDITION = re.compile(r"(on|off)\{(\w+)\}\Z")
_CHANGE = re.compile(r"(set|clear)\{(\w+),")
_ON = ("on", "set")


@dataclass(frozen=True)
class _Use:
    """Symbol in an alternative, with the flags that it inherits, and those that are changed for it."""

    symbol: str
    inherited: Flags
    changed: Flags
    cleared: Flags


@dataclass(frozen=True)
class _Alternative:
    """Alternative with the flags that have to be on, those that have to be off, and its symbols."""

    on: Flags
    off: Flags
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
    return _merged(copies, (start, 0), list(scopes)) if (start, 0) in copies else [(start, (start,))]


class _Copier:
    def __init__(self, language: str, rules: Sequence[Rule], scopes: Mapping[str, str]) -> None:
        self._language = language
        self._bits = {flag: 1 << at for at, flag in enumerate(scopes)}
        self._of_scope = {
            scope: sum(bit for flag, bit in self._bits.items() if scopes[flag] == scope) for scope in SCOPES
        }
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

    def _flag(self, found: re.Match[str]) -> tuple[Flags, bool]:
        """Return the flag of a template's symbol, and the value that it asks for or gives."""
        if found[2] not in self._bits:
            raise LanguageError(f"language {self._language}: {found[1]}: there is no flag {found[2]}")
        return self._bits[found[2]], found[1] in _ON

    def _alternative(self, symbols: Sequence[str]) -> _Alternative:
        wanted = {True: 0, False: 0}
        inner: list[tuple[str, Flags, Flags]] = []
        for symbol in symbols:
            if condition := _CONDITION.match(symbol):
                flag, value = self._flag(condition)
                wanted[value] |= flag
                continue
            changed = cleared = 0
            while change := _CHANGE.match(symbol):
                flag, value = self._flag(change)
                changed |= flag
                cleared = cleared & ~flag if value else cleared | flag
                ((symbol,),) = self._written[symbol]
            inner.append((symbol, changed, cleared))
        uses = []
        for at, (symbol, changed, cleared) in enumerate(inner):
            inherited = self._of_scope["all"]
            inherited |= self._of_scope["first"] if at == 0 else 0
            inherited |= self._of_scope["last"] if at == len(inner) - 1 else 0
            uses.append(_Use(symbol, inherited & ~changed, changed, cleared))
        return _Alternative(wanted[True], wanted[False], tuple(uses))

    def _find_relevant(self) -> dict[str, Flags]:
        """Return the flags that each nonterminal depends on: the least fixpoint over the rules."""
        relevant = dict.fromkeys(self._by_name, 0)
        uses: dict[str, list[tuple[str, Flags]]] = {name: [] for name in self._by_name}
        for name, alternatives in self._by_name.items():
            for alternative in alternatives:
                relevant[name] |= alternative.on | alternative.off
                for use in alternative.uses:
                    if use.symbol in uses:
                        uses[use.symbol].append((name, use.inherited))
        waiting = dict.fromkeys(relevant)
        while waiting:
            name, _ = waiting.popitem()
            for user, inherited in uses[name]:
                more = relevant[user] | inherited & relevant[name]
                if more != relevant[user]:
                    relevant[user] = more
                    waiting[user] = None
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
                        unclear = self._relevant.get(use.symbol, 0) & self._of_scope[scope] & ~use.changed
                        if unclear:
                            flag = min(flag for flag, bit in self._bits.items() if bit & unclear)
                            raise LanguageError(
                                f"language {self._language}: flags.{flag}: rule {name} has {use.symbol} as its "
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
        waiting: list[Copy] = [(start, 0)]
        size = 0
        while waiting:
            copy = waiting.pop()
            if copy in found:
                continue
            name, off = copy
            expansions: dict[tuple[Copy | str, ...], None] = {}
            for alternative in self._by_name.get(name, ()):  # a start symbol may have no rules
                if alternative.on & off or alternative.off & ~off:
                    continue
                expansion = tuple([self._copied(use, off) for use in alternative.uses])
                size += len(expansion)
                limits.check(self._language, "symbols of all rules with flags", size, limits.SYMBOLS)
                expansions[expansion] = None
                waiting.extend(symbol for symbol in expansion if not isinstance(symbol, str))
            found[copy] = list(expansions)
        return found

    def _copied(self, use: _Use, off: Flags) -> Copy | str:
        """Return the copy of a symbol in an alternative of a copy with some flags off; the name of a lexeme."""
        relevant = self._relevant.get(use.symbol)
        return use.symbol if relevant is None else (use.symbol, (use.inherited & off | use.cleared) & relevant)


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


def _merged(copies: Mapping[Copy, list[tuple[Copy | str, ...]]], start: Copy, flags: Sequence[str]) -> list[Rule]:
    """Return the rules of the copies, equal ones merged."""
    classes = _classes(copies)
    chosen: dict[int, Copy] = {}
    for copy in sorted(copies, key=lambda copy: (copy[1].bit_count(), _names(copy[1], flags))):
        chosen.setdefault(classes[copy], copy)
    names = {at: _name(copy, flags) for at, copy in chosen.items()}
    rules: dict[Rule, None] = {}
    seen: set[Copy] = set()
    waiting = [start]
    while waiting:
        copy = chosen[classes[waiting.pop()]]
        if copy in seen:
            continue
        seen.add(copy)
        name = names[classes[copy]]
        for expansion in copies[copy]:
            symbols = [symbol if isinstance(symbol, str) else names[classes[symbol]] for symbol in expansion]
            rules[name, tuple(symbols)] = None
            waiting.extend(symbol for symbol in expansion if not isinstance(symbol, str))
    return list(rules)


def _classes(copies: Mapping[Copy, list[tuple[Copy | str, ...]]]) -> dict[Copy, int]:
    """Return the class of each copy: the coarsest partition that the rules respect (Hopcroft 1971).

    Copies of one nonterminal begin in one class. A class is divided while its rules lead to different classes. Only
    classes whose rules lead to a copy that has changed its class are looked at again.
    """
    numbers: dict[str, int] = {}
    classes = {copy: numbers.setdefault(copy[0], len(numbers)) for copy in copies}
    members: dict[int, list[Copy]] = {at: [] for at in numbers.values()}
    users: dict[Copy, list[Copy]] = {copy: [] for copy in copies}
    for copy, at in classes.items():
        members[at].append(copy)
    for copy, expansions in copies.items():
        # A class of one copy needs no rules to be told from others.
        if len(members[classes[copy]]) > 1:
            for used in {symbol for one in expansions for symbol in one if not isinstance(symbol, str)}:
                users[used].append(copy)
    waiting = {at: None for at, own in members.items() if len(own) > 1}
    while waiting:
        at, _ = waiting.popitem()
        parts: dict[Hashable, list[Copy]] = {}
        for copy in members[at]:
            rules = frozenset([_classed(one, classes) for one in copies[copy]])
            parts.setdefault(rules, []).append(copy)
        largest, *others = sorted(parts.values(), key=len, reverse=True)
        members[at] = largest
        for part in others:
            fresh = len(members)
            members[fresh] = part
            classes.update(dict.fromkeys(part, fresh))
        for user in (user for part in others for copy in part for user in users[copy]):
            if len(members[classes[user]]) > 1:
                waiting[classes[user]] = None
    return classes


def _classed(expansion: tuple[Copy | str, ...], classes: Mapping[Copy, int]) -> tuple[int | str, ...]:
    return tuple([symbol if isinstance(symbol, str) else classes[symbol] for symbol in expansion])


def _names(off: Flags, flags: Sequence[str]) -> list[str]:
    return sorted(flag for at, flag in enumerate(flags) if off >> at & 1)


def _name(copy: Copy, flags: Sequence[str]) -> str:
    """Return a copy's name; explanations show the part before the brace, as for templates."""
    name, off = copy
    return f"{name}{{{' '.join(f'-{flag}' for flag in _names(off, flags))}}}" if off else name
