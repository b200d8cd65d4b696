"""Models beside each other: a table for each set, a row for each name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")

from fim_server.errors import RecordError
from fim_server.evaluation.reporting.measured import measured
from fim_server.evaluation.reporting.models import as_text, read_rows, tables
from fim_server.evaluation.reporting.tables.table import Table
from support.command_line import run_command
from support.evaluation.evaluation_records import record, records, run_info, write_run
from support.evaluation.evaluation_reports import rows_of


def table_of(made: list[Table], title: str) -> Table:
    [found] = [one for one in made if one.title == title]
    return found


def test_each_set_has_a_table_and_each_name_a_row(tmp_path: Path) -> None:
    found = records(40, sets=("line", "human-eval-infilling"))
    lines = write_run(tmp_path / "lines", [one for one in found if one.set == "line"])
    others = write_run(tmp_path / "others", [one for one in found if one.set != "line"])
    second = write_run(tmp_path / "second", records(40, 1, sets=("line",), modes=("constrained",)))
    made = tables(read_rows([f"first={lines}", f"first={others}", str(second)]))
    titles = ["line", "human-eval-infilling, single-line", "human-eval-infilling, random-span"]
    assert sorted(one.title for one in made) == sorted(titles)
    rows = rows_of(table_of(made, "line"))
    assert [row["model"] for row in rows] == ["first", "second"]
    assert (rows[0]["samples"], rows[1]["samples"]) == ("20", "40")
    assert rows[1]["exact, unconstrained"] == "–"
    own = [one for one in found if one.set == "line" and one.mode == "constrained"]
    exact = sum(bool(one.exact_match and one.parses) for one in own)
    assert rows[0]["exact, constrained"].startswith(f"{100 * exact / 20:.1f} % (")
    tested = rows_of(table_of(made, "human-eval-infilling, single-line"))[0]
    of_kind = [one for one in found if one.kind == "single-line" and one.mode == "checked"]
    passed = sum(bool(one.passed) for one in of_kind)
    assert tested["pass@1, checked"].startswith(f"{100 * passed / len(of_kind):.1f} % (")
    assert "pass@1, checked" not in rows[0]


def test_an_exact_match_is_in_a_program_that_parses(tmp_path: Path) -> None:
    same = record("a", "constrained", True, text="x = 1", exact_match=True)
    broken = record("b", "constrained", False, text="x = 1", exact_match=True)
    run = write_run(tmp_path / "run", [same, broken])
    [row] = rows_of(tables(read_rows([str(run)]))[0])
    assert row["exact, constrained"].startswith("50.0 %")
    assert measured([run_info()], [same, broken]).modes["constrained"].exact.tolist() == [True, False]


def test_bits_are_summed_over_all_middles(tmp_path: Path) -> None:
    scored = [
        record("a", "constrained", reference="größe", reference_bits=21.0, end_bits=1.0),
        record("b", "constrained", reference="x", reference_bits=3.0, end_bits=4.0),
        record("c", "constrained", reference="not scored"),
    ]
    [row] = rows_of(tables(read_rows([str(write_run(tmp_path / "run", scored))]))[0])
    assert (row["bits a byte"], row["to end"]) == ("3.00", "2.50")
    [row] = rows_of(tables(read_rows([str(write_run(tmp_path / "plain", [record("a", "constrained")]))]))[0])
    assert "bits a byte" not in row


def test_rows_may_be_of_the_samples_that_all_have(tmp_path: Path) -> None:
    many = [record(name, "constrained", text="x = 1", exact_match=name < "c") for name in "abcdef"]
    few = [replace(one, sample=name) for name, one in zip("bcx", many, strict=False)]
    runs = [str(write_run(tmp_path / "many", many)), str(write_run(tmp_path / "few", few))]
    assert [row["samples"] for row in rows_of(tables(read_rows(runs))[0])] == ["6", "3"]
    rows = rows_of(tables(read_rows(runs), common=True)[0])
    assert [row["samples"] for row in rows] == ["2", "2"]
    assert [row["exact, constrained"][:4] for row in rows] == ["50.0", "100."]


def test_two_runs_of_one_name_have_no_sample_twice(tmp_path: Path) -> None:
    one, two = (str(write_run(tmp_path / name, [record("a", "checked")])) for name in ("one", "two"))
    with pytest.raises(RecordError, match="both have results of a"):
        read_rows([f"x={one}", f"x={two}"])
    assert len(read_rows([one, two])) == 2


def test_tables_go_into_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", records(6, sets=("line",)))
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- lines -->\nold\n<!-- end of lines -->\n\nAfter.\n", encoding="utf-8")
    command = ["eval", "table", f"a model={run}"]
    status, printed, _ = run_command(capsys, *command)
    assert status == 0
    assert printed == as_text(tables(read_rows([f"a model={run}"])))
    assert run_command(capsys, *command, "--into", str(page), "--block", "lines")[0] == 0
    written = page.read_text(encoding="utf-8")
    assert written == f"# Title\n\n<!-- lines -->\n\n{printed}\n<!-- end of lines -->\n\nAfter.\n"
    assert run_command(capsys, *command, "--into", str(page), "--block", "lines")[0] == 0
    assert page.read_text(encoding="utf-8") == written
    status, _, errors = run_command(capsys, *command, "--into", str(page), "--block", "others")
    assert (status, errors.count("\n")) == (2, 1)
    assert page.read_text(encoding="utf-8") == written
    status, output, _ = run_command(capsys, *command, "--json")
    assert json.loads(output)[0]["rows"][0][0] == "a model"
    assert run_command(capsys, "eval", "table", str(tmp_path / "nowhere"))[0] == 2


def test_a_run_without_results_has_no_table(tmp_path: Path) -> None:
    assert tables(read_rows([str(write_run(tmp_path / "run", []))])) == []


@pytest.mark.parametrize(
    ("left", "reference", "text", "is_right"),
    [
        ("x = ", "foo(1)", "foo(2)", True),
        ("x = ", "foo(1)", "food(1)", False),
        ("x = fo", "o(1)", "o)", True),
        ("x = fo", "o(1)", " o(1)", False),
        ("return", " x", " x + 1", True),
        ("return", " x", "x", False),
        ("f(", "a, b)", " a)", True),
        ("f(", "a, b)", None, False),
        ("f(", "a, b)", "", False),
        ("f", "(a)", "(b)", True),
    ],
)
def test_first_lexemes_are_words_or_single_characters(
    tmp_path: Path, left: str, reference: str, text: str | None, is_right: bool
) -> None:
    one = record("a", "constrained", text=text, reference=reference, left_tail=left)
    [row] = rows_of(tables(read_rows([str(write_run(tmp_path / "run", [one]))]))[0])
    assert row["first lexeme, constrained"] == ("100.0 %" if is_right else "0.0 %")
