"""Texts that load no unbound name, on cuts of real files: `python -m support.naming --cuts 10000 --seed 1`.

A scripted model writes at random, mostly names: some of the file's own, some unknown ones. `symtable` judges its texts
scope by scope, and so does pyflakes where it is installed. Neither knows the package.

pyflakes follows the flow. It calls names unbound that the symbol table does not: after `del`, after the block of
`except ... as`, and where a name was only annotated. It also reads annotations that are strings. So its own findings
are counted, but only the table's count as failures.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import random
import symtable
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.text.document import Split
from support.engine import corpus
from support.engine.corpus import Cut
from support.models.scripted_models import network

try:
    from pyflakes.checker import Checker
    from pyflakes.messages import UndefinedName
except ImportError:  # it is of the extra `test`
    Checker = None

GIVEN = {*dir(builtins), "__file__", "__path__", "__annotations__", "__builtins__", "__cached__"}
IN_CLASSES = {"__module__", "__qualname__", "__class__"}

NAMES = (
    "self", "name", "value", "os", "sys", "path", "args", "len", "print", "str", "result", "data", "line", "re", "int",
    "zebra", "qux", "spam_total", "other_thing", "i", "x", "key", "ValueError", "None", "True", "match", "type", "cls",
)  # fmt: skip
PIECES = (
    *(" " + name for name in NAMES), *NAMES, *map(chr, range(32, 127)), "\n", "\n    ", "\n        ", "()", "):\n",
    " = ", ", ", "[", "]", "(", ")", ":", ".", " for ", " in ", " if ", " else ", "return ", "def ", "class ",
    "import ", "from ", "lambda ", ":=", " as ", "with ", "try:\n", "except ", "global ", "del ", '"', "f'{", "}'",
    "not ", "and ", "==", "=", "**", "*", "+", "# ", "zebra", "_of", "_zebra",
)  # fmt: skip
VOCABULARY = Vocabulary([b"<end>", *(piece.encode() for piece in dict.fromkeys(PIECES))], [0])
SIGN_TEXTS = (b"=", b"(", b")", b"()", b"):", b",", b".", b"]", b"[", b":", b"==", b"+", b"for", b"in", b"if")
LETTERS = [number for number in range(1, VOCABULARY.size) if VOCABULARY.token_bytes(number).isalpha()]
SIGNS = [number for number in range(1, VOCABULARY.size) if VOCABULARY.token_bytes(number).strip() in SIGN_TEXTS]
TOKENS = 60
TOLD = 250  # cuts after which it is said how far it has come


@dataclass
class Found:
    """Results of some cuts."""

    cuts: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    """Cuts with a text, by what names were asked to be."""
    loading: Counter[str] = field(default_factory=Counter)
    """Texts that load a name."""
    unbound: Counter[str] = field(default_factory=Counter)
    """Texts that load one that is bound nowhere."""
    flow: Counter[str] = field(default_factory=Counter)
    """Texts with a name that pyflakes alone calls unbound."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """Texts that CPython refuses, though its grammar does not."""
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def of(self, names: str) -> str:
        """Describe the results of the texts with such an option on names."""
        return (
            f"{self.texts[names]} texts at {self.cuts} cuts, {self.loading[names]} load names, {self.unbound[names]} "
            f"of them one that is bound nowhere; pyflakes alone says so of {self.flow[names]}; not judged "
            f"{self.unjudged[names]}; {1000 * self.seconds[names] / self.cuts:.0f} ms a cut"
        )


@dataclass(frozen=True)
class Verdict:
    """Names that a middle loads, with the unbound ones by the symbol table and by pyflakes."""

    loaded: frozenset[str]
    unbound: frozenset[str]
    flow: frozenset[str]


NOTHING = Verdict(frozenset(), frozenset(), frozenset())


def verdict(left: str, middle: str, right: str) -> Verdict | None:
    """The names of a middle, by `symtable` and pyflakes; None where the symbol table refuses the text."""
    source = left + middle + right
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
            table = symtable.symtable(source, "", "exec")
        except (SyntaxError, ValueError):
            return None  # of the grammar's documented differences, or what the compiler alone refuses
    first, last = position(source, len(left)), position(source, len(left + middle))
    scopes = tables_of(table)
    stars = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))
    bound = bound_in_module(table)
    loads = list(loads_of(tree, ("module", "top", (0,)), first, last))
    unbound = {name for name, scope in loads if not stars and not is_bound(name, tables_at(scopes, scope), bound)}
    flow: set[str] = set()
    if Checker is not None:
        for message in Checker(tree, "x.py").messages:
            if isinstance(message, UndefinedName) and first <= (message.lineno, message.col) < last:
                flow |= {str(message.message_args[0])}
    return Verdict(frozenset(name for name, _ in loads), frozenset(unbound), frozenset(flow))


def position(source: str, offset: int) -> tuple[int, int]:
    """A line and a column in bytes."""
    before = source[:offset]
    return before.count("\n") + 1, len(before[before.rfind("\n") + 1 :].encode())


def tables_of(table: symtable.SymbolTable) -> dict[tuple[str, str, int], list[symtable.SymbolTable]]:
    """All tables, by kind, name and line."""
    found: dict[tuple[str, str, int], list[symtable.SymbolTable]] = {}
    waiting = [table]
    while waiting:
        one = waiting.pop()
        waiting += one.get_children()
        key = (str(one.get_type()).lower().rpartition(".")[2], one.get_name(), one.get_lineno())
        found.setdefault(key, []).append(one)
    return found


COMPREHENSIONS = {
    ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.DictComp: "dictcomp", ast.GeneratorExp: "genexpr",
}  # fmt: skip

Key = tuple[str, str, tuple[int, ...]]


def loads_of(node: ast.AST, scope: Key, first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[str, Key]]:
    """The names that are loaded between two places, each with its scope. Formatted strings are left out."""
    outer: list[Any] = []
    inner = scope
    match node:
        case ast.JoinedStr():
            return
        case ast.Name(id=name, ctx=ast.Load()):
            if (node.lineno, node.col_offset) < last and (node.end_lineno, node.end_col_offset) > first:
                yield name, scope
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            inner = ("function", node.name, line_of(node))
            arguments = [one for one in ast.walk(node.args) if isinstance(one, ast.arg)]
            outer = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, node.returns]
            outer += [one.annotation for one in arguments]
        case ast.Lambda():
            inner = ("function", "lambda", (node.lineno,))
            outer = [*node.args.defaults, *node.args.kw_defaults]
        case ast.ClassDef():
            inner = ("class", node.name, line_of(node))
            outer = [*node.decorator_list, *node.bases, *node.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            inner = ("function", COMPREHENSIONS[type(node)], (node.lineno,))
            outer = [node.generators[0].iter]
    around = {id(one) for one in outer if one is not None}
    for one in outer:
        if one is not None:
            yield from loads_of(one, scope, first, last)
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        child = waiting.pop()
        if id(child) in around:
            continue
        if isinstance(child, ast.arguments | ast.arg | ast.comprehension):
            waiting += ast.iter_child_nodes(child)
        else:
            yield from loads_of(child, inner, first, last)


def line_of(node: Any) -> tuple[int, ...]:
    """The lines that a definition's table may give: its own, or that of its first decorator."""
    return node.lineno, min([node.lineno, *(one.lineno for one in node.decorator_list)])


