"""A notebook's cells as one program, in their order, and a cursor in one of them. Pure: no protocol, no files.

A notebook is compiled cell by cell, so each cell has to parse by itself: the grammar reads the cursor's cell alone, and
judges the others once. Names and the model see all of it: the cells before the cursor, the cell, and those after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Protocol

from fim_server.text.document import Split

SEPARATOR = "\n\n"
"""The text between two cells in the program."""

MOST_HEALABLE = 256
"""Characters before the cursor of which it is looked whether the program and the cell have the same."""


class ReadCell(Protocol):
    """A cell, as its language reads it."""

    @property
    def program(self) -> str:
        """The text that stands for it in a file of the language."""

    @property
    def units(self) -> tuple[str, ...]:
        """The programs in it, each of which has to parse."""


class CellCursor(Protocol):
    """A cursor in a cell, as its language reads it; both sides of it, in the program around it and in a file."""

    @property
    def left(self) -> str:
        """The program that has to parse, before the cursor."""

    @property
    def right(self) -> str:
        """The same program after the cursor."""

    @property
    def above(self) -> str:
        """The text that stands in a file for the cell before the cursor."""

    @property
    def below(self) -> str:
        """The text that stands in a file for the cell after the cursor."""

    @property
    def units(self) -> tuple[str, ...]:
        """The other programs of the cell."""

    @property
    def one_line(self) -> bool:
        """True where no line break may be written."""


class Reader(Protocol):
    """A language's knowledge of cells: the module ``cells`` in its folder."""

    def __hash__(self) -> int:
        """Return a number, as a module does."""

    def read(self, text: str) -> ReadCell:
        """Return a cell without a cursor."""

    def at(self, left: str, right: str) -> CellCursor | str:
        """Return a cursor between two texts of a cell, or why nothing is to be offered there."""

    def keeps(self, left: str, right: str, units: Sequence[str], before: str, text: str, after: str) -> bool:
        """Return whether a cell with a text at its cursor still holds the programs of that cursor."""

    def given(self) -> str:
        """Return statements that bind what is there before the first cell."""

    def anything(self) -> str:
        """Return a statement after which any name may be bound."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell.

    Attributes:
        uri: Names it towards the editor.
        language: The editor's name of its language.
        text: Its text, with line feeds alone.
    """

    uri: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as it is at one moment.

    Attributes:
        uri: Names it towards the editor.
        cells: Its code cells, in their order.
        is_whole: Whether these are all of its cells; else any name may be bound in others.
    """

    uri: str
    cells: tuple[Cell, ...]
    is_whole: bool = True

    @property
    def characters(self) -> int:
        """Characters of all cells."""
        return sum(len(cell.text) for cell in self.cells)

    def program(self, language: str, reader: Reader) -> str:
        """Return the program of the cells in a language."""
        return SEPARATOR.join(text for text in (reader.read(cell.text).program for cell in self.of(language)) if text)

    def of(self, language: str) -> Iterator[Cell]:
        """Return the cells in a language."""
        return (cell for cell in self.cells if cell.language == language)


@dataclass(frozen=True, slots=True)
class Unit:
    """A program of a notebook that the cursor is not in.

    Attributes:
        cell: Its cell, counted from 1 among the notebook's; 0 for that of the cursor.
        text: It, with as many line breaks before it as its cell has.
    """

    cell: int
    text: str


@dataclass(frozen=True, slots=True)
class CellContexts:
    """Both sides of a cursor in a cell, as far as a file would have others.

    Attributes:
        key: Names the cell, and where it begins and ends in the program.
        left: What stands before the cursor in the program that has to parse.
        right: What stands after it there.
        own: The other programs of the cursor's cell.
        units: The other programs that have to parse: of the cells above, of the cursor's cell, of the cells below.
        given: Statements that bind the names that are there before the first cell.
        takes_all: Whether any name may be bound.
        one_line: Whether no line break may be written.
        before: The cell's own text before the cursor.
        after: The cell's own text after the cursor.
        reader: What its language knows of cells.
    """

    key: str
    left: str
    right: str
    own: tuple[str, ...]
    units: tuple[tuple[Unit, ...], ...]
    given: str
    takes_all: bool
    one_line: bool
    before: str
    after: str
    reader: Reader

    @property
    def lines(self) -> int:
        """Lines of the cell."""
        return self.before.count("\n") + self.after.count("\n") + 1

    def with_text(self, text: str, covered: int = 0) -> CellContexts:
        """Return the contexts behind a text that is written at the cursor, in place of some characters after it."""
        return replace(
            self,
            left=self.left + text,
            right=self.right[covered:],
            before=self.before + text,
            after=self.after[covered:],
        )

    def one_back(self) -> CellContexts:
        """Return the contexts one character further left."""
        return replace(
            self,
            left=self.left[:-1],
            right=self.left[-1:] + self.right,
            before=self.before[:-1],
            after=self.before[-1:] + self.after,
        )

    def keeps(self, text: str, covered: int) -> bool:
        """Return whether the cell, with a text at the cursor, is read as it was when the text was judged."""
        there = self.right[covered:], self.after[covered:]
        return self.reader.keeps(self.left, there[0], self.own, self.before, text, there[1])


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some cells of a notebook that follow each other.

    Attributes:
        programs: What stands for each in a file, but for cells of which nothing does.
        units: The programs in them that have to parse.
    """

    programs: tuple[str, ...]
    units: tuple[Unit, ...]


@lru_cache(maxsize=8)
def stretch(cells: tuple[Cell, ...], first: int, language: str, reader: Reader) -> Stretch:
    """Return what the cells in a language hold; ``first``: the number of the first cell."""
    read = [(number, reader.read(cell.text)) for number, cell in enumerate(cells, first) if cell.language == language]
    programs = tuple(one.program for _, one in read if one.program)
    return Stretch(programs, tuple(Unit(number, text) for number, one in read for text in one.units))


def cut(notebook: Notebook, uri: str, split: Split, reader: Reader) -> tuple[Split, CellContexts] | str:
    """Return the program around a cursor and what the cell has there; a reason where nothing is to be offered.

    Args:
        notebook: The cell's.
        uri: The cell.
        split: Its own text, cut at the cursor.
        reader: What the cell's language knows of cells.
    """
    cursor = reader.at(split.left, split.right)
    if isinstance(cursor, str):
        return cursor
    at = next(at for at, cell in enumerate(notebook.cells) if cell.uri == uri)
    language = notebook.cells[at].language
    above = stretch(notebook.cells[:at], 1, language, reader)
    below = stretch(notebook.cells[at + 1 :], at + 2, language, reader)
    before = "".join(f"{text}{SEPARATOR}" for text in above.programs)
    after = "".join(f"{SEPARATOR}{text}" for text in below.programs)
    contexts = CellContexts(
        f"{uri} {len(before)} {len(after)}",
        cursor.left,
        cursor.right,
        cursor.units,
        (above.units, tuple(Unit(0, text) for text in cursor.units), below.units),
        reader.given() if notebook.is_whole else reader.given() + reader.anything(),
        not notebook.is_whole,
        cursor.one_line,
        split.left,
        split.right,
        reader,
    )
    return replace(split, left=before + cursor.above, right=cursor.below + after), contexts


def healable(some: str, other: str) -> int:
    """Return how many characters the ends of two texts share, as far as that is looked at."""
    ends = zip(reversed(some[-MOST_HEALABLE:]), reversed(other[-MOST_HEALABLE:]), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
