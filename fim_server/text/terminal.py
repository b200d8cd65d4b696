"""Output of commands: progress on standard error, tables and colours on standard output, drawn by rich.

A stream that is no terminal, or a terminal without control (``TERM=dumb``), gets plain lines without control
characters. rich is imported only for drawing, so that quick commands stay quick.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TextIO, TypeVar

from fim_server.text.hidden import MOST_SHOWN, escaped, hidden_in, on_one_line

if TYPE_CHECKING:
    import rich.progress

Item = TypeVar("Item")
ColourChoice = Literal["auto", "always", "never"]

TICKS_PER_SECOND = 5
"""Rate at which a :class:`Progress` redraws its line by itself."""

LEAST_SECONDS = 0.1
"""Least time between two drawings of a :class:`Progress` that does not tick."""


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_colour(choice: ColourChoice = "auto") -> bool:
    """Return whether to colour standard output; ``auto`` obeys NO_COLOR (no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, colour: bool = True) -> str:
    """Return text in a style as rich names them (``bold green``, ``black on green``), or without colour.

    Hidden characters of the text become escapes, so that source code and names cannot move a terminal's cursor. Tabs
    stay, unlike in rich's console.
    """
    text = escaped(text)
    if not colour:
        return text
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


# --- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Table of texts.

    Attributes:
        header: Names of the columns.
        rows: As many cells each.
        numbers: Columns with right-aligned cells.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()

    def lines(self) -> Iterator[str]:
        """Yield the table in aligned columns, two blanks apart, without trailing blanks."""
        rows = [self.header, *self.shown()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for line in rows:
            cells = (
                cell.rjust(width) if index in self.numbers else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield "  ".join(cells).rstrip()

    def shown(self) -> Iterator[Sequence[str]]:
        """Yield the printed rows: each cell on one line, without hidden characters."""
        for row in self.rows:
            yield [on_one_line(cell) if hidden_in(cell) else cell for cell in row]

    def markdown(self) -> Iterator[str]:
        yield "| " + " | ".join(self.header) + " |"
        yield "|" + "|".join("---:" if index in self.numbers else "---" for index in range(len(self.header))) + "|"
        yield from ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows)


def plain_lines(parts: Iterable[str | Table]) -> Iterator[str]:
    for part in parts:
        yield from [escaped(part)] if isinstance(part, str) else part.lines()


def show(parts: Iterable[str | Table]) -> None:
    """Print lines of text and tables to standard output; on a terminal, tables fit its width."""
    if not is_terminal(sys.stdout):
        for line in plain_lines(parts):
            print(line)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    for part in parts:
        if isinstance(part, str):
            print(escaped(part))
            continue
        table = Drawn(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for index, name in enumerate(part.header):
            number = index in part.numbers
            table.add_column(Text(name), justify="right" if number else "left", no_wrap=number)
        for row in part.shown():
            table.add_row(*map(Text, row))
        console.print(table)


# --- progress -----------------------------------------------------------------------------------------------------


class Progress:
    """Progress on standard error while a ``with`` block runs.

    On a terminal it is one changing line with the time, and a bar if the amount of work is known; it vanishes at the
    end. Elsewhere it is plain lines, or nothing.

    Args:
        plain: Whether to print if standard error is no terminal: a program that reads ``--json`` may read standard
            error too.
        after: Seconds of silence at first. If not 0, plain lines name only the work under way then.
        every: Least seconds between two plain lines of :meth:`update`.
        ticks: Whether a thread redraws the line. False while times are measured, because it would take a share.
        keeps: Whether the last text stays.
    """

    def __init__(
        self, plain: bool = True, *, after: float = 0.0, every: float = 0.0, ticks: bool = True, keeps: bool = False
    ) -> None:
        self._terminal = is_terminal(sys.stderr)
        self._enabled = self._terminal or plain
        self._after = after
        self._once = after > 0
        self._every = every
        self._ticks = ticks
        self._keeps = keeps
        self._text = ""
        self._done: int | None = None
        self._total: int | None = None
        self._said = time.monotonic()
        self._lock = threading.RLock()
        self._ended = False
        self._line: rich.progress.Progress | None = None
        self._timer = threading.Timer(after, self._begin_late)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._enabled and self._after:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def say(self, stage: str) -> None:
        """Begin a stage of the work, named by a text without a line break."""
        stage = escaped(stage, MOST_SHOWN)
        with self._lock:
            self._text, self._done, self._total = stage, None, None
            if self._enabled and not self._after and not self._terminal:
                self._enabled = not self._once
                print(f"{stage} ...", file=sys.stderr, flush=True)
            self._draw(now=True)

    def update(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Show the progress: a line of text, and for the bar the amount done and the total."""
        text = escaped(text, MOST_SHOWN)
        with self._lock:
            self._text, self._done, self._total = text, done, total
            if self._enabled and not self._terminal and self.is_due():
                self._said = time.monotonic()
                print(text, file=sys.stderr, flush=True)
            self._draw()

    def is_due(self) -> bool:
        """Return whether an :meth:`update` would be seen now, for callers whose text is costly to make."""
        wait = LEAST_SECONDS if self._terminal else self._every
        return self._enabled and time.monotonic() - self._said >= wait

    def count(self, stage: str, items: Sequence[Item]) -> Iterator[Item]:
        self.say(stage)
        for number, item in enumerate(items, start=1):
            if self._terminal and self.is_due():
                self.update(stage, number, len(items))
            yield item

    def log(self, text: str) -> None:
        text = escaped(text)
        with self._lock:
            if self._line is not None:
                self._line.console.print(text, soft_wrap=True)
            elif self._enabled:
                print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the output; on a terminal the line vanishes unless it is to stay."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._timer.cancel()
            if self._line is not None:
                self._draw(now=True)
                self._line.stop()
            elif self._keeps and self._enabled and self._text and not self._terminal:
                print(self._text, file=sys.stderr, flush=True)

    def _begin_late(self) -> None:
        if self._terminal:
            import_module("rich.progress")  # before the lock is taken, so that close() does not wait
        with self._lock:
            if self._ended:
                return
            self._after = 0.0
            if self._text:
                self.say(self._text)

    def _draw(self, now: bool = False) -> None:
        if not self._terminal or self._after or not (now or self.is_due()):
            return
        self._said = time.monotonic()
        from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TimeElapsedColumn, TimeRemainingColumn

        if self._line is None:
            self._line = self._new_line()
            self._line.add_task("", total=None)
            self._line.start()
        known: tuple[ProgressColumn, ...] = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
        bar = known if self._total is not None else ()
        self._line.columns = (*self._line.columns[:2], *bar, TimeElapsedColumn())
        self._line.update(self._line.task_ids[0], description=self._text, total=self._total, completed=self._done or 0)
        self._line.refresh()

    def _new_line(self) -> rich.progress.Progress:
        from rich import progress
        from rich.console import Console

        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        spinner = "dots" if console.encoding.startswith("utf") else "line"
        return progress.Progress(
            progress.SpinnerColumn(spinner),
            progress.TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=self._ticks,
            refresh_per_second=TICKS_PER_SECOND,
            transient=not self._keeps,
            redirect_stdout=False,  # results may go to a file while this is shown
        )
