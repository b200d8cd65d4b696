"""Shared parts of reports: percentiles, figures, pages and files."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.report import page_head, paragraph, percentile, percentiles, progress_for, publish, shown
from fim_server.errors import BenchError
from fim_server.text.terminal import Table


class Small:
    """A report of one table."""

    def as_json(self) -> dict[str, Any]:
        return {"größe": 1.5}

    def parts(self) -> Iterator[str | Table]:
        yield "machine: one"
        yield ""
        yield Table(("what", "n"), [("open", "3")], numbers=[1])


def test_percentiles_are_measured_values() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert percentiles(values, 0.5, 0.95, 0.99, 1.0) == (100, 190, 198, 200)
    assert percentile([3.0], 0.5) == 3
    assert percentile([4, 1, 3, 2], 0.5) == 2
    assert percentiles([], 0.5, 1.0) == (None, None)


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    draw = random.Random(0)
    for count in range(1, 400):
        values = [draw.uniform(0, 9) for _ in range(count)]
        for share in (0.5, 0.95, 0.99, 1.0):
            assert percentile(values, share) == sorted(values)[math.ceil(share * count) - 1], (count, share)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.00123, "0.001"), (0.25, "0.250"), (9.876, "9.88"), (1234.5, "1,234"), (100.4, "100")],
)
def test_figures_have_three_digits(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_a_report_is_printed_as_a_table_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    publish(Small(), as_json=False)
    assert capsys.readouterr().out == "machine: one\n\nwhat  n\nopen  3\n"
    assert list(report.lines(Small())) == ["machine: one", "", "what  n", "open  3"]
    publish(Small(), as_json=True)
    answer = capsys.readouterr().out
    assert json.loads(answer) == {"größe": 1.5}
    assert "größe" in answer


def test_files_are_written_beside_it(tmp_path: Path) -> None:
    publish(Small(), as_json=True, files={str(tmp_path / "a.md"): lambda: "é\n"})
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "é\n"
    with pytest.raises(BenchError, match=r"no/a\.md: No such file"):
        publish(Small(), as_json=True, files={str(tmp_path / "no" / "a.md"): lambda: ""})


def test_a_page_begins_with_its_command() -> None:
    head = list(page_head("Title", {"command": "fim-server", "machine": "one"}, "\nWhat it\nis.\n"))
    assert head == ["# Title", "", "    fim-server", "", "- machine: one", "", "What it is.", ""]
    assert all(len(line) <= report.PAGE_WIDTH for line in paragraph("word " * 99, indent="  "))


def test_the_machine_is_named_and_no_package_missed() -> None:
    assert "CPUs" in report.machine()
    assert report.version_of("numpy")[0].isdigit()
    assert report.version_of("no-such-package") == "(not installed)"


def test_progress_is_said_to_people_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        with progress_for(as_json) as progress:
            assert list(progress.count("opening", ["one"])) == ["one"]
    assert capsys.readouterr().err == "opening ...\n"
