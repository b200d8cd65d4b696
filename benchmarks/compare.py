"""``./dev bench compare``: two versions of the program by what their benchmarks printed with ``--json``.

Runs of both versions should take turns on one machine, because its load changes: before, after, before, after. Each row
has the ratio of the medians over all runs, and the spread of the ratios of pairs that ran next to each other. A row is
slower or faster only if it is so in every pair.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.options import add_json
from benchmarks.report import DONE, publish, shown
from fim_server.errors import BenchError, LimitError
from fim_server.language.limited_files import parse_json, read_limited
from fim_server.text.terminal import Table

FIGURES = ("p50", "mean", "p95", "p99", "max")
"""Figures that rows of benchmarks have; none has them all."""

LEAST_PAIRS = 5
"""So many pairs have to agree before a row is called slower or faster. Five that differ by chance alone agree once in
sixteen times."""

SETTINGS_OF_A_RUN = frozenset({"machine", "libraries", "versions", "command", "contexts with f-strings"})
"""Settings that may differ between compared runs: the machine's load is part of its name."""


@dataclass(frozen=True)
class CompareOptions:
    """Options of ``./dev bench compare``."""

    before: list[str]
    after: list[str]
    figure: str
    only: str | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench compare``."""
    parser.epilog = (
        "Exit status: 0 compared, 2 bad input. Columns: before and after, medians over the runs; ratio, of these; "
        "least and most, of the ratios of pairs, the first run before with the first one after and so on; a row is "
        f"called slower or faster where all pairs are, and there are {LEAST_PAIRS} or more."
    )
    for side in ("before", "after"):
        parser.add_argument(
            f"--{side}",
            nargs="+",
            required=True,
            metavar="FILE.json",
            help=f"what `./dev bench ... --json` printed {side} the change, in the order of the runs",
        )
    parser.add_argument(
        "--figure", choices=FIGURES, default="p50", help="what to compare of rows that have several (default: p50)"
    )
    parser.add_argument("--only", metavar="TEXT", help="only rows with this in their name")
    add_json(parser)


def run(options: CompareOptions) -> int:
    """Compare, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: A file cannot be read or is no benchmark's, the two sides have different numbers of runs, or
            nothing in common.
    """
    publish(compare(options), options.json)
    return DONE


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One figure of a run."""

    value: float
    unit: str


def read(path: str) -> dict[str, Any]:
    """Read a report.

    Raises:
        BenchError: It cannot be read, or is no report.
    """
    try:
        report = parse_json(read_limited(path))
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise BenchError(f"{path}: {error}") from None
    except ValueError:
        raise BenchError(f"{path}: not JSON") from None
    if not isinstance(report, dict) or not isinstance(report.get("setting"), dict):
        raise BenchError(f"{path}: not printed by `./dev bench ... --json`")
    return report


def figures_of(report: Mapping[str, Any], figure: str) -> dict[str, Figure]:
    """A report's figures by the names of their rows, in the report's order; those without a value are left out.

    Args:
        report: What any of the benchmarks printed.
        figure: One of :data:`FIGURES`, for rows that have several.
    """
    found: dict[str, Figure] = {}

    def add(name: Sequence[object], value: object, unit: str) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[", ".join(str(part) for part in name if part not in ("", None))] = Figure(float(value), unit)

    for row in report.get("rows", ()):
        if "position" in row:
            add((row["what"], row["position"]), row.get(figure), row["unit"])
        elif "system" in row:
            right = "with R" if row["right"] else "without R"
            add((row["language"], row["system"], row["what"], right), row.get(figure), "µs")
        else:
            for key in ("prefill_ms", "decode_ms", "keystroke_ms", "load_ms", "megabytes"):
                name, _, unit = key.partition("_")
                threads = f"{row['threads']} threads"
                add((row["runtime"], row["precision"], threads, name), row[key], unit or "MB")
    for fact in report.get("facts", ()):
        add((fact["language"], fact["system"], fact["what"]), fact["value"], fact["unit"])
    for row in (*report.get("times", ()), *report.get("parts", ())):
        add((row["scenario"], row["what"]), row.get(figure), "ms")
    for by, shares in report.get("shares", {}).items():
        for share in shares:
            add((share["name"], by), None if share["value"] is None else 100 * share["value"], "%")
    openings: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for opening in report.get("openings", ()):
        openings.setdefault((opening["size"], opening["cursor"]), []).append(opening)
    for (size, cursor), here in openings.items():
        add((f"open, {size:,} characters", cursor), 1e3 * float(np.median([one["seconds"] for one in here])), "ms")
        peaks = [one["peak"] for one in here if one["peak"] is not None]
        if peaks:
            add((f"peak, {size:,} characters", cursor), float(np.median(peaks)) / 1e6, "MB")
    return found


