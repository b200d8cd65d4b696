"""Documents as lines, the lines left out, and how to find those again after an edit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fim_server.recovery.texts import in_place

MOST_MARKS = 64
"""Groups of lines that a `Recovery` remembers."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class IgnoredLines:
    """Lines that were left out together.

    Attributes:
        line: First line, counted from 0 in left + right.
        count: Number of lines.
        stand_in: Line in their place in the reduced contexts, without its end; mostly empty.
        beyond: True if they may parse, but all of the text does not fit the budget.
        outside: True if they may parse, but the text is broken somewhere, and only a window without them is judged.
    """

    line: int
    count: int
    stand_in: str = ""
    beyond: bool = False
    outside: bool = False

    @property
    def diagnostic(self) -> str:
        """Return the group in one line for users, who count from 1."""
        if self.beyond and self.stand_in:
            return f"line {self.line + 1} is too long to be read in time and is left out in part"
        is_one = self.count == 1
        lines = f"line {self.line + 1}" if is_one else f"lines {self.line + 1} to {self.last}"
        left_out = "is left out" if is_one else "are left out"
        if self.outside:
            return f"{lines} {left_out}: brackets or quotes somewhere do not fit the indentation"
        if self.beyond:
            return f"{lines} {'is too' if is_one else 'are too'} far away to be read in time and {left_out}"
        return f"{lines} {'does not' if is_one else 'do not'} parse and {left_out}"

    @property
    def last(self) -> int:
        """Return the last line, counted from 1."""
        return self.line + self.count


Around = tuple[list[str], list[str]]
"""Lines above and below the cursor's."""


class Document:
    """Lines of left + right. The cursor cuts its own line in two: the end of the left side, the start of the right."""

    def __init__(self, left: str, right: str) -> None:
        lines = _LINE.findall(left)
        self.tail = "" if left.endswith("\n") or not lines else lines.pop()
        self.above: list[str] = lines
        self.cursor_line = len(lines)
        following = _LINE.findall(right)
        self.head = following.pop(0) if following else ""
        self.below: list[str] = following

    @property
    def lines(self) -> int:
        """Return the number of lines, the cursor's included."""
        return self.cursor_line + 1 + len(self.below)

    @property
    def around(self) -> Around:
        return self.above, self.below

    def __getitem__(self, number: int) -> str:
        """Return a line other than the cursor's."""
        return self.above[number] if number < self.cursor_line else self.below[number - self.cursor_line - 1]

    def numbers(self) -> Iterator[int]:
        yield from range(self.cursor_line)
        yield from range(self.cursor_line + 1, self.cursor_line + 1 + len(self.below))

    def reduced(self, changes: dict[int, str | None]) -> tuple[str, str]:
        """Return both sides with the changed lines left out or replaced by their stand-ins."""
        left = "".join(_changed(self[n], changes, n) for n in self.numbers() if n < self.cursor_line)
        right = "".join(_changed(self[n], changes, n) for n in self.numbers() if n > self.cursor_line)
        head = _changed(self.head, changes, self.cursor_line)
        return left + self.tail, head + right


def _changed(text: str, changes: dict[int, str | None], number: int) -> str:
    return in_place(changes[number]) if number in changes else text


def groups_of(changes: dict[int, str | None]) -> tuple[IgnoredLines, ...]:
    """Return the left-out lines as groups of neighbours; a stand-in begins a group."""
    found: list[IgnoredLines] = []
    for number in sorted(changes):
        last = found[-1] if found else None
        if last is not None and number == last.line + last.count and changes[number] is None:
            found[-1] = IgnoredLines(last.line, last.count + 1, last.stand_in)
        else:
            found.append(IgnoredLines(number, 1, changes[number] or ""))
    return tuple(found)


def changes_of(groups: Sequence[IgnoredLines]) -> dict[int, str | None]:
    """Return the lines of groups, each with its stand-in."""
    changes: dict[int, str | None] = {}
    for group in groups:
        changes |= dict.fromkeys(range(group.line, group.line + group.count))
        changes[group.line] = group.stand_in or None
    return changes


@dataclass(frozen=True)
class Mark:
    """Group of ignored lines as edits leave it: its texts, and the nearest lines with text around it."""

    texts: tuple[str, ...]
    before: str
    after: str
    stand_in: str

    def find(self, document: Document) -> IgnoredLines | None:
        """Return the one most similar place; None if there is none or several."""
        most, places = -1, list[int]()
        end = document.cursor_line + 1 + len(document.below)
        for number in document.numbers():
            if document[number].rstrip() != self.texts[0]:
                continue
            numbers = range(number, number + len(self.texts))
            if numbers.stop > end or document.cursor_line in numbers:
                continue
            if any(document[n].rstrip() != text for n, text in zip(numbers, self.texts, strict=True)):
                continue
            before, after = _neighbours(document, numbers)
            alike = (before == self.before) + (after == self.after)
            if alike > most:
                most, places = alike, []
            if alike == most:
                places.append(number)
        return IgnoredLines(places[0], len(self.texts), self.stand_in) if len(places) == 1 else None


def marks_of(document: Document, ignored: Sequence[IgnoredLines]) -> list[Mark]:
    marks = []
    for group in ignored[:MOST_MARKS]:
        numbers = range(group.line, group.line + group.count)
        if document.cursor_line not in numbers:
            texts = tuple(document[number].rstrip() for number in numbers)
            marks.append(Mark(texts, *_neighbours(document, numbers), group.stand_in))
    return marks


def _neighbours(document: Document, numbers: range) -> tuple[str, str]:
    """Return the nearest lines with text above and below; empty for the cursor's line, which changes all the time."""
    end = document.cursor_line + 1 + len(document.below)

    def nearest(candidates: range) -> str:
        for number in candidates:
            if number == document.cursor_line:
                return ""
            if text := document[number].strip():
                return text
        return ""

    return nearest(range(numbers.start - 1, -1, -1)), nearest(range(numbers.stop, end))
