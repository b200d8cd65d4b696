"""Regions of a text to write: the ends of middles, and the places where they begin.

The server takes back the broken word at the cursor and has the model write it again (token healing). So middles begin
where tokens begin, and each token of a region begins a middle.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from training.data.cutting import code_start, line_end

MOST_CHARACTERS = 480
"""Most characters of a middle."""

HASH = "#"

_HASHES = frozenset({".bash", ".ksh", ".py", ".r", ".R", ".rake", ".rb", ".sh", ".yaml", ".yml"})

_COMMENTS = {
    ".htm": ("<!--",),
    ".html": ("<!--",),
    ".lua": ("--",),
    ".php": ("//", HASH, "/*", "* ", "*/"),
    ".sql": ("--", "/*", "* ", "*/"),
}

_CLOSER = re.compile(r"[\])}\"']")


class Region(NamedTuple):
    """Characters of a text in which middles begin, `start` to `end`; all of them end at `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Kinds:
    """Shares of the kinds of region; the rest are random spans. `prose`: chance that a line of prose is kept."""

    rest_of_line: float = 0.3
    lines: float = 0.1
    block: float = 0.04
    within_line: float = 0.3
    prose: float = 0.25


def comments_of(path: str) -> tuple[str, ...]:
    """Return the beginnings of comment lines in a file's language, by its suffix."""
    suffix = PurePosixPath(path).suffix
    return (HASH,) if suffix in _HASHES else _COMMENTS.get(suffix, ("//", "/*", "* ", "*/"))


def region(
    text: str, place: int, kinds: Kinds, generator: random.Random, comments: tuple[str, ...] = (HASH,)
) -> Region | None:
    """Draw a region at a place of a text; None if there is none that is wanted.

    Comments and docstrings are mostly skipped: there is much of them, and little to learn about code.
    """
    start, end = code_start(text, place), line_end(text, place)
    if end <= start:
        return None
    is_prose = text.startswith(comments, start) or (HASH in comments and in_docstring(text, start))
    if generator.random() >= kinds.prose and is_prose:
        return None
    drawn = generator.random()
    if drawn < kinds.rest_of_line:
        pass
    elif drawn < kinds.rest_of_line + kinds.lines:
        end = line_end(text, end + 1) if end < len(text) else end
        while generator.random() < 0.45 and end < len(text):
            end = line_end(text, end + 1)
    elif drawn < kinds.rest_of_line + kinds.lines + kinds.block:
        end = block_end(text, start)
    elif drawn < kinds.rest_of_line + kinds.lines + kinds.block + kinds.within_line:
        closers = [found.start() for found in _CLOSER.finditer(text, start + 1, end)]
        end = generator.choice(closers) if closers and generator.random() < 0.8 else generator.randint(start + 1, end)
    else:
        start = max(start, min(place, end - 1))
        end = min(len(text), start + int(2 ** generator.uniform(2, 8)))
    if end - start > MOST_CHARACTERS:
        end = text.rfind("\n", start, start + MOST_CHARACTERS)
    while end > start and text[end - 1] == "\n":
        end -= 1
    return Region(start, end) if end > start else None


def in_docstring(text: str, place: int) -> bool:
    """Return whether a place is behind an odd number of triple quotes or at one; quotes in strings may mislead it."""
    quotes = ('"""', "'''")
    return text.startswith(quotes, place) or any(text.count(one, 0, place) % 2 == 1 for one in quotes)


def block_end(text: str, start: int) -> int:
    """The end of the last line from `start` that is indented as deep, blank lines between such lines included."""
    column = start - (text.rfind("\n", 0, start) + 1)
    end = last = line_end(text, start)
    while last < len(text):
        begin = last + 1
        last = line_end(text, begin)
        first = code_start(text, begin)
        if first >= last:
            continue
        if first - begin < column:
            break
        end = last
    return end


class Pieces(NamedTuple):
    """A text's tokens, and the character at which each starts."""

    ids: list[int]
    starts: list[int]


def first_token(pieces: Pieces, start: int) -> int:
    """The first token of a middle that begins with the code at character `start`: it may begin with a blank before."""
    return bisect_right(pieces.starts, start - 2) if start else 0
