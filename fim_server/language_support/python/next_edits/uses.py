"""Uses of a Python name that was renamed where it is bound, by CPython's scopes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from fim_server.language_support.python.model import FIRST_PARAMETERS, Model, Scope, model_of, scope_of
from fim_server.next_edit.renames import NameUses

MOST = 1024
"""Most occurrences of a name that are looked at."""

LONGEST = 10_000
"""Longest logical line in which a name is looked for, in characters."""

NAME = re.compile(r"\w+")

MARGIN = re.compile(r"^[^\s)\]}#\"']", re.MULTILINE)
"""Beginning of a statement at the top of a module."""

INNER = re.compile(r"(?<!\w)(?:lambda|for)(?!\w)")
"""Words that bind names within an expression; a statement may begin with the second one."""


def uses_of(source: str, at: int, old: str) -> NameUses | None:
    """Return where the old name of a variable stands, which is bound at an offset by its new name.

    None if the code's brackets do not match.
    """
    for start, end in (statement_at(source, at), (0, len(source))):
        text = source[start:end]
        model = model_of(text)
        if model.is_broken:
            return None
        owner = owner_of(model, at - start, text)
        if owner is None:
            return NameUses((), (), not is_argument(model, at - start, text))
        if end - start == len(source) or owner.kind == "def":
            new = NAME.match(source, at)
            names = old, old if new is None else new[0]
            places = list(islice(occurrences(model, text, owner, *names), MOST))
            uses = (start + offset for offset, is_use in places if is_use)
            return NameUses(tuple(uses), tuple(start + offset for offset, is_use in places if not is_use))
    return NameUses((), ())


def statement_at(source: str, at: int) -> tuple[int, int]:
    """Return start and end of the lines from one without indentation to the next one, around an offset.

    Decorators are no part of them.
    """
    starts = [found.start() for found in MARGIN.finditer(source)]
    number = bisect_right(starts, at)
    return (starts[number - 1] if number else 0), (starts[number] if number < len(starts) else len(source))


def owner_of(model: Model, at: int, text: str) -> Scope | None:
    """Return the scope for which a logical line binds the name at an offset; None if it is for none, or for several."""
    found = NAME.match(text, at)
    if found is None:
        return None
    number, name = model.number_at(at), found[0]
    owners: list[Scope] = []
    for _, part, scope in model.parts(number, number + 1):
        if name in part.bound:
            owners.append(scope)
        if part.opens is not None and name in part.opens.parameters:
            owners.append(scope_of(scope, part.opens, number))
    return owners[0] if len(owners) == 1 and name not in owners[0].elsewhere else None


def is_argument(model: Model, at: int, text: str) -> bool:
    """Return whether the name at an offset is the keyword of an argument."""
    found = NAME.match(text, at)
    start = model.starts[model.number_at(at)]
    return found is not None and is_keyword(text[start : start + LONGEST], found.end() - start, at - start)


def occurrences(model: Model, source: str, owner: Scope, old: str, new: str) -> Iterator[tuple[int, bool]]:
    """Yield the offsets of a name in a scope, and whether it is the scope's there.

    ``new``: its new name, which `global` and `nonlocal` may name already.
    Members of other objects, keywords of arguments and imported names are none.
    """
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    is_only = not any(old in scope.bound for scope in model if scope.kind == "class")
    starts = [*model.starts, len(source) + 1]
    # The members of a class are used everywhere.
    for number in range(owner.first, len(model.lines) if owner.kind == "class" else owner.last):
        start = starts[number]
        text = source[start : starts[number + 1] - 1]
        if old not in text or len(text) > LONGEST:
            continue
        loads = loads_in(model, number, owner, old, new, is_only)
        parts = ((part, scope) for _, part, scope in model.parts(number, number + 1))
        bound = ((part.bound | part.globals | part.nonlocals, scope) for part, scope in parts)
        is_target = any(old in names and is_owned(scope, owner, old, new, False) for names, scope in bound)
        has_inner = any(found.start() > 0 for found in INNER.finditer(text.lstrip()))
        for found in pattern.finditer(text):
            at = found.start()
            if at in loads:
                is_use = loads[at]
            elif text[:at].endswith(".") or is_keyword(text, found.end(), at) or model.lines[number].imports:
                continue
            else:
                is_use = is_target and not (has_inner and depth(text[:at]))
            if is_use or number < owner.last:
                yield start + at, is_use


def loads_in(model: Model, number: int, owner: Scope, name: str, new: str, is_only: bool) -> dict[int, bool]:
    """Return the offsets at which a logical line loads a name, and whether it is a scope's; attributes, if it is.

    ``is_only``: no other class has an attribute of the name.
    """
    found: dict[int, bool] = {}
    for _, part, scope in model.parts(number, number + 1):
        for one in part.loads:
            if one.name == name:
                found[one.start] = is_owned(scope, owner, name, new, one.is_inner)
        for one in part.attributes if owner.kind == "class" else ():
            if one.name == name and (is_only or (one.receiver in FIRST_PARAMETERS and scope.parent is owner)):
                found[one.start] = True
    return found


def is_owned(scope: Scope, owner: Scope, name: str, new: str, is_inner: bool) -> bool:
    """Return whether a name in a scope is that of another scope, which may be around it; ``new``: its new name."""
    at, sees_class = scope, not is_inner
    while at is not owner:
        if name in at.declared or new in at.declared:
            return owner.parent is None
        is_seen = (sees_class or at.kind != "class") and new not in at.elsewhere
        if at.parent is None or (is_seen and at.mangled(name) in at.bound) or (at.header and name in at.header.types):
            return False
        at, sees_class = at.parent, False
    return owner.kind != "class" or (sees_class and at is scope)


def is_keyword(text: str, end: int, start: int) -> bool:
    """Return whether a word between two offsets of a logical line is followed by `=` in brackets."""
    after = text[end:].lstrip()
    return after.startswith("=") and not after.startswith("==") and depth(text[:start]) > 0


def depth(text: str) -> int:
    """Return the number of brackets that are open at the end of a text, strings included."""
    return sum(text.count(sign) for sign in "([{") - sum(text.count(sign) for sign in ")]}")
