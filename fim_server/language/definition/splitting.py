"""Split lexemes: lexemes that the parser may also take as several adjacent ones, such as `>>` as two `>`.

Longest match makes one lexeme of `>>`, and where it stands, two rules may have to end. A pattern may be split as well:
`?.5`, where `?.` is a lexeme, into `?` and a number. Splitting changes only the grammar; the lexemes of a text stay
deterministic. Reading a text in parts is a finite transducer whose state is the *pending* parts of a lexeme that are
still to be taken. Context-free languages are closed under inverses of such transducers (Bar-Hillel, Perles & Shamir
1961). The new nonterminals are triples: the parts pending where the nonterminal begins, the nonterminal, and the parts
pending where it ends.

Only triples that some text of the language goes through are made. They are few: types that end in the midst of `>>`,
operands that begin in the midst of `&&`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from fim_server.language.definition import limits

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

Pending: TypeAlias = tuple[str, ...]
"""Parts of a split lexeme that have not been taken yet."""

Triple: TypeAlias = tuple[Pending, str, Pending]


def split(language: str, start: str, rules: Sequence[Rule], parts: Mapping[str, Sequence[str]]) -> list[Rule]:
    """Return BNF rules under which each lexeme named in `parts` may also stand for its parts, in their order.

    Raises LanguageError if the rules have more symbols than the limits allow.

    Args:
        language: The language's name, for messages.
        start: The start nonterminal.
        rules: The rules as they are written, where a part is a symbol like any other.
        parts: By lexeme, the two or more lexemes whose texts join to its text. A part may be split in turn.
    """
    splitter = _Splitter(language, rules, parts)
    # What is wrong with a language of no text, the engine says.
    return splitter.rules(start) if splitter.has_texts(start) else list(rules)


class _Splitter:
    def __init__(self, language: str, rules: Sequence[Rule], parts: Mapping[str, Sequence[str]]) -> None:
        self._language = language
        self._by_name: dict[str, list[tuple[str, ...]]] = {}
        for name, symbols in rules:
            self._by_name.setdefault(name, []).append(symbols)
        self._ways: dict[tuple[str, Pending], list[str]] = {}  # a first part and the others: the lexemes that are both
        self._states: set[Pending] = {()}
        for lexeme in parts:
            for way in _readings(lexeme, parts):
                self._ways.setdefault((way[0], way[1:]), []).append(lexeme)
                self._states.update(way[at:] for at in range(1, len(way)))
        self._ends = self._all_ends()

    def has_texts(self, name: str) -> bool:
        return () in self._ends.get((name, ()), ())

    def rules(self, start: str) -> list[Rule]:
        """Return the rules of all triples that the start symbol needs."""
        found: dict[Rule, None] = {}
        size = 0
        waiting: list[Triple] = [((), start, ())]
        seen = set(waiting)
        while waiting:
            triple = waiting.pop()
            before, name, after = triple
            for symbols in self._by_name[name]:
                for path in self._paths(symbols, before, after):
                    inner = list(zip((before, *path[:-1]), symbols, path, strict=True)) if path else []
                    new = [each for each in inner if each[1] in self._by_name and each not in seen]
                    seen.update(new)
                    waiting.extend(dict.fromkeys(new))
                    for expansion in self._written(inner):
                        size += len(expansion)
                        limits.check(self._language, "symbols of all rules with split lexemes", size, limits.SYMBOLS)
                        found[_name(triple), expansion] = None
        return list(found)

    def _all_ends(self) -> dict[tuple[str, Pending], set[Pending]]:
        """Return the parts that can be pending after a nonterminal, by those pending before it: the least fixpoint."""
        states = self._states_before()
        ends: dict[tuple[str, Pending], set[Pending]] = {
            (name, before): set() for name in self._by_name for before in self._states
        }
        self._ends = ends
        users = self._users()
        waiting = dict.fromkeys(self._by_name)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            more = [self._has_more_ends(name, before) for before in states[name]]
            if any(more):
                waiting.update(dict.fromkeys(users[name]))
        return ends

    def _states_before(self) -> dict[str, list[Pending]]:
        """Return by nonterminal the pending parts with which it can begin; no text takes others."""
        first: dict[str, set[str]] = {name: set() for name in self._by_name}
        nullable: set[str] = set()
        changed = True
        while changed:
            changed = False
            for name, choices in self._by_name.items():
                own, size = first[name], len(first[name]) + (name in nullable)
                for symbols in choices:
                    for symbol in symbols:
                        own |= first.get(symbol, {symbol})
                        if symbol not in nullable:
                            break
                    else:
                        nullable.add(name)
                changed |= len(own) + (name in nullable) > size
        return {
            name: [state for state in self._states if not state or state[0] in first[name] or name in nullable]
            for name in self._by_name
        }

    def _users(self) -> dict[str, dict[str, None]]:
        """Return by nonterminal those whose rules contain it."""
        found: dict[str, dict[str, None]] = {name: {} for name in self._by_name}
        for name, choices in self._by_name.items():
            for symbol in (symbol for symbols in choices for symbol in symbols if symbol in found):
                found[symbol][name] = None
        return found

    def _has_more_ends(self, name: str, before: Pending) -> bool:
        """Add the parts that can be pending after a nonterminal, as far as known; return whether there were more."""
        known = self._ends[name, before]
        size = len(known)
        for symbols in self._by_name[name]:
            at = {before}
            for symbol in symbols:
                at = {after for each in at for after in self._after(symbol, each)}
            known |= at
        return len(known) > size

    def _after(self, symbol: str, before: Pending) -> set[Pending]:
        if symbol in self._by_name:
            return self._ends[symbol, before]
        if before:
            return {before[1:]} if before[0] == symbol else set()
        return {(), *(rest for first, rest in self._ways if first == symbol)}

    def _paths(self, symbols: tuple[str, ...], before: Pending, after: Pending) -> Iterator[tuple[Pending, ...]]:
        """Yield the parts that may be pending after each symbol, with `after` after the last one."""
        if not before and all(self._after(symbol, ()) == {()} for symbol in symbols):
            if not after:
                yield ((),) * len(symbols)
            return

        @cache
        def reaches(at: int, pending: Pending) -> bool:
            if at == len(symbols):
                return pending == after
            return any(reaches(at + 1, each) for each in self._after(symbols[at], pending))

        def paths(at: int, pending: Pending) -> Iterator[tuple[Pending, ...]]:
            if at == len(symbols):
                yield ()
                return
            for each in sorted(self._after(symbols[at], pending)):
                if reaches(at + 1, each):
                    yield from ((each, *rest) for rest in paths(at + 1, each))

        if reaches(0, before):
            yield from paths(0, before)

    def _written(self, triples: Sequence[Triple]) -> list[tuple[str, ...]]:
        """Return the expansions of a sequence of triples: several where several lexemes begin with a part."""
        expansions: list[tuple[str, ...]] = [()]
        for before, symbol, after in triples:
            choices: list[tuple[str, ...]]
            if symbol in self._by_name:
                choices = [(_name((before, symbol, after)),)]
            elif before:
                choices = [()]  # a part of a lexeme that was read already
            elif after:
                choices = [(lexeme,) for lexeme in self._ways[symbol, after]]
            else:
                choices = [(symbol,)]
            expansions = [(*expansion, *choice) for expansion in expansions for choice in choices]
        return expansions


def _readings(lexeme: str, parts: Mapping[str, Sequence[str]]) -> set[tuple[str, ...]]:
    """Return all sequences of two or more lexemes that one may stand for."""
    found = {tuple(parts[lexeme])}
    waiting = list(found)
    while waiting:
        way = waiting.pop()
        for at, part in enumerate(way):
            if part in parts:
                finer = (*way[:at], *parts[part], *way[at + 1 :])
                if finer not in found:
                    found.add(finer)
                    waiting.append(finer)
    return found


def _name(triple: Triple) -> str:
    """Return a triple's name; explanations show the part before the brace, as for templates."""
    before, name, after = triple
    return name if not before and not after else f"{name}{{{' '.join(before)}; {' '.join(after)}}}"
