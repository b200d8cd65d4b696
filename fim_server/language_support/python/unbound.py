"""Names that a suggestion in Python loads and nothing binds, though they may stand elsewhere in the file.

A suggestion with such a name is hardly ever right. A module of the standard library is allowed: the user may import it
afterwards.
"""

from __future__ import annotations

import re
import sys

from fim_server.language_support.python.model import model_of

BEGUN_TARGET, BEGUN_ARGUMENT = re.compile(r"[ \t]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z"), re.compile(r"[(,][ \t\n]*\Z")
"""Text before the name at a suggestion's end that may still be bound: as a target, or as an argument's name."""

MOST_CHARACTERS = 200_000
"""Longest file to check, in characters: so many take some 10 ms."""


def unbound_load(left: str, right: str, text: str) -> int | None:
    """Return the end of the first name in a suggestion that it loads unbound, in characters; None without one.

    None as well if the brackets of the program with the suggestion do not match.

    Args:
        left: The text before it, with line feeds alone at the ends of lines.
        right: The text after it.
        text: The suggestion.
    """
    if len(left) + len(text) + len(right) > MOST_CHARACTERS:
        return None
    model = model_of(left + text + right)
    if model.is_broken:
        return None
    start = left.rfind("\n") + 1
    for at, name in model.unbound_between(len(left), len(left) + len(text)):
        end = at + len(name.name) - len(left)
        if name.name in sys.stdlib_module_names and text.startswith(".", end):
            continue
        begun = (left + text)[start:at]
        if end == len(text) and (BEGUN_TARGET.match(begun) or BEGUN_ARGUMENT.search(begun)):
            continue
        return end
    return None
