"""Constructions of holes in Python files: the shared ones, and five that use Python's syntax tree.

For STACK-BOUNDARY the paper (arXiv 2402.17988, section VII-A) leaves open what a symbol and an indentation level are.
Symbols are here the terminals of Python's grammar that have text: names, keywords, numbers, strings, operators and line
ends, as `tokenize` finds them. A string is one symbol, f-strings and docstrings included. Comments, blank lines, line
breaks inside brackets, indents, dedents and the end mark are none.

An indentation level is one indented block, without inner blocks and without blocks of the same depth elsewhere, as in
the paper's own program. The text between two of its symbols may be deeper. The paper's program also removes a part of
the second symbol, which its text does not say; here the hole ends where the second symbol begins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from fim_server.datasets.holes import BLOCK_LINES, SHARED, Constructions, Cut, Draw, Draws, any_of
from fim_server.datasets.python.fields import replacement_fields
from fim_server.datasets.python.text import PythonText, is_expression, parse_or_none


def mid_indentation(file: PythonText) -> Draw | None:
    """Draw a cursor between two blanks of a line's indentation; the hole reaches to the line's end.

    A statement or a clause of a compound statement begins on the line, at least two blanks deep, and the line shares no
    string with another one. All such lines, and then all places in the indentation, are equally likely.
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
    """Draw one expression of the syntax tree, from its first character to its last.

    The kind of expression (a call, a comparison, ...) is drawn first and becomes the sample's kind. All kinds in the
    file are equally likely, because names and constants would crowd out the rest. Then one expression of that kind is
    drawn. Targets of assignments, slices, starred parts, docstrings and the content of f-strings are left out.
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
    """Draw the body of a compound statement or of one of its clauses.

    The hole reaches from its first statement to the end of its last line, without a docstring before other statements.
    Bodies on their header's line and those of more than `BLOCK_LINES` lines are left out. The kind is the clause:
    `function`, `class`, `if` (and `elif`), `else`, `for`, `while`, `with`, `try`, `except`, `finally`, `case`.
    """
    found: list[Cut] = []
    for node in _nodes(file.tree):
        for kind, body in _bodies(node):
            statements = body[1:] if len(body) > 1 and _is_docstring(body[0]) else body
            span = _lines_of(file, statements)
            if span is not None:
                found.append(Cut(kind, *span))
    return any_of(found)


def f_string(file: PythonText) -> Draw | None:
    """Draw the end of an expression in a replacement field of an f-string.

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
    """Draw the arguments of a call, up to its closing parenthesis.

    Half of the draws remove everything between the parentheses (kind `all`), half begin at the second or a later
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


CONSTRUCTIONS = Constructions[PythonText](
    {
        **SHARED,
        "expression": expression,
        "block": block,
        "mid-indentation": mid_indentation,
        "f-string": f_string,
        "call-arguments": call_arguments,
    }
)

cuts = CONSTRUCTIONS.cuts


# --- parts ---------------------------------------------------------------------------------------------------------

_LOAD = ast.Load()


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes in a fixed order, without docstrings and the content of f-strings.

    Other strings alone on a line count as docstrings. Up to Python 3.11 the nodes inside f-strings have no reliable
    positions.
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
    """Return a name with hyphens: "if-exp" for "IfExp"."""
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
    """Yield the bodies of a statement's clauses. The `elif` of an `if` is a statement of its own."""
    kind = _HEADERS.get(type(node))
    if kind is not None:
        for clause, attribute in ((kind, "body"), ("else", "orelse"), ("finally", "finalbody")):
            body = getattr(node, attribute, [])
            if body:
                yield clause, body


def _lines_of(file: PythonText, statements: list[ast.stmt]) -> tuple[int, int] | None:
    """Return the offsets of the first statement's beginning and of the end of the last one's line.

    None if the first does not begin its line (or is an `elif`), or if they have more than `BLOCK_LINES` lines.
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
    """Yield the offsets at which a call's second and later arguments begin, with parentheses around them."""
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
