"""Style of plots: colours from the page's style sheet, markers, dashes, axes and legends.

matplotlib's few colours become variables of the style sheet, with values for light and dark. Modes differ by marker
and dash as well as by colour (Okabe and Ito's palette for colour-blind readers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

WIDTH = 7.2
"""Width of every plot in inches."""

COLOURS: dict[str, tuple[str, str, str]] = {
    # What matplotlib is told: the variable that it becomes, its value on light and on dark.
    "#010101": ("--plot-ink", "#24292f", "#e2e6ea"),
    "#020202": ("--plot-grid", "#d5d9de", "#3b424b"),
    "#030303": ("--plot-faint", "#6a737d", "#9aa4af"),
    "#040404": ("--plot-1", "#d55e00", "#ff8c42"),
    "#050505": ("--plot-2", "#0072b2", "#56b4e9"),
    "#060606": ("--plot-3", "#00845f", "#2fc99b"),
    "#070707": ("--plot-4", "#a8508a", "#e08fc4"),
    "#080808": ("--plot-5", "#8a6d00", "#e6b800"),
    "#090909": ("--plot-6", "#555555", "#bbbbbb"),
}

INK, GRID, FAINT, *SERIES = COLOURS

MODE_LOOKS = {"unconstrained": 0, "checked": 1, "constrained": 2}

MARKERS = ("s", "^", "o", "D", "v", "P")

DASHES: tuple[Any, ...] = ((0, (2, 1.6)), (0, (6, 2)), "-", (0, (1, 1)), (0, (6, 2, 1, 2)), (0, (3, 1)))

RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fim-server",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.formatter.use_mathtext": False,
}


def variables() -> tuple[str, str]:
    """The declarations of the plots' colours for a style sheet: on light, on dark."""
    light, dark = (" ".join(f"{c[0]}: {c[which]};" for c in COLOURS.values()) for which in (1, 2))
    return light, dark


def look(mode: str, order: Sequence[str]) -> tuple[str, str, Any]:
    """Colour, marker and dash of a mode; of one mode of several runs (``A checked``) the colour is the mode's."""
    colour = MODE_LOOKS.get(mode.rpartition(" ")[2], len(MODE_LOOKS))
    place = MODE_LOOKS.get(mode, order.index(mode) if mode in order else 0) % len(MARKERS)
    return SERIES[colour], MARKERS[place], DASHES[place]


def new_figure(height: float) -> Figure:
    """All plots are equally wide, so that their letters are equally large. Inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def in_percent(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))


def legend_above(axes: Any) -> None:
    names = len(axes.get_legend_handles_labels()[1])
    columns = names if names <= 4 else 3  # as many as there is room for
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, borderaxespad=0.2, handlelength=2.6)


def logarithmic(axis: Any, low: float, high: float) -> None:
    """Ticks at 1, 2 and 5 of a decade where there are few decades."""
    decades = math.log10(high / low) if 0 < low < high else 0.0
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,), numticks=30))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
