"""``./dev bench start`` measures both starts of this checkout, and of another one."""

from __future__ import annotations

import pytest

from benchmarks.server.start import KINDS, ROOT, StartOptions, run


def test_a_run_has_a_row_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(StartOptions(runs=1, model="embedded", beside=ROOT)) == 0
    head, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["median,", "ms", "here", "beside", "ratio"]
    assert [row[0] for row in rows] == list(KINDS)
    values = [[float(cell) for cell in row[1:]] for row in rows]
    assert all(cell > 0 for row in values for cell in row)
    assert values[0][0] < values[1][0]
