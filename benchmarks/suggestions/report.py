"""Report of `./dev bench suggestions`: shares with intervals, by place and project, and times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.report import page, page_head, paragraph, percentiles, setting_lines, shown
from benchmarks.suggestions.judge import BESIDE, BRACKETS, KINDS, LINE_END, Judgement
from benchmarks.suggestions.playing import ACCEPTING, HASTY, KEPT, TYPING, Effort, Record
from benchmarks.suggestions.suggesting import COPYING, OVERTAKEN, SERVER
from fim_server.text.terminal import Table

BY = (SERVER, COPYING)
DRAWS = 1000
"""Resamples of files for the intervals."""


@dataclass(frozen=True)
class Share:
    """A share of something.

    Attributes:
        name: What has it.
        of: How many there are.
        value: From 0 to 1; None of nothing. Keystrokes saved may be below 0.
        low: The lower end of its 95 % interval, if it has one.
        high: The upper end.
    """

    name: str
    of: int
    value: float | None
    low: float | None = None
    high: float | None = None

    def cell(self) -> str:
        """The share in words."""
        if self.value is None:
            return "-"
        interval = "" if self.low is None or self.high is None else f" ({100 * self.low:.0f} to {100 * self.high:.0f})"
        return f"{100 * self.value:.1f} %{interval}"


def interval(parts: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """The middle 95 % of a ratio of sums when its parts are drawn again, with replacement; None of fewer than two.

    Args:
        parts: What is above the line and what is below it, for each file.
    """
    if len(parts) < 2:
        return None
    above, below = np.asarray(parts, float).T
    drawn = np.random.default_rng(0).integers(len(parts), size=(DRAWS, len(parts)))
    sums = below[drawn].sum(axis=1)
    ratios = above[drawn].sum(axis=1)[sums > 0] / sums[sums > 0]
    if not len(ratios):
        return None
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


def share(name: str, entries: Iterable[tuple[tuple[str, str], float, float]]) -> Share:
    """A share with its interval by file.

    Args:
        name: What has it.
        entries: Of each: its file, what counts for it, and what it counts among.
    """
    files: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for file, above, below in entries:
        files[file][0] += above
        files[file][1] += below
    above, below = (sum(each[at] for each in files.values()) for at in (0, 1))
    if not below:
        return Share(name, 0, None)
    low, high = interval([(one, other) for one, other in files.values()]) or (None, None)
    return Share(name, int(below), above / below, low, high)


# --- figures ------------------------------------------------------------------------------------------------------

Says = Callable[[Record], bool]


def is_missing(record: Record) -> bool:
    """Return whether something of the line is still missing there."""
    return record.kind not in (LINE_END, BESIDE)


def is_offered(record: Record) -> bool:
    return record.judged is not None and is_missing(record)


OFFERED = "keystrokes with an offer"
LEXEME, LINE, AGREES = "of these: first lexeme right", "whole rest of the line right", "right as far as it goes"
SAVED = "keystrokes saved"
WRONG = "keystrokes at which an offer is wrong somewhere"
SURVIVED = "characters that a hasty user accepts and keeps"
IN_BRACKETS = "fresh brackets in which something belongs: with an offer"
FLICKER = "the key agreed with the offer, which changed or went"
SEVERAL = "offers of several lines"
AT_END = "line's end: with an offer"
HEIGHT = "keystrokes at which the offer's height changed"

FIGURES: tuple[tuple[str, Says, Says], ...] = (
    (OFFERED, is_missing, is_offered),
    (LEXEME, is_offered, lambda one: one.judged is not None and one.judged.lexeme),
    (LINE, is_offered, lambda one: one.judged is not None and one.judged.line),
    (AGREES, is_offered, lambda one: one.judged is not None and one.judged.agrees),
    (WRONG, is_missing, lambda one: is_offered(one) and one.judged is not None and not one.judged.agrees),
    (IN_BRACKETS, lambda one: one.kind == BRACKETS, is_offered),
    (FLICKER, lambda one: one.change is not None, lambda one: one.change != KEPT),
    (HEIGHT, lambda one: one.height is not None, lambda one: bool(one.height)),
    (SEVERAL, lambda one: one.judged is not None, lambda one: one.judged is not None and one.judged.lines > 0),
    (AT_END, lambda one: one.kind == LINE_END, lambda one: one.judged is not None),
)
"""Shares: the requests of the typing sweep that each counts, and those that have it."""

FIGURES_HEADER = ("figure", "of", SERVER, "of", COPYING)
KINDS_HEADER = (
    "place",
    "keystrokes",
    "with an offer",
    "first lexeme",
    "whole line",
    "with an offer, copying",
    "first lexeme, copying",
)
PROJECTS_HEADER = (
    "project",
    "keystrokes",
    "with an offer",
    "first lexeme",
    "whole line",
    "saved",
    "first lexeme, copying",
    "saved, copying",
)
SURE_HEADER = ("said", "offers", "said on average", "first lexeme right", "whole line", "as far as it goes")
BINS = 10
TIMES_HEADER = ("answers of the server", "n", "p50", "p95", "max")


@dataclass
class Report:
    """Report: settings and figures."""

    setting: dict[str, str]
    records: list[Record] = field(default_factory=list, repr=False)
    efforts: list[Effort] = field(default_factory=list, repr=False)
    model: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """Errors in the servers' logs."""

    def typed(self, by: str) -> list[Record]:
        """The requests of the typing sweep."""
        return [record for record in self.records if record.by == by and record.sweep == TYPING]

    def figures(self, by: str) -> Iterator[Share]:
        """The main shares."""
        yield from shares_of(self.typed(by))
        efforts = [effort for effort in self.efforts if effort.by == by]
        yield saved(efforts)
        yield survived(efforts)

    def counts(self, by: str) -> dict[str, int]:
        """Numbers of the typing sweep."""
        records = self.typed(by)
        judged = [record.judged for record in records if record.judged is not None]
        changes = [record.change for record in records if record.change is not None]
        return {
            "requests": len(records),
            "overtaken": sum(record.outcome == OVERTAKEN for record in records),
            "failed": sum(record.outcome == "failed" for record in records),
            "further lines of offers": sum(one.lines for one in judged),
            "of these right": sum(one.right for one in judged),
            "of these just below already": sum(one.below for one in judged),
            "height changed by at most, lines": max((record.height or 0 for record in records), default=0),
            **{f"offers {change}": changes.count(change) for change in sorted(set(changes))},
        }

    def times(self) -> Iterator[tuple[str, int, float | None, float | None, float | None]]:
        """Times of the server's answers in both sweeps, in milliseconds: name, number, p50, p95 and the largest."""
        answers = [one for one in self.records if one.by == SERVER and one.outcome == "answered"]
        offers = [one for one in answers if one.text is not None]
        kinds = (
            ("from request to offer", [one.milliseconds for one in offers]),
            ("from request to an empty answer", [one.milliseconds for one in answers if one.text is None]),
            *(
                (f"to an offer: {origin}", [one.milliseconds for one in offers if one.origin == origin])
                for origin in sorted({one.origin for one in offers})
            ),
            ("server's own share, without the model", [one.own for one in answers if one.own is not None]),
        )
        for name, values in kinds:
            p50, p95, most = percentiles(values, 0.5, 0.95, 1.0)
            yield name, len(values), p50, p95, most

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object; the requests are in the records."""
        return {
            "setting": self.setting | {"model": model_text(self.model)},
            "shares": {by: [asdict(figure) for figure in self.figures(by)] for by in BY},
            "counts": {by: self.counts(by) for by in BY},
            "kinds": {by: self._groups(by, lambda one: one.kind) for by in BY},
            "projects": {by: self._groups(by, lambda one: one.project) for by in BY},
            "times": [
                {"scenario": SERVER, **dict(zip(("what", "n", "p50", "p95", "max"), row, strict=True))}
                for row in self.times()
            ],
            "efforts": [asdict(effort) for effort in self.efforts],
            "failures": self.failures,
        }

    def _groups(self, by: str, key: Callable[[Record], str]) -> dict[str, list[dict[str, Any]]]:
        return {
            name: [asdict(figure) for figure in shares_of(records)]
            for name, records in grouped(self.typed(by), key).items()
        }

    # --- tables ---

    def tables(self) -> Iterator[tuple[str, str, Table]]:
        """Titles, explanations and tables."""
        pairs = zip(*(self.figures(by) for by in BY), strict=True)
        rows = [(one.name, f"{one.of:,}", one.cell(), f"{other.of:,}", other.cell()) for one, other in pairs]
        yield "Shares", SHARES_EXPLAINED, Table(FIGURES_HEADER, rows, (1, 3))
        yield "By kind of place", KINDS_EXPLAINED, Table(KINDS_HEADER, list(self._kinds()), range(1, 7))
        yield "By project", PROJECTS_EXPLAINED, Table(PROJECTS_HEADER, list(self._projects()), range(1, 8))
        yield "Said, and right", SURE_EXPLAINED, Table(SURE_HEADER, list(self.reliability()), range(1, 6))
        times = [(name, f"{count:,}", *map(shown, values)) for name, count, *values in self.times()]
        yield "Times, in ms", TIMES_EXPLAINED, Table(TIMES_HEADER, times, range(1, 5))

    def _kinds(self) -> Iterator[tuple[str, ...]]:
        groups = [grouped(self.typed(by), lambda one: one.kind) for by in BY]
        for kind in KINDS:
            server, copying = ([one for one in group.get(kind, []) if is_missing(one)] for group in groups)
            if server:
                offered, lexeme, line = cells(server, OFFERED, LEXEME, LINE)
                yield kind, f"{len(server):,}", offered, lexeme, line, *cells(copying, OFFERED, LEXEME)

    def _projects(self) -> Iterator[tuple[str, ...]]:
        groups = [grouped(self.typed(by), lambda one: one.project) for by in BY]
        names = sorted({effort.project for effort in self.efforts} | {name for group in groups for name in group})
        for name in names:
            server, copying = (group.get(name, []) for group in groups)
            kept = [saved(one for one in self.efforts if one.project == name and one.by == by).value for by in BY]
            first, second = ("-" if value is None else f"{100 * value:.0f} %" for value in kept)
            count = sum(map(is_missing, server))
            yield name, f"{count:,}", *cells(server, OFFERED, LEXEME, LINE), first, *cells(copying, LEXEME), second

    def reliability(self) -> Iterator[tuple[str, ...]]:
        """The server's offers by the confidence that it has told: the reliability diagram, as a table."""
        bins: dict[int, list[tuple[float, Judgement]]] = defaultdict(list)
        for record in self.typed(SERVER):
            sure = record.told.get("confidence")
            if is_offered(record) and record.judged is not None and isinstance(sure, int | float):
                bins[min(int(sure * BINS), BINS - 1)].append((sure, record.judged))
        for low, found in sorted(bins.items()):
            shares = (
                sum(values) / len(found)
                for values in (
                    [sure for sure, _ in found],
                    [judged.lexeme for _, judged in found],
                    [judged.line for _, judged in found],
                    [judged.agrees for _, judged in found],
                )
            )
            said = f"{low / BINS:.1f} to {(low + 1) / BINS:.1f}"
            yield said, f"{len(found):,}", *(f"{100 * share:.0f} %" for share in shares)

    def counted(self) -> str:
        """The numbers of the server's offers, in one line."""
        return ", ".join(f"{count:,} {name}" for name, count in self.counts(SERVER).items())

    def all_setting(self) -> dict[str, str]:
        """The setting with the model, and how much was typed."""
        typed = len({(one.project, one.file, one.line) for one in self.efforts})
        return self.setting | {"model": model_text(self.model), "typed in both sweeps": f"{typed} places"}

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.all_setting())
        for title, _, table in self.tables():
            yield ""
            yield f"{title}:"
            yield table
        yield ""
        yield self.counted()
        yield from self.failures

    def as_markdown(self) -> str:
        """The report as a page of `docs/results`."""
        lines = [*page_head("Suggestions", self.all_setting(), EXPLAINED)]
        for title, explanation, table in self.tables():
            lines += ["", f"## {title}", "", *paragraph(explanation), "", *table.markdown()]
        return page([*lines, "", *paragraph(f"Counted: {self.counted()}.")])


