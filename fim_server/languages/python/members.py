"""Attributes of the instance or the class that nothing in the class around the cursor says it has.

Only of a class that inherits nothing, and whose attributes are all written down: of 2,514 loads of such attributes in
the packages for tuning 12 stand on no other line of the class, in those for reporting 3 of 1,248.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fim_server.languages.python.scopes import MOST_CHARACTERS, WORD, body_of, enclosing, indentation

LOADED = re.compile(r"\b(?:self|cls)\.([^\W\d]\w*)(?!\w|[ \t]*(?::[^=\n]*)?=(?!=))")
PLAIN_CLASS = re.compile(r"[ \t]*class[ \t]+\w+[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:")
MARK = re.compile(r"[ \t]*@(?:\w+\.)*(\w+)")
HARMLESS_MARKS = frozenset({"dataclass", "define", "final", "frozen", "total_ordering"})
"""Decorators that bring a class no attribute that somebody loads by its name."""

MAKING = frozenset({"__dict__", "__getattr__", "__getattribute__", "setattr"})
"""Words of classes whose attributes are not all written down."""


def unknown_member(left: str, right: str, text: str) -> tuple[int, int] | None:
    """Where the first load of an attribute begins in a text that the class has not, and where it ends, in characters.

    None where there is none. It begins at 0 where the cursor is in it already.
    """
    start, end = left.rfind("\n") + 1, right.find("\n")
    typed = len(left) - start
    line = left[start:] + text.partition("\n")[0]
    found = [match for match in LOADED.finditer(line) if match.end() > typed and not match[1].startswith("__")]
    if not found:
        return None
    after = right[end + 1 : end + 1 + MOST_CHARACTERS] if end >= 0 else ""
    words = words_of_class(left[max(0, start - MOST_CHARACTERS) : start], after, indentation(line))
    for match in found if words is not None else ():
        if words is not None and match[1] not in words:
            return max(0, match.start() - typed), match.end() - typed
    return None


@lru_cache(maxsize=4)
def words_of_class(before: str, after: str, level: int) -> frozenset[str] | None:
    """The words of the class around a line, without that line; None where it is in none, or the class may have others.

    ``before``, ``after``: the lines above and below; ``level``: the line's indentation.
    """
    above, below = before.split("\n")[:-1], after.split("\n")
    block = next((block for block in enclosing(above, level) if block.kind == "class"), None)
    if block is None or PLAIN_CLASS.match(above[block.line]) is None:
        return None
    for line in reversed(above[: block.line]):
        mark = MARK.match(line)
        if mark is None or indentation(line) != block.level:
            break
        if mark[1] not in HARMLESS_MARKS:
            return None
    body = body_of(block, above, below)
    if len(after) >= MOST_CHARACTERS and body.endswith(below[-1]):
        return None  # it goes on in what is not looked at
    words = frozenset(WORD.findall(body))
    return None if words & MAKING else words
