"""What a Python file loads and nobody binds, and which of it an import or a definition that has begun may bring."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Protocol

from fim_server.language_support.python.parsing import MOST_UNITS_OF_DOCUMENT, tree_of

MOST_CHARACTERS = 200_000
"""Longer files are not parsed: 126,000 characters take 60 ms, 27,000 take 10."""

MODULES = re.compile(r"\s*import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(\w*)")
MEMBERS = re.compile(
    r"\s*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?[ \t]*(?:\w+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(\w*)"
)

DEFINITIONS = re.compile(r"([ \t]*)(?:(class)|(?:async[ \t]+)?def)[ \t]+(\w*)")

GIVEN = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__spec__", "__annotations__"}
"""Names that every module has."""

LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
"""Folders of the standard library. The interpreter looks first in others, such as the working directory."""

Definitions = Callable[[Sequence[str]], Iterable[tuple[str, str]]]
"""For names, those that the project's other files define, each with a file that does."""


class Importable(Protocol):
    """What modules there are for a file."""

    def below(self, name: str, /) -> frozenset[str]:
        """The modules of a package, whose name has a dot behind it; with an empty name, what one word imports."""

    def public(self, name: str, /) -> frozenset[str] | None:
        """What a module has for others; None where it is not found."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An import statement up to the cursor.

    Attributes:
        module: What is imported from; None where modules are.
        typed: The part of a name that the cursor is behind.
        known: The words of the statement before.
    """

    module: str | None
    typed: str
    known: frozenset[str]


def begun(line: str) -> Begun | None:
    """The import statement whose next name the cursor is at, which a line's beginning ends with, if any."""
    for pattern in (MEMBERS, MODULES):
        found = pattern.fullmatch(line)
        if found is not None:
            *module, typed = found.groups()
            words = re.findall(r"\w+", line[: len(line) - len(typed)])
            return Begun(module[0] if module else None, typed, frozenset(words))
    return None


@lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module | None:
    """A module's tree; None where it does not parse, takes too long or is longer than :data:`MOST_CHARACTERS`.

    The text around a line is the same for each key that is typed in it. One is kept: a tree takes far more memory than
    its text.
    """
    return None if len(source) > MOST_CHARACTERS else tree_of(source, MOST_UNITS_OF_DOCUMENT)


