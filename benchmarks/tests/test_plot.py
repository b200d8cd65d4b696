"""Plots are SVG with every point, text that can be read, and the same bytes for the same data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from benchmarks import plot
from fim_server.errors import MissingLibrary

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
LINE = plot.Line("time < size", 0.1, 1, 1, 1000)
PANEL = plot.Panel("A & B", "x, m", "y, s", {"one": [(1, 0.1), (1000, 90)], "two": [(10, 1.0)]}, LINE)


def texts_of(root: ElementTree.Element) -> list[str | None]:
    return [text.text for text in root.iter(f"{SVG}text")]


def group(root: ElementTree.Element, name: str) -> ElementTree.Element:
    """The one group with an id."""
    (found,) = (one for one in root.iter(f"{SVG}g") if one.get("id") == name)
    return found


def corners(root: ElementTree.Element, name: str) -> list[tuple[float, float]]:
    """The points of a curve."""
    (path,) = group(root, name).iter(f"{SVG}path")
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_the_plot_is_svg_with_every_point() -> None:
    root = ElementTree.fromstring(plot.svg([PANEL, PANEL]))
    texts = texts_of(root)
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :]
    assert {"A & B", "x, m", "y, s", "one", "two", "time < size", "0.1", "1", "10", "100", "1,000"} == set(texts)
    for number in (1, 2):
        for index, count in ((1, 2), (2, 1)):
            points = [one for one in group(root, f"points-{number}-{index}").iter(f"{SVG}use") if LINK in one.attrib]
            assert len(points) == count
            assert all(0 <= float(one.attrib["x"]) <= 600 and 0 <= float(one.attrib["y"]) <= 240 for one in points)


def test_the_same_data_are_the_same_bytes() -> None:
    assert plot.svg([PANEL]) == plot.svg([PANEL])
    assert "date" not in plot.svg([PANEL]).lower()


def test_a_distribution_is_drawn_from_0_to_1() -> None:
    series: dict[tuple[str, str], Sequence[float]]
    series = {("a <b>", "warm"): [1.0, 2.0, 4.0, 0.0], ("a <b>", "cold"): [30.0], ("c", "cold"): []}
    root = ElementTree.fromstring(plot.svg([plot.Distribution("Title", "x, µs", "share", series)]))
    wanted = {"Title", "x, µs", "share", "a <b>: warm", "a <b>: cold", "c: cold", "0 %", "100 %", "1", "100"}
    assert wanted <= set(texts_of(root))
    warm, cold = (corners(root, f"curve-1-{index}") for index in (1, 2))
    assert len(warm) == 8  # two for each value
    for points in (warm, cold):
        assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert (warm[0][1], warm[-1][1]) == (cold[0][1], cold[-1][1])
    styles = [group(root, f"curve-1-{index}")[0].attrib["style"] for index in (1, 2)]
    assert ["stroke-dasharray: 6" in style for style in styles] == [False, True]
    assert all(f"stroke: {plot.COLOURS[0]}" in style for style in styles)


def test_without_matplotlib_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(MissingLibrary, match=r"^a plot needs matplotlib, .*fim-server\[bench\]'$"):
        plot.svg([PANEL])
