"""Unbound names of a part of a Python file, read from CPython's syntax tree: an oracle of the package's scope model.

The rules are those of CPython's symbol table. The table itself does not say where a name is loaded.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

GIVEN = frozenset(dir(builtins)) | {
    "__annotations__", "__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
    "__path__", "__spec__",
}  # fmt: skip
"""Names that every module has."""

GIVEN_TO_CLASSES = frozenset({"__module__", "__qualname__"})

WORD = re.compile(r"(?<!\w)[^\W\d]\w*")
STAR = re.compile(r"import[\s\\]*\*")
"""Text in every import of all names; strings may have it too."""

GLOBAL = re.compile(r"\bglobal\b")
"""Text in every such statement; other text may have it too."""

FIELDS_LIE = sys.version_info < (3, 12)
"""True if the tree lacks the places of names in formatted strings."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Unbound:
    """A name that is loaded and nowhere bound.

    Attributes:
        name: It, as it is written.
        offset: Where it begins, in characters of the whole text; -1 where the tree does not say so.
    """

    name: str
    offset: int


@dataclass(eq=False, slots=True)
class Scope:
    """Scope that binds names.

    Attributes:
        kind: `module`, `class`, `function`, or `types`: the parameters in brackets of a definition.
        body: Nodes that are searched for bindings.
        bound: Further bound names.
        parent: The scope around it.
        owner: The class whose private names its own are.
    """

    kind: str
    body: list[ast.AST]
    bound: set[str]
    parent: Scope | None = None
    owner: str = ""
    passed_on: set[str] = field(default_factory=set)
    """Names that `global` says are the module's."""
    is_read: bool = False

    def names(self) -> set[str]:
        """The names that it binds."""
        if not self.is_read:
            self.is_read = True
            self.bound = set(map(self.mangled, self.bound))
            for node in own_nodes(self.body):
                if isinstance(node, ast.Global):
                    self.passed_on.update(node.names)
                self.bound.update(map(self.mangled, bound_by(node)))
            self.bound -= self.passed_on
        return self.bound

    def mangled(self, name: str) -> str:
        """A name as the compiler has it: that of a class's own is told apart."""
        owner = self.owner.lstrip("_")
        private = owner and name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{owner}{name}" if private else name


@lru_cache(maxsize=64)
def unbound(left: str, middle: str, right: str) -> tuple[Unbound, ...] | None:
    """Return the names that a middle loads, or makes longer, and nothing binds; None if the text does not parse."""
    if not middle:
        return ()
    source = left + middle + right
    if "\r" in source:
        left, middle, right = (part.replace("\r\n", "\n").replace("\r", "\n") for part in (left, middle, right))
        source = left + middle + right
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if takes_all(source, tree):
        return ()
    reader = Reader(source, len(left), len(left) + len(middle))
    return tuple(reader.unbound(tree))


def takes_all(source: str, tree: ast.AST) -> bool:
    """Return whether a module imports all of another, so that its bindings are unknown."""
    if STAR.search(source) is None:  # much faster than a walk
        return False
    return any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))