# --- comparing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One figure before and after.

    Attributes:
        what: The row's name.
        before: Median over the runs.
        after: Median over the runs.
        ratio: After by before; None where before is 0.
        least: Of the pairs' ratios.
        most: Of the pairs' ratios.
        verdict: `slower` or `faster` (or `more` or `less`, of what is no time) where all pairs agree; else empty.
    """

    what: str
    unit: str
    before: float
    after: float
    ratio: float | None
    least: float | None
    most: float | None
    verdict: str

    @classmethod
    def of(cls, what: str, unit: str, before: Sequence[float], after: Sequence[float]) -> Row:
        """The comparison of some runs' figures, of which the first belongs to the first and so on."""
        medians = float(np.median(before)), float(np.median(after))
        ratios = [new / old for old, new in zip(before, after, strict=True) if old]
        complete = len(ratios) == len(before)
        ratio = medians[1] / medians[0] if medians[0] else None
        verdict = ""
        if complete and len(ratios) >= LEAST_PAIRS and (min(ratios) > 1 or max(ratios) < 1):
            up, down = ("slower", "faster") if unit in ("s", "ms", "µs") else ("more", "less")
            verdict = up if min(ratios) > 1 else down
        least, most = (min(ratios), max(ratios)) if ratios else (None, None)
        return cls(what, unit, *medians, ratio, least, most, verdict)

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        ratios = ("-" if one is None else f"{one:.3f}" for one in (self.ratio, self.least, self.most))
        return self.what, shown(self.before), shown(self.after), self.unit, *ratios, self.verdict


HEADER = ("row", "before", "after", "", "ratio", "least", "most", "")


@dataclass(frozen=True)
class Comparison:
    """Comparison of all figures.

    Attributes:
        runs: Number of runs of each side.
        figure: Figure that is compared of rows with several.
        rows: Rows that every run has.
        missing: Names of rows that some run lacks.
        settings: Settings that differ between runs, in words.
    """

    runs: int
    figure: str
    rows: list[Row]
    missing: list[str]
    settings: list[str]

    def as_json(self) -> dict[str, Any]:
        """The comparison as one JSON object."""
        return asdict(self) | {"geometric_mean": self.geometric_mean()}

    def geometric_mean(self) -> float | None:
        """Geometric mean of the ratios of all rows that are times."""
        ratios = [row.ratio for row in self.rows if row.ratio and row.unit in ("s", "ms", "µs")]
        return float(np.exp(np.mean(np.log(ratios)))) if ratios else None

    def parts(self) -> Iterator[str | Table]:
        """The comparison as lines of text and a table."""
        yield f"runs: {self.runs} before, {self.runs} after; {self.figure} of rows that have several figures"
        yield from (f"the runs' settings differ: {difference}" for difference in self.settings)
        yield ""
        yield Table(HEADER, [row.cells() for row in self.rows], numbers=(1, 2, 4, 5, 6))
        yield ""
        mean = self.geometric_mean()
        if mean is not None:
            yield f"times, geometric mean of the ratios: {mean:.3f}"
        if self.runs < LEAST_PAIRS:
            yield f"too few runs to call a row slower or faster: {LEAST_PAIRS} of each side are needed"
        for verdict in ("slower", "faster") if self.runs >= LEAST_PAIRS else ():
            count = sum(row.verdict == verdict for row in self.rows)
            yield f"{verdict} in every pair: {count} of {len(self.rows)} rows"
        if self.missing:
            yield f"not in every run: {'; '.join(self.missing)}"


def compare(options: CompareOptions) -> Comparison:
    """Compare the runs of two versions.

    Raises:
        BenchError: As :func:`run`.
    """
    if len(options.before) != len(options.after):
        raise BenchError(f"{len(options.before)} runs before and {len(options.after)} after: give as many of each")
    reports = [read(path) for path in (*options.before, *options.after)]
    found = [figures_of(report, options.figure) for report in reports]
    for path, figures in zip((*options.before, *options.after), found, strict=True):
        if not figures:
            raise BenchError(f"{path}: no figures of a benchmark in it")
    names = dict.fromkeys(name for figures in found for name in figures)
    wanted = [name for name in names if options.only is None or options.only in name]
    common = [name for name in wanted if all(name in figures for figures in found)]
    if not common:
        raise BenchError("the runs have no row in common" + ("" if options.only is None else f" with {options.only!r}"))
    runs = len(options.before)
    rows = [
        Row.of(
            name, found[0][name].unit, *([each[name].value for each in side] for side in (found[:runs], found[runs:]))
        )
        for name in common
    ]
    missing = [name for name in wanted if name not in common]
    return Comparison(runs, options.figure, rows, missing, differences([report["setting"] for report in reports]))


def differences(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the settings of the work that differ between runs and make their figures hard to compare."""
    names = dict.fromkeys(name for setting in settings for name in setting if name not in SETTINGS_OF_A_RUN)
    values = {name: list(dict.fromkeys(setting.get(name, "(none)") for setting in settings)) for name in names}
    return [f"{name}: {' / '.join(each)}" for name, each in values.items() if len(each) > 1]
