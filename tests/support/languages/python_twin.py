"""The plain twin of the Python grammar, in the running interpreter's version, beside that interpreter's own verdict."""

from __future__ import annotations

import ast
import sys
import warnings
from functools import cache

from fim_server import Language
from support.languages.grammar_twin import Grammar, Refused, language

RUNNING = sys.version_info[:2]


def reference(text: str) -> bool:
    """CPython's verdict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):  # ValueError: NUL, or a literal beyond the limit on digits
            return False
    return True


@cache
def running_language() -> Grammar:
    """The grammar of the running interpreter's version."""
    version = ".".join(map(str, RUNNING))
    return language("python", version if version in Language.versions("python") else None)


def disagreement(text: str) -> str | None:
    """Return the known cause of CPython's and the grammar's difference, or `unexplained`; None if they agree."""
    grammar = running_language()
    try:
        symbols = grammar.lex(text)
    except Refused:
        symbols = []
    expected = reference(text)
    if (grammar.check(text) is None) == expected:
        return None
    if not expected and any("\\N{" in text[symbol.start : symbol.end] for symbol in symbols):
        return "name of a character"
    return "unexplained"
