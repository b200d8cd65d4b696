"""The table of families: what each costs at each place of the cursor, the worst first, against what is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.families.operations import CHECK, GAVE_UP, OPERATIONS
from benchmarks.report import setting_lines, shown
from fim_server.text.terminal import Table

WORST = 10
"""Lines of each table of the worst."""

MOST_EXPONENT = 1.1
MOST_MICROSECONDS = 5.0
MOST_BYTES = 500.0
"""Goals: the exponent of growth, microseconds a character and bytes a character."""

LEAST_SECONDS = 5e-3
"""Time above what every session takes from which on its growth says something."""

CLEAR_SECONDS = 1e-3
"""Least time above the fixed one of the smallest text in an exponent: shorter times are a clock's noise."""

LEAST_BYTES = 1 << 20
"""Growth of a process from which on it is said by the character: the kernel counts in lots of pages."""


@dataclass(frozen=True)
class Run:
    """An operation on a text of one size.

    Attributes:
        size: Asked for, in characters.
        characters: That the text has.
        seconds: It took, or the limit that it passed.
        fixed: Seconds that it takes with next to no repetitions.
        peak: Bytes by which the process grew at most; None where that is not known.
        answer: In short.
        failed: Why there is no answer; None where there is one.
    """

    size: int
    characters: int
    seconds: float
    fixed: float
    peak: int | None
    answer: str = ""
    failed: str | None = None

    @property
    def above_fixed(self) -> float:
        """Seconds that the size is to blame for."""
        return max(self.seconds - self.fixed, 0.0)


@dataclass
class Line:
    """An operation on a family's texts with the cursor at one place.

    Attributes:
        family: The family's name.
        cursor: Where it stood.
        operation: What was measured.
        shape: A short text of the family, the cursor in it.
        expected: The verdicts that are right on the empty middle; none where that is not known.
        runs: By growing size; after one that failed there are none.
    """

    family: str
    cursor: str
    operation: str
    shape: str
    expected: tuple[str, ...]
    runs: list[Run] = field(default_factory=list)

    @property
    def failed(self) -> str | None:
        """Reason why the largest text has no answer."""
        return self.runs[-1].failed if self.runs else None

    @property
    def wrong(self) -> bool:
        """Return whether a verdict was not the right one."""
        answers = [run.answer for run in self.runs if run.failed is None]
        return self.operation == CHECK and bool(self.expected) and any(each not in self.expected for each in answers)

    @property
    def microseconds(self) -> float:
        """Time above the fixed one of the largest text, a character; at least that, where it failed."""
        last = self.runs[-1]
        return 1e6 * last.above_fixed / last.characters

    @property
    def exponent(self) -> float | None:
        """Exponent of the growth of time above the fixed one; None where it is next to nothing, or for one size."""
        first, last = self.runs[0], self.runs[-1]
        if first.characters == last.characters or last.above_fixed < LEAST_SECONDS:
            return None
        ratio = last.above_fixed / max(first.above_fixed, CLEAR_SECONDS)
        return math.log(ratio) / math.log(last.characters / first.characters)

    @property
    def bytes(self) -> float | None:
        """Growth of memory with the largest text that has an answer, a character."""
        known = [run for run in self.runs if run.peak is not None]
        if not known:
            return None
        peak = known[-1].peak or 0
        return peak / known[-1].characters if peak >= LEAST_BYTES else 0.0

    def over(self) -> list[str]:
        """Return the names of the goals that it misses."""
        return [name for name, misses in GOALS.items() if misses(self)]

    def cells(self, sizes: int) -> tuple[str, ...]:
        """A line of the table, with a time for each of so many sizes."""
        last = self.runs[-1]
        more = "> " if last.failed else ""
        times = [("> " if run.failed else "") + shown(1e3 * run.seconds) for run in self.runs]
        exponent = "-" if self.exponent is None else more + shown(self.exponent)
        return (
            self.family,
            self.cursor,
            self.operation,
            *times,
            *["-"] * (sizes - len(times)),
            more + shown(self.microseconds),
            exponent,
            shown(self.bytes),
            self.failed or last.answer,
            self.shape,
        )

    def as_json(self) -> dict[str, Any]:
        """With the figures that follow from the runs."""
        figures = {"microseconds_a_character": self.microseconds, "exponent": self.exponent}
        return asdict(self) | figures | {"bytes_a_character": self.bytes, "over": self.over(), "wrong": self.wrong}


