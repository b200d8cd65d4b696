"""Calls that are surely a function's own, by what stands before its name and by the class around.

A method's calls are those of its object within its class, and those by the class' name. A call that is not proposed is
better than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fim_server.next_edit.change import indentation
from fim_server.next_edit.line_tokens import Lines
from fim_server.next_edit.signs import SIGNS

HEAD = re.compile(rf"\b(?:{'|'.join(sorted(SIGNS.heads))}){SIGNS.header}")
"""Beginning of a function's header up to its parameters."""

OWNER = re.compile(SIGNS.owner)
"""First line of a class, with its name where it may stand before a call."""

LAST_WORD = re.compile(r"\w+\Z")

NAME = re.compile(r"[^\W\d]\w*")

MOST_LINES = 2000
"""Most lines of a class above a line."""

LONGEST_HEAD = 200
"""Longest beginning of a line, and text before a call, that are looked at, in characters."""


class Callers:
    """Tells which calls of a document are those of one function in it."""

    def __init__(self, lines: Lines, header: int, instance: str, receiver: str) -> None:
        """``header``: an offset in its header. ``instance``, ``receiver``: the object, among or before parameters."""
        self._lines = lines
        number = lines.line_at(header)
        self._parent = next(ancestors(lines, number), None)
        self._owner = None if self._parent is None else OWNER.search(lines.lines[self._parent][:LONGEST_HEAD])
        self._instance = instance
        self._type = NAME.findall(receiver)[1:]

    def include(self, at: int) -> bool:
        """Return whether a call is one of the function; ``at``: offset of the name."""
        number, word = self._lines.line_at(at), receiver_of(self._lines.text, at)
        if self._type:
            return bool(word) and self._is_of_same_type(number, word)
        if self._owner is None:
            is_near = self._parent is None or self._parent in ancestors(self._lines, number)
            return word is None and not self._instance and is_near
        if word in SIGNS.objects:
            return owner_of(self._lines, number) == self._parent
        takes_object = self._instance not in ("", SIGNS.class_object)
        return bool(word) and not takes_object and word == self._owner["name"]

    def _is_of_same_type(self, number: int, word: str | None) -> bool:
        """Return whether a word is the object of the method around a line, of the type that the function has."""
        around = [self._lines.lines[one] for one in ancestors(self._lines, number)]
        found = HEAD.match(around[-1][:LONGEST_HEAD]) if around else None
        names = NAME.findall(found["receiver"] or "") if found is not None else []
        return names[:1] == [word] and names[1:] == self._type


def receiver_of(text: str, at: int) -> str | None:
    """Return the one word before a call's name and a dot or the like; empty for anything else; None without such."""
    before = text[max(text.rfind("\n", 0, at) + 1, at - LONGEST_HEAD) : at].rstrip()
    sign = next((one for one in SIGNS.members if before.endswith(one)), None)
    if sign is None or before.endswith(SIGNS.several):
        return None
    before = before.removesuffix(sign)
    found = LAST_WORD.search(before)
    if found is None or before[: found.start()].rstrip().endswith(tuple(SIGNS.members)):
        return ""
    return found[0]


def ancestors(lines: Lines, number: int) -> Iterator[int]:
    """Yield the lines whose blocks a line is in, the innermost first; lines that begin with a bracket are none."""
    margin = indentation(lines.lines[number])
    for at in range(number - 1, max(-1, number - 1 - MOST_LINES), -1):
        if not margin:
            return
        line = lines.lines[at]
        blanks = indentation(line)
        if blanks < margin and line.strip() and line[blanks] not in SIGNS.opens + SIGNS.closes:
            margin = blanks
            yield at


def owner_of(lines: Lines, number: int) -> int | None:
    """Return the first line of the class around a line."""
    return next((at for at in ancestors(lines, number) if OWNER.search(lines.lines[at][:LONGEST_HEAD])), None)
