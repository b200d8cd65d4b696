"""Languages of token trees against a plain reader of their data, on random short texts and random cuts of them.

The long form (FIM_SERVER_LONG=1) reads 20,000 texts of each language; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from fim_server import Language
from fim_server.language.definition import compile as definitions
from fim_server.language.definition.token_trees.data import StringKind, TokenTrees
from support.languages.token_tree_texts import Drawer
from support.languages.token_tree_twin import Reader, reader_of

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
TEXTS = 20_000 if LONG else 500
FAULT_TEXTS = 6_000
WRITTEN = tomllib.loads(Path(__file__).with_name("token_tree_texts.toml").read_text(encoding="utf-8"))
Row = TypeVar("Row")
READERS = {
    name: reader
    for name in Language.names()
    if definitions.read_builtin(name).guarantee == "balanced" and (reader := reader_of(name))
}


def drawer(name: str, reader: Reader) -> Drawer:
    return Drawer(definitions.siblings(name)[0] if definitions.siblings(name) else name, reader.data)


@pytest.mark.parametrize("name", READERS)
def test_a_language_as_a_plain_reader_reads_it(name: str) -> None:
    reader, language, rng = READERS[name], Language.load(name), random.Random(f"{name} {SEED}")
    draw = drawer(name, reader)
    counts = {True: 0, False: 0}
    for _ in range(TEXTS):
        text = draw.text(rng)
        expected = reader.takes(text)
        counts[expected] += 1
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        assert language.open("", "").check(text).complete == expected, text
        cut = language.open(text[:start], text[end:]).check(text[start:end])
        assert cut.complete == expected, (text[:start], text[start:end], text[end:])
    assert min(counts.values()) > TEXTS / 6, counts


@pytest.mark.parametrize("name", sorted(READERS.keys() & WRITTEN.keys()))
def test_written_texts(name: str) -> None:
    for key in ("accepted", "refused"):
        for text in WRITTEN[name][key]:
            assert READERS[name].takes(text) == (key == "accepted"), text


def changes(data: TokenTrees) -> Iterator[TokenTrees]:
    """Yield a language's data with one fault each that some text tells."""
    for at, line in enumerate(data.line_comments):
        if not line.pattern:
            yield replace(data, line_comments=without(data.line_comments, at, replace(line, joined=not line.joined)))
    for at, block in enumerate(data.block_comments):
        yield replace(data, block_comments=without(data.block_comments, at, replace(block, depth=block.depth % 4 + 1)))
    for at, kind in enumerate(data.strings):
        for other in faults(kind):
            yield replace(data, strings=without(data.strings, at, other))
    for at, here in enumerate(data.here_documents):
        yield replace(data, here_documents=without(data.here_documents, at))
        other_here = replace(here, indented=not here.indented)
        yield replace(data, here_documents=without(data.here_documents, at, other_here))
    for at, (opening, _) in enumerate(data.brackets):
        if len(opening) == 1:  # without `#[`, `#` is a comment before a bracket
            yield replace(data, brackets=without(data.brackets, at))


def faults(kind: StringKind) -> Iterator[StringKind]:
    """Yield a kind of string with one fault each. `'a''b'` is balanced as two strings as well."""
    if kind.pattern:
        yield replace(kind, pattern="", lines=True)
        return
    yield replace(kind, lines=not kind.lines)
    if not kind.plain:
        yield replace(kind, more=(kind.more + 1) % 3)
    if kind.escape:
        yield replace(kind, escape="")
        if not kind.lines:
            yield replace(kind, joined=not kind.joined)
    for part in kind.plain:
        if kind.escape or kind.holes or part[:1] != kind.close:
            yield replace(kind, plain=tuple(one for one in kind.plain if one != part))
    for at in range(len(kind.holes)):
        yield replace(kind, holes=without(kind.holes, at))


def without(rows: tuple[Row, ...], at: int, *instead: Row) -> tuple[Row, ...]:
    return (*rows[:at], *instead, *rows[at + 1 :])


@pytest.mark.parametrize("name", READERS)
def test_the_texts_tell_a_fault_in_the_data(name: str) -> None:
    reader, rng = READERS[name], random.Random(f"faults {name}")
    draw = drawer(name, reader)
    texts = [draw.text(rng) for _ in range(FAULT_TEXTS)]
    expected = [reader.takes(text) for text in texts]
    for other in changes(reader.data):
        changed = Reader(other, reader.first_names)
        assert any(changed.takes(text) != known for text, known in zip(texts, expected, strict=True)), other


def test_every_language_of_token_trees_has_a_reader() -> None:
    balanced = {name for name in Language.names() if definitions.read_builtin(name).guarantee == "balanced"}
    assert balanced - READERS.keys() == {"html", "xml", "yaml", "shellscript", "ruby"}, "they have rules"