class Reader:
    """Finds the names that a part of a module loads."""

    def __init__(self, source: str, start: int, end: int) -> None:
        """The part is that from ``start`` to ``end``, in characters."""
        self._source = source
        self._first, self._last = place(source, start), place(source, end)
        self._words = {
            found[0]
            for found in WORD.finditer(source, max(0, start - 200), end + 200)
            if found.start() < end and found.end() > start
        }
        self._loads: list[tuple[ast.Name, Scope]] = []

    def unbound(self, tree: ast.Module) -> Iterator[Unbound]:
        """The names that nothing binds."""
        module = Scope("module", list(tree.body), set())
        self._read_all(tree.body, module)
        declared: set[str] | None = None
        for node, scope in self._loads:
            if is_bound(scope.mangled(node.id), scope):
                continue
            if declared is None:
                declared = declared_global(tree) if GLOBAL.search(self._source) else set()
            if node.id not in declared:
                yield Unbound(node.id, self._offset(node))

    def _offset(self, node: ast.Name) -> int:
        begin = 0
        for _ in range(node.lineno - 1):
            begin = self._source.find("\n", begin) + 1
        line_end = self._source.find("\n", begin)
        line = self._source[begin : len(self._source) if line_end < 0 else line_end]
        offset = begin + len(line.encode()[: node.col_offset].decode(errors="ignore"))
        return offset if self._source.startswith(node.id, offset) else -1

    def _touches(self, node: Any) -> bool:
        """Return whether a part of a node stands in the part of the module; True for a part without a place."""
        line = getattr(node, "lineno", None)
        if line is None:
            return True
        begin = (line, node.col_offset)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list:
            begin = (node.decorator_list[0].lineno, 0)
        return begin < self._last and (node.end_lineno, node.end_col_offset) > self._first

    def _read_all(self, nodes: Iterable[ast.AST | None], scope: Scope, anywhere: bool = False) -> None:
        for node in nodes:
            if node is not None:
                self._read(node, scope, anywhere)

    def _read(self, node: ast.AST, scope: Scope, anywhere: bool) -> None:
        """Collect what a node loads. ``anywhere``: it is in a formatted string, where places are not known."""
        if not anywhere and not self._touches(node):
            return
        match node:
            case ast.Name():
                if isinstance(node.ctx, ast.Load) and (not anywhere or node.id in self._words):
                    self._loads.append((node, scope))
            case ast.JoinedStr():
                self._read_all(node.values, scope, anywhere or FIELDS_LIE)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._read_all(node.decorator_list, scope, anywhere)
                self._read_defaults(node.args, scope, anywhere)
                outer = self._read_types(node, scope)
                self._read_all([*annotated(node.args), node.returns], outer, anywhere)
                self._read_all(node.body, Scope("function", list(node.body), parameters(node.args), outer, scope.owner))
            case ast.Lambda():
                self._read_defaults(node.args, scope, anywhere)
                inner = Scope("function", [node.body], parameters(node.args), scope, scope.owner)
                self._read(node.body, inner, anywhere)
            case ast.ClassDef():
                self._read_all(node.decorator_list, scope, anywhere)
                outer = self._read_types(node, scope)
                self._read_all([*node.bases, *node.keywords], outer, anywhere)
                self._read_all(node.body, Scope("class", list(node.body), set(), outer, node.name))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._read_comprehension(node, scope, anywhere)
            case _ if type(node).__name__ == "TypeAlias":
                self._read_all([getattr(node, "value", None)], self._read_types(node, scope), anywhere)
            case _:
                self._read_all(ast.iter_child_nodes(node), scope, anywhere)

    def _read_defaults(self, arguments: ast.arguments, scope: Scope, anywhere: bool) -> None:
        self._read_all([*arguments.defaults, *arguments.kw_defaults], scope, anywhere)

    def _read_types(self, node: ast.AST, scope: Scope) -> Scope:
        """The scope of a definition's parameters in brackets; the one around it where it has none."""
        given: list[Any] = getattr(node, "type_params", [])
        if not given:
            return scope
        inner = Scope("types", [], {one.name for one in given}, scope, scope.owner)
        for one in given:
            self._read_all(ast.iter_child_nodes(one), inner)
        return inner

    def _read_comprehension(self, node: Any, scope: Scope, anywhere: bool) -> None:
        bound = {name for part in node.generators for name in targets_of(part.target)}
        inner = Scope("function", [], bound, scope, scope.owner)
        first, *others = node.generators
        self._read(first.iter, scope, anywhere)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._read_all([*elements, first.target, *first.ifs, *others], inner, anywhere)


def place(source: str, offset: int) -> tuple[int, int]:
    """A line, from 1, and a column in bytes, as the tree has them."""
    start = source.rfind("\n", 0, offset) + 1
    return source.count("\n", 0, offset) + 1, len(source[start:offset].encode())


def is_bound(name: str, scope: Scope) -> bool:
    """Return whether a name that is loaded in a scope is bound where Python looks for it."""
    if name in GIVEN:
        return True
    inner, at, sees_class = scope, scope, True
    while True:
        names = at.names()
        if at.kind == "module":
            return name in names
        if name in names and (at.kind != "class" or sees_class):
            return True
        if name in at.passed_on and (at.kind != "class" or sees_class):
            return name in module_of(at).names()
        if at.kind == "class" and (name in GIVEN_TO_CLASSES and sees_class):
            return True
        if at.kind == "class" and name == "__class__" and inner is not at:
            return True
        sees_class = sees_class and at.kind == "types"
        assert at.parent is not None, "only a module has no scope around it"
        at = at.parent


def module_of(scope: Scope) -> Scope:
    """The outermost scope."""
    while scope.parent is not None:
        scope = scope.parent
    return scope


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of statements, or of an expression, that are not of a scope within; what begins one is among them."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                waiting += node.decorator_list
                waiting += [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
                waiting += [one for one in (*annotated(node.args), node.returns) if one is not None]
            case ast.Lambda():
                waiting += [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
            case ast.ClassDef():
                waiting += [*node.decorator_list, *node.bases, *node.keywords]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # What a walrus binds in a comprehension is bound around it.
                waiting += [Around(one) for one in ast.iter_child_nodes(node)]
            case Around():
                waiting += [Around(one) for one in ast.iter_child_nodes(node.node) if not isinstance(one, ast.Lambda)]
            case _:
                waiting += ast.iter_child_nodes(node)


class Around(ast.AST):
    """A node within a comprehension, as the scope around that sees it."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__()
        self.node = node


def bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds in its scope."""
    match node:
        case Around(node=ast.NamedExpr(target=ast.Name(id=name))):
            yield name
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                yield alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            return


def targets_of(node: ast.AST) -> Iterator[str]:
    """The names that a target binds."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id


def parameters(arguments: ast.arguments) -> set[str]:
    """The names of a function's parameters."""
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return {one.arg for one in every if one is not None}


def annotated(arguments: ast.arguments) -> list[ast.expr | None]:
    """Return the annotations of a function's parameters."""
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [one.annotation for one in every if one is not None]


def declared_global(tree: ast.AST) -> set[str]:
    """Names that some function or class declares to be the module's, and binds."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = Scope("function", list(node.body), set())
            inner.names()
            found |= {name for one in own_nodes(node.body) for name in bound_by(one)} & inner.passed_on
    return found
