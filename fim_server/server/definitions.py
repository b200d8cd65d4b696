"""Definitions that are there already: a suggestion that defines a name again, in the same block, is hardly meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fim_server.server.names import OwnNames
    from fim_server.text.document import Split

LOOKED_AT = 1 << 16
"""Characters on either side of the cursor in which a definition is looked for."""


def defined_again(own: OwnNames, split: Split, text: str) -> int | None:
    """The end, in characters of a suggestion's ``text``, of a name that its first line defines once more.

    None where it defines none, or the block has no other line that defines it, or one above says that there may be
    several: what overloads a function, or adds to a property.
    """
    if not own.defining_words:
        return None
    words = "|".join(map(re.escape, sorted(own.defining_words)))
    start = split.left.rfind("\n") + 1
    line = split.left[start:] + text.partition("\n")[0]
    found = re.match(rf"([ \t]*)(?:\w+[ \t]+)?(?:{words})[ \t]+(\w+)", line)
    end = 0 if found is None else found.end() - (len(split.left) - start)
    if found is None or end <= 0:
        return None
    above = split.left[:start].rstrip().rpartition("\n")[2].strip()
    if above.startswith(own.marks):
        return None
    other = re.compile(rf"{found[1]}(?:\w+[ \t]+)?(?:{words})[ \t]+{found[2]}\b")
    before = reversed(split.left[:start][-LOOKED_AT:].split("\n"))
    after = split.right[:LOOKED_AT].split("\n")[1:]
    return end if any(is_in_block(lines, found[1], other) for lines in (before, after)) else None


def is_in_block(lines: Iterable[str], indentation: str, wanted: re.Pattern[str]) -> bool:
    """Whether one of the lines, as far as none is indented less, begins with a pattern."""
    for line in lines:
        if wanted.match(line):
            return True
        if line.strip() and not line.startswith(indentation):
            return False
    return False
