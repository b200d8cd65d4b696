"""Cursors in files of a corpus, whose true middles are replayed token by token."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.engine.corpus import Document, documents
from fim_server.tokens.vocabulary import Vocabulary

LINE_START = re.compile(r"^[ \t\f]*(?=\S)", re.MULTILINE)

CHARACTERS_PER_TOKEN = 12
"""A middle is looked for in so many characters for each token; only runs of blanks have tokens that are longer."""


@dataclass(frozen=True)
class Choice:
    """Choice of cursors.

    Attributes:
        folder: Folder of the files; None for a language's default ones.
        files: Number of files.
        cursors: Number of cursors in each file.
        steps: Most tokens of a middle, or a few more.
        seed: Seed of all random choices.
    """

    folder: Path | None
    files: int
    cursors: int
    steps: int
    seed: int


@dataclass(frozen=True)
class Cursor:
    """A hole in a file: left + middle + right is its text, and the ids are the middle's tokens."""

    file: str
    offset: int
    left: str = field(repr=False)
    middle: str = field(repr=False)
    right: str = field(repr=False)
    ids: list[int] = field(repr=False)


def choose(language: str, vocabulary: Vocabulary, choice: Choice) -> tuple[list[Cursor], list[Cursor]]:
    """Cursors in the files that are measured, and in as many others if there are so many.

    There are none where the vocabulary cannot spell the files.

    Raises:
        BenchError: There is no file.
    """
    found = list(documents(language, choice.folder, 2 * choice.files, choice.seed))
    parts = found[: choice.files], found[choice.files :]
    here, others = (
        [
            cursor
            for document in part
            for cursor in cursors(document, vocabulary, choice.cursors, choice.steps, choice.seed)
        ]
        for part in parts
    )
    return here, others


def cursors(document: Document, vocabulary: Vocabulary, count: int, steps: int, seed: int) -> Iterator[Cursor]:
    """Cursors in a file: every other one before a line's first symbol, the others anywhere.

    Those are left out whose middle has no tokens.
    """
    draw = random.Random(f"masks {document.name} {seed}")
    text = document.text
    starts = [found.end() for found in LINE_START.finditer(text)]
    for number in range(count):
        at = draw.choice(starts) if number % 2 == 0 and starts else draw.randrange(max(len(text) - 1, 1))
        with suppress(ValueError):  # the vocabulary lacks some bytes
            middle = first_tokens(text[at : at + steps * CHARACTERS_PER_TOKEN], vocabulary, steps)
            ids = vocabulary.encode(middle)
            yield Cursor(document.name, at, text[:at], middle, text[at + len(middle) :], ids)


def first_tokens(text: str, vocabulary: Vocabulary, count: int) -> str:
    """The beginning of a text that so many tokens make, or a bit less, so that it ends between characters.

    Raises:
        ValueError: The vocabulary has no tokens for the text.
    """
    data = b"".join(map(vocabulary.token_bytes, vocabulary.encode(text)[:count]))
    return data.decode("utf-8", "ignore") or text[:1]
