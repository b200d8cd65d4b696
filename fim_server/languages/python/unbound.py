"""Names that a suggestion in Python loads and nothing binds where it does, though they may stand elsewhere in the file.

In the packages for tuning 25 of 451 different suggestions loaded one, and none of these was right. A module of the
standard library is no such name: it is imported afterwards as well as before.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.languages.python.binding import unbound
from fim_server.languages.python.lacking import TAKES_ALL, bound_otherwise, lacking_of
from fim_server.languages.python.preferring import BUILTINS, KEYWORDS
from fim_server.languages.python.scopes import MOST_CHARACTERS as MOST_LOOKED_AT
from fim_server.languages.python.scopes import body_of, bound_in, indentation, outside_of_blocks

if TYPE_CHECKING:
    from fim_server.languages.python.scopes import Scope

LOADED = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w\"'])")
GLOBAL = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)
WORD = re.compile(r"[^\W\d]\w*")
BEGUN_TARGET, BEGUN_ARGUMENT = re.compile(r"[ \t]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z"), re.compile(r"[(,][ \t\n]*\Z")
"""What stands before a name at a text's end that may yet be bound: a target's, or that of an argument."""

MOST_CHARACTERS = 30_000
"""Longer functions are not parsed: as many take 10 ms."""

CLOSERS = ")", "]", "}"
INNER = " ", "\t", "", "#", *CLOSERS
"""What lines begin with that are within a statement, or between two."""

INDENTED = "if True:\n"
"""What a function that is indented may be parsed behind."""


def unbound_load(left: str, right: str, text: str, scope: Scope) -> int | None:
    """Where the first name ends, in characters of a text, that it loads and nothing binds; None where there is none.

    None as well where the function around it does not parse with it, or outside of any its line. What is bound outside
    of functions is told by lines.

    Args:
        left: What stands before it.
        right: What stands after it.
        text: Of a suggestion.
        scope: The names around the cursor.
    """
    start = left.rfind("\n") + 1
    typed = len(left) - start
    line = left[start:] + text
    bound = bound_in(line)
    known = (scope.used, scope.unused, scope.outer, BUILTINS, KEYWORDS)
    strange = (
        found[0]
        for found in LOADED.finditer(line)
        if found.end() > typed and found[0] not in bound and not any(names.has(found[0], True) for names in known)
    )
    if next(strange, None) is None or not is_told(left, right, scope):
        return None
    before, after = around(left[start:], right.partition("\n")[0], scope, text.rstrip().endswith(":"))
    if len(before) + len(text) + len(after) > MOST_CHARACTERS:
        return None
    for found in unbound(before, text, after) or ():
        if found.name in bound_outside(scope):
            continue
        place = re.search(rf"(?<![\w.]){found.name}(?!\w)", line) if found.offset < 0 else None  # in a formatted text
        end = found.offset + len(found.name) - len(before) if place is None else place.end() - typed
        if end <= 0:
            continue
        if found.name in sys.stdlib_module_names and text.startswith(".", end):
            continue
        begun = line[: typed + end - len(found.name)]
        if end == len(text) and (BEGUN_TARGET.match(begun) or BEGUN_ARGUMENT.search(begun)):
            continue
        return end
    return None


def is_told(left: str, right: str, scope: Scope) -> bool:
    """Whether lines tell what is bound: all of the text was looked at, and the cursor is where its indentation says.

    Texts of several lines at the margin hide what is around what comes after them.
    """
    if max(len(left), len(right)) > MOST_LOOKED_AT or TAKES_ALL.search(scope.text):
        return False
    if any(block.kind == "def" for block in scope.blocks):
        return True
    if scope.blocks:
        body = body_of(scope.blocks[0], scope.above, scope.below).split("\n")
        deeper = (indentation(line) for line in body if line.strip())
        least = min((level for level in deeper if level > scope.blocks[0].level), default=scope.level)
        return least >= scope.level and lacking_of(scope).is_statement
    return scope.level > 0 or lacking_of(scope).is_statement


def around(line: str, rest: str, scope: Scope, ends_header: bool = False) -> tuple[str, str]:
    """The outermost function around the cursor, before it and after it; in none the statement that its line is of.

    Args:
        line: What stands in the line before the cursor.
        rest: What stands in it after the cursor.
        scope: The names around it.
        ends_header: Whether a block follows.
    """
    function = next((block for block in reversed(scope.blocks) if block.kind == "def"), None)
    if function is None and (scope.level == 0 or scope.blocks):
        return line.lstrip(" \t"), f"{rest}\n    pass" if ends_header else rest
    if function is None:
        above, below = statement(scope)
        return f"{above}{line}", f"{rest}\n{below}"
    above = "".join(f"{one}\n" for one in scope.above[function.line :])
    below = body_of(function, (), scope.below)
    return f"{INDENTED if function.level else ''}{above}{line}", f"{rest}\n{below}"


def statement(scope: Scope) -> tuple[str, str]:
    """The lines above the cursor and below it, of what begins and ends at the margin around it."""
    start = next((at for at in range(len(scope.above) - 1, -1, -1) if scope.above[at][:1] not in INNER), 0)
    end = next((at for at, one in enumerate(scope.below) if one[:1] not in (" ", "\t", "")), len(scope.below))
    last = scope.below[end : end + 1] if "".join(scope.below[end : end + 1]).startswith(CLOSERS) else []
    return "".join(f"{one}\n" for one in scope.above[start:]), "\n".join((*scope.below[:end], *last))


@lru_cache(maxsize=4)
def bound_outside(scope: Scope) -> frozenset[str]:
    """The names that are bound outside of functions, or in the class around the cursor, as far as lines tell."""
    outside = outside_of_blocks(scope.text)
    declared = {name for names in GLOBAL.findall(scope.text) for name in WORD.findall(names)}
    return scope.bound | scope.local | declared | bound_otherwise(outside)
