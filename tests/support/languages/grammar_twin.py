"""A plain twin of lexer, layout stage and parser, to test a language's grammar without the engine.

Everything here is done the obvious way. The `regex` package finds the longest lexeme at a place. The layout stage
follows the reference manual line by line. The parser is an Earley recognizer over the rules that lark lowers to. They
read a text symbol by symbol, because in a language with modes the parser chooses the lexemes that are read next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import inf
from typing import Any

import regex
from lark.grammar import NonTerminal
from lark.lexer import PatternStr
from lark.load_grammar import load_grammar

from fim_server.language.definition.compile import read_builtin

# The pattern is so long that a search for the longest match by backtracking takes too long; the first one is it:
# lark puts the wider alternative (three quotes) first and the closing quote ends both.
_LONG_PATTERN = 1000
_TAB = 8


class Refused(Exception):
    """The text is not in the language; `offset` is where that shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} at {offset}")
        self.offset = offset


@dataclass(frozen=True)
class Symbol:
    """One occurrence of a lexeme, or of several where a soft keyword is a name as well."""

    lexemes: frozenset[str]
    start: int
    end: int


@dataclass
class Lexeme:
    name: str
    priority: tuple[bool, int]  # literal, explicit priority
    pattern: Any
    literal: str | None
    first: dict[str, bool] = field(default_factory=dict)

    def may_start_with(self, character: str) -> bool:
        known = self.first.get(character)
        if known is None:
            known = self.pattern.fullmatch(character, partial=True) is not None
            self.first[character] = known
        return known


Rule = tuple[str, tuple[tuple[str, bool], ...]]
"""A rule's name, and its symbols: names, and whether they are rules."""


@dataclass(frozen=True)
class Mode:
    """The lexemes that are read while the parser can take one of the mode's own."""

    lexemes: tuple[Lexeme, ...]
    candidates: dict[str, tuple[Lexeme, ...]] = field(default_factory=dict)

    def starting_with(self, character: str) -> tuple[Lexeme, ...]:
        found = self.candidates.get(character)
        if found is None:
            found = tuple(lexeme for lexeme in self.lexemes if lexeme.may_start_with(character))
            self.candidates[character] = found
        return found


