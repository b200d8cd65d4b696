"""Cells of a notebook as one program, and a cursor in one of them.

A notebook is compiled cell by cell, so each cell has to parse by itself: the grammar reads the cursor's cell alone, and
judges the others once. Name analysis and the model see all of it: the cells before the cursor, the cell, and those
after it.
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
"""Most characters before the cursor to compare between the program and the cell."""


class ReadCell(Protocol):
    """Cell as its language reads it."""

    @property
    def program(self) -> str:
        """The text that stands for it in a file of the language."""

    @property
    def units(self) -> tuple[str, ...]:
        """Programs of the cell, each of which has to parse."""


class CellCursor(Protocol):
    """Cursor in a cell as its language reads it: both sides, in the cursor's program and in a file."""

    @property
    def left(self) -> str:
        """The program that has to parse, before the cursor."""

    @property
    def right(self) -> str:
        """Text after the cursor in the same program."""

    @property
    def above(self) -> str:
        """The text that stands in a file for the cell before the cursor."""

    @property
    def below(self) -> str:
        """The text that stands in a file for the cell after the cursor."""

    @property
    def units(self) -> tuple[str, ...]:
        """Other programs of the cell."""

    @property
    def one_line(self) -> bool:
        """True where no line break may be written."""


class Keeper(Protocol):
    """Judge of a text at a cursor in a part of a file."""

    def keeps(self, left: str, right: str, units: Sequence[str], before: str, text: str, after: str) -> bool:
        """Return whether a cell with a text at its cursor still holds the programs of that cursor."""


class Reader(Keeper, Protocol):
    """A language's knowledge of cells: the module ``cells`` in its folder."""

    def __hash__(self) -> int:
        """Return a hash, as a module does."""

    def read(self, text: str) -> ReadCell:
        """Read a cell without a cursor."""

    def at(self, left: str, right: str) -> CellCursor | str:
        """Split a cell at a cursor between two texts, or return the reason for suggesting nothing."""

    def given(self) -> str:
        """Return statements that bind the names which are there before the first cell."""

    def anything(self) -> str:
        """Return a statement after which any name may be bound."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Code cell.

    Attributes:
        uri: Its name in the editor.
        language: Name of its language in the editor.
        text: Its text, with line feeds alone.
    """

    uri: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """Notebook at one moment.

    Attributes:
        uri: Its name in the editor.
        cells: Its code cells, in order.
        is_whole: True if these are all of its cells; otherwise any name may be bound in others.
    """

    uri: str
    cells: tuple[Cell, ...]
    is_whole: bool = True

    @property
    def characters(self) -> int:
        return sum(len(cell.text) for cell in self.cells)

    def program(self, language: str, reader: Reader) -> str:
        return SEPARATOR.join(text for text in (reader.read(cell.text).program for cell in self.of(language)) if text)

    def of(self, language: str) -> Iterator[Cell]:
        return (cell for cell in self.cells if cell.language == language)


@dataclass(frozen=True, slots=True)
class Unit:
    """Program of a notebook without the cursor.

    Attributes:
        cell: The number of its cell, from 1; 0 for the cursor's cell.
        text: Its text, after as many line breaks as there are before it in its cell.
    """

    cell: int
    text: str


@dataclass(frozen=True, slots=True)
class CellContexts:
    """Both sides of a cursor in a cell or a region, as far as a file would have others.

    A region is code in a file of another language (:mod:`fim_server.text.regions`); "cell" means it as well.

    Attributes:
        key: A name of the cell, its beginning and its end in the program.
        left: The text before the cursor in the program that has to parse.
        right: The text after the cursor in the program that has to parse.
        own: The other programs of the cursor's cell.
        units: The other programs that have to parse: of the cells above, of the cursor's cell, of the cells below.
        given: Statements that bind the names which are there before the first cell.
        takes_all: Whether any name may be bound.
        one_line: Whether line breaks are forbidden.
        before: The cell's own text before the cursor.
        after: The cell's own text after the cursor.
        reader: The judge of texts.
        region: The lines of a region in its file, from 0; None for a cell.
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
    reader: Keeper
    region: range | None = None

    @property
    def lines(self) -> int:
        return self.before.count("\n") + self.after.count("\n") + 1

    def with_text(self, text: str, covered: int = 0) -> CellContexts:
        """Return the contexts behind a text at the cursor that replaces some characters after it."""
        return replace(
            self,
            left=self.left + text,
            right=self.right[covered:],
            before=self.before + text,
            after=self.after[covered:],
            region=self.region and range(self.region.start, self.region.stop + text.count("\n")),
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
        """Return whether a text at the cursor leaves the cell's reading as it was when the text was judged."""
        there = self.right[covered:], self.after[covered:]
        return self.reader.keeps(self.left, there[0], self.own, self.before, text, there[1])


@dataclass(frozen=True, slots=True)
class Stretch:
    """Cells of a notebook in a row.

    Attributes:
        programs: Their texts in a file, without empty ones.
        units: Their programs, each of which has to parse.
    """

    programs: tuple[str, ...]
    units: tuple[Unit, ...]


@lru_cache(maxsize=8)
def stretch(cells: tuple[Cell, ...], first: int, language: str, reader: Reader) -> Stretch:
    """Read the cells in a language; ``first``: the number of the first cell."""
    read = [(number, reader.read(cell.text)) for number, cell in enumerate(cells, first) if cell.language == language]
    programs = tuple(one.program for _, one in read if one.program)
    return Stretch(programs, tuple(Unit(number, text) for number, one in read for text in one.units))


def cut(notebook: Notebook, uri: str, split: Split, reader: Reader) -> tuple[Split, CellContexts] | str:
    """Return the program around a cursor and the cursor's contexts, or the reason for suggesting nothing.

    Args:
        notebook: The cell's notebook.
        uri: The cell.
        split: Its own text, cut at the cursor.
        reader: The reader of the language's cells.
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
    """Return how many characters the ends of two texts share, up to a limit."""
    ends = zip(reversed(some[-MOST_HEALABLE:]), reversed(other[-MOST_HEALABLE:]), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
