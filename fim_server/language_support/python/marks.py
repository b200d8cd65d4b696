"""Decorators that fit the definition below them: its first parameter tells which."""

from __future__ import annotations

import re
from collections.abc import Sequence

BEGUN = re.compile(r"([ \t]*)@([\w.]*)")
BELOW = re.compile(
    r"(?:[ \t]*(?:@.*)?\n)*(?P<indentation>[ \t]*)"
    r"(?:(?P<type>class)\b|(?:async[ \t]+)?def[ \t]+(?P<name>\w+)[ \t]*\(\s*(?P<first>\w*)\s*,?\s*(?P<after>\S?))"
)
"""Other decorators, and the first line of a definition."""

HOW = re.compile(
    r"^[ \t]*@[ \t]*(?:classmethod|staticmethod|property|[\w.]+\.(?:setter|getter|deleter))\b", re.MULTILINE
)
"""Decorators that change how a function is called: a function has at most one of them."""

ALONE = (("property", 0.94), ("abstractmethod", 0.02), ("cached_property", 0.02))
OF_CLASS = (("classmethod", 0.98),)
OF_NOTHING = (("staticmethod", 0.98),)
OF_TYPE = (("dataclass", 0.78),)
SETTER = 0.9
"""Shares of decorators, counted in the packages for tuning (502 decorators).

They stand above methods with `self` alone, with `cls`, with neither, above classes, and above a method with the name of
a property above.
"""

LINES_ABOVE = 400
"""Lines that are searched for the class around a definition and for a property of its name."""


def likely(above: str, line: str, below: str) -> tuple[str, Sequence[tuple[str, float]]] | None:
    """Return the decorators that probably stand above the definition below a decorator that is begun.

    Args:
        above: The text above the cursor's line.
        line: That line up to the cursor.
        below: The text below it.

    Returns:
        The typed part of the decorator's name, and names with their shares; None if none fits, or none is begun.
    """
    begun = BEGUN.fullmatch(line)
    found = None if begun is None else BELOW.match(below)
    if begun is None or found is None or found["indentation"] != begun[1]:
        return None
    if found["type"]:
        return begun[2], OF_TYPE
    if not begun[1] or HOW.search(below, 0, found.end()):
        return None
    lines = above.split("\n")[-LINES_ABOVE:]
    if found["first"] == "self":
        if found["after"] == ")":
            return begun[2], ALONE
        property_above = re.compile(rf"{begun[1]}@[\w.]*property\n(?:{begun[1]}@.*\n)*{begun[1]}def {found['name']}\(")
        return (begun[2], ((f"{found['name']}.setter", SETTER),)) if property_above.search("\n".join(lines)) else None
    if found["first"] == "cls":
        return begun[2], OF_CLASS
    if found["after"] == "*" and not found["first"]:
        return None
    around = next((one for one in reversed(lines) if one.strip() and not one.startswith(begun[1])), "")
    return (begun[2], OF_NOTHING) if around.lstrip().startswith("class ") else None
