"""Compiled languages that are kept between runs: used only if they are what was written, and never in the way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language, LanguageError, Vocabulary, _core
from fim_server.language import cache
from fim_server.language.definition import compile as definitions
from fim_server.tokens import masks
from support.engine.odd_files import odd, posix, put

GRAMMAR = 'start: (A | "(" start ")")+\nA: /a[b-d]*/\nBLANK: / +/\n%ignore BLANK\n'
SPEC = 'name = "toy"\nsuffixes = []\nstart = "start"\nbrackets = [["(", ")"]]\n'
SEED = 20261122


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    kept = tmp_path / "cache"
    monkeypatch.setenv("FIM_SERVER_CACHE", str(kept))
    return kept


def files(folder: Path, grammar: str = GRAMMAR, spec: str = SPEC) -> tuple[Path, Path]:
    (folder / "toy.lark").write_text(grammar)
    (folder / "toy.toml").write_text(spec)
    return folder / "toy.lark", folder / "toy.toml"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The definitions that were lowered by Lark, which what is loaded from the cache is not."""
    found: list[str] = []
    read = definitions._read_grammar

    def count(definition: definitions.Definition, *rest: Any) -> Any:
        found.append(definition.name)
        return read(definition, *rest)

    monkeypatch.setattr(definitions, "_read_grammar", count)
    return found


def works(language: Language) -> bool:
    verdicts = [language.open("a(", ")a").check(middle).complete for middle in ("", "abc", "a)(ab", "e", ")")]
    return verdicts == [False, True, True, False, False]


def test_a_second_run_compiles_nothing(folder: Path, tmp_path: Path, compiled: list[str]) -> None:
    for _ in range(2):
        assert works(Language.from_files(*files(tmp_path)))
    assert compiled == ["toy"]
    assert len(list(folder.iterdir())) == 1


def test_a_file_with_any_byte_changed_is_compiled_again(folder: Path, tmp_path: Path, compiled: list[str]) -> None:
    paths = files(tmp_path)
    Language.from_files(*paths)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    rng = random.Random(SEED)
    for place in range(len(whole)):
        other = whole[place] ^ 1 << rng.randrange(8)
        path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        compiled.clear()
        # Each is a fresh compilation, and what it leaves is what was there.
        if place % 499 == 0:
            assert works(Language.from_files(*paths))
            assert compiled == ["toy"], (place, other)
            assert path.read_bytes() == whole
        else:
            assert cache.read_text(path) is None, (place, other)
    for cut in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        compiled.clear()
        assert works(Language.from_files(*paths))
        assert compiled == ["toy"], cut


def test_python_with_digits_changed_is_compiled_again(folder: Path, compiled: list[str]) -> None:
    definition = definitions.read_builtin("python")
    definitions.compile_definition(definition)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    rng = random.Random(SEED)
    digits = [place for place, byte in enumerate(whole) if chr(byte).isdigit()]
    for place in [*digits[:40], *rng.sample(digits, 160)]:
        other = (whole[place] - ord("0") + rng.randrange(1, 10)) % 10 + ord("0")
        path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        assert cache.read_text(path) is None, place
    compiled.clear()
    definitions.compile_definition(definition)
    assert compiled == ["python"]
    assert path.read_bytes() == whole