def tables_at(tables: dict[tuple[str, str, int], list[symtable.SymbolTable]], scope: Key) -> list[symtable.SymbolTable]:
    """Those of a scope."""
    kind, name, lines = scope
    found = [table for line in lines for table in tables.get((kind, name, line), [])]
    assert found, scope
    return found


def bound_in_module(table: symtable.SymbolTable) -> set[str]:
    """The names that a module binds, some of them from within functions."""
    found, waiting = set(GIVEN), [table]
    while waiting:
        one = waiting.pop()
        waiting += one.get_children()
        for symbol in one.get_symbols():
            binds = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if (binds or symbol.is_annotated()) and (one is table or symbol.is_declared_global()):
                found.add(symbol.get_name())
    return found


def is_bound(name: str, scopes: list[symtable.SymbolTable], module: set[str]) -> bool:
    """Return whether a name that is loaded in a scope is bound; of several of one name in a line, in any."""
    if name in module or name in IN_CLASSES or (name.startswith("__") and not name.endswith("__")):
        return True  # what is private is called otherwise in a table
    for table in scopes:
        try:
            symbol = table.lookup(name)
        except KeyError:
            continue
        if symbol.is_free() or (symbol.is_local() and not symbol.is_global()):
            return True
    return False


# ---------------------------------------------------------------- decoding


