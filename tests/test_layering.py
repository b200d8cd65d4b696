"""The five invariants of the README's code map, read off the sources: nothing here runs or imports the package."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "fim_server"
ENGINE = ROOT / "rust_core"

LAYERS = (
    "errors",  # the lowest: the native module raises what it defines
    "_core",
    "language",
    "tokens",
    "text",
    "recovery",
    "fim_server",  # the package's own __init__: the public names of the engine
    "models",
    "decoding",
    "datasets",
    "evaluation",
    "training",
    "server",
    "bench",
    "cli",
    "__main__",
)
"""Every package and module at the top, in the order of the dataflow. An import may point to an earlier one only, or
stay within one package. A new one has to be given its place here."""

PROTOCOL_LIBRARIES = frozenset({"lsprotocol", "pygls"})
TORCH_MODULES = frozenset({"bench", "decoding", "models", "training"})

LEXING = frozenset(
    {"error", "ids", "limits", "spec"} | {f"lexing::{m}" for m in ("guards", "layout", "lexer", "lookahead")}
)
"""Engine modules that know bytes, lexemes and columns, and nothing of grammar rules."""
MASKING = frozenset({"error", "ids", "limits", "masking::plain", "masking::vocabulary"})
"""Engine modules that walk a vocabulary with any recogniser, and know nothing of lexers and parsers."""


def python_sources() -> Iterator[tuple[str, Path]]:
    """Every source file of the package and the module or subpackage it belongs to, ``fim_server`` for its __init__."""
    for path in sorted(PACKAGE.rglob("*.py")):
        first = path.relative_to(PACKAGE).parts[0]
        name = first.removesuffix(".py")
        yield ("fim_server" if name == "__init__" else name), path


def imported_names(path: Path) -> Iterator[str]:
    """Dotted names of all imports of a file, inside functions and TYPE_CHECKING blocks too.

    ``from a import b`` gives ``a.b``: b may be a module, and where it is not, its first parts still tell where it is.
    """
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_modules(path: Path) -> Iterator[str]:
    """The modules and subpackages of fim_server that a file imports."""
    for name in imported_names(path):
        first, *rest = name.split(".")
        if first == "fim_server":
            inner = rest[0] if rest else ""
            yield inner if inner in LAYERS else "fim_server"


def importers_of(libraries: frozenset[str]) -> set[str]:
    """The modules and subpackages that import one of these top-level packages."""
    return {
        module
        for module, path in python_sources()
        if any(name.split(".")[0] in libraries for name in imported_names(path))
    }


def rust_sources() -> list[Path]:
    """The engine's own sources, without the binding's."""
    return sorted((ENGINE / "src").rglob("*.rs"))


def engine_module(path: Path) -> str:
    """``lexing::lexer`` for ``src/lexing/lexer.rs``."""
    return "::".join(path.relative_to(ENGINE / "src").with_suffix("").parts)


def uses(path: Path, modules: frozenset[str]) -> set[str]:
    """The modules of its own crate that a Rust source names (comments aside)."""
    code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    found = set()
    for name in re.findall(r"\bcrate::([a-z_]+(?:::[a-z_]+)*)", code):
        parts = name.split("::")
        known = ["::".join(parts[:n]) for n in range(len(parts), 0, -1)]
        found.add(next((module for module in known if module in modules), name))
    return found


def test_only_the_server_knows_the_protocol() -> None:
    assert importers_of(PROTOCOL_LIBRARIES) == {"server"}


def test_torch_stays_with_the_model() -> None:
    assert importers_of(frozenset({"torch"})) <= TORCH_MODULES


def test_only_the_binding_knows_python() -> None:
    core = tomllib.loads((ENGINE / "Cargo.toml").read_text(encoding="utf-8"))
    binding = tomllib.loads((ENGINE / "py" / "Cargo.toml").read_text(encoding="utf-8"))
    assert "pyo3" in binding["dependencies"]
    tables = (core.get(kind, {}) for kind in ("dependencies", "dev-dependencies", "build-dependencies"))
    assert not [name for table in tables for name in table if re.match("pyo3|numpy|cpython", name)]
    assert not [path for path in rust_sources() if "pyo3" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("half", "key"), [(LEXING, "lexing::lexer"), (MASKING, "masking::plain")])
def test_lexing_and_masking_know_no_grammar_rules(half: frozenset[str], key: str) -> None:
    sources = {engine_module(path): path for path in rust_sources()}
    assert key in sources
    modules = frozenset(sources)
    strays = [f"{name} uses {used}" for name in half & modules for used in uses(sources[name], modules) - half]
    assert not strays


def test_modules_import_each_other_in_no_circle() -> None:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for _, path in python_sources()
    }
    graph: dict[str, set[str]] = {}
    for name, path in sources.items():
        graph[name] = set()
        for used in imported_names(path):
            known = used if used in sources or used == "fim_server._core" else used.rpartition(".")[0]
            if known in sources and known != name:
                graph[name].add(known)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


@pytest.mark.parametrize(
    ("module", "path"), [pytest.param(m, p, id=str(p.relative_to(ROOT))) for m, p in python_sources()]
)
def test_imports_point_one_way(module: str, path: Path) -> None:
    rank = {name: number for number, name in enumerate(LAYERS)}
    assert module in rank, f"{module} has no place in LAYERS yet"
    against = {used for used in own_modules(path) if used != module and rank[used] >= rank[module]}
    assert not against, (
        f"{path.relative_to(ROOT)} imports {', '.join(sorted(against))}, which lies later in the dataflow"
    )
