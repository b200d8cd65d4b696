"""How holes are cut into files: the two constructions of the paper, and seven that look at Python's structure.

A construction draws from a generator that is seeded with the construction's name and version, the seed and the SHA-256
of the file's text alone. So a file's holes depend on nothing else: not on the other files and their order, on how many
were asked for (the first n of many are those of n), on the process, the interpreter's hash seed or a build's
interruptions. Holes are never empty and, within a file, never twice the same: one that would be is drawn again, and
after `TRIES` draws in a row in vain the file gives no more. What a sample's ``left + middle + right`` joins to is the
file, so the middle that was cut out always parses.
"""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from fim_server.datasets.python.fields import replacement_fields
from fim_server.datasets.python.text import (
    PythonText,
    Symbol,
    is_expression,
    parse_or_none,
)

Item = TypeVar("Item")

VERSION = 1
"""Counted up when a construction comes to draw other holes; part of the seed and of every sample's id."""

TRIES = 64
"""Draws in a row that may be in vain."""

PER_FILE = 10
"""Holes in a file, as in the paper."""

START_SHARE = 0.9
"""RANDSPAN: how far through the file, as a share of its characters, a hole may start."""
SPAN_CHARACTERS = 100
"""RANDSPAN: longest hole."""
SPAN_SHARE = 0.2
"""RANDSPAN: longest hole as a share of the file."""

BLOCK_LINES = 30
"""Longest hole of the set `block`; whole classes are no completion at a cursor."""


class Cut(NamedTuple):
    """A hole: ``text[start:end]`` is the middle."""

    kind: str
    start: int
    end: int


