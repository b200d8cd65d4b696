"""Verdicts of CPython's parser on a text, and the places of its parts.

Runs in the interpreter of the tests (`judge.Running`) and in the oracle's (`judge.Judge`, by oracle/worker.mjs), so it
imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import io
import json
import re
import token as token_types
import tokenize
import warnings
from collections.abc import Iterator
from typing import Any

_BREAK = re.compile("\r\n|\r|\n")
_F_STRING_STARTS = {getattr(token_types, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_F_STRING_ENDS = {getattr(token_types, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
_F_STRING_TEXTS = {getattr(token_types, name, -1) for name in ("FSTRING_MIDDLE", "TSTRING_MIDDLE")}
_LAYOUT = {token_types.NEWLINE, token_types.NL, token_types.INDENT, token_types.DEDENT, token_types.ENDMARKER}
_OPENERS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.With, ast.For, ast.While, ast.If)


def verdict(text: str) -> tuple[bool | None, str]:
    """Return whether the parser takes a text, and its message where not; None where it gives up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<text>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except (RecursionError, MemoryError) as error:
            return None, f"{type(error).__name__}: {error}"
        except SyntaxError as error:  # its text would keep the whole source alive
            return False, f"{type(error).__name__}: {error.msg}"
        except (ValueError, OverflowError) as error:  # too many digits, a lone surrogate
            return False, f"{type(error).__name__}: {error}"
    return True, ""


def verdicts(texts: list[str]) -> list[bool | None]:
    return [verdict(text)[0] for text in texts]


def message(text: str) -> str:
    return verdict(text)[1]


# ---------------------------------------------------------------- where the parts are, as offsets in characters


class _Lines:
    """Lines as the parser counts them: a lone CR ends one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(found.end() for found in _BREAK.finditer(text))]

    def start(self, line: int) -> int:
        """Return the offset of a line, counted from 1; the line after the last begins at the end of the text."""
        return self.starts[line - 1] if line <= len(self.starts) else len(self._text)

    def offset(self, line: int, column: int) -> int:
        """Offset of a column in UTF-8 bytes."""
        start = self.start(line)
        text = self._text[start : start + column]
        return start + (column if text.isascii() else len(self._text[start:].encode()[:column].decode()))


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def outline(text: str, most: int) -> list[Any]:
    """Statements with the comments before them: [start, end, end of the header, statements of the body].

    The last two are 0 and empty for what is at most `most` characters long or has no body of its own lines.
    """
    lines = _Lines(text)

    def units(statements: list[ast.stmt], first: int) -> list[Any]:
        spans: list[tuple[int, int, ast.stmt | None]] = []
        for statement in statements:
            if spans and _first_line(statement) <= spans[-1][1]:  # after a semicolon
                spans[-1] = spans[-1][0], _last_line(statement), None
            else:
                begin = spans[-1][1] + 1 if spans else first
                spans.append((begin, _last_line(statement), statement))
        return [unit(*span) for span in spans]

    def unit(first: int, last: int, statement: ast.stmt | None) -> list[Any]:
        start, end = lines.start(first), lines.start(last + 1)
        if end - start > most and isinstance(statement, _OPENERS):
            body = _first_line(statement.body[0])
            if body > statement.lineno:
                return [start, end, lines.start(body), units(statement.body, body)]
        return [start, end, 0, []]

    return units(_parsed(text).body, 1)


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def expressions(text: str) -> list[tuple[int, int]]:
    lines = _Lines(text)
    return sorted({
        (lines.offset(node.lineno, node.col_offset), lines.offset(_last_line(node), node.end_col_offset or 0))
        for node in ast.walk(_parsed(text))
        if isinstance(node, ast.expr)
    })  # fmt: skip


def blocks(text: str) -> list[tuple[int, int]]:
    """Suites that have lines of their own, from the first one's indentation to the last one's line break."""
    lines = _Lines(text)
    found = []
    for node in ast.walk(_parsed(text)):
        for _, value in ast.iter_fields(node):
            if (
                isinstance(value, list)
                and value
                and isinstance(value[0], ast.stmt)
                and not isinstance(node, ast.Module)
            ):
                start = lines.start(_first_line(value[0]))
                if not text[start : lines.offset(value[0].lineno, value[0].col_offset)].strip(" \t\f"):
                    found.append((start, lines.start(_last_line(value[-1]) + 1)))
    return sorted(set(found))


def tokens(text: str) -> dict[str, list[tuple[int, int]]]:
    """Spans of all tokens with characters of their own, and of strings, parts of f-strings, and replacement fields."""
    found: dict[str, list[tuple[int, int]]] = {"tokens": [], "strings": [], "fields": []}
    nested: list[int] = []  # -1 for an f-string, else where a brace stands
    for kind, string, start, end in _tokens(text):
        if kind in _F_STRING_STARTS:
            nested.append(-1)
        elif kind in _F_STRING_ENDS and nested:
            nested.pop()
        elif string == "{" and nested:
            nested.append(start)
        elif string == "}" and nested and nested[-1] >= 0:
            opened = nested.pop()
            if nested[-1:] == [-1]:
                found["fields"].append((opened, end))
        if string.strip() and text[start:end] == string:
            found["tokens"].append((start, end))
            if kind == token_types.STRING or kind in _F_STRING_TEXTS:
                found["strings"].append((start, end))
    return found


def _tokens(text: str) -> Iterator[tuple[int, str, int, int]]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type not in _LAYOUT:
                start, end = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
                yield token.type, token.string, start, end
    except (tokenize.TokenError, SyntaxError, IndexError):  # those of a lone CR or a form feed are not worth more
        return


QUESTIONS = {one.__name__: one for one in (verdicts, message, outline, expressions, blocks, tokens)}


def answer(line: str) -> str:
    """Answers [question, arguments...] in JSON, by JSON: all characters are ASCII on the way."""
    question, *arguments = json.loads(line)
    return json.dumps(QUESTIONS[question](*arguments))
