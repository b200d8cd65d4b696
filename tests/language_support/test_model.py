"""The scope model of Python code agrees with CPython's symbol table, and reads any code."""

from __future__ import annotations

import ast
import random
import symtable
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from fim_server.language_support.python.around import names_around
from fim_server.language_support.python.lines import Kept, logical_lines
from fim_server.language_support.python.model import Model, unbound
from support import tree_names

LIBRARY = Path(sysconfig.get_path("stdlib"))
FILES = sorted(path for path in LIBRARY.glob("*.py") if path.stat().st_size < 60_000)
SAMPLE = random.Random(52).sample(FILES, 40)

COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp", "genexpr", "lambda"}


def tables(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    return [table, *(inner for child in table.get_children() for inner in tables(child))]


def bound_of(table: symtable.SymbolTable) -> set[str]:
    """The names that a table's scope binds; those of inlined comprehensions are told apart by their tables."""
    return {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter() or symbol.is_annotated())
        and not (table.get_type() != "module" and symbol.is_global())
        and not (symbol.is_free() and not symbol.is_local())
        and not symbol.get_name().startswith(".")
    }


def source_of(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return text


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name)
def test_scopes_bind_the_names_that_the_symbol_table_binds(path: Path) -> None:
    source = source_of(path)
    if source is None:
        pytest.skip("another version's syntax")
    model = Model(source)
    assert not model.is_broken
    expected: Counter[tuple[str, str, frozenset[str]]] = Counter()
    for table in tables(symtable.symtable(source, "", "exec")):
        kind, name = str(table.get_type()).lower().rpartition(".")[2], table.get_name()
        if kind in ("module", "class", "function") and name not in COMPREHENSIONS:
            bound = bound_of(table)
            if kind == "module":
                bound -= model.declared - model.module.bound
            expected[kind, "" if kind == "module" else name, frozenset(bound)] += 1
    found = Counter(
        ("function" if scope.kind == "def" else scope.kind, scope.name, frozenset(scope.bound)) for scope in model
    )
    if sys.version_info >= (3, 12):  # tables hold the names of inlined comprehensions, too
        assert sum(found.values()) == sum(expected.values())
        return
    assert found == expected


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name)
def test_unbound_names_are_those_of_the_syntax_tree(path: Path) -> None:
    """With names renamed at random, so that many are bound nowhere."""
    source = source_of(path)
    if source is None or "\f" in source:
        pytest.skip("another version's syntax, or form feeds, at which trees count lines otherwise")
    rng = random.Random(path.name)
    words = sorted({node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)})
    for _ in range(4):
        word, other = rng.choice(words), rng.choice([*words, "qux"])
        at = source.find(word, rng.randrange(len(source)))
        if at < 0:
            continue
        left, right = source[:at], source[at + len(word) :]
        exact = tree_names.unbound(left, other, right)
        if exact is not None:
            assert set(unbound(left, other, right)) == {one.name for one in exact}, (word, other, at)


