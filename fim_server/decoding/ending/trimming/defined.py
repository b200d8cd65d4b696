"""Removal of definitions that stand in the same block already: models like to write a method again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.indentation import LOOKED_AT, is_indentation, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fim_server.language.definition.defining import Defining
    from fim_server.text.document import Split

Name = tuple[str, ...]


def defined_again(text: str, split: Split, defining: Defining) -> int | None:
    """Return the number, from 0, of a text's first line that defines a name again; None if no line does.

    The other definition stands in the same block above or below the cursor, or in the text. A mark above either
    definition allows both. A block that the text has opened has no lines of the document.
    """
    *above, before = split.left[-LOOKED_AT:].split("\n")
    below = split.right[:LOOKED_AT].split("\n")[1:]
    lines = text.split("\n")
    begins_line = not before or is_indentation(before)
    written: dict[int, set[Name]] = {}
    known: dict[int, set[Name]] = {}
    least: int | None = None
    previous = next((line for line in reversed(above) if line.strip()), "")
    for number, line in enumerate(lines):
        whole = line if number else before + line
        if not line.strip():
            continue
        column = width_of(whole)
        for deeper in [one for one in written if one > column]:
            del written[deeper]
        name = defining.defined(whole) if number or begins_line else None
        if name is not None and not defining.is_mark(previous):
            if column not in known and (least is None or column <= least):
                known[column] = names_in_block(below, column, defining)
                known[column] |= names_in_block(reversed(above), column, defining, are_above=True)
            is_known = (least is None or column <= least) and name in known[column]
            if is_known or name in written.get(column, ()):
                return number
        if name is not None:
            written.setdefault(column, set()).add(name)
        least = column if least is None else min(least, column)
        previous = line
    return None


def names_in_block(lines: Iterable[str], column: int, defining: Defining, are_above: bool = False) -> set[Name]:
    """Return the names that lines define in a column, up to the first line that is indented less.

    Args:
        lines: Lines of code, the one next to the cursor first.
        column: Indentation of the block, in columns.
        defining: Description of defining lines.
        are_above: Whether the lines go upwards; a name whose line stands below a mark does not count.
    """
    names: set[Name] = set()
    waiting: Name | None = None
    for line in lines:
        if not line.strip():
            continue
        if waiting is not None:
            if not defining.is_mark(line):
                names.add(waiting)
            waiting = None
        width = width_of(line)
        if width < column:
            break
        name = defining.defined(line) if width == column else None
        if name is not None and are_above:
            waiting = name
        elif name is not None:
            names.add(name)
    if waiting is not None:
        names.add(waiting)
    return names
