"""Small plots, most on logarithmic axes, as self-contained SVG text, drawn by matplotlib.

The same data give the same bytes. Text stays text, so a plot can be searched and read aloud. matplotlib belongs to the
extra ``bench`` and is imported when a plot is drawn.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from fim_server.errors import MissingLibrary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 400, 320  # of a panel, in pixels
LEGEND_LINE = 16  # of a distribution's legend below its panel, in pixels
PIXELS_PER_INCH = 96  # of an SVG, as CSS has it
COLOURS = ("#0072b2", "#d55e00")  # told apart by colour-blind eyes too
MORE_COLOURS = (*COLOURS, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (6, 3)), (0, (1.5, 2.5)), (0, (9, 3, 1.5, 3)))
MOST_STEPS = 300  # of a curve: more cannot be seen
SLACK = 0.03  # decades
SPACE_ABOVE = 1.05  # a course's axis ends above its largest value

RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fim-server",
    "font.family": "sans-serif",
    "font.size": 8.25,
    "axes.titlesize": 9.75,
    "axes.titleweight": "bold",
    "axes.labelsize": 8.25,
    "axes.linewidth": 0.75,
    "axes.edgecolor": "#222222",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.75,
    "legend.frameon": False,
    "legend.fontsize": 8.25,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.8,
    "lines.markeredgewidth": 1.05,
    "lines.scale_dashes": False,
    "text.color": "#222222",
    "axes.labelcolor": "#222222",
    "xtick.major.pad": 6,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
}


@dataclass(frozen=True)
class Line:
    """A power law, `y = factor * x ** exponent`, drawn from one x to another."""

    label: str
    factor: float
    exponent: float
    first: float
    last: float

    def at(self, x: float) -> float:
        return self.factor * math.pow(x, self.exponent)


@dataclass(frozen=True)
class Panel:
    """One plot.

    Attributes:
        x_label: With the unit.
        y_label: With the unit.
        series: Points by name, two series at most; all coordinates are above 0.
        line: What was fitted to them.
    """

    title: str
    x_label: str
    y_label: str
    series: dict[str, Sequence[tuple[float, float]]]
    line: Line


@dataclass(frozen=True)
class Distribution:
    """A plot of cumulative distributions: for every x, which share of a series is at most x.

    Attributes:
        x_label: With the unit; the axis is logarithmic.
        y_label: With the unit.
        series: Values by name and kind; a name has a colour, a kind a dash, and there are eight names and four kinds at
            most. Values at or below 0 are drawn at the least positive one.
    """

    title: str
    x_label: str
    y_label: str
    series: dict[tuple[str, str], Sequence[float]]


@dataclass(frozen=True)
class Course:
    """A plot of what a value did over time, on linear axes that begin at 0.

    Attributes:
        x_label: With the unit.
        y_label: With the unit.
        series: Points by name, in the order of x; there are eight names at most.
    """

    title: str
    x_label: str
    y_label: str
    series: dict[str, Sequence[tuple[float, float]]]


def check_installed() -> None:
    """See that plots can be drawn, before work that ends with one.

    Raises:
        MissingLibrary: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingLibrary("a plot needs matplotlib, which is not installed: pip install 'fim-server[bench]'")


def svg(panels: Sequence[Panel | Distribution | Course]) -> str:
    """The panels side by side.

    Raises:
        MissingLibrary: matplotlib is not installed.
    """
    check_installed()
    import matplotlib as mpl

    with mpl.rc_context(cast(Any, RC)):
        written = io.StringIO()
        _figure(panels).savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _figure(panels: Sequence[Panel | Distribution | Course]) -> Figure:
    from matplotlib.figure import Figure

    legends = [len(panel.series) for panel in panels if isinstance(panel, Distribution)]
    height = HEIGHT + (LEGEND_LINE * max(legends) + 8 if legends else 0)
    size = (WIDTH * max(len(panels), 1) / PIXELS_PER_INCH, height / PIXELS_PER_INCH)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    for number, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number, title=panel.title)
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel(panel.y_label)
        if isinstance(panel, Distribution):
            _draw_distribution(axes, panel, number)
        elif isinstance(panel, Course):
            _draw_course(axes, panel, number)
        else:
            _draw_points(axes, panel, number)
    return figure


