"""Attributes of the instance that the class around the cursor does not have.

The class must inherit nothing and have all of its attributes written down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from fim_server.language_support.python.around import WORD
from fim_server.language_support.python.model import Model, Scope, model_of

MOST_CHARACTERS = 100_000
"""Characters that are read before the cursor's line, and after it."""

PLAIN_CLASS = re.compile(r"[ \t]*class[ \t]+(?!\w*Mixin\b)\w+[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:")
MARK = re.compile(r"[ \t]*@(?:\w+\.)*(\w+)")
HARMLESS_MARKS = frozenset({"dataclass", "define", "final", "frozen", "total_ordering"})
"""Decorators that add no attribute to a class."""

MAKING = frozenset({"__dict__", "__getattr__", "__getattribute__", "__setattr__", "locals", "setattr", "vars"})
"""Words of classes whose attributes are not all written down."""

TEXT = re.compile(r"[\"']([^\W\d]\w*)[\"']")
"""A text of one word: slots are named so, and attributes that are bound by name."""

MOST_LINE = 4_096
"""Characters of a line that is checked."""

MOST_ASKED = 4
"""Names of a line for each of which the whole text is searched, some tenths of a millisecond."""


def unknown_member(left: str, right: str, text: str) -> tuple[int, int] | None:
    """Return start and end of the first attribute in a suggestion's first line that the class lacks, in characters.

    None without one. The start is 0 if the cursor is in the attribute.
    """
    start, end = left.rfind("\n") + 1, right.find("\n")
    first = text.partition("\n")[0]
    line, rest = left[start:] + first, right if end < 0 else right[:end]
    if len(line) + len(rest) > MOST_LINE or "self" not in line:
        return None
    before = left[max(0, start - MOST_CHARACTERS) : start]
    after = right[len(rest) : len(rest) + MOST_CHARACTERS]
    cursor = len(before) + len(left) - start
    model = model_of(before + line + rest + after)
    number = model.number_at(cursor)
    offset = model.starts[number] - cursor
    loads = [
        name
        for _, name in model.attributes(number, number + 1)
        if name.receiver == "self"
        and not name.is_stored
        and not name.name.startswith("__")
        and 0 < offset + name.start + len(name.name) <= len(first)
    ]
    around = plain_class(model, number) if loads else None
    if around is None or (len(after) >= MOST_CHARACTERS and around.last == len(model.lines)):
        return None  # the class may have attributes that are not read
    words = set(members_of(model, around, number))
    unknown = {name.name: name for name in reversed(loads) if name.name not in words}  # the first of each name
    for name in islice(reversed(unknown), MOST_ASKED):
        if not is_bound_by_others(name, left, right):
            at = offset + unknown[name].start
            return max(0, at - len("self.")), at + len(name)
    return None


def is_bound_by_others(name: str, left: str, right: str) -> bool:
    """Return whether an attribute is bound through another receiver anywhere around: ``shell.name = ...``."""
    bound = re.compile(rf"\.{name}[ \t]*(?:=(?!=)|,)")
    return any(bound.search(text) is not None for text in (left[-MOST_CHARACTERS:], right[:MOST_CHARACTERS]))


def plain_class(model: Model, number: int) -> Scope | None:
    """Return the class in one of whose methods a logical line is, if all of its attributes are written down."""
    method = model.scopes[number]
    around = method.parent
    if method.header is None or around is None or (method.kind, around.kind) != ("def", "class"):
        return None
    if method.header.parameters[:1] != ("self",) or PLAIN_CLASS.match(text_of(model, around.first)) is None:
        return None
    at = around.first - 1
    while at >= 0 and model.lines[at].first == "@":
        mark = MARK.match(text_of(model, at))
        if mark is None or mark[1] not in HARMLESS_MARKS:
            return None
        at -= 1
    if any(is_derived(model, scope, around.name) for scope in model if scope.kind == "class"):
        return None  # a class that inherits from it may have the attribute
    if any(MAKING.intersection(WORD.findall(text_of(model, at))) for at in range(around.first, around.last)):
        return None
    return around


def is_derived(model: Model, scope: Scope, name: str) -> bool:
    """Return whether a class names another one among its bases."""
    part = model.lines[scope.first].parts[0]
    return any(one.name == name for one in (*part.loads, *part.attributes))


def members_of(model: Model, around: Scope, number: int) -> Iterator[str]:
    """Return the names that may be members of a class, by all of its logical lines but one."""
    yield from around.written
    for at, name in model.attributes(around.first, around.last):
        if at != number:
            yield name.name
    for at in range(around.first, around.last):
        if at != number:
            yield from TEXT.findall(text_of(model, at))


def text_of(model: Model, number: int) -> str:
    """Return the text of a logical line."""
    first = model.physical[number]
    return "\n".join(model.texts[first : first + model.lines[number].physical])
