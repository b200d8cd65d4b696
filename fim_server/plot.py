"""Small log-log plots as self-contained SVG text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 400, 320  # of a panel, in pixels
LEFT, RIGHT, TOP, BOTTOM = 62, 32, 58, 46  # margins around a panel's plot area, in pixels
COLOURS = ("#0072b2", "#d55e00")  # told apart by colour-blind eyes too
RADIUS = 3.2
SLACK = 0.03  # decades


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


def svg(panels: Sequence[Panel]) -> str:
    """The panels side by side."""
    width = WIDTH * len(panels)
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({WIDTH * number} 0)">', *_drawn(panel), "</g>"]
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
