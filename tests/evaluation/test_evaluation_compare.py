"""Two runs compared: by hand, in words and on a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from fim_server.errors import RecordError
from fim_server.evaluation.reporting import compare, page
from fim_server.evaluation.reporting.joined import join
from support.evaluation.evaluation_records import BUDGET, ODD_TEXTS, odd_records, record, records, run_info, write_run
from support.evaluation.evaluation_reports import Page, run_compare


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """12 samples in both, B winning two and losing one; one only in A, two only in B, one with another hole."""
    ours = [record(f"s{n}", "constrained", n not in (0, 1)) for n in range(12)]
    theirs = [record(f"s{n}", "constrained", n != 5, edit_similarity=0.75) for n in range(12)]
    ours += [record("only-a", "constrained"), record("moved", "constrained", reference="x = 2")]
    theirs += [record("only-b", "constrained"), record("only-b2", "constrained"), record("moved", "constrained")]
    ours += [record("s0", "checked")]
    first = write_run(tmp_path / "a", ours, run_info(machine={"cores": 2}))
    second = write_run(tmp_path / "b", theirs, run_info(budget=100, machine={"cores": 4}, started="later"))
    return first, second


def test_comparison_by_hand(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_compare(*two_runs, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["only_a"], found["only_b"], found["other_hole"]) == (12, 1, 2, 1)
    assert found["settings"] == [
        {"setting": "budget", "a": "200", "b": "100"},
        {"setting": "machine.cores", "a": "2", "b": "4"},
    ]
    assert list(found["modes"]) == ["constrained"]
    mode = found["modes"]["constrained"]
    assert mode["pairs"] == 12
    assert [one["sample"] for one in mode["won"]] == ["s0", "s1"]
    assert [one["sample"] for one in mode["lost"]] == ["s5"]
    assert mode["success"]["difference"] == pytest.approx(1 / 12)
    assert mode["success"]["low"] < 0 < mode["success"]["high"]
    assert mode["edit"]["difference"] == pytest.approx(0.25)
    assert mode["mcnemar_p"] == 1.0


def test_comparison_in_words_and_on_a_page(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_compare(*two_runs) == 0
    text = capsys.readouterr().out
    assert "| budget | 200 | 100 |" in text
    assert "2 : 1" in text
    assert "![" not in text  # there are no files to show
    out = two_runs[0].parent / "out"
    assert run_compare(*two_runs, "--out", out) == 0
    assert {"compare.html", "compare.md", "compare.json", "success.svg"} <= {path.name for path in out.iterdir()}
    parsed = Page((out / "compare.html").read_text(encoding="utf-8"))
    assert all(reference.startswith("#") for reference in parsed.references)
    content = page.unpacked(parsed.scripts[0])
    assert content["variants"] == ["A constrained", "B constrained"]
    assert [sample[0] for sample in content["samples"]][:3] == ["s5", "s0", "s1"]  # lost, then won
    assert json.loads((out / "compare.json").read_text())["samples"] == 12


def test_a_run_equals_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records(40))
    joined = join(folder, folder)
    found = compare.as_json(joined, compare.report_on(joined))
    assert found["settings"] == []
    for mode in found["modes"].values():
        assert mode["won"] == mode["lost"] == []
        assert (mode["success"]["difference"], mode["success"]["low"], mode["success"]["high"]) == (0, 0, 0)


def test_runs_without_common_samples_cannot_be_compared(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [record("a", "constrained")])
    two = write_run(tmp_path / "two", [record("b", "constrained")])
    other = write_run(tmp_path / "other", [record("a", "checked")])
    for second in (two, other, write_run(tmp_path / "empty", [])):
        with pytest.raises(RecordError, match="no sample in common"):
            join(one, second)


def test_odd_runs_can_be_compared(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "odd", odd_records())
    assert run_compare(folder, folder, "--out", tmp_path / "out") == 0
    text = (tmp_path / "out" / "compare.html").read_text(encoding="utf-8")
    assert Page(text).tags["script"] == 2
    assert len(ODD_TEXTS) < join(folder, folder).data.count
    assert BUDGET == 200
