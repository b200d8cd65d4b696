"""Small plots on logarithmic axes as self-contained SVG text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 400, 320  # of a panel, in pixels
LEFT, RIGHT, TOP, BOTTOM = 62, 32, 58, 46  # margins around a panel's plot area, in pixels
COLOURS = ("#0072b2", "#d55e00")  # told apart by colour-blind eyes too
MORE_COLOURS = (*COLOURS, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
DASHES = ("none", "6 3", "1.5 2.5", "9 3 1.5 3")
RADIUS = 3.2
LEGEND_LINE = 16  # of a distribution's legend below its panel, in pixels
MOST_STEPS = 300  # of a curve: more cannot be seen
SLACK = 0.03  # decades
_TOP_OF_DISTRIBUTION = 32


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


def svg(panels: Sequence[Panel | Distribution]) -> str:
    """The panels side by side."""
    width = WIDTH * len(panels)
    legends = [len(panel.series) for panel in panels if isinstance(panel, Distribution)]
    height = HEIGHT + (LEGEND_LINE * max(legends) + 8 if legends else 0)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        drawn = _distributed(panel) if isinstance(panel, Distribution) else _drawn(panel)
        parts += [f'<g transform="translate({WIDTH * number} 0)">', *drawn, "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _drawn(panel: Panel) -> Iterator[str]:
    points = [point for series in panel.series.values() for point in series]
    ends = [(x, panel.line.at(x)) for x in (panel.line.first, panel.line.last)]
    xs, ys = zip(*points, *ends, strict=True)
    x_decades, y_decades = _decades(xs), _decades(ys)

    def x_of(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _share(x, x_decades)

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * _share(y, y_decades)

    bottom, right, middle = HEIGHT - BOTTOM, WIDTH - RIGHT, (TOP + HEIGHT - BOTTOM) / 2
    yield _text((LEFT + right) / 2, 18, panel.title, 'text-anchor="middle" font-size="13" font-weight="bold"')
    for decade in x_decades:
        x = x_of(10.0**decade)
        yield f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#ddd"/>'
        yield _text(x, bottom + 16, _power(decade), 'text-anchor="middle"')
    for decade in y_decades:
        y = y_of(10.0**decade)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
        yield _text(LEFT - 6, y + 4, _power(decade), 'text-anchor="end"')
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#222"/>'
    yield _text((LEFT + right) / 2, HEIGHT - 10, panel.x_label, 'text-anchor="middle"')
    yield _text(14, middle, panel.y_label, f'text-anchor="middle" transform="rotate(-90 14 {middle:.1f})"')
    (x1, y1), (x2, y2) = ends
    drawn = f"M{x_of(x1):.1f} {y_of(y1):.1f}L{x_of(x2):.1f} {y_of(y2):.1f}"
    yield f'<path d="{drawn}" stroke="#222" stroke-dasharray="5 3"/>'
    yield f'<path d="M{LEFT} {TOP - 12}h18" stroke="#222" stroke-dasharray="5 3"/>'
    yield _text(LEFT + 23, TOP - 8, panel.line.label)
    start = float(LEFT)
    for (name, series), colour in zip(panel.series.items(), COLOURS, strict=False):
        look = f'fill="none" stroke="{colour}" stroke-width="1.4"'
        yield f'<circle cx="{start + RADIUS:.1f}" cy="{TOP - 26}" r="{RADIUS}" {look}/>'
        yield _text(start + 12, TOP - 22, name)
        start += 26 + 6.4 * len(name)  # about the widest common font
        for x, y in series:
            yield f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="{RADIUS}" {look}/>'


def _distributed(panel: Distribution) -> Iterator[str]:
    positive = [value for values in panel.series.values() for value in values if value > 0]
    least = min(positive, default=1.0)
    decades = _decades([least, max(positive, default=10.0)])
    bottom, right, middle = HEIGHT - BOTTOM, WIDTH - RIGHT, (_TOP_OF_DISTRIBUTION + HEIGHT - BOTTOM) / 2

    def x_of(x: float) -> float:
        return LEFT + (right - LEFT) * _share(max(x, least), decades)

    def y_of(share: float) -> float:
        return bottom - (bottom - _TOP_OF_DISTRIBUTION) * share

    yield _text((LEFT + right) / 2, 18, panel.title, 'text-anchor="middle" font-size="13" font-weight="bold"')
    for decade in decades:
        x = x_of(10.0**decade) if 10.0**decade >= least else float(LEFT)
        yield f'<path d="M{x:.1f} {_TOP_OF_DISTRIBUTION}V{bottom}" stroke="#ddd"/>'
        yield _text(x, bottom + 16, _power(decade), 'text-anchor="middle"')
    for tenths in range(0, 11, 2):
        y = y_of(tenths / 10)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
        yield _text(LEFT - 6, y + 4, f"{10 * tenths} %", 'text-anchor="end"')
    yield f'<path d="M{LEFT} {_TOP_OF_DISTRIBUTION}V{bottom}H{right}" fill="none" stroke="#222"/>'
    yield _text((LEFT + right) / 2, HEIGHT - 10, panel.x_label, 'text-anchor="middle"')
    yield _text(14, middle, panel.y_label, f'text-anchor="middle" transform="rotate(-90 14 {middle:.1f})"')
    colours = dict(zip(dict.fromkeys(name for name, _ in panel.series), MORE_COLOURS, strict=False))
    dashes = dict(zip(dict.fromkeys(kind for _, kind in panel.series), DASHES, strict=False))
    for index, ((name, kind), values) in enumerate(panel.series.items()):
        look = f'fill="none" stroke="{colours[name]}" stroke-width="1.6" stroke-dasharray="{dashes[kind]}"'
        y = HEIGHT + LEGEND_LINE * index
        yield f'<path d="M{LEFT} {y}h28" {look}/>'
        yield _text(LEFT + 34, y + 4, f"{name}: {kind}")
        if values:
            steps = " ".join(f"{x_of(x):.1f},{y_of(share):.1f}" for x, share in _steps(values))
            yield f'<polyline points="{steps}" {look}/>'


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


def _decades(values: Sequence[float]) -> range:
    """Powers of ten from below all values to above them; what passes one by a point's width needs no further one."""
    first, last = math.floor(math.log10(min(values)) + SLACK), math.ceil(math.log10(max(values)) - SLACK)
    return range(first, max(last, first + 1) + 1)


def _share(value: float, decades: range) -> float:
    """Where a value lies between the first decade and the last, from 0 to 1."""
    return (math.log10(value) - decades[0]) / (decades[-1] - decades[0])


def _power(decade: int) -> str:
    return f"{10.0**decade:,.0f}" if decade >= 0 else f"{10.0**decade:.{-decade}f}"


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'
