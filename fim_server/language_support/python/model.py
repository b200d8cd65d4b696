"""Scopes of Python code, also of code that does not parse: what each binds, and whether a loaded name is bound.

The rules are those of CPython's symbol table, which asks where a name is bound and never when. Scopes of lambdas and
comprehensions are resolved in their logical line; here are those of modules, classes and functions.
"""

from __future__ import annotations

import builtins
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fim_server.language_support.python.lexemes import Name
from fim_server.language_support.python.lines import KEPT, Kept, Line, Part, logical_lines
from fim_server.language_support.python.reader import Header

NEWER_BUILTINS = frozenset({"ImportCycleError", "PythonFinalizationError", "frozendict", "sentinel"})
"""Builtins of Python 3.15 that an older interpreter, which runs the server, lacks."""

GIVEN = frozenset(dir(builtins)) | NEWER_BUILTINS | {
    "__annotations__", "__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
    "__path__", "__spec__",
}  # fmt: skip
"""Names that every module has."""

BEGINS_NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff]")
CONTINUES_NAME = re.compile(r"\w")

GIVEN_TO_CLASSES = frozenset({"__module__", "__qualname__"})


@dataclass(eq=False, slots=True)
class Scope:
    """Module, class or function.

    Attributes:
        kind: `module`, `class` or `def`.
        name: The name of the class or function; empty for a module.
        column: The column of its header; -1 for a module.
        parent: The scope around it.
        owner: The innermost class, whose private names the scope's are; empty outside of classes.
        header: The header; None for a module.
        first: Number of the header's logical line.
        last: Number of the logical line behind its block.
        bound: The names that it binds, with its parameters.
        declared: The names that it declares global.
        elsewhere: The names that it declares to be of other scopes.
        annotated: The names that it annotates, in order.
        inner: The scopes directly in it.
    """

    kind: str
    name: str
    column: int
    parent: Scope | None
    owner: str = ""
    header: Header | None = None
    first: int = 0
    last: int = 0
    bound: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    annotated: list[str] = field(default_factory=list)
    inner: list[Scope] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Add the bindings and declarations of a part of a logical line."""
        bound = part.bound
        if self.owner and any(name.startswith("__") for name in bound):
            bound = {self.mangled(name) for name in bound}
        self.bound |= bound
        if part.annotated:
            self.annotated += part.annotated
        if part.globals or part.nonlocals:
            self.declared |= part.globals
            self.elsewhere |= part.nonlocals | part.globals

    def mangled(self, name: str) -> str:
        """Return a name as the compiler spells it: it renames private names in classes."""
        owner = self.owner.lstrip("_")
        private = owner and name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{owner}{name}" if private else name

    @property
    def written(self) -> set[str]:
        """Bound names as they are written."""
        owner = f"_{self.owner.lstrip('_')}"
        private = f"{owner}__"
        return {name.removeprefix(owner) if name.startswith(private) else name for name in self.bound}

    def around(self) -> Iterator[Scope]:
        """Return the scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Model:
    """Scopes of a text.

    Attributes:
        lines: Its logical lines.
        starts: The offset of each of these.
        scopes: The scope in which each of these begins.
        module: The outermost scope.
        innermost: The scope at the end of the text.
        declared: Names of the module that other scopes bind.
        takes_all: Whether it imports all names of a module, so that any name may be bound.
        is_broken: Whether its brackets or strings do not match.
    """

    def __init__(self, text: str, kept: Kept | None = KEPT, may_be_open: bool = False) -> None:
        """Read a text. ``may_be_open``: whether its last line may go on behind its end."""
        texts = text.split("\n")
        self.lines: list[Line] = list(logical_lines(texts, kept, may_be_open))
        self.texts = texts
        self.module = Scope("module", "", -1, None)
        self.scopes: list[Scope] = []
        self.starts: list[int] = []
        self.physical: list[int] = []
        """Number of each logical line's first physical line."""
        self.takes_all = self.is_broken = False
        self._read()

    def _read(self) -> None:
        stack, offset, physical = [self.module], 0, 0
        texts, starts, scopes, numbers = self.texts, self.starts, self.scopes, self.physical
        declaring: list[Scope] = []
        for number, line in enumerate(self.lines):
            if line.column >= 0:
                while stack[-1].column >= line.column:
                    stack.pop().last = number
            scope = stack[-1]
            starts.append(offset)
            scopes.append(scope)
            numbers.append(physical)
            for part in line.parts:
                if part.bound or part.globals or part.nonlocals:
                    scope.add(part)
                    if part.globals or part.nonlocals:
                        declaring.append(scope)
                if part.opens is not None:
                    scope = opened(scope, part.opens, number)
                    stack.append(scope)
            if line.takes_all:
                self.takes_all = True
            if line.is_broken:
                self.is_broken = True
            for text in texts[physical : physical + line.physical]:
                offset += len(text) + 1
            physical += line.physical
        for scope in stack:
            scope.last = len(self.lines)
        self.innermost = stack[-1]
        self.declared: set[str] = set()
        for scope in declaring:
            self.declared |= scope.bound & scope.declared
            scope.bound -= scope.elsewhere

    def number_at(self, offset: int) -> int:
        """Return the number of the logical line at an offset."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def parts(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Part, Scope]]:
        """Return the parts of some logical lines, each with its line's number and its scope."""
        for number in range(first, len(self.lines) if last is None else last):
            scope = self.scopes[number]
            for part in self.lines[number].parts:
                yield number, part, scope
                if part.opens is not None:
                    scope = scope_of(scope, part.opens, number)

    def scope_after(self, number: int) -> Scope:
        """Return the scope at the end of a logical line: the innermost one that it opens, if any."""
        scope = self.scopes[number]
        for part in self.lines[number].parts:
            if part.opens is not None:
                scope = scope_of(scope, part.opens, number)
        return scope

    def scope_at(self, number: int, column: int) -> Scope:
        """Return the scope of a line of some column in place of a logical line."""
        number -= 1
        while number >= 0 and self.lines[number].column < 0:
            number -= 1
        scope = self.module if number < 0 else self.scope_after(number)
        while scope.parent is not None and scope.column >= column:
            scope = scope.parent
        return scope

    def attributes(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Name]]:
        """Return the attributes in some logical lines, each with the line's number."""
        for number, part, _ in self.parts(first, last):
            for name in part.attributes:
                yield number, name

    def is_bound(self, name: str, scope: Scope, is_inner: bool = False) -> bool:
        """Return whether a name loaded in a scope is bound. ``is_inner``: a lambda or comprehension is around it."""
        if name in GIVEN:
            return True
        name = scope.mangled(name)
        at, sees_class = scope, not is_inner
        while at.parent is not None:
            is_class = at.kind == "class"
            if not is_class or sees_class:
                if name in at.declared:
                    break
                if name in at.bound or (is_class and name in GIVEN_TO_CLASSES):
                    return True
            if is_class and name == "__class__" and not (at is scope and sees_class):
                return True
            if at.header is not None and name in at.header.types:
                return True
            sees_class, at = False, at.parent
        return name in self.module.bound or name in self.declared

    def unbound(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Name]]:
        """Return the names that some logical lines load and nothing binds, each with its offset in the text."""
        if self.takes_all:
            return
        for number, part, scope in self.parts(first, last):
            for name in part.loads:
                if not self.is_bound(name.name, scope, name.is_inner):
                    yield self.starts[number] + name.start, name

    def unbound_between(self, start: int, end: int) -> list[tuple[int, Name]]:
        """Return the unbound names that a part of the text loads or makes longer, each with its offset."""
        found = self.unbound(self.number_at(start), self.number_at(end) + 1)
        return sorted((at, name) for at, name in found if at < end and at + len(name.name) > start)

    def __iter__(self) -> Iterator[Scope]:
        """Return all scopes, the outer ones first."""
        waiting = [self.module]
        while waiting:
            scope = waiting.pop()
            yield scope
            waiting += scope.inner


