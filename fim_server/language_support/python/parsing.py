"""Trees of Python sources, in bounded time and memory.

CPython parses in one call that cannot be stopped and lets no other thread run, so a source that would take long is not
parsed. A tree takes up to 2 kB a statement. Up to Python 3.11, a formatted string takes time in proportion to its
fields times its length. The name in an import takes time and memory in proportion to its parts times its length.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings

MOST_UNITS = 120_000
"""Lexemes, with two more for each line and each semicolon: about a module of 400 kB. So many take 0.1 to 0.3 s, and up
to 70 MB for a moment."""

MOST_FORMATTED = 100_000_000
"""Fields times characters, summed over all formatted strings: 0.1 s."""

MOST_UNITS_OF_DOCUMENT = 60_000
"""Limit of a document that the server reads several times while it is typed, in the same units."""

MOST_DOTS = 256
"""Dots of an import: 40,000 take 3 s and 1.7 GB."""

IMPORT = re.compile(r"\b(?:import|from)\b(?:[^\n;\\]|\\.)*", re.DOTALL)

LEXEME = re.compile(r"\b\w|[^\w\s]")

FORMATTED = re.compile(r"(?<!\w)(?:[fFtT][rR]?|[rR][fFtT])(\"\"\"|'''|\"|')")

ENDS = {
    quote: re.compile(
        rf"(?:[^\\]|\\.)*?(?:{quote}|\Z)" if len(quote) == 3 else rf"(?:[^\\\n]|\\.)*?(?:{quote}|$)", flags
    )
    for quote, flags in (('"""', re.S), ("'''", re.S), ('"', re.S | re.M), ("'", re.S | re.M))
}
"""Patterns of the rest of a string, by its quote."""

ENCODINGS = re.compile(r"utf-8(?:-sig)?|ascii|us-ascii|iso-8859-\d+|latin-?1|cp125\d|windows-125\d|koi8-[ru]")
"""Encodings of sources in which each character takes its own bytes."""


def tree_of(source: str | bytes, most: int = MOST_UNITS) -> ast.Module | None:
    """Return a module's tree; None where it does not parse, or would take long. ``most``: in units."""
    try:
        text = source if isinstance(source, str) else decoded(source)
        if not is_cheap(text, most):
            return None
        with warnings.catch_warnings():  # of odd escapes, which are not of interest here
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_cheap(source: str, most: int = MOST_UNITS) -> bool:
    """Return whether a source can be parsed in bounded time and memory: of at most so many units, for one."""
    if len(source) <= MOST_DOTS:
        return True
    if 3 * len(source) > most:  # a character has at most three units
        units = len(LEXEME.findall(source)) + 2 * (source.count("\n") + source.count(";"))
        if units > most:
            return False
    if any(found[0].count(".") > MOST_DOTS for found in IMPORT.finditer(source)):
        return False
    return len(source) ** 2 <= MOST_FORMATTED or cost_of_formatted(source) <= MOST_FORMATTED


def cost_of_formatted(source: str) -> int:
    """Return the fields of the formatted strings of a source times their lengths, counted too high where unsure."""
    cost, at = 0, 0
    while (found := FORMATTED.search(source, at)) is not None:
        rest = ENDS[found[1]].match(source, found.end())
        at = len(source) if rest is None else rest.end()
        cost += source.count("{", found.end(), at) * (at - found.start())
    return cost


def decoded(source: bytes) -> str:
    """Return the text of a source as Python reads it. Raises SyntaxError and ValueError, also for rare encodings."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    if ENCODINGS.fullmatch(encoding.lower()) is None:
        raise ValueError("an encoding that is not read")
    return source.decode(encoding)