def test_a_forged_table_is_refused_and_never_a_panic(folder: Path, tmp_path: Path, compiled: list[str]) -> None:
    """Its checksum agrees, its numbers do not fit."""
    paths = files(tmp_path)
    Language.from_files(*paths)
    (path,) = folder.iterdir()
    kept = json.loads(cache.read_text(path) or "")
    table = json.loads(kept["table"])
    values = [(key, value) for key in table for value in ([], [1 << 20] * len(str(table[key])), 0, None)]
    forged = [{**table, key: value} for key, value in values if value != table[key]]
    forged += [{**table, "next": [*table["next"][:-1], 99_999]}, {**table, "accept": [*table["accept"][:-1], 999]}]
    forged += [{**table, "class_count": table["class_count"] + 1}, {**table, "starts": [0]}, {**table, "starts": []}]
    forged += [{**table, "accept_sets": [*table["accept_sets"][:-1], [9_999]]}, {**table, "class_of": [200] * 256}]
    forged += [{**table, "class_count": 1 << 62}, {**table, "accept_sets": [[] for _ in table["accept_sets"]]}]
    for wrong in forged:
        with pytest.raises(LanguageError):
            _core.Language(kept["definition"], json.dumps(wrong).encode())
        cache.write_text(path, json.dumps({**kept, "table": json.dumps(wrong)}))
        compiled.clear()
        assert works(Language.from_files(*paths))
        assert compiled == ["toy"]
    others: list[Any] = [{}, [], None, {**kept, "imported": [1]}, {**kept, "definition": 1}, {**kept, "table": None}]
    for other in others:
        cache.write_text(path, json.dumps(other))
        compiled.clear()
        assert works(Language.from_files(*paths))
        assert compiled == ["toy"]


def test_a_changed_import_is_compiled_again(folder: Path, tmp_path: Path, compiled: list[str]) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "more.lark").write_text("%import .letters.B\nPAIR: B B\n")
    letters = tmp_path / "parts" / "letters.lark"
    letters.write_text('B: "b"\n')
    grammar = "%import .parts.more.PAIR\nstart: PAIR+\nBLANK: / +/\n%ignore BLANK\n"
    paths = files(tmp_path, grammar, SPEC.replace('[["(", ")"]]', "[]"))

    def takes(text: str) -> bool:
        return Language.from_files(*paths).open("", "").check(text).complete

    assert takes("bb")
    assert not takes("cc")
    assert compiled == ["toy"]
    letters.write_text('B: "c"\n')
    assert takes("cc")
    assert not takes("bb")
    assert compiled == ["toy", "toy"]
    letters.unlink()
    with pytest.raises(LanguageError, match=r"^[^\n]*letters\.lark[^\n]*$"):
        takes("cc")


def test_changed_code_that_lowers_definitions_compiles_again(
    folder: Path, tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(tmp_path)
    for number, source in enumerate(("", "x = 1\n", "", "x = 1\n")):
        code = tmp_path / f"code {number}"
        code.mkdir()
        (code / "splitting.py").write_text(source)
        monkeypatch.setattr(definitions, "_LOWERING", code)
        assert works(Language.from_files(*paths))
    assert compiled == ["toy", "toy"]
    assert len(list(folder.iterdir())) == 2


def test_the_same_grammar_in_another_folder_imports_what_is_there(folder: Path, tmp_path: Path) -> None:
    for name in ("b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letters.lark").write_text(f'B: "{name}"\n')
        grammar = "%import .letters.B\nstart: B+\nBLANK: / +/\n%ignore BLANK\n"
        paths = files(tmp_path / name, grammar, SPEC.replace('[["(", ")"]]', "[]"))
        assert Language.from_files(*paths).open("", "").check(name).complete


def test_an_unwritable_cache_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path)
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    for place in (blocked, blocked / "below", Path("/proc/none/fim-server")):
        monkeypatch.setenv("FIM_SERVER_CACHE", str(place))
        assert works(Language.from_files(*paths))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    monkeypatch.setenv("FIM_SERVER_CACHE", str(closed))
    opened = Path.open

    def refuse(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if closed in path.parents and "x" in mode:  # who runs tests as root may write everywhere
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", refuse)
    assert works(Language.from_files(*paths))
    assert not list(closed.iterdir())


def test_a_full_disk_leaves_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path)
    opened = Path.open

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, content: bytes) -> int:
            self.file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        file = opened(path, mode, *rest, **named)
        return Full(file) if "x" in mode else file

    monkeypatch.setattr(Path, "open", full)
    assert works(Language.from_files(*paths))
    assert not list(folder.iterdir())
    monkeypatch.setattr(Path, "open", opened)
    assert works(Language.from_files(*paths))
    assert len(list(folder.iterdir())) == 1