class Draws:
    """Random choices that are the same in every process and version of Python.

    Only `random.Random.random` is used, which alone is documented to keep its sequence for a seed.
    """

    def __init__(self, construction: str, seed: int, sha256: str) -> None:
        key = f"{construction}/{VERSION}/{seed}/{sha256}".encode()
        self._random = random.Random(int.from_bytes(hashlib.sha256(key).digest(), "big"))

    def below(self, bound: int) -> int:
        """An integer from 0 to ``bound - 1``."""
        return int(self._random.random() * bound)

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items. Raises IndexError if there is none."""
        return items[self.below(len(items))]


Draw = Callable[[Draws], Cut | None]
"""One draw of a hole in a file, or None for one in vain."""


def cuts(construction: str, file: PythonText, seed: int, sha256: str, count: int) -> Iterator[Cut]:
    """Up to ``count`` holes of a construction in a file. ``sha256``: of the text's UTF-8, hexadecimal.

    Raises:
        KeyError: there is no such construction.
        Refused: the construction needs the file's symbols, and `tokenize` refuses it.
    """
    draw = CONSTRUCTIONS[construction](file)
    if draw is None:
        return
    draws = Draws(construction, seed, sha256)
    taken: set[tuple[int, int]] = set()
    while len(taken) < count:
        for _ in range(TRIES):
            cut = draw(draws)
            if cut is not None and cut.start < cut.end and (cut.start, cut.end) not in taken:
                break
        else:
            return
        taken.add((cut.start, cut.end))
        yield cut


# --- the paper's ---------------------------------------------------------------------------------------------------


def stack_boundary(file: PythonText) -> Draw | None:
    """STACK-BOUNDARY: between two symbols at the same indentation level.

    The paper (arXiv 2402.17988, section VII-A): two symbols at the same indentation level are chosen, and the text
    between them is removed together with a random part of the first. What it leaves open, and how it is done here:

    - *Symbols* are the terminals of Python's grammar that have text: names, keywords, numbers, strings, operators and
      line ends, as `tokenize` finds them. A string is one symbol, f-strings and docstrings included. Comments, blank
      lines, line breaks inside brackets, and the indents, dedents and end mark, which have no text of their own, are
      not chosen.
    - *The same indentation level* is one indented block: both symbols stand in it itself, not in a block inside it or
      in another one of the same depth elsewhere. The paper's own program reads it so. What lies between them may well
      be deeper.
    - *Chosen*: the first draw takes any symbol whose block has another one, the second any other symbol of that block,
      all equally likely; the one further left is the first.
    - *A random part*: the hole starts at one of the first symbol's characters or at its end, all equally likely, so
      that from the whole symbol to nothing of it is removed. It ends where the second symbol begins. (The paper's
      program also removes a part of the second, which its text does not say.)
    """
    blocks: dict[int, list[Symbol]] = {}
    for symbol in file.symbols:
        blocks.setdefault(symbol.block, []).append(symbol)
    choices = [(symbol, block) for block in blocks.values() if len(block) > 1 for symbol in block]
    places = {symbol.start: place for block in blocks.values() for place, symbol in enumerate(block)}
    if not choices:
        return None

    def draw(draws: Draws) -> Cut:
        one, block = draws.choice(choices)
        other = draws.below(len(block) - 1)
        other += other >= places[one.start]
        first, second = sorted((one, block[other]))
        return Cut("stack-boundary", first.start + draws.below(first.end - first.start + 1), second.start)

    return draw


def stack_randspan(file: PythonText) -> Draw | None:
    """STACK-RANDSPAN: a random span of characters.

    The paper (arXiv 2402.17988, section VII-A): a start up to 90 % through the file, a length up to 100 characters, or
    20 % of the file, or to the file's end. What it leaves open, and how it is done here: positions and lengths are in
    characters. The start is any offset from 0 to 90 % of the file's length, rounded down, all equally likely. The
    shortest of the three bounds (the share rounded down) bounds the length, and every length from 1 to that bound is
    equally likely. (The paper's program always removes 20 % of the file.) A file of fewer than 5 characters has no
    hole.
    """
    length = len(file.text)
    longest = min(SPAN_CHARACTERS, int(length * SPAN_SHARE))
    if longest < 1:
        return None

    def draw(draws: Draws) -> Cut:
        start = draws.below(int(length * START_SHARE) + 1)
        return Cut("stack-randspan", start, start + 1 + draws.below(min(longest, length - start)))

    return draw


# --- by Python's structure -----------------------------------------------------------------------------------------


def line(file: PythonText) -> Draw | None:
    """`line`: a line from its first character that is no blank to its end.

    Lines of comments alone and lines that share a string with another line are left out.
    """
    return _any_of([Cut("line", start, end) for start, end in _whole_lines(file)])


def line_rest(file: PythonText) -> Draw | None:
    """`line-rest`: the rest of a line, from a random character to its end.

    Which of the lines that the set `line` has, then which of its characters but the first, is equally likely. What is
    blank is drawn again.
    """
    lines = [(start, end) for start, end in _whole_lines(file) if end - start > 1]
    if not lines:
        return None

    def draw(draws: Draws) -> Cut | None:
        first, end = draws.choice(lines)
        start = first + 1 + draws.below(end - first - 1)
        return None if file.text[start:end].isspace() else Cut("line-rest", start, end)

    return draw


def mid_indentation(file: PythonText) -> Draw | None:
    """`mid-indentation`: a cursor between two blanks of a line's indentation; the hole reaches to the line's end.

    The lines are those that a statement or a compound statement's clause begins on, at least two blanks deep, and that
    share no string with another line. Which line, then where in its indentation, is equally likely.
    """
    indented: list[tuple[int, int, int]] = []
    begins = True
    for symbol in file.symbols:
        if begins:
            number = file.line_at(symbol.start)
            start = file.line_starts[number]
            blanks = file.text[start : symbol.start]
            if len(blanks) > 1 and not blanks.strip(" \t") and number not in file.lines_in_strings:
                indented.append((start, len(blanks), file.line_end(number)))
        begins = file.text[symbol.start : symbol.end] == "\n"
    if not indented:
        return None

    def draw(draws: Draws) -> Cut:
        start, width, end = draws.choice(indented)
        return Cut("mid-indentation", start + 1 + draws.below(width - 1), end)

    return draw


def expression(file: PythonText) -> Draw | None:
    """`expression`: one expression of the syntax tree, from its first character to its last.

    Which kind of expression (a call, a comparison, ...; it becomes the sample's kind) is drawn first, all kinds that
    the file has being equally likely, because names and constants would crowd out the rest; then which one of that
    kind. Targets of assignments, slices, starred parts, docstrings and what stands inside f-strings are left out.
    """
    by_kind: dict[str, list[ast.expr]] = {}
    for node in _nodes(file.tree):
        left_out = isinstance(node, ast.Starred | ast.Slice) or not isinstance(getattr(node, "ctx", _LOAD), ast.Load)
        if isinstance(node, ast.expr) and not left_out:
            by_kind.setdefault(_kebab(type(node).__name__), []).append(node)
    kinds = sorted(by_kind)
    if not kinds:
        return None

    def draw(draws: Draws) -> Cut | None:
        kind = draws.choice(kinds)
        start, end = file.span(draws.choice(by_kind[kind]))
        return Cut(kind, start, end) if is_expression(file.text[start:end]) else None

    return draw


def block(file: PythonText) -> Draw | None:
    """`block`: the body of a compound statement or of one of its clauses.

    From its first statement to the end of its last line, without the docstring it begins with if there is more. Bodies
    on the line of their header and those of more than `BLOCK_LINES` lines are left out. The kind is the clause:
    `function`, `class`, `if` (and `elif`), `else`, `for`, `while`, `with`, `try`, `except`, `finally`, `case`.
    """
    found: list[Cut] = []
    for node in _nodes(file.tree):
        for kind, body in _bodies(node):
            statements = body[1:] if len(body) > 1 and _is_docstring(body[0]) else body
            span = _lines_of(file, statements)
            if span is not None:
                found.append(Cut(kind, *span))
    return _any_of(found)


def f_string(file: PythonText) -> Draw | None:
    """`f-string`: inside a replacement field of an f-string, up to the end of the field's expression.

    Half of the draws remove the whole expression (kind `field`), half begin at a random character inside it (kind
    `field-tail`). Conversion and format specification stay.
    """
    fields = [
        (symbol, field)
        for symbol in file.symbols
        if symbol.is_string
        for field in replacement_fields(file.text, symbol.start, symbol.end)
    ]
    if not fields:
        return None

    def draw(draws: Draws) -> Cut | None:
        symbol, (start, end) = draws.choice(fields)
        if parse_or_none(file.text[symbol.start : start] + "(0)" + file.text[end : symbol.end], "eval") is None:
            return None  # not the place of an expression after all
        if draws.below(2) == 0:
            return Cut("field", start, end)
        return Cut("field-tail", start + 1 + draws.below(end - start - 1), end) if end - start > 1 else None

    return draw


def call_arguments(file: PythonText) -> Draw | None:
    """`call-arguments`: the arguments of a call, up to its closing parenthesis.

    Half of the draws remove all that is between the parentheses (kind `all`), half begin at the second or a later
    argument (kind `rest`). Calls without arguments and those inside f-strings are left out.
    """
    calls = [node for node in _nodes(file.tree) if isinstance(node, ast.Call) and (node.args or node.keywords)]
    if not calls:
        return None

    def draw(draws: Draws) -> Cut | None:
        call = draws.choice(calls)
        opening = file.first_symbol_from(file.span(call.func)[1])
        while file.text[file.symbols[opening].start] != "(":
            opening += 1  # the function may stand in parentheses of its own
        start, end = file.symbols[opening].end, file.span(call)[1] - 1
        if draws.below(2) == 0:
            return Cut("all", start, end)
        later = [at for at in _arguments(file, call, opening, end) if at > start]
        return Cut("rest", draws.choice(later), end) if later else None

    return draw


CONSTRUCTIONS: dict[str, Callable[[PythonText], Draw | None]] = {
    "stack-boundary": stack_boundary,
    "stack-randspan": stack_randspan,
    "line": line,
    "line-rest": line_rest,
    "expression": expression,
    "block": block,
    "mid-indentation": mid_indentation,
    "f-string": f_string,
    "call-arguments": call_arguments,
}
"""By the name of the set. A construction takes a file and returns how to draw from it; None where there is nothing."""


# --- parts ---------------------------------------------------------------------------------------------------------

_LOAD = ast.Load()


def _whole_lines(file: PythonText) -> list[tuple[int, int]]:
    """Offsets of the first character that is no blank and of the end of each line that has a symbol.

    Without lines that share a string with another line.
    """
    numbers = sorted({file.line_at(symbol.start) for symbol in file.symbols if file.text[symbol.start] != "\n"})
    spans = []
    for number in numbers:
        if number not in file.lines_in_strings:
            content = file.lines[number]
            start = file.line_starts[number] + len(content) - len(content.lstrip(" \t\f"))
            spans.append((start, file.line_end(number)))
    return spans


def _any_of(found: list[Cut]) -> Draw | None:
    if not found:
        return None
    return lambda draws: draws.choice(found)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but docstrings (and other strings alone on a line) and what is inside f-strings, in a fixed order.

    Up to Python 3.11 the nodes inside f-strings have no reliable positions.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _INTERPOLATED) and not _is_docstring(node):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


_INTERPOLATED = tuple(getattr(ast, name) for name in ("JoinedStr", "TemplateStr") if hasattr(ast, name))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _kebab(name: str) -> str:
    """The name with hyphens: "if-exp" for "IfExp"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


_HEADERS: dict[type[ast.AST], str] = {
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
    ast.ClassDef: "class",
    ast.If: "if",
    ast.For: "for",
    ast.AsyncFor: "for",
    ast.While: "while",
    ast.With: "with",
    ast.AsyncWith: "with",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.ExceptHandler: "except",
    ast.match_case: "case",
}


def _bodies(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The bodies of a statement's clauses. The `elif` of an `if` is found as a statement of its own."""
    kind = _HEADERS.get(type(node))
    if kind is not None:
        for clause, attribute in ((kind, "body"), ("else", "orelse"), ("finally", "finalbody")):
            body = getattr(node, attribute, [])
            if body:
                yield clause, body


def _lines_of(file: PythonText, statements: list[ast.stmt]) -> tuple[int, int] | None:
    """Offsets of the first statement's beginning and of the end of the last one's line.

    None where the first does not begin its line (or is an `elif`), or where they are more than `BLOCK_LINES` lines.
    """
    first, last = statements[0], statements[-1]
    decorators = getattr(first, "decorator_list", [])
    begin = min([first.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    assert last.end_lineno is not None
    if last.end_lineno - begin > BLOCK_LINES:
        return None
    content = file.lines[begin]
    blanks = len(content) - len(content.lstrip(" \t\f"))
    start = file.line_starts[begin] + blanks
    if decorators:
        if content[blanks : blanks + 1] != "@":
            return None  # a decorator that begins on the line after its "@"
    elif start != file.span(first)[0] or (isinstance(first, ast.If) and file.text.startswith("elif", start)):
        return None
    return start, file.line_end(last.end_lineno - 1)


def _arguments(file: PythonText, call: ast.Call, opening: int, end: int) -> Iterator[int]:
    """Offsets at which a call's second and later arguments begin, parentheses around them included."""
    begins = {file.span(node)[0] for node in call.args}
    begins |= {file.offset_of_bytes(node.lineno, node.col_offset) for node in call.keywords}
    depth, after_comma, index = 0, -1, opening + 1
    while index < len(file.symbols) and file.symbols[index].start < end:
        symbol = file.symbols[index]
        character = file.text[symbol.start] if symbol.end == symbol.start + 1 else ""
        if symbol.start in begins and after_comma >= 0:
            yield after_comma
            after_comma = -1
        elif depth == 0 and character == ",":
            after_comma = file.symbols[index + 1].start
        # Not elif: an argument may begin with a bracket.
        depth += (character in _OPENING) - (character in _CLOSING)
        index += 1


_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
