"""Trees of Python sources: hostile ones are left out before CPython's parser, which nothing can stop, sees them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fim_server
from fim_server.language_support.python import binding, imports
from fim_server.language_support.python.modules import Modules
from fim_server.language_support.python.parsing import MOST_DOTS, cost_of_formatted, is_cheap, tree_of
from fim_server.language_support.python.scopes import bound_in

PACKAGE = Path(fim_server.__file__).parent

SIZE = 390_000
HOSTILE = {
    "fields of a string": "f'" + "{a}" * (SIZE // 3) + "'",
    "fields in lines": "f'''" + "{a}\n" * (SIZE // 4) + "'''",
    "fields of a raw string": "Rf'" + "{a}" * (SIZE // 3) + "'",
    "fields with formats": "f'" + "{a!r:>{b}}" * (SIZE // 11) + "'",
    "few fields in a long string": "f'" + "x" * SIZE + "{a}" * 600 + "'",
    "an open string": 'f"""' + "{a}" * (SIZE // 3),
    "an argument": "f(f'" + "{a}" * 30_000 + "')",
    "short lines": "a\n" * (SIZE // 2),
    "short statements": "a;" * (SIZE // 2),
    "strings in lines": "f'{a}'\n" * (SIZE // 7),
    "entries": "x = [" + "a," * (SIZE // 2) + "]",
    "a dotted name": "import a" + ".a" * (SIZE // 2),
    "a dotted name of few parts": "import a" + ".a" * 20_000,
    "a dotted name in lines": "from a" + "\\\n.a" * 20_000 + " import b",
}
"""Each takes CPython 3.11 more than a second or 100 MB."""


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail instead of parsing something hostile, which takes minutes."""
    parse = ast.parse

    def parse_usual(source: str | bytes, *arguments: object, **named: object) -> ast.Module:
        text = source if isinstance(source, str) else source.decode("latin-1")
        assert not any(one in text for one in HOSTILE.values()), "a hostile source is parsed"
        return parse(source, *arguments, **named)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(ast, "parse", parse_usual)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sources_are_not_parsed(name: str) -> None:
    source = HOSTILE[name]
    assert tree_of(source) is None
    assert tree_of(source.encode()) is None
    assert imports.names_in(f"alpha = 1\n{source}\n".encode()) == frozenset()


@pytest.mark.parametrize("name", HOSTILE)
def test_neither_are_open_documents(name: str) -> None:
    source = f"alpha = 1\n{HOSTILE[name]}\n"
    if len(source) <= imports.MOST_CHARACTERS:
        assert imports.parsed(source) is None
        assert imports.missing(source) == {}
    assert binding.unbound(source, "beta", "\n") is None
    assert imports.import_of(f"import a; {HOSTILE[name]}") is None


@pytest.mark.parametrize("name", HOSTILE)
def test_neither_are_modules_of_the_workspace(name: str, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"alpha = 1\n{HOSTILE[name]}\n", encoding="utf-8")
    (tmp_path / "good.py").write_text("alpha = 1\n", encoding="utf-8")
    modules = Modules([tmp_path], lambda path, most, folder: path.read_bytes())
    assert modules.public("evil", tmp_path / "a.py") == frozenset()
    assert modules.public("good", tmp_path / "a.py") == frozenset({"alpha"})


def test_sources_of_the_package_are_parsed() -> None:
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert is_cheap(source), path
        assert ast.dump(tree_of(source.encode()) or ast.Module([], [])) == ast.dump(ast.parse(source))


def test_usual_sources_of_the_largest_size_are_parsed() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "server").rglob("*.py")))
    assert is_cheap(sources[:SIZE])
    assert tree_of(("name = " + "f'{width} by {height}'\n") * 5_000) is not None
    assert tree_of("TABLE = {\n" + "    'key': {'width': 1, 'height': 2},\n" * 5_000 + "}\n" + "f'{a}'\n") is not None
    assert tree_of("import a" + ".a" * MOST_DOTS) is not None


@pytest.mark.parametrize(
    ("source", "cost"),
    [
        ("{a}", 0),
        ("f'{a}'", 6),
        ("x = f'{a}{b}' '{c}'", 18),
        ("rF'''{a}\n{b}'''", 30),
        ("f'{a}\nf'{b}'", 11),
        (r"f'\'{a}' {b}", 8),
        ("f'''{a}", 7),
        ("of'{a}'", 0),
    ],
)
def test_the_cost_of_formatted_strings(source: str, cost: int) -> None:
    assert cost_of_formatted(source) == cost


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape", "idna", "utf-16", "no-such"])
def test_encodings_that_hide_what_they_hold_are_not_read(encoding: str) -> None:
    assert imports.names_in(f"# coding: {encoding}\nalpha = 1\n".encode()) == frozenset()
    assert imports.names_in("# coding: latin-1\nalpha = 'é'\n".encode("latin-1")) == {"alpha"}


def test_a_long_chain_of_branches_is_left_out() -> None:
    """Its tree is deeper than Python functions may call each other."""
    assert imports.names_in(b"if a:\n b = 1\n" + b"elif a:\n b = 1\n" * 2_000) == frozenset()


def test_the_standard_library_is_not_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The interpreter looks in the working directory first, which may be a workspace."""
    (tmp_path / "colorsys.py").write_text("evil = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    imports.public_names.cache_clear()
    public = imports.public_names("colorsys")
    assert public is not None
    assert "evil" not in public
    assert "rgb_to_hsv" in public


def test_names_of_a_long_import_are_found_in_linear_time() -> None:
    """Each part of a dotted name was a new beginning for the search: hours."""
    line = "import a" + ".a" * 200_000 + ", os.path, b as c; (d := " + "e" * 200_000 + ")"
    assert bound_in(line) >= {"a", "os", "c", "d"}


def test_sources_of_users_are_parsed_at_one_place() -> None:
    """Python's own parsers have no limits: whatever calls them takes as long as a file wants."""
    calls = re.compile(
        r"(?<!def )(?<![.\w])(?:ast\.(?:parse|literal_eval)|compile|tokenize\.(?!detect)\w+|symtable\.\w+)\("
    )
    folders = ("language_support", "language", "server", "text", "memory", "recovery", "decoding", "models")
    found = {
        (path.relative_to(PACKAGE).as_posix(), call[0])
        for folder in folders
        for path in (PACKAGE / folder).rglob("*.py")
        for call in calls.finditer(path.read_text(encoding="utf-8"))
    }
    # `missing` reads the table of a source that was parsed before.
    assert found == {
        ("language_support/python/parsing.py", "ast.parse("),
        ("language_support/python/imports.py", "symtable.symtable("),
    }