def model_text(model: dict[str, str]) -> str:
    """The model in words."""
    return ", ".join(f"{name} {value}" for name, value in model.items())


def shares_of(records: Sequence[Record]) -> Iterator[Share]:
    """The shares of some requests."""
    for name, belongs, has in FIGURES:
        yield share(name, (((one.project, one.file), float(has(one)), 1.0) for one in records if belongs(one)))


def saved(efforts: Iterable[Effort]) -> Share:
    """The share of keys that accepting has saved."""
    return share(
        SAVED,
        (
            ((one.project, one.file), one.alone - one.keys - one.accepted, one.alone)
            for one in efforts
            if one.sweep == ACCEPTING
        ),
    )


def survived(efforts: Iterable[Effort]) -> Share:
    """The share of the characters of accepted offers that a hasty user keeps."""
    return share(SURVIVED, (((one.project, one.file), one.kept, one.inserted) for one in efforts if one.sweep == HASTY))


def grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Return the requests grouped by a key."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return dict(groups)


def cells(records: Sequence[Record], *names: str) -> list[str]:
    """Return the named shares of requests, without intervals."""
    found = {figure.name: figure for figure in shares_of(records)}
    values = (found[name].value for name in names)
    return ["-" if value is None else f"{100 * value:.0f} %" for value in values]