def _draw_points(axes: Axes, panel: Panel, number: int) -> None:
    points = [point for series in panel.series.values() for point in series]
    ends = [(x, panel.line.at(x)) for x in (panel.line.first, panel.line.last)]
    xs, ys = zip(*points, *ends, strict=True)
    _scale(axes, "x", _decades(xs))
    _scale(axes, "y", _decades(ys))
    look: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "linestyle": "none", "clip_on": False}
    for index, ((name, series), colour) in enumerate(zip(panel.series.items(), COLOURS, strict=False), start=1):
        axes.plot(*zip(*series, strict=True), color=colour, label=name, gid=f"points-{number}-{index}", **look)
    axes.plot(*zip(*ends, strict=True), color="#222222", linestyle=(0, (5, 3)), linewidth=0.9, label=panel.line.label)
    axes.legend(loc="upper left")


def _draw_distribution(axes: Axes, panel: Distribution, number: int) -> None:
    positive = [value for values in panel.series.values() for value in values if value > 0]
    least = min(positive, default=1.0)
    _scale(axes, "x", _decades([least, max(positive, default=10.0)]))
    axes.set_ylim(0, 1)
    axes.set_yticks([tenths / 10 for tenths in range(0, 11, 2)], [f"{10 * tenths} %" for tenths in range(0, 11, 2)])
    colours = dict(zip(dict.fromkeys(name for name, _ in panel.series), MORE_COLOURS, strict=False))
    dashes = dict(zip(dict.fromkeys(kind for _, kind in panel.series), DASHES, strict=False))
    for index, ((name, kind), values) in enumerate(panel.series.items(), start=1):
        corners = [(max(x, least), share) for x, share in _steps(values)]
        xs, shares = zip(*corners, strict=True) if corners else ((), ())
        look: dict[str, Any] = {"color": colours[name], "linestyle": dashes[kind], "clip_on": False}
        axes.plot(xs, shares, label=f"{name}: {kind}", gid=f"curve-{number}-{index}", **look)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), borderaxespad=0)


def _draw_course(axes: Axes, panel: Course, number: int) -> None:
    from matplotlib.ticker import StrMethodFormatter

    for index, ((name, points), colour) in enumerate(zip(panel.series.items(), MORE_COLOURS, strict=False), start=1):
        xs, ys = zip(*points, strict=True) if points else ((), ())
        axes.plot(xs, ys, color=colour, label=name, gid=f"course-{number}-{index}")
    for axis, values in zip((axes.xaxis, axes.yaxis), zip(*chain(*panel.series.values()), strict=True), strict=False):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_view_interval(0, SPACE_ABOVE * max(*values, 1), ignore=True)
    axes.legend(loc="lower right")


def _steps(values: Sequence[float]) -> Iterator[tuple[float, float]]:
    """The corners of a distribution's curve: at its first value it leaves 0, at its last it reaches 1."""
    ordered = sorted(values)
    count = min(len(ordered), MOST_STEPS)
    share = 0.0
    for number in range(1, count + 1):
        value = ordered[math.ceil(number * len(ordered) / count) - 1]
        yield value, share
        share = number / count
        yield value, share


def _scale(axes: Axes, name: str, decades: range) -> None:
    """Make an axis logarithmic, from the first decade to the last, with a line and a number at each."""
    from matplotlib.ticker import NullLocator

    axis = axes.xaxis if name == "x" else axes.yaxis
    ends = (10.0 ** decades[0], 10.0 ** decades[-1])
    if name == "x":
        axes.set_xscale("log")
        axes.set_xlim(ends)
    else:
        axes.set_yscale("log")
        axes.set_ylim(ends)
    axis.set_minor_locator(NullLocator())
    axis.set_ticks([10.0**decade for decade in decades], labels=[_power(decade) for decade in decades])


def _decades(values: Sequence[float]) -> range:
    """Powers of ten from below all values to above them; what passes one by a point's width needs no further one."""
    first, last = math.floor(math.log10(min(values)) + SLACK), math.ceil(math.log10(max(values)) - SLACK)
    return range(first, max(last, first + 1) + 1)


def _power(decade: int) -> str:
    return f"{10.0**decade:,.0f}" if decade >= 0 else f"{10.0**decade:.{-decade}f}"