@pytest.mark.parametrize("path", SAMPLE[:12], ids=lambda path: path.name)
def test_any_code_has_a_model(path: Path) -> None:
    """Cut at every line, and without every line."""
    source = path.read_text(encoding="utf-8")[:12_000]
    lines = source.split("\n")
    for number, line in enumerate(lines):
        left, right = "\n".join((*lines[:number], line[: len(line) // 2])), "\n".join(("", *lines[number + 1 :]))
        around = names_around(left, right)
        assert around.scope in list(around.model)
        assert len(around.model.texts) == sum(one.physical for one in around.model.lines)
        cut = Model(left, may_be_open=True)
        assert "\n".join(cut.texts) == left


@pytest.mark.parametrize("path", SAMPLE[:12], ids=lambda path: path.name)
def test_kept_readings_are_those_of_a_fresh_reading(path: Path) -> None:
    texts = path.read_text(encoding="utf-8").split("\n")
    kept = Kept()
    first = list(logical_lines(texts, kept))
    assert list(logical_lines(texts, kept)) == first == list(logical_lines(texts, None))


def test_kept_readings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.language_support.python.lines.MOST_KEPT", 10)
    kept = Kept()
    list(logical_lines([f"a{number} = (\n1)" for number in range(100)], kept))
    assert kept.count <= 10


NEWER = [
    ("def f[T: int, *Ts, **P](a: T, b: U) -> list[T]:\n    return Ts, P, V\n", ["U", "V"]),
    ("class A[T](Base[T]):\n    x: T = Y\n", ["Base", "Y"]),
    ("type Pair[T] = tuple[T, Q]\nPair\n", ["Q"]),
    ("type = 1\ntype(type)\n", []),
    ("try:\n    pass\nexcept* (A, B) as group:\n    group\n", ["A", "B"]),
    ("try:\n    pass\nexcept A, B:\n    pass\n", ["A", "B"]),
    ("t'{a!r:>{b}} {c=} {{d}}'\n", ["a", "b", "c"]),
    ("f'{x['key']} {'(' + y} {f'{z}'}'\n", ["x", "y", "z"]),
    ("f'''{\n    a  # {comment\n}'''\nb\n", ["a", "b"]),
    ("match x:\n    case A.B | C(d=e) if f:\n        e\n    case {'k': g, **h}:\n        g, h\n", ["A", "C", "f", "x"]),
    ("match(x)\ncase(y)\nmatch[z] = 1\n", ["case", "match", "match", "x", "y", "z"]),
    ("match = case = 1\nmatch(case)\n", []),
    ("match ...:\n    case .5 | -.5:\n        x\nmatch .5, y:\n    case _:\n        pass\n", ["x", "y"]),
    ("match.x = 1\ncase . y(z)\ntype.x\n", ["case", "match", "z"]),
    ("[*a for a in b]\n{**c for c in d}\n", ["b", "d"]),
    ("f(*a for a in b)\n{*c for c in d if e}\n[*x, *[*y for y in z]]\n", ["b", "d", "e", "f", "x", "z"]),
    ("lazy import a.b, c as d\na, b, c, d\n", ["b", "c"]),
    ("lazy \\\n from .x import (y as z,\n w)\nx, y, z, w\n", ["x", "y"]),
    ("if a: lazy import b; lazy from c import d\nb, c, d\n", ["a", "c"]),
    ("lazy from a import *\nb\n", []),
    ("lazy = 1\nlazy.x\nlazy: int\nlazy(lazy)\n", []),
    ("lazy\nlazy.x\nlazy(y)\nlazy + z\nlazy if a else b\n", ["a", "b", *["lazy"] * 5, "y", "z"]),
    ("match x:\n    case +1 | [+2j]:\n        y\n", ["x", "y"]),
    ("frozendict(a=sentinel('b'))\n", []),
    ("async def f():\n    return [x async for x in y]\n", ["y"]),
    ("with (a as b, c as d):\n    b, d\n", ["a", "c"]),
    ("lambda a, *b, c=d: (a, b, c, e)\na\n", ["a", "d", "e"]),
    ("[lambda: x for x in y]\n[z := 1 for q in y]\nz\n", ["y", "y"]),
    ("class A:\n    a = 1\n    b = [a for c in a]\n    d = [c for c in a]\n", ["a"]),
]


@pytest.mark.parametrize(("source", "expected"), NEWER)
def test_syntax_of_all_versions_is_read(source: str, expected: list[str]) -> None:
    """Whatever Python runs the server."""
    assert sorted(name.name for _, name in Model(source).unbound()) == expected


BROKEN = [
    ("def f(a:\n    b = 1\n    return a, b, c\n", {"f"}),
    ("x = f(a, b\ny = 2\ndef g():\n    pass\n", {"x", "y", "g"}),
    ("x = {\n    1: 2,\ny = 3\n", {"x", "y"}),
    ("x = 'open\ny = 1\n", {"x", "y"}),
    ("x = '''open\ny = 1\n", {"x", "y"}),
    ("x = )\ny = (1]\nz = 2\n", {"x", "y", "z"}),
    ("if x\n    y = 1\nelse\nz = 2\n", {"y", "z"}),
    ("  x = 1\n y = 2\nz = 3\n", {"x", "y", "z"}),
    ("for in x:\n    y = 1\n", {"y"}),
    ("import\nfrom x\nfrom y import\nz = 1\n", {"z"}),
]


@pytest.mark.parametrize(("source", "bound"), BROKEN)
def test_broken_code_binds_what_its_lines_bind(source: str, bound: set[str]) -> None:
    assert Model(source).module.bound >= bound
