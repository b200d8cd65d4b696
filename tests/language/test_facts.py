"""Facts of the languages kept in the cache folder: those of the definitions, whatever the file there holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language, LanguageError
from fim_server.language.cache import checksummed
from fim_server.language.definition import compile as grammar
from fim_server.language.definition import facts


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    facts._facts.cache_clear()
    yield tmp_path
    facts._facts.cache_clear()


def read_again() -> dict[str, facts.Facts]:
    facts._facts.cache_clear()
    return facts._facts()


def refuse(*_: object) -> Any:
    raise AssertionError("a definition is read again")


def test_kept_facts_are_those_of_the_definitions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_again()
    assert first == {name: facts.Facts.of(grammar.read_builtin(name)) for name in Language.names()}
    monkeypatch.setattr(grammar, "read_builtin", refuse)
    assert read_again() == first
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[1:],
        lambda content: checksummed("[]"),
        lambda content: checksummed(json.dumps({name: {} for name in Language.names()})),
        lambda content: checksummed(json.dumps({name: {"suffixes": 1} for name in Language.names()})),
    ],
)
def test_a_damaged_file_is_made_again(folder: Path, damage: Any) -> None:
    first = read_again()
    (path,) = folder.iterdir()
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert read_again() == first
    assert path.read_bytes() == content


def test_other_definitions_have_other_facts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_again()
    monkeypatch.setattr(facts, "read_source", lambda path: path.read_text(encoding="utf-8") + "\n")
    read_again()
    assert len(list(folder.iterdir())) == 2


def test_an_unknown_language_is_named(folder: Path) -> None:
    with pytest.raises(LanguageError, match="unknown language 'klingon'"):
        Language.suffixes_of("klingon")
