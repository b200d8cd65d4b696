"""Content of a report, before it becomes a page or a summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.evaluation.reporting.figures.plot import Plot
    from fim_server.evaluation.reporting.tables.table import Table


@dataclass(frozen=True)
class Card:
    """A figure at the head of a report."""

    name: str
    figure: str
    more: str
    first: bool = False
    """True for the most important one."""


@dataclass(frozen=True)
class Check:
    """Something that should hold, and whether it does; ``holds`` is None where nothing can be said."""

    claim: str
    holds: bool | None
    found: str


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        facts: What the runs were asked for.
        notices: What a reader should know first: what is missing, what could not be measured.
        sections: Tables under their headings.
    """

    title: str
    lead: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    sections: list[tuple[str, list[Table]]] = field(default_factory=list)

    def plot_files(self) -> dict[str, str]:
        """The plots as files of their own: name and text of each."""
        return {f"{plot.key}.svg": plot.file() for plot in self.plots}