EXPLAINED = """
Lines are taken out of files and typed again key by key to a server through the protocol, in an editor played as VS Code
is, which closes brackets and quotes by itself. The rest of the project is the workspace; the files that are typed in
are not on its disk. In one sweep everything is typed and every offer is judged by what the line is to be; in the other,
with a server of its own, an offer is accepted whole where it is right as far as it goes, else its first word where that
is right. In edit sessions a hasty user also accepts offers of which half is right, and takes the rest back. The copying
rule offers what followed the longest earlier match of the characters left of the cursor in the same file, to the end of
that line. Intervals are 95 % by bootstrap over files.
"""

SHARES_EXPLAINED = """
Keystrokes are those after which something of the line is missing; the one before the first key (Enter) is among them. A
lexeme is one of Python's tokenizer; where the cursor stands in one, the offer has to complete it exactly, but for a
quote that closed itself. The line is right if the document, with the first line of the offer accepted, is what it is to
be up to that line's end. Keystrokes saved: 1 - (keys + acceptances) / keys of typing alone, brackets closed by the
editor in both.
"""
KINDS_EXPLAINED = "Where the cursor stands, by the text left of it and the line that is to come."
PROJECTS_EXPLAINED = "The main shares for each project; those of few lines say little."
SURE_EXPLAINED = """
Offers by the confidence that the server tells with them: how likely their first lexeme is right. In a fresh pair of
brackets less is asked for.
"""
TIMES_EXPLAINED = """
At the editor's end, in both sweeps. The server's own share is its total without pauses, waiting and the model. What the
machine does besides is in all of them.
"""
