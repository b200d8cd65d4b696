"""Python sources that take CPython's parser minutes are read in linear time, and no other parser reads them."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fim_server
from fim_server.language_support.python import modules, required
from fim_server.language_support.python.lines import Kept
from fim_server.language_support.python.model import Model
from fim_server.language_support.python.modules import Modules, names_in

PACKAGE = Path(fim_server.__file__).parent


def hostile(size: int) -> dict[str, str]:
    return {
        "fields of a string": "f'" + "{a}" * (size // 3) + "'",
        "fields in lines": "f'''" + "{a}\n" * (size // 4) + "'''",
        "fields of a raw string": "Rf'" + "{a}" * (size // 3) + "'",
        "fields with formats": "f'" + "{a!r:>{b}}" * (size // 11) + "'",
        "few fields in a long string": "f'" + "x" * size + "{a}" * 600 + "'",
        "an open string": 'f"""' + "{a}" * (size // 3),
        "escaped quotes of an open string": '"""\n' + '\\"""\n' * (size // 5),
        "an argument": "f(f'" + "{a}" * (size // 3) + "')",
        "short lines": "a\n" * (size // 2),
        "short statements": "a;" * (size // 2),
        "strings in lines": "f'{a}'\n" * (size // 7),
        "entries": "x = [" + "a," * (size // 2) + "]",
        "targets": "x, " * (size // 3) + "x = 1",
        "assignments": "x = " * (size // 4) + "1",
        "parameters": "def f(" + "a," * (size // 2) + "): pass",
        "a dotted name": "import a" + ".a" * (size // 2),
        "a dotted name in lines": "from a" + "\\\n.a" * (size // 4) + " import b",
        "open brackets": "(a\n" * (size // 3),
        "open brackets in a line": "(a" * (size // 2),
        "nested brackets": "[a," * (size // 6) + "]" * (size // 6),
        "nested comprehensions": "[a for a in " * (size // 20) + "a" + " if a]" * (size // 20),
        "lambdas": "lambda a: (\n" * (size // 12),
        "keywords in open brackets": "f(a\nreturn (b\n" * (size // 14),
        "walruses": "(a := " * (size // 7) + "1" + ")" * (size // 7),
        "branches": "if a:\n b = 1\n" + "elif a:\n b = 1\n" * (size // 14),
        "nested definitions": "".join(f"{' ' * depth}def f():\n" for depth in range(int((2 * size) ** 0.5))),
    }


@contextmanager
def without_collector() -> Iterator[None]:
    """Leave out the collector, which goes through the objects of all tests before."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("name", hostile(0))
def test_hostile_sources_are_read_in_linear_time(name: str) -> None:
    def seconds(size: int) -> float:
        source = f"alpha = 1\n{hostile(size)[name]}\n"
        with without_collector():
            started = time.process_time()
            Model(source, Kept())
            return time.process_time() - started

    seconds(1_000)
    assert seconds(40_000) < 30 * max(seconds(5_000), 0.002)  # 8 times if it is linear, 64 if it is quadratic


@pytest.mark.parametrize("name", ["entries", "targets", "assignments", "short statements", "fields of a string"])
def test_trackers_read_a_long_line_in_linear_time(name: str) -> None:
    def seconds(size: int) -> float:
        left = hostile(size)[name]
        with without_collector():
            started = time.process_time()
            required.track(left, "\n", "", True)
            return time.process_time() - started

    seconds(1_000)
    assert seconds(40_000) < 30 * max(seconds(5_000), 0.002)


@pytest.mark.parametrize("name", hostile(0))
def test_modules_of_the_workspace_are_read_whatever_they_hold(name: str, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"alpha = 1\n{hostile(40_000)[name]}\n", encoding="utf-8")
    known = Modules([tmp_path], lambda path, most, folder: path.read_bytes())
    assert "alpha" in (known.public("evil", tmp_path / "a.py") or ())


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape", "idna", "utf-16", "no-such"])
def test_encodings_that_hide_what_they_hold_are_not_read(encoding: str) -> None:
    assert names_in(f"# coding: {encoding}\nalpha = 1\n".encode()) == frozenset()
    assert names_in("# coding: latin-1\nalpha = 'é'\n".encode("latin-1")) == {"alpha"}


def test_the_standard_library_is_not_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The interpreter looks in the working directory first, which may be a workspace."""
    (tmp_path / "colorsys.py").write_text("evil = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    modules.public_names.cache_clear()
    public = modules.public_names("colorsys")
    assert public is not None
    assert "evil" not in public
    assert "rgb_to_hsv" in public


def test_sources_of_users_are_not_parsed_by_python() -> None:
    """Python's own parsers have no limits, and they know the syntax of one version."""
    calls = re.compile(
        r"(?<!def )(?<![.\w])(?:ast\.(?:parse|literal_eval)|compile|tokenize\.(?!detect)\w+|symtable\.\w+)\("
    )
    folders = ("language_support", "language", "server", "suggest", "text", "memory", "recovery", "decoding", "models")
    found = {
        (path.relative_to(PACKAGE).as_posix(), call[0])
        for folder in folders
        for path in (PACKAGE / folder).rglob("*.py")
        for call in calls.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()
