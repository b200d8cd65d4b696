"""Report of `./dev bench masks`: times by kind, other figures, verdicts, a plot and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks import plot
from benchmarks.report import page, page_head, percentiles, setting_lines, shown
from fim_server.text.terminal import Table

COLD, WARM, OTHERS, CLEARED, PLAIN, COMMIT = (
    "mask, caches cold",
    "mask, caches warm",
    "mask, other files then",
    "mask, cleared before each",
    "mask, plain walk",
    "commit",
)
CURVES = {WARM: "warm", COLD: "cold", OTHERS: "other files then", CLEARED: "cleared before each"}
"""Series of the plot with their names; the first is the solid line."""

ENGINE = "fim-server"


@dataclass(frozen=True)
class Row:
    """Times of one kind, in µs; None where nothing was measured.

    Attributes:
        language: What was parsed.
        system: Who did it.
        what: What was timed.
        right: Whether the right context counted.
        indentation: Whether indentation did; None if the language has none.
        budget: What is asked, in µs.
    """

    language: str
    system: str
    what: str
    right: bool
    indentation: bool | None
    n: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    budget: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = (self.mean, self.p50, self.p95, self.p99, self.max)
        indentation = {True: "yes", False: "no", None: "-"}[self.indentation]
        language = f"{self.language}, flat" if self.indentation is False else self.language
        described = (language, self.system, self.what, "yes" if self.right else "no", indentation)
        return (*described, f"{self.n:,}", *map(shown, figures), self.budget)


HEADER = ("language", "system", "what", "R", "indent", "n", "mean", "p50", "p95", "p99", "max", "budget")


def summed(row: Row, values: Sequence[float]) -> Row:
    """A row with the figures of measurements in seconds."""
    if not values:
        return row
    microseconds = [1e6 * value for value in values]
    p50, p95, p99, most = percentiles(microseconds, 0.5, 0.95, 0.99, 1.0)
    return replace(row, n=len(values), mean=float(np.mean(microseconds)), p50=p50, p95=p95, p99=p99, max=most)


@dataclass(frozen=True)
class Fact:
    """One more figure, or why there is none."""

    language: str
    system: str
    what: str
    value: float | int | None
    unit: str = ""
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        value = f"{self.value:,}" if isinstance(self.value, int) else shown(self.value)
        value = "" if self.note and self.value is None else value
        return self.language, self.system, self.what, f"{value} {self.unit if value else ''}".strip(), self.note


FACTS_HEADER = ("language", "system", "what", "value", "note")


@dataclass
class Report:
    """Report: settings, figures and wrong answers."""

    setting: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    steps: int = 0
    refused_tokens: int = 0
    refused_ends: int = 0
    verified_masks: int = 0
    differing_masks: int = 0
    differences: list[str] = field(default_factory=list)
    picture: str = ""
    """The plot's file name, if there is one."""
    curves: dict[str, dict[tuple[str, str], Sequence[float]]] = field(default_factory=dict, repr=False)
    """Times in µs by language, system and kind, for the plot; neither is part of the JSON."""

    def wrong(self) -> bool:
        """Return whether the engine gave an answer that is known to be wrong."""
        return bool(self.refused_tokens or self.refused_ends or self.differing_masks)

    def add(self, row: Row, values: Sequence[float] = ()) -> None:
        """One more row; its values in seconds put it into the plot."""
        self.rows.append(row)
        if values:
            name = f"{row.system}, {'with' if row.right else 'without'} R" if row.system == ENGINE else row.system
            self.curves.setdefault(row.language, {})[name, CURVES[row.what]] = [1e6 * value for value in values]

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {name: value for name, value in asdict(self).items() if name not in ("curves", "picture")}

    def as_svg(self) -> str:
        """A panel for each language."""
        kinds = list(CURVES.values())
        panels = []
        for language, curves in self.curves.items():
            names = list(dict.fromkeys(name for name, _ in curves))
            ordered = sorted(curves, key=lambda key: (names.index(key[0]), kinds.index(key[1])))
            series = {key: curves[key] for key in ordered}
            title = f"Token masks: {language}"
            panels.append(plot.Distribution(title, "time of a mask, µs", "share of the masks", series))
        return plot.svg(panels)

    def verdicts(self) -> Iterator[str]:
        """Yield the verdicts: right and wrong answers."""
        yield f"true next tokens refused: {self.refused_tokens} of {self.steps}; ends refused: {self.refused_ends}"
        if self.verified_masks:
            yield f"masks that differ from the plain walk's: {self.differing_masks} of {self.verified_masks}"
        yield from self.differences

    def tables(self) -> tuple[Table, Table]:
        """The times, and the other figures."""
        return (
            Table(HEADER, [row.cells() for row in self.rows], numbers=range(5, 11)),
            Table(FACTS_HEADER, [fact.cells() for fact in self.facts], numbers=range(3, 4)),
        )

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        for table in self.tables():
            yield ""
            yield table
        yield ""
        yield from self.verdicts()

    def as_markdown(self) -> str:
        """The report as a page of `docs/results`."""
        lines = [*page_head("Token masks along real files", self.setting, EXPLAINED)]
        if self.picture:
            lines += [f"![Shares of masks by their time, on a logarithmic axis]({self.picture})", ""]
        for table in self.tables():
            lines += [*table.markdown(), ""]
        return page([*lines, *(f"- {line}" for line in self.verdicts())])


EXPLAINED = """
Times are in µs, from Python, into a buffer that is there already. R: whether the right context counts, so that a token
is only allowed if the whole file can still parse; indent: whether Python's indentation does. *Cold*: language and
vocabulary are loaded, and the caches of masks are empty at the start of a pass over all cursors. *Warm*: a second pass
with new sessions and matchers. *Other files then*: a first pass over as many other files after that, which is what an
editor meets. *Cleared before each*: no mask is cached at all. Peers have neither right context nor indentation; each
replays the left context untimed, in a process of its own.
"""