@lru_cache(maxsize=4)
def missing(source: str) -> Mapping[str, int]:
    """Names that a module loads as its own or as built in and nobody binds, with how often it does.

    Nothing where the source does not parse, is longer than :data:`MOST_CHARACTERS`, or imports all of some module.
    """
    tree = parsed(source)
    if tree is None:
        return {}
    try:
        tables = [symtable.symtable(source, "", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return {}
    loaded: set[str] = set()
    bound: set[str] = set(GIVEN)
    top = tables[0]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if is_bound and (table is top or symbol.is_declared_global()):
                bound.add(symbol.get_name())
            elif symbol.is_referenced() and (table is top or symbol.is_global()):
                loaded.add(symbol.get_name())
    names = loaded - bound
    used = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return Counter(node.id for node in used if node.id in names)


def importable(
    line: str, source: str, definitions: Definitions, modules: Importable | None = None
) -> tuple[str, list[tuple[str, float]]] | None:
    """What an import statement that ends at the cursor may bring: what is typed of a name, and names with weights.

    Args:
        line: The cursor's line up to it.
        source: The module without that line.
        definitions: Tells where else names are defined.
        modules: Tells what the workspace's modules are.

    Returns:
        None where the line is no such statement, or nothing is missing that it may bring. The weights' sum is 1.
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
    found = {name: count for name, count in found.items() if name.startswith(statement.typed)}
    total = sum(found.values())
    return (statement.typed, [(name, count / total) for name, count in found.items()]) if total else None


def imports_again(line: str, source: str) -> bool:
    """Whether a line imports nothing but what a module imports already, both at the top.

    ``source``: the module without the line.
    """
    statement = import_of(line)
    tree = None if statement is None or line[:1].isspace() else parsed(source)
    if statement is None or tree is None:
        return False
    there = {entry for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for entry in entries(node)}
    return there.issuperset(entries(statement))


def is_needless(line: str, source: str, modules: Importable | None = None) -> bool:
    """Whether a line imports modules of which the file lacks none, while it lacks some that could be imported.

    Arguments as of :func:`importable`, but that the whole line is given. What is imported from modules is not looked
    at: that would have to be read first, and somebody waits.
    """
    statement = import_of(line.strip())
    if not isinstance(statement, ast.Import):
        return False
    lacking = importable("import ", source, lambda names: (), modules)
    bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return lacking is not None and bound.isdisjoint(name for name, _ in lacking[1])


def import_of(line: str) -> ast.Import | ast.ImportFrom | None:
    """The import statement that a line is, if it is a whole one."""
    if not line.startswith(("import ", "from ")):
        return None
    tree = tree_of(line)
    match tree and tree.body:
        case [ast.Import() | ast.ImportFrom() as statement]:
            return statement
    return None


def entries(statement: ast.Import | ast.ImportFrom) -> set[tuple[str | None, str, str | None]]:
    """What a statement imports: from where, what, and as what."""
    return {(origin(statement), alias.name, alias.asname) for alias in statement.names}


def origin(statement: ast.Import | ast.ImportFrom) -> str | None:
    """Where a statement imports from, as it is written; None where modules are imported."""
    return "." * statement.level + (statement.module or "") if isinstance(statement, ast.ImportFrom) else None


def definable(line: str, source: str, at: int) -> tuple[str, list[tuple[str, float]]] | None:
    """What a definition that ends at the cursor may define: what is typed of its name, and names with weights.

    At the top a function is one that is called, or where none is one that is handed on, and a class one that is used,
    by its capital; in a class without bases a method is one that is called on `self` or `cls`.

    Args:
        line: The cursor's line up to it.
        source: The module without that line.
        at: How many of its lines stand above.

    Returns:
        None where no definition was begun, or nothing is missing that it may be. The weights' sum is 1.
    """
    begun = DEFINITIONS.fullmatch(line)
    tree = None if begun is None else parsed(source)
    if begun is None or tree is None:
        return None
    indentation, is_class, typed = begun.groups()
    wanted: Mapping[str, int] = {}
    if not indentation:
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        wanted = {name: count for name, count in missing(source).items() if name[:1].isupper() == bool(is_class)}
        if not is_class:
            given = handed_on(tree)
            wanted = {name: count for name, count in wanted.items() if name in called} or {
                name: count for name, count in wanted.items() if name in given and name not in sys.stdlib_module_names
            }
    elif not is_class and (around := class_at(tree, source.split("\n"), at, len(indentation))) is not None:
        wanted = missing_methods(around)
    found = {name: count for name, count in wanted.items() if name.startswith(typed)}
    total = sum(found.values())
    return (typed, [(name, count / total) for name, count in found.items()]) if total else None


def handed_on(tree: ast.Module) -> set[str]:
    """The names that stand alone as an argument or an entry: where none of them is called, a function's may."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                values: Sequence[ast.expr | None] = [*node.args, *(one.value for one in node.keywords)]
            case ast.Dict():
                values = node.values
            case ast.List() | ast.Tuple() | ast.Set():
                values = node.elts
            case _:
                continue
        found |= {value.id for value in values if isinstance(value, ast.Name)}
    return found


def class_at(tree: ast.Module, lines: Sequence[str], at: int, column: int) -> ast.ClassDef | None:
    """The class that a line belongs to which is put in after so many others, and begins at a column."""
    above = at  # lines up to the last one that is not blank
    while above and not lines[above - 1].strip():
        above -= 1
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.lineno <= at and node.body[0].col_offset == column:
            end = node.end_lineno or node.lineno
            if end >= above:
                return node
    return None


def missing_methods(around: ast.ClassDef) -> Mapping[str, int]:
    """What a class without bases calls on its objects and does not have, with how often it does.

    Names with two underscores before are every object's.
    """
    if around.bases or around.keywords:
        return {}
    names = [node for node in ast.walk(around) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    own = [node for node in names if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")]
    called = {id(node.func) for node in ast.walk(around) if isinstance(node, ast.Call)}
    bound = {node.attr for node in own if isinstance(node.ctx, ast.Store)}
    for statement in around.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(statement.name)
            case _:
                bound |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    missed = (node.attr for node in own if id(node) in called and node.attr not in bound)
    return Counter(name for name in missed if not name.startswith("__"))


def module_files(module: str) -> tuple[str, ...]:
    """How the paths end of files that a module may be.

    >>> module_files("lending.errors")
    ('/lending/errors.py', '/lending/errors/__init__.py')
    """
    path = module.lstrip(".").replace(".", "/")
    return (f"/{path}.py", f"/{path}/__init__.py") if path else ("/__init__.py",)


@lru_cache(maxsize=256)
def public_names(module: str) -> frozenset[str] | None:
    """What a module of the standard library has for others; None of any other. None is run but those built in."""
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    if module in sys.builtin_module_names:
        return frozenset(name for name in dir(import_module(module)) if not name.startswith("_"))
    path: Sequence[str] = LIBRARY
    spec = None
    for end in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:end]), path)
        if spec is None:
            return frozenset()
        path = list(spec.submodule_search_locations or ())
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return frozenset()
    try:
        return names_in(Path(spec.origin).read_bytes())
    except OSError:
        return frozenset()


def names_in(source: bytes) -> frozenset[str]:
    """Return the names that a module's source binds for others; none where it does not parse or takes too long."""
    tree = tree_of(source)
    try:
        return frozenset() if tree is None else frozenset(bound_at_top(tree.body))
    except RecursionError:  # a chain of a thousand branches
        return frozenset()


def bound_at_top(body: Iterable[ast.stmt]) -> set[str]:
    """Public names that statements bind, those in branches among them."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                for field in ("body", "orelse", "finalbody"):
                    names |= bound_at_top(getattr(node, field, ()))
                for handler in getattr(node, "handlers", ()):
                    names |= bound_at_top(handler.body)
            case _:
                pass
    return {name for name in names if not name.startswith("_")}
