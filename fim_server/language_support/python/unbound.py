"""Names that a suggestion in Python loads and nothing binds where it does, though they may stand elsewhere in the file.

In the packages for tuning 25 of 451 different suggestions loaded a name that nothing binds there, 13 of these one that
stands elsewhere in the file, and none was right. A module of the standard library is no such name: it is imported
afterwards as well as before.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.language_support.python.binding import Unbound, unbound
from fim_server.language_support.python.lacking import bound_otherwise, code_of
from fim_server.language_support.python.preferring import BUILTINS, KEYWORDS
from fim_server.language_support.python.scopes import WORD, body_of, bound_in, outside_of_blocks

if TYPE_CHECKING:
    from fim_server.language_support.python.scopes import Scope

LOADED = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w\"'])")
GLOBAL = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)
BEGUN_TARGET, BEGUN_ARGUMENT = re.compile(r"[ \t]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z"), re.compile(r"[(,][ \t\n]*\Z")
"""What stands before a name at a text's end that may yet be bound: a target's, or that of an argument."""

MOST_CHARACTERS, MOST_IN_ALL = 30_000, 50_000
"""Longer functions and files are not parsed: as many characters take some 10 and 20 ms, for each suggestion."""

CLOSERS = ")", "]", "}"
INNER = " ", "\t", "", "#", *CLOSERS
"""What lines begin with that are within a statement, or between two."""

INDENTED = "if True:\n"
"""What a function that is indented may be parsed behind."""


def unbound_load(left: str, right: str, text: str, scope: Scope) -> int | None:
    """Where the first name ends, in characters of a text, that it loads and nothing binds; None where there is none.

    None as well where the function around it, or the program, does not parse with it. A program's tree is read only
    where its lines, and the tree of the function, bind a name nowhere: that is seldom.

    Args:
        left: What stands before it, with line feeds alone at the ends of lines.
        right: What stands after it.
        text: Of a suggestion.
        scope: The names around the cursor.

    Source: what binds a name, as :mod:`.binding` has it from CPython's symbol table.
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
    if next(strange, None) is None or len(left) + len(text) + len(right) > MOST_IN_ALL:
        return None
    before, after = around(left[start:], right.partition("\n")[0], scope, text.rstrip().endswith(":"))
    if len(before) + len(text) + len(after) > MOST_CHARACTERS:
        return None
    for found in unbound(before, text, after) or ():
        # Lines do not show all ways of binding: what they do not see is asked of the program, which is parsed once.
        if found.name in bound_outside(scope) or not is_unbound(found.name, left, text, right):
            continue
        end = end_of(found, len(before), line, typed)
        if end <= 0 or (found.name in sys.stdlib_module_names and text.startswith(".", end)):
            continue
        begun = line[: typed + end - len(found.name)]
        if end == len(text) and (BEGUN_TARGET.match(begun) or BEGUN_ARGUMENT.search(begun)):
            continue
        return end
    return None


def is_unbound(name: str, left: str, text: str, right: str) -> bool:
    """Whether the program says so, too."""
    return any(one.name == name for one in unbound(left, text, right) or ())


def end_of(found: Unbound, before: int, line: str, typed: int) -> int:
    """Where a name ends, in characters of a text; 0 where that is not known.

    Before Python 3.12 the tree does not say where it stands in a formatted text.

    Args:
        found: The name.
        before: The characters that were parsed before the text.
        line: The cursor's, with the text.
        typed: How much of it stands before the text.
    """
    if found.offset >= 0:
        return found.offset + len(found.name) - before
    place = re.compile(rf"(?<![\w.]){found.name}(?!\w)").search(line, typed)
    return 0 if place is None else place.end() - typed


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
    outside = code_of(outside_of_blocks(scope.text))
    declared = {name for names in GLOBAL.findall(scope.text) for name in WORD.findall(names)}
    return scope.bound | scope.local | declared | bound_otherwise(outside)
