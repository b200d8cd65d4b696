"""Dependencies that the modules of the package may have, read off the sources: nothing here runs or imports it.

The engine's are in rust_core/tests/layering.rs.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
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
    "constants",
    "language",
    "system",
    "tokens",
    "text",
    "recovery",
    "memory",
    "next_edit",
    "language_support",  # optional code for one language, beside its definition
    "fim_server",  # the package's own __init__: the public names of the engine
    "models",
    "decoding",
    "datasets",
    "integrations",
    "evaluation",
    "suggest",
    "workers",
    "server",
    "cli",
    "__main__",
)
"""Every package and module at the top, in the order of the dataflow. An import may point to an earlier one only, or
stay within one package. A new one has to be given its place here."""

PROTOCOL_LIBRARIES = frozenset({"lsprotocol", "pygls"})
PATHS_OF_URIS = "pygls.uris.to_fs_path"
"""A function of pygls that has nothing to do with the protocol."""
TORCH_LIBRARIES = frozenset({"torch", "transformers", "triton"})
"""Libraries of the extra `torch`: the rest of the package runs without them."""
PLUG_INS = frozenset(
    f"integrations/{name}.py" for name in ("sglang", "transformers", "vllm/processors", "vllm/structured")
)
"""Modules that other engines load: their libraries are there then."""
TORCH_FILES = PLUG_INS | {
    "models/pytorch/backend.py",
    "models/pytorch/batches.py",
    "models/pytorch/kernels.py",
    "models/pytorch/masks.py",
    "models/pytorch/rows.py",
}
TORCH_USERS = frozenset({"evaluation/running/modes.py", "integrations/vllm/plugin.py"})
"""Modules that import one of those files at module level, and are imported only after a check for torch."""


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


def names_imported_at_once(path: Path) -> Iterator[str]:
    """The names that a file imports when it is imported itself: neither in functions nor for types alone."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_modules(path: Path) -> Iterator[str]:
    """The modules and subpackages of fim_server that a file imports."""
    for name in imported_names(path):
        first, *rest = name.split(".")
        if first == "fim_server":
            inner = rest[0] if rest else ""
            yield inner if inner in LAYERS else "fim_server"


def importers_of(libraries: frozenset[str]) -> set[str]:
    """Modules and subpackages that import one of these top-level packages."""
    return {
        module
        for module, path in python_sources()
        if any(name.split(".")[0] in libraries for name in imported_names(path) if name != PATHS_OF_URIS)
    }


def rust_sources() -> list[Path]:
    """The engine's own sources, without the binding's."""
    return sorted(path for crate in (ENGINE, ENGINE / "memory") for path in (crate / "src").rglob("*.rs"))


def test_only_the_server_knows_the_protocol() -> None:
    assert importers_of(PROTOCOL_LIBRARIES) == {"server"}


def test_torch_stays_in_a_few_files() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for _, path in python_sources()
        if any(name.split(".")[0] in TORCH_LIBRARIES for name in imported_names(path))
    }
    assert found == TORCH_FILES


def test_files_with_torch_are_imported_where_they_are_needed_only() -> None:
    names = {"fim_server." + path.removesuffix(".py").replace("/", ".") for path in TORCH_FILES | TORCH_USERS}
    users = {
        path.relative_to(PACKAGE).as_posix()
        for _, path in python_sources()
        if any(used in names or used.rpartition(".")[0] in names for used in names_imported_at_once(path))
    }
    assert users <= TORCH_FILES | TORCH_USERS


PROGRAMS = ("fim_server.cli", "fim_server.server", "fim_server.server.app", "fim_server.models.load")


@pytest.mark.parametrize(
    "module", [*PROGRAMS, "fim_server.decoding.strategies.alternatives", "fim_server.decoding.complete"]
)
def test_programs_start_without_torch(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({set(TORCH_LIBRARIES)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_support_of_a_language_is_reached_through_the_registry_alone() -> None:
    """So mypy checks every use of it against the protocol."""
    users = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for module, path in python_sources()
        for name in imported_names(path)
        if name.startswith("fim_server.language_support.")
        and name.split(".")[2] not in ("protocol", "registry", "token_texts")
        and module != "language_support"
    }
    assert users == set()
    registry = PACKAGE / "language_support" / "registry.py"
    assert {name for name in imported_names(registry) if ".python." in name} == {
        "fim_server.language_support.python.support.PythonSupport"
    }
    assert not [name for name in names_imported_at_once(registry) if name.startswith("fim_server.")]


def test_the_package_imports_neither_benchmarks_nor_training() -> None:
    """The wheel contains neither."""
    names = {name.split(".")[0] for _, path in python_sources() for name in imported_names(path)}
    assert not names & {"benchmarks", "training", "tests"}


def test_only_the_binding_knows_python() -> None:
    core = tomllib.loads((ENGINE / "Cargo.toml").read_text(encoding="utf-8"))
    binding = tomllib.loads((ENGINE / "py" / "Cargo.toml").read_text(encoding="utf-8"))
    assert "pyo3" in binding["dependencies"]
    tables = (core.get(kind, {}) for kind in ("dependencies", "dev-dependencies", "build-dependencies"))
    assert not [name for table in tables for name in table if re.match("pyo3|numpy|cpython", name)]
    assert not [path for path in rust_sources() if "pyo3" in path.read_text(encoding="utf-8")]


def test_the_top_of_the_package_can_be_taken_in() -> None:
    """At most twenty-two packages and modules; the native module, which is built, and marker files are none."""
    names = {path.relative_to(PACKAGE).parts[0] for _, path in python_sources()} | {"languages"}
    assert len(names) <= 22, sorted(names)


def test_no_source_is_long() -> None:
    kinds = {".el", ".js", ".lua", ".mjs", ".py", ".rs", ".sh", ".ts"}
    folders = (
        "docs",
        "benchmarks",
        "fim_server",
        "rust_core/memory",
        "rust_core/src",
        "rust_core/py",
        "training",
        "vscode-extension",
    )
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    own = [path for path in paths if not {"node_modules", "out", "target"} & set(path.relative_to(ROOT).parts)]
    assert len(own) > 200
    long = {path: text.count("\n") for path in own if (text := path.read_text(encoding="utf-8")).count("\n") > 700}
    assert not long


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