@cache
def noise(seed: int) -> torch.Tensor:
    return 1.5 * torch.randn(VOCABULARY.size, generator=torch.Generator().manual_seed(seed))


def written(cut: Cut, seed: int, **options: Any) -> Completion:
    """Return the completion of a model that half remembers the true text, and writes names above all."""
    try:
        true = VOCABULARY.encode(cut.middle)
    except ValueError:
        true = []

    def script(middle: list[int]) -> torch.Tensor:
        at = len(middle)
        weights = torch.zeros(VOCABULARY.size)
        weights[LETTERS] = 1.0 if at % 3 else 3.0  # of which names are spelt, where those that exist are asked for
        weights[SIGNS] = 3.5 if at % 3 == 2 else 0.0
        weights[0] = 9.0 if at >= len(true) else at / 3
        if at < len(true):
            weights[true[at]] = 9.0
        return weights + noise((seed * 31 + sum((at + 1) * token for at, token in enumerate(middle))) % 1009)

    model = network(VOCABULARY, script)
    asked = DecodeOptions(max_new_tokens=TOKENS, **options)
    return complete(model, python(), Split(cut.left, cut.right), asked)


@cache
def python() -> Language:
    """The language as the running interpreter has it, which judges the texts."""
    return Language.load("python", f"{sys.version_info[0]}.{sys.version_info[1]}")


def options_of(index: int) -> dict[str, Any]:
    """Every third text is a line, every other one lands."""
    return {
        "single_line": index % 3 == 0,
        "landing": index % 2 == 0,
        "fast_forward": index % 5 == 0,
        "heal": index % 4 == 0,
    }


def examined(cuts: int, seed: int, largest: int, names: tuple[str, ...] = ("off", "require")) -> Found:
    """Decode at some cuts, and judge what is written."""
    found = Found()
    drawn = corpus.cuts(random.Random(seed), largest, 4)
    while found.cuts < cuts:
        cut = next(drawn)
        if "\r" in cut.source.text:
            continue
        index = found.cuts
        if index and index % TOLD == 0:
            print(*(f"{asked}: {found.of(asked)}" for asked in names), file=sys.stderr)
        found.cuts += 1
        for asked in names:
            began = time.perf_counter()
            text = written(cut, seed + index, names=asked, **options_of(index)).text
            found.seconds[asked] += time.perf_counter() - began
            if text is None:
                continue
            found.texts[asked] += 1
            said = verdict(cut.left, text, cut.right) if text else NOTHING
            if said is None:
                found.unjudged[asked] += 1
                continue
            found.loading[asked] += bool(said.loaded)
            found.flow[asked] += bool(said.flow - said.unbound)
            if said.unbound:
                found.unbound[asked] += 1
                if asked == "require":
                    found.failures.append(f"{cut.left[-60:]!r} | {text!r} | {cut.right[:60]!r}: {sorted(said.unbound)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--require", action="store_true", help="do not decode without")
    parser.add_argument("--largest", type=int, default=20_000, help="bytes of a file")
    asked = parser.parse_args()
    found = examined(asked.cuts, asked.seed, asked.largest, ("require",) if asked.require else ("off", "require"))
    print(f"{found.cuts} cuts, seed {asked.seed}; pyflakes {'asked as well' if Checker else 'not installed'}")
    for names in ("off", "require"):
        print(f"names {names:8} {found.of(names)}")
    print(*found.failures[:20], sep="\n")


if __name__ == "__main__":
    main()
