"""Names around a cursor, for preferring them: which the scopes there bind, use, and have as attributes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fim_server.language_support.python.model import FIRST_PARAMETERS, Model, Scope, own_parameters
from fim_server.language_support.python.tracking import Tracker, as_bytes, begins

MOST_CHARACTERS = 100_000
"""Characters that are read before the cursor, and after it."""

WORD = re.compile(r"[^\W\d]\w*")
ATTRIBUTE = re.compile(r"\.([^\W\d]\w*)")
PLACEHOLDER = "0"
"""Statement in place of the cursor's line, which neither binds nor loads names."""


class Words:
    """Set of words that can be searched by their beginnings."""

    def __init__(self, words: Iterable[str]) -> None:
        self._known = frozenset(words)
        self.sorted = sorted(self._known)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._known)

    def has(self, word: str, is_whole: bool) -> bool:
        """Return whether a word is one of them, or the beginning of one if it is not ``is_whole``."""
        if is_whole or word in self._known:
            return word in self._known
        return begins(self.sorted, word)


@dataclass(frozen=True, eq=False)
class Around:
    """Names around a cursor, without the cursor's line.

    Attributes:
        text: The text that was read, with a placeholder in place of the cursor's line.
        model: Its model.
        number: The number of the logical line that the cursor is in.
        physical: The number of the cursor's line.
        level: The indentation of the cursor's line.
        scope: The scope at the cursor.
        is_statement: Whether a statement may begin with the cursor's line: it is in no bracket or string.
        below: The physical lines below the cursor's.
    """

    text: str
    model: Model
    number: int
    physical: int
    level: int
    scope: Scope
    is_statement: bool
    below: Sequence[str]

    @cached_property
    def reader(self) -> Tracker:
        """Reader of the cursor's statement up to the cursor's line, to be copied."""
        tracker = Tracker()
        if not self.is_statement:
            first, at = self.model.physical[self.number], self.physical
            tracker.feed(as_bytes("".join(f"{text}\n" for text in self.model.texts[first:at])))
        return tracker

    @property
    def function(self) -> str:
        """Name of the function that is the innermost scope; empty without one."""
        return self.scope.name if self.scope.kind == "def" else ""

    @cached_property
    def used(self) -> Words:
        """Names that the innermost scope binds and that stand elsewhere in it as well."""
        return Words(self._local - self._unused)

    @cached_property
    def unused(self) -> Words:
        """Names that the innermost function binds and that stand nowhere else in it."""
        return Words(self._unused)

    @cached_property
    def outer(self) -> Words:
        """Names that the module and the functions around the innermost scope bind."""
        functions = [scope for scope in self.scope.around() if scope.kind == "def" and scope is not self.scope]
        return Words(self.model.module.bound.union(self.model.declared, *(scope.bound for scope in functions)))

    @cached_property
    def members(self) -> Words:
        """Attributes that code of the class around the cursor loads or stores."""
        return Words(self._members[0] - {self.function})

    @cached_property
    def unused_members(self) -> Words:
        """Attributes that the class around the cursor only defines."""
        return Words(self._members[1] - {self.function})

    @cached_property
    def words(self) -> Words:
        """All words."""
        return Words(WORD.findall(self.text))

    @cached_property
    def attributes(self) -> Words:
        """All words behind a dot."""
        return Words(ATTRIBUTE.findall(self.text))

    def attributes_of(self, receiver: str) -> Words:
        """Return the words behind a name and a dot."""
        return Words(re.findall(rf"\b{re.escape(receiver)}\.(\w+)", self.text))

    def parameters_of(self, name: str) -> list[str]:
        """Return the parameters of what a name defines: of a class those of ``__init__``, or its annotated names."""
        found: list[str] = []
        for scope in self._definitions.get(name, ()):
            init = next((one for one in scope.inner if one.name == "__init__"), None)
            if scope.kind == "class" and init is None:
                found += scope.annotated
            else:
                header = scope.header if scope.kind == "def" or init is None else init.header
                found += [] if header is None else own_parameters(header)
        return found

    def text_of(self, scope: Scope) -> str:
        """Return the text of a scope, with its header."""
        starts = self.model.starts
        return self.text[starts[scope.first] : starts[scope.last] if scope.last < len(starts) else len(self.text)]

    @cached_property
    def _definitions(self) -> dict[str, list[Scope]]:
        found: dict[str, list[Scope]] = {}
        for scope in self.model:
            found.setdefault(scope.name, []).append(scope)
        return found

    @cached_property
    def _local(self) -> set[str]:
        scope = self.scope
        if scope.kind == "module" or scope.header is None:
            return set()
        used, unused = self._members if scope.kind == "class" else (set[str](), set[str]())
        return {*scope.written, *scope.header.types, *used, *unused}

    @cached_property
    def _unused(self) -> set[str]:
        if self.scope.kind != "def":
            return set()
        uses = Counter(WORD.findall(self.text_of(self.scope)))
        return {name for name in self._local if uses[name] <= 1 and name not in FIRST_PARAMETERS}

    @cached_property
    def _members(self) -> tuple[set[str], set[str]]:
        around = next((scope for scope in self.scope.around() if scope.kind == "class"), None)
        if around is None:
            return set(), set()
        attributes = self.model.attributes(around.first, around.last)
        seen = {name.name for _, name in attributes if name.receiver in FIRST_PARAMETERS}
        return seen, around.written - seen


def names_around(left: str, right: str) -> Around:
    """Return the names around a cursor.

    Args:
        left: The text up to the cursor.
        right: The text after it.
    """
    start, end = left.rfind("\n") + 1, right.find("\n")
    before = left[max(0, start - MOST_CHARACTERS) : start]
    after = right[end + 1 : end + 1 + MOST_CHARACTERS] if end >= 0 else ""
    level = indentation(left[start:])
    text = f"{before}{left[start : start + level]}{PLACEHOLDER}\n{after}"
    model, physical = Model(text), before.count("\n")
    number = bisect_right(model.physical, physical) - 1
    line = model.lines[number]
    is_statement = model.physical[number] == physical and line.physical == 1 and not line.is_broken
    inner = model.scope_after(number)
    scope = model.scope_at(number, level) if is_statement or inner.first != number else inner
    return Around(text, model, number, physical, level, scope, is_statement, after.split("\n"))


def indentation(line: str) -> int:
    """Return the number of blanks at a line's beginning."""
    return len(line) - len(line.lstrip(" \t"))
