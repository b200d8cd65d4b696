"""``./dev bench soak``: what is called growth, the plot, and a short run with the real server."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import run as main
from benchmarks.server import soak
from benchmarks.server.soak import Reading, Report
from support.bench_corpus import TYPED_SOURCE as SOURCE


def report(*megabytes: float) -> Report:
    readings = [
        Reading(500 * number, float(number), int(1e6 * memory), 0.0, 0) for number, memory in enumerate(megabytes)
    ]
    return Report({"command": "./dev bench soak"}, readings)


def test_growth_is_from_the_second_fifth_to_the_last() -> None:
    filled = [200.0, 300.0, 400.0]
    assert report(*filled, *[400.0] * 18).growth == pytest.approx(0)
    assert report(*filled, *[400.0 + 10 * number for number in range(18)]).growth == pytest.approx(555 / 435 - 1)
    assert report(*filled, *[400.0] * 8, 900.0, *[400.0] * 9).growth == pytest.approx(0)
    assert report(200.0, 400.0).growth is None


def test_the_plot_has_every_reading() -> None:
    root = ElementTree.fromstring(report(*[400.0] * 12).as_svg())
    (course,) = (one for one in root.iter("{http://www.w3.org/2000/svg}g") if one.get("id") == "course-1-1")
    assert any(one.attrib["d"].count("L") == 11 for one in course.iter("{http://www.w3.org/2000/svg}path"))


def test_a_short_soak(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        (tmp_path / f"module_{number}.py").write_text(SOURCE, encoding="utf-8")
    given = ["--path", str(tmp_path), "--files", "3", "--keystrokes", "120", "--every", "10", "--most-growth", "5"]
    plot = tmp_path / "memory.svg"
    assert main(["soak", *given, "--json", "--plot", str(plot)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [reading["keystrokes"] for reading in found["readings"]] == [*range(0, 121, 10), 120]
    assert all(reading["memory"] > 50e6 for reading in found["readings"])
    assert found["readings"][-1]["closed"] == 3
    counts = found["counts"]
    assert counts["asked"] == counts["answered"] + counts.get("cancelled", 0) > 80
    assert found["statistics"]["failed"] == 0
    assert str(tmp_path) not in json.dumps(found)
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


def test_growth_and_failures_are_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def soaked(*_: object) -> Report:
        return found

    monkeypatch.setattr(soak, "soak", soaked)
    found = report(*[400.0 + 10 * number for number in range(21)])
    assert main(["soak"]) == 1
    assert "from the second fifth to the last, in the median: +25.8%" in capsys.readouterr().out
    found = report(*[400.0] * 21)
    assert main(["soak"]) == 0
    found.counts["failed"] = 1
    assert main(["soak"]) == 1
