"""Place of a new import among those at the top of a Python file, in the order that they have."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fim_server.language_support.python.lines import Import, Line
from fim_server.language_support.python.model import Model
from fim_server.next_edit.edit_memory import line_end, line_start

LONGEST_LINE = 88
"""Longest line that an import may become, in characters, unless the file has longer imports."""

Edit = tuple[int, int, str]
"""Start and end of the replaced text, and the new text."""


class Statement(NamedTuple):
    """Import statement at the top of a file.

    Attributes:
        start: Its offset.
        end: The offset of its end, without the line break.
        line: Its logical line.
    """

    start: int
    end: int
    line: Line

    @property
    def origin(self) -> str:
        """The module that it imports, or imports from."""
        first = self.line.imports[0]
        return first.name if first.origin is None else first.origin

    @property
    def is_from(self) -> bool:
        """True if it imports names from a module."""
        return self.line.imports[0].origin is not None


NAME_ORDERS: Sequence[Callable[[str], Any]] = (
    lambda name: (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name.lower()),
    str.lower,
    str,
)
"""Orders of names in one statement: constants before classes before functions, without and with the case."""

STATEMENT_ORDERS: Sequence[Callable[[bool, str], Any]] = (
    lambda is_from, origin: (is_from, origin.lower()),
    lambda is_from, origin: origin.lower(),
)
"""Orders of statements: modules before names from modules, or mixed."""


def added(
    source: str, model: Model, one: Import, pieces_of: Callable[[str, Line], list[tuple[int, int]] | None]
) -> Edit | None:
    """Return the edit that adds an import to a file which has some; None if its place is unclear."""
    statements = at_the_top(source, model)
    if not statements:
        return None
    longest = max(LONGEST_LINE, *(len(line) for line in source[: statements[-1].end].split("\n")))
    piece = f"{one.name} as {one.renamed}" if one.renamed else one.name
    for statement in statements:
        if one.origin is not None and statement.is_from and statement.origin == one.origin:
            text = source[statement.start : statement.end]
            pieces = None if "#" in text else pieces_of(text, statement.line)
            edit = None if pieces is None else listed(text, statement, pieces, one.name, piece)
            if edit is None:
                return None
            start, end, new = edit
            line = text[line_start(text, start) : line_end(text, start)] + ("" if "\n" in new else new)
            return (statement.start + start, statement.start + end, new) if len(line) <= longest else None
    stated = f"import {piece}" if one.origin is None else f"from {one.origin} import {piece}"
    return None if len(stated) > longest else placed(statements, source, one, stated)


def at_the_top(source: str, model: Model) -> list[Statement]:
    """Return the import statements without indentation, up to the first definition."""
    found = []
    starts = [*model.starts, len(source) + 1]
    for number, line in enumerate(model.lines):
        if line.column == 0 and line.parts[0].opens is not None:
            break
        if line.column == 0 and line.is_import:
            end = starts[number + 1] - 1
            found.append(Statement(starts[number], end, line))
    return found


def listed(text: str, statement: Statement, pieces: Sequence[tuple[int, int]], name: str, piece: str) -> Edit:
    """Return the edit of a statement that adds a name to its list."""
    names = [one.name for one in statement.line.imports]
    order = next((order for order in NAME_ORDERS if is_sorted([order(one) for one in names])), None)
    at = len(names) if order is None else bisect_right([order(one) for one in names], order(name))
    first = pieces[min(at, len(names) - 1)][0]
    margin = text[line_start(text, first) : first]
    own_line = "\n" in text and not margin.strip()
    if at < len(names):
        return first, first, piece + ("," + "\n" + margin if own_line else ", ")
    last = pieces[-1][1]
    return last, last, (",\n" + margin if own_line else ", ") + piece


def is_sorted(keys: Sequence[Any]) -> bool:
    return list(keys) == sorted(keys)


def placed(statements: Sequence[Statement], source: str, one: Import, stated: str) -> Edit | None:
    """Return the edit that adds a statement to the group of statements like it."""
    groups: list[list[Statement]] = [[statements[0]]]
    for before, statement in pairwise(statements):
        if source[before.end : statement.start].strip(" \t") == "\n":
            groups[-1].append(statement)
        else:
            groups.append([statement])
    origin = one.name if one.origin is None else one.origin
    kind = kind_of(origin)
    alike = [group for group in groups if any(top_of(each.origin) == top_of(origin) for each in group)]
    alike = alike or [group for group in groups if any(kind_of(each.origin) == kind for each in group)]
    if not alike:
        following = next((group for group in groups if kind_of(group[0].origin) > kind), None)
        if following is None:
            return groups[-1][-1].end, groups[-1][-1].end, f"\n\n{stated}"
        return following[0].start, following[0].start, f"{stated}\n\n"
    group = alike[0]
    for order in STATEMENT_ORDERS:
        keys = [order(each.is_from, each.origin) for each in group]
        if is_sorted(keys):
            at = bisect_right(keys, order(one.origin is not None, origin))
            break
    else:
        at = 1 + max(
            (n for n, each in enumerate(group) if each.is_from == (one.origin is not None)), default=len(group) - 1
        )
    if at < len(group):
        return group[at].start, group[at].start, f"{stated}\n"
    return group[-1].end, group[-1].end, f"\n{stated}"


def top_of(origin: str) -> str:
    """Return the package of a module; for a relative one its dots."""
    return re.match(r"\.*", origin)[0] or origin.partition(".")[0]  # type: ignore[index]  # the empty text matches


def kind_of(origin: str) -> int:
    """Return the section of a module: `__future__`, the standard library, others, relative ones."""
    if origin.startswith("."):
        return 3
    top = top_of(origin)
    return 0 if top == "__future__" else 1 if top in sys.stdlib_module_names else 2
