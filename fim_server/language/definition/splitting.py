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
from typing import TypeAlias

from fim_server.language.definition import limits

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""Nonterminal with its expansion into lexemes and nonterminals."""

Pending: TypeAlias = tuple[str, ...]
"""Parts of a split lexeme that have not been taken yet."""

_Numbered: TypeAlias = tuple[int, str, int]
"""Triple of the numbers of the parts pending before a symbol, the symbol, and those after it."""


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
    """Splitter of one grammar's lexemes. Pending parts have numbers, in order; the first one, 0, is that of none.

    What may be pending after a symbol is a bit mask of numbers, for each number before it.
    """

    def __init__(self, language: str, rules: Sequence[Rule], parts: Mapping[str, Sequence[str]]) -> None:
        self._language = language
        self._by_name: dict[str, list[tuple[str, ...]]] = {}
        for name, symbols in rules:
            self._by_name.setdefault(name, []).append(symbols)
        self._ways: dict[tuple[str, Pending], list[str]] = {}  # a first part and the others: the lexemes that are both
        states: set[Pending] = {()}
        for lexeme in parts:
            for way in _readings(lexeme, parts):
                self._ways.setdefault((way[0], way[1:]), []).append(lexeme)
                states.update(way[at:] for at in range(1, len(way)))
        self._states = sorted(states)
        self._after = self._after_lexemes() | {name: [0] * len(states) for name in self._by_name}
        self._find_ends()

    def has_texts(self, name: str) -> bool:
        return name in self._by_name and self._after[name][0] & 1 != 0

    def rules(self, start: str) -> list[Rule]:
        """Return the rules of all triples that the start symbol needs."""
        found: dict[Rule, None] = {}
        size = 0
        waiting: list[_Numbered] = [(0, start, 0)]
        seen = set(waiting)
        plain = {symbol for symbol, after in self._after.items() if after[0] == 1}
        while waiting:
            triple = waiting.pop()
            before, name, after = triple
            for symbols in self._by_name[name]:
                if not before and plain.issuperset(symbols):
                    paths = iter(() if after else ((0,) * len(symbols),))
                else:
                    paths = self._paths([self._after[symbol] for symbol in symbols], before, after)
                for path in paths:
                    inner = list(zip((before, *path[:-1]), symbols, path, strict=True)) if path else []
                    new = [each for each in inner if each not in seen and each[1] in self._by_name]
                    seen.update(new)
                    waiting.extend(dict.fromkeys(new))
                    for expansion in self._written(inner) if any(path) or before else (symbols,):
                        size += len(expansion)
                        limits.check(self._language, "symbols of all rules with split lexemes", size, limits.SYMBOLS)
                        found[self._name(triple), expansion] = None
        return list(found)

    def _after_lexemes(self) -> dict[str, list[int]]:
        numbers = {state: number for number, state in enumerate(self._states)}
        used = {symbol for choices in self._by_name.values() for symbols in choices for symbol in symbols}
        found = {}
        for symbol in used - self._by_name.keys():
            found[symbol] = [1 << numbers[state[1:]] if state and state[0] == symbol else 0 for state in self._states]
            found[symbol][0] = 1
        for first, rest in self._ways:
            if first in found:
                found[first][0] |= 1 << numbers[rest]
        return found

    def _find_ends(self) -> None:
        """Find the parts that can be pending after each nonterminal: the least fixpoint."""
        states = self._states_before()
        choices = {
            name: [[self._after[symbol] for symbol in symbols] for symbols in own]
            for name, own in self._by_name.items()
        }
        users = self._users()
        waiting = dict.fromkeys(self._by_name)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            known = self._after[name]
            changed = False
            for before in states[name]:
                ends = known[before]
                for tables in choices[name]:
                    at = 1 << before
                    for table in tables:
                        at = table[0] if at == 1 else _union(table, at)
                        if not at:
                            break
                    ends |= at
                changed |= ends != known[before]
                known[before] = ends
            if changed:
                waiting.update(users[name])

    def _states_before(self) -> dict[str, list[int]]:
        """Return by nonterminal the pending parts with which it can begin; no text takes others."""
        first: dict[str, set[str]] = {name: set() for name in self._by_name}
        nullable: set[str] = set()
        parts = {state[0] for state in self._states if state}
        changed = True
        while changed:
            changed = False
            for name, choices in self._by_name.items():
                own, size = first[name], len(first[name]) + (name in nullable)
                for symbols in choices:
                    for symbol in symbols:
                        if symbol in first:
                            own |= first[symbol]
                        elif symbol in parts:
                            own.add(symbol)
                        if symbol not in nullable:
                            break
                    else:
                        nullable.add(name)
                changed |= len(own) + (name in nullable) > size
        numbered = list(enumerate(self._states))
        return {
            name: [number for number, state in numbered if not state or state[0] in own or name in nullable]
            for name, own in first.items()
        }

    def _users(self) -> dict[str, dict[str, None]]:
        """Return by nonterminal those whose rules contain it."""
        found: dict[str, dict[str, None]] = {name: {} for name in self._by_name}
        for name, choices in self._by_name.items():
            for symbol in (symbol for symbols in choices for symbol in symbols if symbol in found):
                found[symbol][name] = None
        return found

    def _paths(self, tables: Sequence[Sequence[int]], before: int, after: int) -> Iterator[tuple[int, ...]]:
        """Yield the parts that may be pending after each symbol, with `after` after the last one."""
        reaching = [1 << after]  # from the last symbol to the first: the parts that lead to `after`
        for table in reversed(tables):
            reaching.append(sum(1 << number for number, ends in enumerate(table) if ends & reaching[-1]))
        reaching.reverse()

        def paths(at: int, pending: int) -> Iterator[tuple[int, ...]]:
            if at == len(tables):
                yield ()
                return
            for each in _numbers(tables[at][pending] & reaching[at + 1]):
                yield from ((each, *rest) for rest in paths(at + 1, each))

        if reaching[0] >> before & 1:
            yield from paths(0, before)

    def _written(self, triples: Sequence[_Numbered]) -> list[tuple[str, ...]]:
        """Return the expansions of a sequence of triples: several where several lexemes begin with a part."""
        expansions: list[tuple[str, ...]] = [()]
        for before, symbol, after in triples:
            choices: list[tuple[str, ...]]
            if symbol in self._by_name:
                choices = [(self._name((before, symbol, after)),)]
            elif before:
                choices = [()]  # a part of a lexeme that was read already
            elif after:
                choices = [(lexeme,) for lexeme in self._ways[symbol, self._states[after]]]
            else:
                choices = [(symbol,)]
            expansions = [(*expansion, *choice) for expansion in expansions for choice in choices]
        return expansions

    def _name(self, triple: _Numbered) -> str:
        """Return a triple's name; explanations show the part before the brace, as for templates."""
        before, name, after = triple
        if not before and not after:
            return name
        return f"{name}{{{' '.join(self._states[before])}; {' '.join(self._states[after])}}}"


def _union(table: Sequence[int], numbers: int) -> int:
    # PERF: a loop without a generator takes half the time, and this is most of splitting.
    found = 0
    while numbers:
        lowest = numbers & -numbers
        found |= table[lowest.bit_length() - 1]
        numbers ^= lowest
    return found


def _numbers(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


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