GOALS: dict[str, Callable[[Line], bool]] = {
    "time": lambda line: line.failed is not None or line.microseconds > MOST_MICROSECONDS,
    "exponent": lambda line: (line.exponent or 0) > MOST_EXPONENT,
    "memory": lambda line: (line.bytes or 0) > MOST_BYTES,
}
"""Goals by name, each with a function that returns whether a line misses it."""

EXPLAINED = (
    "time above that of a text of next to no repetitions, in µs a character of the largest text; growth: x of size^x "
    "between the smallest and the largest; memory: peak growth of the process, in bytes a character; >: at least; "
    "¦: the cursor"
)


@dataclass
class Report:
    """All lines, and how they were measured."""

    setting: dict[str, str]
    sizes: tuple[int, ...]
    all_lines: bool
    lines: list[Line] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """By family, why it was not measured, or not at some size."""

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        goals = dict(zip(GOALS, (MOST_MICROSECONDS, MOST_EXPONENT, MOST_BYTES), strict=True))
        return {
            "setting": self.setting,
            "sizes": self.sizes,
            "goals": goals,
            "lines": [line.as_json() for line in self.lines],
            "left_out": self.left_out,
        }

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        if self.lines:
            yield from self._worst("time", f"at most {MOST_MICROSECONDS:g} µs a character", slowness)
            yield from self._worst("growth", f"at most size^{MOST_EXPONENT:g}", lambda line: line.exponent or 0.0)
            goal = f"at most {MOST_BYTES:g} bytes a character"
            yield from self._worst("memory", goal, lambda line: line.bytes or 0.0)
        if self.all_lines:
            yield ""
            yield "all:"
            yield self._table(self.lines)
        yield ""
        yield from self._summary()

    def _worst(self, what: str, goal: str, key: Callable[[Line], float]) -> Iterator[str | Table]:
        yield ""
        yield f"the worst by {what} (goal: {goal}):"
        yield self._table(sorted(self.lines, key=key, reverse=True)[:WORST])

    def _table(self, lines: Sequence[Line]) -> Table:
        times = [f"ms at {size:,}" for size in self.sizes]
        header = ("family", "cursor", "what", *times, "µs/character", "growth", "bytes/character", "answer", "text")
        return Table(header, [line.cells(len(times)) for line in lines], numbers=range(3, 6 + len(times)))

    def _summary(self) -> Iterator[str | Table]:
        rows: list[tuple[str, ...]] = []
        for operation in OPERATIONS:
            here = [line for line in self.lines if line.operation == operation]
            if not here:
                continue
            missed = [sum(goal in line.over() for line in here) for goal in GOALS]
            failed = sum(line.failed is not None for line in here)
            gave_up = sum(any(run.answer == GAVE_UP for run in line.runs) for line in here)
            counts = (len(here), *missed, failed, gave_up, len({line.family for line in here if line.over()}))
            rows.append((operation, *map(str, counts)))
        header = ("what", "lines", "over: time", "growth", "memory", "no answer", "gave up", "families over any")
        yield Table(header, rows, numbers=range(1, len(header)))
        families = {line.family for line in self.lines}
        over = {line.family for line in self.lines if line.over()}
        yield ""
        yield f"families over any goal: {len(over)} of {len(families)}"
        wrong = [f"{line.family} ({line.cursor})" for line in self.lines if line.wrong]
        yield f"wrong verdicts: {len(wrong)}{': ' if wrong else ''}{'; '.join(wrong)}"
        yield f"left out: {len(self.left_out)}"
        yield from (f"  {name}: {reason}" for name, reason in self.left_out.items())


def slowness(line: Line) -> float:
    """Time a character; what has no answer is slower than all that has."""
    return math.inf if line.failed else line.microseconds
