"""Modules that a file of a workspace can import, and the kinds of tokens where one is imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fim_server.language.limited_files import read_found
from fim_server.language_support.python.around import names_around
from fim_server.language_support.python.imports import importable
from fim_server.language_support.python.modules import MOST_BYTES, Modules
from fim_server.language_support.python.preferring import Preference, fitted_weights
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.suggest.sources.scope_cache import ScopeCache
from fim_server.text.document import Split
from support.unix import make_pipe


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for path, text in {
        "lending/__init__.py": "from .errors import LendingError\n\n_private = 1\nVERSION = '1'\n",
        "lending/errors.py": "class LendingError(Exception): pass\n\nif LendingError:\n    Unknown: type\n",
        "lending/web/client.py": "async def fetch(): pass\n",
        "src/other/__init__.py": "",
        "tool.py": "def main(): pass\n",
        "not-a-module.py": "",
        "data.csv": "",
        ".venv/lib/python3.12/site-packages/requests/__init__.py": "def get(url): pass\n",
        ".venv/lib/python3.12/site-packages/fast.cpython-312-x86_64-linux-gnu.so": "",
        "__pycache__/tool.cpython-312.pyc": "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_modules_by_one_word(workspace: Path) -> None:
    found = Modules([workspace], read_found).below("", workspace / "tool.py")
    assert {"lending", "other", "tool", "requests", "fast", "os", "json"} <= found
    assert not {"not-a-module", "data", "__pycache__", "client", "src.other", "errors"} & found


def test_modules_of_packages(workspace: Path) -> None:
    modules, file = Modules([workspace], read_found), workspace / "lending" / "web" / "client.py"
    assert modules.below("lending.", file) == {"errors", "web"}
    assert modules.below("lending.web.", file) == {"client"}
    assert modules.below(".", file) == {"client"}
    assert modules.below("..", file) == {"errors", "web"}
    assert modules.below("..web.", file) == {"client"}
    assert modules.below("....", file) == frozenset()  # above the workspace
    assert modules.below("nothing.", file) == frozenset()


def test_what_modules_have_for_others(workspace: Path) -> None:
    modules, file = Modules([workspace], read_found), workspace / "lending" / "web" / "client.py"
    assert set(modules.public("lending", file) or ()) == {"LendingError", "VERSION", "errors", "web"}
    assert set(modules.public("..errors", file) or ()) == {"LendingError", "Unknown"}
    assert set(modules.public("..", file) or ()) == {"LendingError", "VERSION", "errors", "web"}
    assert set(modules.public("lending.web", file) or ()) == {"client"}
    assert set(modules.public("requests", file) or ()) == {"get"}
    assert "Counter" in (modules.public("collections", file) or ())
    assert modules.public("nothing", file) is None


def test_what_changes_is_read_again(workspace: Path) -> None:
    modules, file = Modules([workspace], read_found), workspace / "a.py"
    assert set(modules.public("tool", file) or ()) == {"main"}
    (workspace / "tool.py").write_text("def other_one(): pass\n")
    assert set(modules.public("tool", file) or ()) == {"other_one"}
    (workspace / "tool.py").write_text("def broken(:\n\nwhole = 1\n")
    assert set(modules.public("tool", file) or ()) == {"broken", "whole"}
    (workspace / "tool.py").write_text("a = 1\n" * (MOST_BYTES // 6 + 1))
    assert set(modules.public("tool", file) or ()) == set()


@pytest.mark.skipif(os.name == "nt", reason="links take rights there")
def test_nothing_outside_of_the_workspace_is_read(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("password = 1\n")
    (workspace / "linked").symlink_to(outside)
    (workspace / "alone.py").symlink_to(outside / "secret.py")
    modules, file = Modules([workspace], read_found), workspace / "a.py"
    assert modules.below("linked.", file) == frozenset()
    assert not modules.public("linked.secret", file)
    assert not modules.public("alone", file)
    assert modules.below("..", file) == frozenset()
    assert modules.public("..outside.secret", file) is None


def test_what_a_file_lacks_may_be_the_workspaces(workspace: Path) -> None:
    at = Modules([workspace], read_found).at(workspace / "a.py")

    def nothing(names: object) -> list[tuple[str, str]]:
        return []

    source = "tool.main()\nos.sep\nUnknown, zebra\n"
    found = importable("import ", source, nothing, at)
    assert found is not None
    assert dict(found[1]) == {"tool": 0.5, "os": 0.5}
    assert importable("from lending.errors import ", source, nothing, at) == ("", [("Unknown", 1.0)])
    assert importable("from lending.errors import ", source, nothing) is None


@pytest.mark.parametrize(
    ("line", "token", "expected"),
    [
        ("import ", "lend", ["module"]),
        ("import ", "zebra", ["module_unknown"]),
        ("import os, lending.", "web", ["module"]),
        ("import os as o, ", "tool", ["module"]),
        ("from ", "tool", ["module"]),
        ("from .", "lending", ["module"]),
        ("from lending.", "zebra", ["module_unknown"]),
        ("from tool", " import", []),
        ("from tool import ", "main", ["public"]),
        ("from lending.errors import LendingError, ", "Unk", ["public"]),
        ("from lending.errors import LendingError as L, ", "zebra", ["public_unknown"]),
        ("from lending.errors import LendingError as ", "zebra", []),
        ("from nothing import ", "zebra", []),
        ("from requests import (", "get", ["public"]),
    ],
)
def test_the_kinds_of_what_is_imported(workspace: Path, line: str, token: str, expected: list[str]) -> None:
    modules = Modules([workspace], read_found).at(workspace / "a.py")
    preference = Preference(line, names_around(line, "\n"), modules=modules)
    assert preference.kinds("", "", [token]) == [expected]
    assert all(kind in fitted_weights() for kind in expected)


def test_the_server_tells_of_the_clients_folders(workspace: Path) -> None:
    project = Project()
    project.read([workspace.as_uri()], {".py": "python"})
    split, uri = Split("import ", "\n"), (workspace / "a.py").as_uri()
    request = Request(uri, split, "python", "a.py", False, True, ServerSettings())
    found = ScopeCache().at(request, "python", project)
    assert isinstance(found, Preference)
    assert found.kinds("", "", ["tool", "zebra"]) == [["module"], ["module_unknown"]]
    untitled = Request("untitled:a", split, "python", "a.py", False, True, ServerSettings())
    found = ScopeCache().at(untitled, "python", project)
    assert isinstance(found, Preference)
    assert found.kinds("", "", ["tool", "zebra"]) == [[], []]
    project.close()


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX")
def test_modules_that_are_no_files_are_not_read(workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    (workspace / "endless.py").symlink_to("/dev/zero")
    (workspace / "outside.py").symlink_to(__file__)
    make_pipe(workspace / "pipe.py")
    (workspace / "large.py").write_bytes(b"x = 1\n" * MOST_BYTES)
    modules, file = Modules([workspace], read_found), workspace / "a.py"
    for name in ("loop", "endless", "outside", "pipe"):
        assert not modules.public(name, file)
        assert not modules.below(f"{name}.", file)
    assert modules.public("large", file) == frozenset()
