"""Samples of named positions: cursors in files of about a size, with the hole there that is filled again."""

from __future__ import annotations

import ast
import itertools
import random
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.engine.corpus import Library
from benchmarks.engine.positions import Position, find_positions

SIZE_TOLERANCE = 0.2
"""Most relative difference between a file's size and the one asked for."""

MOST_CONCATENATIONS = 64
"""Texts made of several files, where too few files have a size."""

SPARE_FILES = 200
"""Files looked through for a position that none of the chosen has: few short ones have an f-string."""

HOLE_CHARACTERS = 120
"""Longest hole: the text between left and right, whose tokens are replayed."""


@dataclass(frozen=True)
class SourceFile:
    """A text that Python parses, and the named positions in it."""

    name: str
    text: str
    positions: dict[Position, list[range]] = field(repr=False)


@dataclass(frozen=True)
class Sample:
    """A cursor in a file, and the hole there: left + middle + right is the file."""

    position: Position
    file: str
    left: str
    middle: str
    right: str
    f_strings: bool = False
    """True if the file has f-strings with fields."""

    @property
    def characters(self) -> int:
        """Characters of context, which is what the engine reads."""
        return len(self.left) + len(self.right)


def files_of_size(library: Library, size: int, draw: random.Random) -> Iterator[SourceFile]:
    """A library's files of about a size in random order, then concatenations of smaller ones.

    Args:
        library: Where they are from.
        size: In characters; the files themselves are chosen by their bytes.
        draw: Decides the order.

    Raises:
        BenchError: The library has no files.
    """
    close, smaller = [], []
    for path in library.paths:
        length = path.stat().st_size
        if abs(length - size) <= size * SIZE_TOLERANCE:
            close.append(path)
        elif length < size:
            smaller.append(path)
    draw.shuffle(close)
    yield from (file for path in close if (file := read_source(library, path)) is not None)
    for _ in range(MOST_CONCATENATIONS):
        draw.shuffle(smaller)
        text, parts = "", 0
        for file in filter(None, (read_source(library, path) for path in smaller)):
            if len(text) + len(file.text) <= size * (1 + SIZE_TOLERANCE):
                text += file.text.rstrip("\n") + "\n\n\n"
                parts += 1
            if len(text) >= size * (1 - SIZE_TOLERANCE):
                joined = source_file(f"{parts} files in a row, {smaller[0].name} among them", text)
                if joined is not None:
                    yield joined
                break


def read_source(library: Library, path: Path) -> SourceFile | None:
    """A file of a library that Python parses; None if this is none."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return source_file(path.relative_to(library.folder).as_posix(), text)


def source_file(name: str, text: str) -> SourceFile | None:
    """A text with its positions; None if Python does not parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
        return SourceFile(name, text, find_positions(text))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None


def draw_samples(files: Iterator[SourceFile], file_count: int, per_position: int, draw: random.Random) -> list[Sample]:
    """Samples of every named position, spread over some files; where none of them has a position, over a few more."""
    chosen = list(itertools.islice(files, file_count))
    spare = itertools.islice(files, SPARE_FILES)
    samples: list[Sample] = []
    for position in Position:
        holders = [file for file in chosen if file.positions[position]]
        while not holders:
            another = next(spare, None)
            if another is None:
                break
            chosen.append(another)
            holders = [file for file in chosen if file.positions[position]]
        samples.extend(
            draw_sample(holders[index % len(holders)], position, draw, to_line_end=index % 2 == 0)
            for index in range(per_position if holders else 0)
        )
    return samples


def draw_sample(file: SourceFile, position: Position, draw: random.Random, to_line_end: bool) -> Sample:
    """A cursor at a named position. Its hole ends at a line's end, as an editor's user leaves it, or anywhere."""
    start = draw.choice(draw.choice(file.positions[position]))
    limit = min(len(file.text), start + HOLE_CHARACTERS)
    end = file.text.rfind("\n", start, limit) if to_line_end else draw.randint(start, limit)
    end = end if end >= 0 else limit
    f_strings = bool(file.positions[Position.IN_FIELD])
    return Sample(position, file.name, file.text[:start], file.text[start:end], file.text[end:], f_strings)