def opened(scope: Scope, header: Header, number: int) -> Scope:
    """Return the scope that a header opens in another one."""
    owner = header.name if header.kind == "class" else scope.owner
    inner = Scope(header.kind, header.name, header.column, scope, owner, header, number)
    inner.bound = {inner.mangled(name) for name in header.parameters} if owner else set(header.parameters)
    scope.inner.append(inner)
    return inner


@lru_cache(maxsize=4)
def model_of(text: str) -> Model:
    """Return the model of a text, with line feeds alone at the ends of lines."""
    return Model(text)


def unified(text: str) -> str:
    """Return a text with line feeds alone at the ends of lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def unbound(left: str, middle: str, right: str) -> tuple[str, ...]:
    """Return the names that a middle loads, or makes longer, and that nothing binds."""
    may_lengthen = CONTINUES_NAME.match(middle) is not None and CONTINUES_NAME.match(left[-1:]) is not None
    if not may_lengthen and BEGINS_NAME.search(middle) is None:
        return ()  # a row of numbers in a long table, whose whole line would be read
    left, middle, right = unified(left), unified(middle), unified(right)
    found = model_of(left + middle + right).unbound_between(len(left), len(left) + len(middle))
    return tuple(dict.fromkeys(name.name for _, name in found))


@lru_cache(maxsize=4)
def missing(source: str) -> Mapping[str, int]:
    """Return the names that a text loads and nothing binds, with their numbers; none if its brackets do not match."""
    model = model_of(unified(source))
    return {} if model.is_broken else Counter(name.name for _, name in model.unbound())


def scope_of(scope: Scope, header: Header, number: int) -> Scope:
    """Return the scope that a header in a logical line opens in another one."""
    return next(one for one in reversed(scope.inner) if one.header is header and one.first == number)


def parameters_of(text: str) -> list[str]:
    """Return the parameters of the function that a text begins with, without the instance or class.

    >>> parameters_of("def f(self, a: dict[str, int] = {}, /, *b, c=(1, 2), **d) -> None:")
    ['a', 'b', 'c', 'd']
    """
    for line in logical_lines(text.split("\n"), None):
        if line.column >= 0:
            header = line.parts[0].opens
            return [] if header is None or header.kind != "def" else own_parameters(header)
    return []


def own_parameters(header: Header) -> list[str]:
    """Return the names of a header's parameters without the instance or class."""
    names = header.parameters
    return list(names[1:] if names and names[0] in FIRST_PARAMETERS else names)


FIRST_PARAMETERS = frozenset({"self", "cls"})