def test_only_leftovers_of_killed_processes_are_removed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    left = [folder / f"python-{'a' * 32}.123-456-0.new", folder / f"{'b' * 32}-{'c' * 32}.9-1700000000-12.new"]
    mine = [folder / "notes.new", folder / "draft.1-2.new", folder / "a.b.c.1-2-3.new", folder / "x.spanner"]
    fresh = folder / f"python-{'d' * 32}.77-88-1.new"
    old = time.time() - cache.LEFT_OVER_SECONDS - 60
    for path in (*left, *mine, fresh):
        path.write_bytes(b"half")
        if path != fresh:
            os.utime(path, (old, old))
    Language.from_files(*files(tmp_path))
    names = {path.name for path in folder.iterdir()}
    assert not names & {path.name for path in left}
    assert {path.name for path in (*mine, fresh)} <= names


def test_the_files_used_least_recently_go_where_all_are_too_large(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    monkeypatch.setattr(cache, "MOST_KEPT", 350_000)
    tables = [folder / f"{number:032x}-{'f' * 32}.spanner" for number in range(5)]
    others = [folder / "habits.json", folder / "mine.spanner", folder / f"gguf-{'a' * 32}.trial"]
    for number, path in enumerate((*tables, *others)):
        path.write_bytes(b"x" * 100_000)
        used = time.time() - 1000 + number
        os.utime(path, (used, used - 5000))
    os.utime(tables[0], (time.time() - 10, time.time() - 9000))  # read since
    (folder / "models").mkdir()
    assert works(Language.from_files(*files(tmp_path)))
    kept = {path for path in folder.iterdir() if path not in others and path.is_file()}
    assert {tables[0], tables[3], tables[4]} < kept, "the three used last, and the language"
    assert not {tables[1], tables[2]} & kept
    assert all(path.exists() for path in (*others, folder / "models"))


def test_new_token_tables_displace_those_used_least_recently(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    language = Language.from_files(*files(tmp_path))
    old, mine = folder / f"{'0' * 32}-{'f' * 32}.spanner", folder / "mine.spanner"
    for path in (old, mine):
        path.write_bytes(b"x" * 100_000)
        os.utime(path, (time.time() - 1000,) * 2)
    monkeypatch.setattr(cache, "MOST_KEPT", 100_000)
    vocabulary = Vocabulary([b"a", b"(", b")", None], [3])
    assert not masks.prepare(language, vocabulary).cached
    assert mine.exists()
    assert not old.exists()
    assert masks.prepare(language, Vocabulary([b"a", b"(", b")", None], [3])).cached, "the new one is kept"


@posix
@odd
def test_pipes_and_devices_in_place_of_cache_files_are_not_waited_for(folder: Path, tmp_path: Path, kind: str) -> None:
    paths = files(tmp_path)
    assert works(Language.from_files(*paths))
    [path] = folder.iterdir()
    put(kind, path)
    assert works(Language.from_files(*paths))
    assert path.is_file() or kind == "folder", "what can be replaced is"


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "x" * 400, "nul\\u0000", "ünï"])
def test_names_of_languages_are_no_paths(folder: Path, tmp_path: Path, name: str) -> None:
    assert works(Language.from_files(*files(tmp_path, spec=SPEC.replace('"toy"', f'"{name}"'))))
    (path,) = folder.iterdir()
    assert path.name.isascii()
    assert not list(tmp_path.parent.glob("escaped*"))


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FIM_SERVER_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert cache.cache_folder() is None


def test_a_file_begins_with_the_checksum_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    cache.write_text(path, "käse")
    head, body = path.read_bytes().split(b"\n")
    assert head.split()[-1].decode() == hashlib.sha256(body).hexdigest()
    assert cache.read_text(path) == "käse"


def test_bytes_that_are_no_text_are_refused_despite_their_checksum(tmp_path: Path) -> None:
    path = tmp_path / "forged.json"
    cache.write_text(path, "x")
    content = path.read_bytes()
    assert content.endswith(b"\nx")
    path.write_bytes(
        content.replace(hashlib.sha256(b"x").hexdigest().encode(), hashlib.sha256(b"\xff").hexdigest().encode())[:-1]
        + b"\xff"
    )
    assert cache.read_text(path) is None
