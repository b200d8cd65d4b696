"""Cursors drawn in real files, with the text that was typed there: data of the weights and the benchmark.

A line is typed at its end, or inside a bracket whose closer an editor has inserted; or several lines are typed at the
end of their first. The index does not know the typed text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

CLOSERS = {"(": ")", "[": "]", "{": "}"}

FIRST = re.compile(r"[ \t]*(?:\w+|[^\w\s])")
"""The first word or character of what is typed, blanks before it included."""

IN_BRACKETS = 0.5
"""Share of cursors just after an opening bracket with the closer on their right."""

MISSING_LINES = (1, 1, 2, 3, 5, 8)
"""Numbers of typed lines where there may be several, equally likely."""

LONGEST_FILE = 200_000
"""Characters; a cursor costs a reading of its file."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Cursor of a user who types.

    Attributes:
        key: The document's key.
        before: The document up to the cursor's line.
        line: That line, up to the cursor.
        closer: Text right of the cursor on the line.
        after: The lines below.
        truth: Typed text, up to the line's end or the closer, or with further lines.
    """

    key: str
    before: str
    line: str
    closer: str
    after: str
    truth: str

    @property
    def left(self) -> str:
        """Text left of the cursor."""
        return self.before + self.line

    @property
    def right(self) -> str:
        """Text right of the cursor."""
        return f"{self.closer}\n{self.after}"


def first_of(text: str) -> str:
    """The first word or character of a text, blanks before it included; all of it where there is none."""
    found = FIRST.match(text)
    return found.group() if found else text


def inside(line: str, column: int) -> str | None:
    """Return the text in the bracket that opens just before a column, None where it does not end on this line."""
    depth = 0
    for end in range(column, len(line)):
        if line[end] in CLOSERS:
            depth += 1
        elif line[end] in CLOSERS.values():
            if depth == 0:
                return line[column:end] if line[end] == CLOSERS[line[column - 1]] else None
            depth -= 1
    return None


def cursor_in(key: str, text: str, random: random.Random) -> Cursor | None:
    """A cursor drawn in a text: each keystroke of each line is as likely; None of an empty line."""
    lines = text.split("\n")
    number = random.randrange(len(lines))
    line = lines[number].rstrip()
    indent = len(line) - len(line.lstrip())
    if not line or random.random() > (len(line) - indent + 1) / 100:
        return None
    column = random.randint(indent, len(line))
    truth, closer = line[column:], ""
    if column > 0 and line[column - 1] in CLOSERS and random.random() < IN_BRACKETS:
        held = inside(line, column)
        if held is not None:
            truth, closer = held, CLOSERS[line[column - 1]]
    before = "".join(f"{each}\n" for each in lines[:number])
    return Cursor(key, before, line[:column], closer, "\n".join(lines[number + 1 :]), truth)


def lines_from(cursor: Cursor, random: random.Random) -> Cursor:
    """A cursor at the end of what stands there of its line, with more lines to be typed, or no more."""
    below = cursor.after.split("\n")
    further = random.choice(MISSING_LINES) - 1
    truth = "\n".join((cursor.truth, *below[:further]))
    return replace(cursor, after="\n".join(below[further:]), truth=truth)


def draw(
    folder: Path, suffixes: tuple[str, ...], count: int, seed: int, several_lines: bool = False
) -> Iterator[Cursor]:
    """Cursors in the files below a folder.

    Args:
        folder: Where the files are; keys are their paths.
        suffixes: Of the files.
        count: Cursors, at most.
        seed: Of what is drawn.
        several_lines: Whether several lines may be to be typed, and nothing stands right of the cursor.
    """
    chance = random.Random(f"{folder.name} {seed}")
    paths = sorted(path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())
    texts: list[tuple[str, str]] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if text.strip() and len(text) <= LONGEST_FILE:
            texts.append((str(path), text))
    if not texts:
        return
    drawn = 0
    weights = [len(text) for _, text in texts]
    for _ in range(100 * count):
        if drawn == count:
            return
        ((key, text),) = chance.choices(texts, weights)
        cursor = cursor_in(key, text, chance)
        if cursor is None or (several_lines and cursor.closer):
            continue
        drawn += 1
        yield lines_from(cursor, chance) if several_lines else cursor
