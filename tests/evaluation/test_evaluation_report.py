"""Reports as commands make them: their files, what they say for programs, odd and bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from fim_server.errors import MissingLibrary, RecordError
from fim_server.evaluation.records import MODES, Data, Record
from fim_server.evaluation.reporting import report
from fim_server.evaluation.reporting.commands import eval_extra
from fim_server.evaluation.reporting.files import REPORT_PAGE, REPORT_SUMMARY
from fim_server.evaluation.reporting.measured import measured, read_measured
from fim_server.evaluation.reporting.tables.sections import sections
from support.evaluation.evaluation_records import odd_records, record, records, run_info, write_run
from support.evaluation.evaluation_reports import Page, page_of, rows_of, run_report


def test_report_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", records(60), run_info(data=(Data("samples.jsonl", "0" * 64, 60),)))
    assert run_report(folder, "--out", tmp_path / "out") == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("report.html", "summary.md", "success.svg", "validity.svg", "latency.svg", "context-cost.svg"),
        "win-and-loss.svg",
    }
    assert str(tmp_path / "out" / "report.html") in capsys.readouterr().out
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    for said in ("# Fill-in-the-middle evaluation: embedded", "Table I", "Table II", "![Success by mode](success.svg)"):
        assert said in text
    assert "Not finished" not in text
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert run_report(folder, "--out", tmp_path / "again") == 0
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}


def test_report_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", records(30))
    assert run_report(folder, "--out", tmp_path / "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    data = read_measured([folder])
    success = found["figures"]["all"]["modes"]["constrained"]["success"]
    assert success["value"] == pytest.approx(data.modes["constrained"].success.mean())
    pairs = {(one["first"], one["second"]): one for one in found["figures"]["all"]["differences"]}
    assert pairs["constrained", "checked"]["pairs"] == 30
    assert {table["key"] for table in found["tables"]} >= {"table-1", "table-2", "differences", "won", "below"}
    assert any("Not finished: 30 of 100" in notice for notice in found["notices"])


def without(one: Record) -> Record:
    """A record that could not be measured: null wherever it may be."""
    kept = {field.name: getattr(one, field.name) for field in fields(one) if field.default is MISSING}
    return Record(**kept, error="out of memory")


ODD_RUNS: dict[str, list[Record]] = {
    "empty": [],
    "one record": [record("a", "constrained")],
    "one mode": [one for one in records(20) if one.mode == "unconstrained"],
    "checked alone": [one for one in records(20) if one.mode == "checked"],
    "all failed": [replace(one, text=None, parses=False, won=None, complete_at=()) for one in records(20)],
    "nothing measured": [without(one) for one in records(20)],
    "no times": [replace(one, open_ms=None, model_ms=None, engine_ms=None, total_ms=None) for one in records(20)],
    "no tokens": [replace(one, tokens=0, text="", complete_at=None) for one in records(20)],
    "modes missing here and there": [one for number, one in enumerate(records(40)) if number % 5],
    "odd texts": odd_records(),
    "an unknown mode": [record("a", "constrained"), record("a", "guessed")],
    "all alike": [record(str(number), mode) for number in range(5) for mode in MODES],
    "times of nought": [replace(one, open_ms=0.0, engine_ms=0.0, total_ms=0.0) for one in records(10)],
}


@pytest.mark.parametrize("name", ODD_RUNS)
def test_odd_runs_have_a_report(name: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    folder = write_run(tmp_path / "run", ODD_RUNS[name])
    assert run_report(folder, "--out", tmp_path / "out") == 0
    # What another test of this process has left open may be found meanwhile.
    assert not [str(one.message) for one in recwarn if not issubclass(one.category, ResourceWarning)]
    text = (tmp_path / "out" / REPORT_PAGE).read_text(encoding="utf-8")
    Page(text)
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), re.IGNORECASE)
    data = read_measured([folder])
    for _, some in sections(data) if data.count else []:
        for table in some:
            rows_of(table)
    if name == "modes missing here and there":
        assert "Left out, for want of a record" in text


def test_markdown_of_odd_texts_stays_a_table(tmp_path: Path) -> None:
    page_of(odd_records(), tmp_path)
    text = (tmp_path / REPORT_SUMMARY).read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u2028\u2029\u202e]", text)
    columns = 0
    for line in text.splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line))
        if line.startswith("|---"):
            assert columns == bars, "the rule under a header"
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert bars == columns, line
        else:
            columns = bars


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="not a run") as caught:
        run_report(tmp_path, "--out", tmp_path / "out")
    assert "\n" not in str(caught.value)
    folder = write_run(tmp_path / "run", records(3))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordError, match="file"):
        run_report(folder, "--out", tmp_path / "file")


def test_a_missing_library_is_named() -> None:
    with pytest.raises(MissingLibrary, match=r"needs seaborn.*fim-server\[eval\]"), eval_extra():
        raise ModuleNotFoundError("No module named 'seaborn'", name="seaborn")
    with pytest.raises(ModuleNotFoundError), eval_extra():
        raise ModuleNotFoundError("No module named 'fim_server.gone'", name="fim_server.gone")


def test_options_load_neither_torch_nor_matplotlib() -> None:
    script = (
        "import argparse, sys\n"
        "from fim_server.cli import evaluate\n"
        "evaluate.add_steps(argparse.ArgumentParser())\n"
        "assert not {'torch', 'matplotlib', 'scipy', 'jinja2'} & set(sys.modules), 'loaded too early'\n"
        "import fim_server.evaluation.reporting.figures.plots, fim_server.evaluation.reporting.page\n"
        "assert 'torch' not in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_notices_of_prompts_that_differ() -> None:
    found = [record("a", "constrained"), record("a", "checked", prompt_hash="1" * 16)]
    assert any("different prompts" in notice for notice in report.notices(measured([run_info()], found)))
