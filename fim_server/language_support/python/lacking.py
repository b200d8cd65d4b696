"""Names that Python code around a cursor loads and nothing binds: the missing line mostly binds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache

from fim_server.language_support.python.around import WORD, Around, Words, indentation
from fim_server.language_support.python.model import FIRST_PARAMETERS, Scope

TARGETS = re.compile(r"[ \t]*(?:\w+[ \t]*,[ \t]*)*\Z")
BINDING = re.compile(r"[ \t]*(?:async[ \t]+)?(?:for|(?:with|except)\b[^\n]*\bas)[ \t]+(?:\w+[ \t]*,[ \t]*)*\Z")
"""Beginning of a line before the name of a target."""

CONSTANT = re.compile(r"[A-Z_][A-Z0-9_]*")

MOST_NAMES = 16
"""Names that a line may bind: if more are undefined, the line hardly binds one of them."""


class Lacking:
    """Undefined names of the code around a cursor."""

    def __init__(self, around: Around) -> None:
        self._around = around

    @cached_property
    def names(self) -> Words:
        """Names that the rest of the innermost function loads unbound; in a module or class constants.

        In a function without names that begin with a capital: those are imported or defined elsewhere.
        """
        around, scope = self._around, self._around.scope
        if scope.kind == "class":
            return Words(self._class_constants(scope))
        if scope.kind == "module":
            return Words(self._unbound(0, len(around.model.lines), str.isupper))
        return Words(self._unbound(around.number, scope.last, is_local))

    @cached_property
    def targets(self) -> Words:
        """Those of the names that the cursor's line may begin with: none where a header or no statement begins."""
        return self.names if self.names and not self.is_header and self.is_statement else Words(())

    @cached_property
    def parameters(self) -> Words:
        """Names that the lines below load unbound and that are indented more: the body of what the line begins."""
        around, last = self._around, self._around.number + 1
        lines = around.model.lines
        while last < len(lines) and (lines[last].column < 0 or lines[last].column > around.level):
            last += 1
        return Words(self._unbound(around.number + 1, last, is_local))

    @property
    def is_statement(self) -> bool:
        """True if a statement may begin with the cursor's line."""
        return self._around.is_statement

    @cached_property
    def is_header(self) -> bool:
        """True if the lines below are a block that lacks its header, not the rest of a bracket."""
        around = self._around
        lines = [line for line in around.below if line.strip()]
        if not lines or indentation(lines[0]) <= around.level:
            return False
        after = next((line for line in lines if indentation(line) <= around.level), "")
        return not after.lstrip().startswith((")", "]", "}"))

    def _unbound(self, first: int, last: int, counts: Callable[[str], bool]) -> Iterator[str]:
        """Return the undefined names of some logical lines. ``counts``: which of them are asked for."""
        for _, name in self._around.model.unbound(first, last):
            if counts(name.name) and name.name not in FIRST_PARAMETERS:
                yield name.name

    def _class_constants(self, scope: Scope) -> set[str]:
        """Return the constants that are loaded from a class or its instance and that the class does not bind."""
        model, own = self._around.model, {*FIRST_PARAMETERS, scope.name}
        found = {
            name.name
            for _, name in model.attributes()
            if name.receiver in own and not name.is_stored and name.name.isupper() and CONSTANT.fullmatch(name.name)
        }
        stored = {name.name for _, name in model.attributes(scope.first, scope.last) if name.is_stored}
        return found - scope.written - stored


def bound_at(line: str, around: Around) -> Sequence[str]:
    """Return the undefined names that the cursor's line probably binds next.

    Args:
        line: Its beginning, up to a name.
        around: The names around the cursor.
    """
    begins = TARGETS.match(line) is not None and indentation(line) == around.level
    if not (begins or BINDING.match(line)):
        return []
    lacking, words = lacking_of(around), WORD.findall(line)
    names = lacking.targets if begins else lacking.names
    if not names or not lacking.is_statement:
        return []
    return [name for name in names.sorted if name not in words][:MOST_NAMES]


@lru_cache(maxsize=4)
def lacking_of(around: Around) -> Lacking:
    """Return the undefined names around a cursor, which stay the same while the user types in a line."""
    return Lacking(around)


def is_local(name: str) -> bool:
    """Return whether a name is one of a function, not of a class or a constant."""
    return not name[0].isupper()
