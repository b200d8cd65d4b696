"""Split lexemes: literals that the parser may also take as several ones right after the other, such as `>>` as two `>`.

Longest match makes one lexeme of `>>`, and where it stands, two rules may have to end. The grammar is changed for that,
and nothing else knows of it: which lexemes a text is read as stays deterministic. Reading a text in parts is a finite
transducer whose state is what is *pending*, the parts of a lexeme that are still to be taken; context-free languages
are closed under inverses of such transducers (Bar-Hillel, Perles & Shamir 1961), by nonterminals that are triples: what
is pending where the nonterminal begins, the nonterminal, and what is pending where it ends. Only triples that some text
of the language goes through are made, and few are: types that end in the midst of `>>`, operands that begin in the
midst of `&&`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from fim_server.language import limits

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""A nonterminal, and the lexemes and nonterminals that it comes to."""

Pending: TypeAlias = tuple[str, ...]
"""Parts of a split lexeme that have not been taken yet."""

Triple: TypeAlias = tuple[Pending, str, Pending]


def split(language: str, start: str, rules: Sequence[Rule], parts: Mapping[str, Sequence[str]]) -> list[Rule]:
    """BNF rules under which each lexeme that is named in `parts` may also stand for its parts, in their order.

    Args:
        language: The language's name, for messages.
        start: The start nonterminal.
        rules: The rules as they are written, where a part is a symbol like any other.
        parts: By lexeme, the two or more lexemes that its text is the text of. A part may be split in turn.

    Raises:
        LanguageError: More symbols than the limits allow come of it.
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
        """Whether a nonterminal comes to any text."""
        return () in self._ends.get((name, ()), ())

    def rules(self, start: str) -> list[Rule]:
        """Those of all triples that the start symbol needs."""
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
        """What can be pending after a nonterminal, by what is pending before it: the least fixpoint."""
        ends: dict[tuple[str, Pending], set[Pending]] = {
            (name, before): set() for name in self._by_name for before in self._states
        }
        self._ends = ends
        users = self._users()
        waiting = dict.fromkeys(self._by_name)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            more = [self._has_more_ends(name, before) for before in self._states]
            if any(more):
                waiting.update(dict.fromkeys(users[name]))
        return ends

    def _users(self) -> dict[str, dict[str, None]]:
        """By nonterminal, those in whose rules it stands."""
        found: dict[str, dict[str, None]] = {name: {} for name in self._by_name}
        for name, choices in self._by_name.items():
            for symbol in (symbol for symbols in choices for symbol in symbols if symbol in found):
                found[symbol][name] = None
        return found

    def _has_more_ends(self, name: str, before: Pending) -> bool:
        """Adds what can be pending after a nonterminal, as far as that of its parts is known; whether that was more."""
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
        """What may be pending after each symbol, so that `after` is after the last one."""

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
        """The expansions that a sequence of triples comes to: more than one where several lexemes begin with a part."""
        expansions: list[tuple[str, ...]] = [()]
        for before, symbol, after in triples:
            choices: list[tuple[str, ...]]
            if symbol in self._by_name:
                choices = [(_name((before, symbol, after)),)]
            elif before:
                choices = [()]  # a part of what was read already
            elif after:
                choices = [(lexeme,) for lexeme in self._ways[symbol, after]]
            else:
                choices = [(symbol,)]
            expansions = [(*expansion, *choice) for expansion in expansions for choice in choices]
        return expansions


def _readings(lexeme: str, parts: Mapping[str, Sequence[str]]) -> set[tuple[str, ...]]:
    """All sequences of two or more lexemes that one may stand for."""
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
    """A triple's name; explanations know it by what stands before the brace, as they know what templates made."""
    before, name, after = triple
    return name if not before and not after else f"{name}{{{' '.join(before)}; {' '.join(after)}}}"
