"""Undefined names of a Python file, and those that an import or a definition in progress may bring."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.language_support.python.lines import Line, logical_lines
from fim_server.language_support.python.model import FIRST_PARAMETERS, Model, Scope
from fim_server.language_support.python.modules import public_names

if TYPE_CHECKING:
    from fim_server.language_support.protocol import Definitions, Importable

MOST_CHARACTERS = 400_000
"""Longest file that is read, in characters: so many take some 50 ms once they have been read."""

MODULES = re.compile(r"\s*(?:lazy[ \t]+)?import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(\w*)")
MEMBERS = re.compile(
    r"\s*(?:lazy[ \t]+)?from[ \t]+(\.*[\w.]*)[ \t]+import"
    r"[ \t]+\(?[ \t]*(?:\w+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(\w*)"
)

DEFINITIONS = re.compile(r"([ \t]*)(?:(class)|(?:async[ \t]+)?def)[ \t]+(\w*)")

Brought = tuple[str, list[tuple[str, float]]]
"""The typed part of a name, and names with weights whose sum is 1."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Import statement up to the cursor.

    Attributes:
        module: The module that names are imported from; None if modules are imported.
        typed: The typed part of the next name.
        known: The words of the statement before it.
    """

    module: str | None
    typed: str
    known: frozenset[str]


def begun(line: str) -> Begun | None:
    """Return the import statement that a line's beginning ends with before or in a name, if any."""
    for pattern in (MEMBERS, MODULES):
        found = pattern.fullmatch(line)
        if found is not None:
            *module, typed = found.groups()
            words = re.findall(r"\w+", line[: len(line) - len(typed)])
            return Begun(module[0] if module else None, typed, frozenset(words))
    return None


@lru_cache(maxsize=2)
def read(source: str) -> Model | None:
    """Return a file's model; None if it is too long, or its brackets do not match."""
    model = Model(source) if len(source) <= MOST_CHARACTERS else None
    return None if model is None or model.is_broken else model


@lru_cache(maxsize=4)
def missing(source: str) -> Mapping[str, int]:
    """Return the names that a file loads and nothing binds, with their numbers; none if the file cannot be read."""
    model = read(source)
    return {} if model is None else Counter(name.name for _, name in model.unbound())


def importable(line: str, source: str, definitions: Definitions, modules: Importable | None = None) -> Brought | None:
    """Return the undefined names that an import statement ending at the cursor may bring.

    Args:
        line: The cursor's line up to it.
        source: The file without that line.
        definitions: Looks up definitions in other files.
        modules: The modules of the workspace.

    Returns:
        None if the line is no such statement, or it can bring no undefined name.
    """
    statement = begun(line)
    if statement is None:
        return None
    wanted = {name: count for name, count in missing(source).items() if name not in statement.known}
    if not wanted:
        return None
    if statement.module is None:
        known = sys.stdlib_module_names if modules is None else modules.below("")
        found = {name: count for name, count in wanted.items() if name in known}
    else:
        public = public_names(statement.module) if modules is None else modules.public(statement.module)
        if public is None:
            ends = module_files(statement.module)
            public = frozenset(
                name for name, file in definitions(sorted(wanted)) if file.replace("\\", "/").endswith(ends)
            )
        found = {name: count for name, count in wanted.items() if name in public}
    return weighted(statement.typed, found)


def weighted(typed: str, counts: Mapping[str, int]) -> Brought | None:
    """Return the names that begin with a typed part, with weights; None without any."""
    found = {name: count for name, count in counts.items() if name.startswith(typed)}
    total = sum(found.values())
    return (typed, [(name, count / total) for name, count in found.items()]) if total else None


def imports_again(line: str, source: str) -> bool:
    """Return whether a line imports only what the rest of the file imports, both at the top level."""
    statement = import_of(line)
    model = None if statement is None else read(source)
    if statement is None or model is None:
        return False
    there = {one for other in model.lines if other.column == 0 for one in other.imports}
    return there.issuperset(statement.imports)


def is_needless(line: str, source: str, modules: Importable | None = None) -> bool:
    """Return whether a line imports modules of which the file needs none, while it needs others.

    Names imported from modules do not count: reading these takes too long while the user waits.
    """
    statement = import_of(line.strip())
    if statement is None or any(one.origin is not None for one in statement.imports):
        return False
    lacking = importable("import ", source, lambda names: (), modules)
    bound = {one.renamed or one.name.partition(".")[0] for one in statement.imports}
    return lacking is not None and bound.isdisjoint(name for name, _ in lacking[1])


def import_of(line: str) -> Line | None:
    """Return the logical line of a line that is one whole import statement."""
    if not line.startswith(("import ", "from ", "lazy ")):
        return None
    found = next(logical_lines([line], None))
    return found if found.is_import else None


def definable(line: str, source: str, at: int) -> Brought | None:
    """Return the undefined names that a definition ending at the cursor may define.

    A function at the top level defines a name that is called; if none is, one that is passed as an argument or element.
    A class defines a name with a capital. A method of a class without bases defines one that is called on `self` or
    `cls`.

    Args:
        line: The cursor's line up to it.
        source: The file without that line.
        at: The number of its lines above the cursor's.

    Returns:
        None if no definition is begun, or it can define no undefined name.
    """
    begun = DEFINITIONS.fullmatch(line)
    model = None if begun is None else read(source)
    if begun is None or model is None:
        return None
    indentation, is_class, typed = begun.groups()
    wanted: Mapping[str, int] = {}
    if not indentation:
        wanted = {name: count for name, count in missing(source).items() if name[:1].isupper() == bool(is_class)}
        if not is_class:
            loads = [name for _, part, _ in model.parts() for name in part.loads]
            called = {name.name for name in loads if name.is_called}
            passed = {name.name for name in loads if name.is_alone} - sys.stdlib_module_names
            wanted = {name: count for name, count in wanted.items() if name in called} or {
                name: count for name, count in wanted.items() if name in passed
            }
    elif not is_class and (around := class_at(model, at, len(indentation))) is not None:
        wanted = missing_methods(model, around)
    return weighted(typed, wanted)


def class_at(model: Model, at: int, column: int) -> Scope | None:
    """Return the class whose block begins at a column and goes on at a physical line."""
    number = next((number for number, first in enumerate(model.physical) if first >= at), len(model.lines))
    around = model.scope_at(number, column)
    lines = model.lines[around.first + 1 : around.last]
    body = next((line.column for line in lines if line.column >= 0), -1)
    return around if around.kind == "class" and body == column else None


def missing_methods(model: Model, around: Scope) -> Mapping[str, int]:
    """Return the methods that a class without bases calls on its objects and lacks, with the numbers of their calls.

    Names with two leading underscores belong to every object.
    """
    if around.header is None or around.header.has_bases:
        return {}
    attributes = [name for _, name in model.attributes(around.first, around.last) if name.receiver in FIRST_PARAMETERS]
    bound = around.bound.union(name.name for name in attributes if name.is_stored)
    missed = (name.name for name in attributes if name.is_called and name.name not in bound)
    return Counter(name for name in missed if not name.startswith("__"))


def module_files(module: str) -> tuple[str, ...]:
    """Return the ends of the paths of files that a module may be.

    >>> module_files("lending.errors")
    ('/lending/errors.py', '/lending/errors/__init__.py')
    """
    path = module.lstrip(".").replace(".", "/")
    return (f"/{path}.py", f"/{path}/__init__.py") if path else ("/__init__.py",)