class Grammar:
    """A language's two files, read and lowered."""

    def __init__(self, grammar: str, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.start: str = spec["start"]
        self.soft: frozenset[str] = frozenset(spec.get("soft_keywords", ()))
        loaded, _ = load_grammar(grammar, "<grammar>", [], False)
        terminals, rules, ignored = loaded.compile([self.start], set(spec.get("error_lexemes", ())))
        self.ignored: frozenset[str] = frozenset(ignored)
        self.lexemes = [
            Lexeme(
                name=terminal.name,
                priority=(isinstance(terminal.pattern, PatternStr), terminal.priority),
                pattern=self._pattern(terminal.pattern.to_regexp()),
                literal=terminal.pattern.value if isinstance(terminal.pattern, PatternStr) else None,
            )
            for terminal in terminals
        ]
        written = [
            (str(rule.origin.name), tuple((str(s.name), isinstance(s, NonTerminal)) for s in rule.expansion))
            for rule in rules
        ]
        self.rules = _without_empty(written, self.start)
        depths = [(opener, 1) for opener, _ in spec.get("brackets", ())]
        depths += [(closer, -1) for _, closer in spec.get("brackets", ())]
        names = {lexeme.literal: lexeme.name for lexeme in self.lexemes if lexeme.literal is not None}
        self.depth_by: dict[str, int] = {names[literal]: change for literal, change in depths}
        # A mode none of whose lexemes a rule uses is one of another version of the language.
        used = {name for _, right in self.rules for name, _ in right}
        modes = [mode for mode in spec.get("modes", ()) if used & set(mode["lexemes"])]
        own = {name for mode in spec.get("modes", ()) for name in mode["lexemes"]}
        self.modes = [self._mode(mode, own) for mode in modes]
        self.mode_of = {name: number for number, mode in reversed([*enumerate(modes)]) for name in mode["lexemes"]}
        self.default_mode = len(modes)
        self.modes.append(Mode(tuple(lexeme for lexeme in self.lexemes if lexeme.name not in own)))
        for mode in modes:
            self.depth_by |= dict.fromkeys(mode.get("open", ()), 1) | dict.fromkeys(mode.get("close", ()), -1)
        limits = spec.get("limits", {})
        self.most_brackets: float = limits.get("brackets", inf)
        self.most_blocks: float = limits.get("blocks", inf)

    def _mode(self, mode: dict[str, Any], own: set[str]) -> Mode:
        left_out = set(mode.get("without", ()))
        return Mode(
            tuple(
                lexeme
                for lexeme in self.lexemes
                if lexeme.name in mode["lexemes"]
                or (mode.get("code", False) and lexeme.name not in own and lexeme.literal not in left_out)
            )
        )

    @staticmethod
    def _pattern(source: str) -> Any:
        return regex.compile(source if len(source) > _LONG_PATTERN else f"(?p){source}", regex.VERSION0)

    def mode_at(self, parser: Parser) -> Mode:
        """The first mode of which the parser can take a lexeme."""
        if self.default_mode == 0:
            return self.modes[0]
        return self.modes[min((self.mode_of.get(name, self.default_mode) for name in parser.expected()), default=-1)]

    def lexeme_at(self, text: str, position: int, mode: Mode) -> Symbol:
        """The longest match at `position`; of equal ones the literal, then the higher priority."""
        longest = position
        best: list[Lexeme] = []
        for lexeme in mode.starting_with(text[position]):
            if lexeme.literal is not None:
                if not text.startswith(lexeme.literal, position):
                    continue
                end = position + len(lexeme.literal)
            else:
                match = lexeme.pattern.match(text, position)
                if match is None:
                    continue
                end = match.end()
            if end > longest:
                longest, best = end, [lexeme]
            elif end == longest and end > position:
                best.append(lexeme)
        if not best:
            raise Refused("no lexeme", position)
        best.sort(key=lambda lexeme: lexeme.priority, reverse=True)
        names = {best[0].name}
        if best[0].literal in self.soft:
            names |= {lexeme.name for lexeme in best[1:2]}
        return Symbol(frozenset(names), position, longest)

    def lex(self, text: str) -> list[Symbol]:
        """The symbols the parser gets, layout symbols among them; with modes, as far as it takes them.

        Raises:
            Refused: There is no lexeme, or no layout, or in a language with modes no rule.
        """
        parser = self.recognizer.start()
        symbols = []
        for symbol in self._symbols(text, parser):
            if self.default_mode and not parser.take(symbol.lexemes):
                raise Refused("no rule", symbol.start)
            symbols.append(symbol)
        return symbols

    def _symbols(self, text: str, parser: Parser) -> Iterator[Symbol]:
        """Symbol by symbol; the parser must have taken each before the next is asked for."""

        def lexeme_at(position: int) -> Symbol:
            return self.lexeme_at(text, position, self.mode_at(parser))

        if self.spec.get("layout", {}).get("rule", "none") == "indent":
            yield from _indented(self, text, lexeme_at)
            return
        position = depth = 0
        while position < len(text):
            symbol = lexeme_at(position)
            position = symbol.end
            if not symbol.lexemes & self.ignored:
                depth = self.depth_after(symbol, depth)
                yield symbol

    def depth_after(self, symbol: Symbol, depth: int) -> int:
        """Return the number of brackets open after a symbol."""
        depth += sum(self.depth_by.get(name, 0) for name in symbol.lexemes)
        if depth > self.most_brackets:
            raise Refused("too many brackets", symbol.start)
        return depth

    @cached_property
    def recognizer(self) -> Recognizer:
        return Recognizer(self.rules, self.start)

    def check(self, text: str) -> Refused | None:
        """None where the text is in the language, else why it is not."""
        parser = self.recognizer.start()
        try:
            for symbol in self._symbols(text, parser):
                if not parser.take(symbol.lexemes):
                    return Refused("no rule", symbol.start)
        except Refused as refused:
            return refused
        return None if parser.is_complete() else Refused("no rule", len(text))


def _line_break(text: str, position: int) -> int:
    """The length of the line break at `position`."""
    if text.startswith("\r\n", position):
        return 2
    return 1 if text[position : position + 1] in ("\n", "\r") else 0


def _indentation(text: str, position: int) -> tuple[int, int, int]:
    """Return the offset of the line's first character that counts, and its column with tabs of eight and of one."""
    column = other = joined = 0
    while position < len(text):
        character = text[position]
        if character == " ":
            column, other = column + 1, other + 1
        elif character == "\t":
            column, other = (column // _TAB + 1) * _TAB, other + 1
        elif character == "\f":
            column = other = 0
        elif character == "\\" and (length := _line_break(text, position + 1)):
            joined = joined or column
            position += length
            if position + 1 == len(text):
                raise Refused("a line join ends the file", position)
        else:
            break
        position += 1
    return position, joined or column, joined or other


def _indented(grammar: Grammar, text: str, lexeme_at: Callable[[int], Symbol]) -> Iterator[Symbol]:
    layout = grammar.spec["layout"]
    newline, indent, dedent = (frozenset({layout[kind]}) for kind in ("newline", "indent", "dedent"))
    columns = [(0, 0)]
    position = 0
    size = len(text)
    while position < size:
        position, column, other = _indentation(text, position)
        if position == size:
            break
        if text[position] == "#":
            while position < size and not _line_break(text, position):
                if text[position] == "\0":
                    raise Refused("no lexeme", position)
                position += 1
        if position == size:
            break
        if length := _line_break(text, position):
            position += length
            continue
        if column == columns[-1][0]:
            if other != columns[-1][1]:
                raise Refused("tabs and spaces", position)
        elif column > columns[-1][0]:
            if other <= columns[-1][1]:
                raise Refused("tabs and spaces", position)
            if len(columns) > grammar.most_blocks:
                raise Refused("too many blocks", position)
            columns.append((column, other))
            yield Symbol(indent, position, position)
        else:
            while column < columns[-1][0]:
                columns.pop()
                yield Symbol(dedent, position, position)
            if column != columns[-1][0]:
                raise Refused("no block has this column", position)
            if other != columns[-1][1]:
                raise Refused("tabs and spaces", position)
        depth = 0
        while True:
            if position == size:
                yield Symbol(newline, position, position)
                break
            symbol = lexeme_at(position)
            position = symbol.end
            if symbol.lexemes == newline:
                if depth <= 0:
                    yield symbol
                    break
            elif layout["join"] in symbol.lexemes:
                if position == size:
                    raise Refused("a line join ends the file", position)
            elif not symbol.lexemes & grammar.ignored:
                depth = grammar.depth_after(symbol, depth)
                yield symbol
    for _ in columns[1:]:
        yield Symbol(dedent, size, size)


def _without_empty(rules: list[Rule], start: str) -> list[Rule]:
    """Rules of the same language, of which none but the start's derive the empty text."""
    empty: set[str] = set()
    while more := {left for left, right in rules if left not in empty and all(name in empty for name, _ in right)}:
        empty |= more
    found: dict[Rule, None] = {}
    for left, right in rules:
        ways: list[tuple[tuple[str, bool], ...]] = [()]
        for symbol in right:
            with_it = [(*way, symbol) for way in ways]
            ways = ways + with_it if symbol[0] in empty else with_it
        found |= dict.fromkeys((left, way) for way in ways if way or left == start)
    known = {left for left, _ in found}
    return [(left, right) for left, right in found if all(name in known for name, is_rule in right if is_rule)]


class Recognizer:
    """Earley's recognizer. Only the start symbol may derive the empty text."""

    def __init__(self, rules: list[Rule], start: str) -> None:
        self.start_symbol = start
        self.accepts_nothing = any(left == start and not right for left, right in rules)
        self.after_dot: list[tuple[str, bool] | None] = []  # by dot: the symbol after it
        self.left_of: list[str] = []  # by dot: the rule's left side
        self._first: dict[str, list[int]] = defaultdict(list)
        for left, right in rules:
            if not right:
                if left != start:
                    raise ValueError(f"{left} derives the empty text")
                continue
            self._first[left].append(len(self.after_dot))
            for item in (*right, None):
                self.after_dot.append(item)
                self.left_of.append(left)
        self.closure = cache(self._uncached_closure)
        self.by_left: dict[str, list[tuple[tuple[str, bool], ...]]] = defaultdict(list)
        for left, right in rules:
            self.by_left[left].append(right)
        self.least_depth: dict[str, int] = {}
        while len(self.least_depth) < len(self.by_left):
            before = dict(self.least_depth)
            for left, right in rules:
                below = [before.get(name) for name, is_rule in right if is_rule]
                if left not in before and None not in below:
                    self.least_depth[left] = 1 + max((depth for depth in below if depth is not None), default=0)
            if before == self.least_depth:
                raise ValueError("rules that derive nothing: " + ", ".join(self.by_left.keys() - before.keys()))

    def _uncached_closure(
        self, wanted: frozenset[str]
    ) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """Return the predictions where `wanted` may begin: the dots after each terminal and each nonterminal."""
        todo = list(wanted)
        seen = set(wanted)
        terminals: dict[str, list[int]] = defaultdict(list)
        nonterminals: dict[str, list[int]] = defaultdict(list)
        while todo:
            for dot in self._first[todo.pop()]:
                item = self.after_dot[dot]
                assert item is not None
                name, is_rule = item
                (nonterminals if is_rule else terminals)[name].append(dot + 1)
                if is_rule and name not in seen:
                    seen.add(name)
                    todo.append(name)
        return (
            {name: tuple(dots) for name, dots in terminals.items()},
            {name: tuple(dots) for name, dots in nonterminals.items()},
        )

    def start(self) -> Parser:
        return Parser(self)


class Parser:
    """The recognizer's sets of items for the symbols so far: an item is a dot in a rule and where the rule began."""

    def __init__(self, recognizer: Recognizer) -> None:
        self._recognizer = recognizer
        self._scans, predicted = recognizer.closure(frozenset({recognizer.start_symbol}))
        self._after_rule: list[dict[str, tuple[int, ...]]] = [predicted]
        self._waiting: list[dict[str, list[tuple[int, int]]]] = [{}]
        self._kernel_scans: dict[str, list[tuple[int, int]]] = {}
        self._is_complete = recognizer.accepts_nothing

    def is_complete(self) -> bool:
        """Return whether the symbols so far are a text."""
        return self._is_complete

    def expected(self) -> Iterator[str]:
        """The lexemes that can come next."""
        yield from self._scans
        yield from self._kernel_scans

    def take(self, lexemes: frozenset[str]) -> bool:
        """Appends a symbol, which may be any of the lexemes; False where it cannot be, and then the parser is done."""
        index = len(self._after_rule) - 1
        items: set[tuple[int, int]] = set()
        for lexeme in lexemes:
            items.update((dot, index) for dot in self._scans.get(lexeme, ()))
            items.update(self._kernel_scans.get(lexeme, ()))
        after_dot, left_of = self._recognizer.after_dot, self._recognizer.left_of
        todo = list(items)
        done: set[tuple[str, int]] = set()
        kernel_scans: dict[str, list[tuple[int, int]]] = {}
        here: dict[str, list[tuple[int, int]]] = {}
        while todo:
            dot, origin = todo.pop()
            item = after_dot[dot]
            if item is not None:
                (here if item[1] else kernel_scans).setdefault(item[0], []).append((dot + 1, origin))
                continue
            finished = (left_of[dot], origin)
            if finished in done:
                continue
            done.add(finished)
            for later in self._after_rule[origin].get(finished[0], ()):
                if (later, origin) not in items:
                    items.add((later, origin))
                    todo.append((later, origin))
            for pair in self._waiting[origin].get(finished[0], ()):
                if pair not in items:
                    items.add(pair)
                    todo.append(pair)
        self._scans, predicted = self._recognizer.closure(frozenset(here))
        self._after_rule.append(predicted)
        self._waiting.append(here)
        self._kernel_scans = kernel_scans
        self._is_complete = (self._recognizer.start_symbol, 0) in done
        return bool(items)


@cache
def language(name: str, version: str | None = None) -> Grammar:
    definition = read_builtin(name, version)
    return Grammar(definition.grammar, definition.spec)
