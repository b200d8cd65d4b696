"""Names that a suggestion in Python loads and nothing binds where it does, though they may stand elsewhere in the file.

In the packages for tuning 25 of 451 different suggestions loaded one, and none of these was right. A module of the
standard library is no such name: it is imported afterwards as well as before.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from fim_server.languages.python.binding import unbound
from fim_server.languages.python.preferring import BUILTINS, KEYWORDS
from fim_server.languages.python.scopes import bound_in

if TYPE_CHECKING:
    from fim_server.languages.python.scopes import Scope

LOADED = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w\"'])")
BEGUN_TARGET, BEGUN_ARGUMENT = re.compile(r"[ \t]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z"), re.compile(r"[(,][ \t\n]*\Z")
"""What stands before a name at a text's end that may yet be bound: a target's, or that of an argument."""


def unbound_load(left: str, right: str, text: str, scope: Scope) -> int | None:
    """Where the first name ends, in characters of a text, that it loads and nothing binds; None where there is none.

    None as well where the program does not parse with it.

    Args:
        left: What stands before it.
        right: What stands after it.
        text: Of a suggestion.
        scope: The names around the cursor: no tree is read of a text whose names these are.
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
    if next(strange, None) is None:
        return None
    for found in unbound(left, text, right) or ():
        end = found.offset + len(found.name) - len(left)
        if found.offset < 0 or (found.name in sys.stdlib_module_names and text.startswith(".", end)):
            continue
        before = line[: typed + end - len(found.name)]
        if end == len(text) and (BEGUN_TARGET.match(before) or BEGUN_ARGUMENT.search(before)):
            continue
        return end
    return None
