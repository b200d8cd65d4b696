"""Evaluation of samples in several languages: who judges, and what reports say of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from fim_server.datasets import Sample, read_samples, write_samples
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.programs import ENGINE, NOTHING
from fim_server.evaluation.records import MODES, Record, RunInfo, read_run
from fim_server.evaluation.reporting.measured import measured
from fim_server.evaluation.reporting.models import group_of
from fim_server.evaluation.reporting.report import report_on
from fim_server.evaluation.reporting.tables import slices, success
from fim_server.evaluation.running.judges import Judges
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from support.command_line import run_command
from support.evaluation.evaluation_records import records, run_info
from support.evaluation.evaluation_reports import rows_of
from support.evaluation.evaluation_samples import sample_of
from support.models.tiny_models import write_tiny_model

DOCUMENT = '{\n  "a": [1, 2, {"b": null}],\n  "c": [true, -1.5e3]\n}\n'

Eval = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"), 16)


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> FimModel:
    return load_model(str(tiny_folder), "cpu")


@pytest.fixture
def evaluate(
    tiny: FimModel, tiny_folder: Path, mixed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Eval:
    """``fim-server eval run`` with the tiny model, loaded once; gives exit status, standard output and error."""
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *asked: tiny)

    def runner(out: Path, *arguments: str, data: Path = mixed) -> tuple[int, str, str]:
        command = ["eval", "run", "--data", str(data), "--out", str(out), "--model", str(tiny_folder)]
        return run_command(capsys, *command, "--device", "cpu", "--budget", "12", "--batch", "4", *arguments)

    return runner


def json_sample(number: int, begin: int, end: int, **fields: Any) -> Sample:
    parts = {"left": DOCUMENT[:begin], "middle": DOCUMENT[begin:end], "right": DOCUMENT[end:]}
    return sample_of(number, **{"id": f"json-{number}", "language": "json", **parts, **fields})


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.jsonl"
    holes = [(10, 14), (11, 19), (0, 3), (30, 33)]
    write_samples(
        path,
        [
            *(sample_of(number) for number in range(4)),
            *(json_sample(number, *hole) for number, hole in enumerate(holes)),
        ],
    )
    return path


def results(run: Path) -> dict[tuple[str, str], Record]:
    return {record.key: record for record in read_run(run)}


def test_each_language_is_judged_by_its_own_parser(evaluate: Eval, mixed: Path, tmp_path: Path) -> None:
    assert evaluate(tmp_path / "run")[0] == 0
    info = RunInfo.read(tmp_path / "run")
    assert info.languages == ("python", "json")
    assert info.judge.startswith("3.")
    assert info.judges == {"json": f"CPython's json, Python {info.versions['python']}"}
    found = results(tmp_path / "run")
    judges = Judges(("python", "json"), None, {}, None, {})
    samples = {sample.id: sample for sample in read_samples(mixed)}
    assert len(found) == len(samples) * len(MODES)
    parsed = set()
    for (name, mode), record in found.items():
        sample = samples[name]
        assert record.error is None
        assert record.language == sample.language
        if record.text is not None:
            text = sample.filled(record.text)
            assert record.parses is judges.parses(sample.language, text, bool(record.complete))
            assert mode == "unconstrained" or record.parses
            language = judges.languages[sample.language]
            assert record.complete is language.open(sample.left, sample.right).check(record.text).complete
            parsed.add((record.language, record.parses))
    judges.close()
    assert {language for language, parses in parsed if parses} == {"python", "json"}


def test_files_of_one_language_ask_its_judge_alone(evaluate: Eval, tmp_path: Path) -> None:
    write_samples(tmp_path / "json.jsonl", [json_sample(0, 10, 14)])
    # A judge of Python that is none is never asked.
    assert evaluate(tmp_path / "run", "--judge", "no-such-python", data=tmp_path / "json.jsonl")[0] == 0
    info = RunInfo.read(tmp_path / "run")
    assert (info.languages, info.judge, info.language_version) == (("json",), "", None)


def test_a_missing_judge_is_said_before_the_model_is_loaded(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*asked: object) -> FimModel:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("fim_server.models.load.load_model", loaded)
    monkeypatch.setitem(programs.table()["json"], "needs", ["no-such-program"])
    status, output, errors = evaluate(tmp_path / "run")
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert "the judge of json needs no-such-program" in errors
    assert "--judge json=engine" in errors
    assert not (tmp_path / "run").exists()
    status, _, errors = evaluate(tmp_path / "run", "--judge", "json=no-such-program")
    assert (status, errors.count("\n")) == (2, 1)
    assert "no-such-program cannot be started" in errors


def test_the_engine_judges_only_where_that_is_said_and_the_report_says_so(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(programs.table()["json"], "needs", ["no-such-program"])
    assert evaluate(tmp_path / "run", "--judge", "json=engine")[0] == 0
    assert RunInfo.read(tmp_path / "run").judges == {"json": ENGINE}
    for record in results(tmp_path / "run").values():
        assert record.language != "json" or record.text is None or record.parses is record.complete
    assert run_command(capsys, "eval", "report", str(tmp_path / "run"), "--out", str(tmp_path / "report"))[0] == 0
    summary = (tmp_path / "report" / "summary.md").read_text(encoding="utf-8")
    assert "Texts in json were judged by the engine itself" in summary
    assert "json: the engine" in summary
    monkeypatch.undo()
    status, _, errors = evaluate(tmp_path / "run")
    assert (status, errors.count("\n")) == (2, 1)
    assert "--judge" in errors


def test_languages_without_a_parser_of_their_own_are_run(evaluate: Eval, tmp_path: Path) -> None:
    contexts = {"left": "f(a", "middle": ", b", "right": ")\n"}
    samples = [sample_of(0, language="c", **contexts), sample_of(1, language="makefile", **contexts)]
    write_samples(tmp_path / "both.jsonl", samples)
    asked = ("--judge", "c=engine", "--judge", "makefile=none")
    assert evaluate(tmp_path / "run", *asked, data=tmp_path / "both.jsonl")[0] == 0
    assert RunInfo.read(tmp_path / "run").judges == {"c": ENGINE, "makefile": NOTHING}
    found = results(tmp_path / "run")
    assert len(found) == 2 * len(MODES)
    for record in found.values():
        assert record.guarantee == {"c": "balanced", "makefile": "none"}[record.language]
        assert record.language == "c" or record.text is None or record.parses
        if (record.language, record.mode) == ("c", "constrained"):
            assert record.parses
    status, _, errors = evaluate(tmp_path / "none", data=tmp_path / "both.jsonl")
    assert (status, errors.count("\n")) == (2, 1)
    assert "--judge c=engine" in errors
    status, _, errors = evaluate(tmp_path / "none", "--judge", "c=none", data=tmp_path / "both.jsonl")
    assert (status, errors.count("\n")) == (2, 1)
    assert "c has a grammar" in errors


def test_another_judge_may_be_named(evaluate: Eval, tmp_path: Path) -> None:
    own = f"{sys.executable} {programs.FOLDER / 'json' / 'judge.py'}"
    assert evaluate(tmp_path / "named", "--judge", f"json={own}", "--limit", "5")[0] == 0
    assert RunInfo.read(tmp_path / "named").judges == {"json": own}
    assert evaluate(tmp_path / "package", "--limit", "5")[0] == 0
    named, package = results(tmp_path / "named"), results(tmp_path / "package")
    assert {key: record.parses for key, record in named.items()} == {k: r.parses for k, r in package.items()}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("json=1", "'1' is not a known version of json: none"),
        ("latin=1", "'latin=1' is not LANGUAGE=VERSION"),
        ("python=3.9", "for python, use --python-version"),
    ],
)
def test_versions_of_languages_are_named(evaluate: Eval, tmp_path: Path, named: str, said: str) -> None:
    status, _, errors = evaluate(tmp_path / "run", "--language-version", named)
    assert (status, errors.count("\n")) == (2, 1)
    assert said in errors


@pytest.mark.skipif(
    "go" not in Language.names() or programs.unavailable("go") is not None, reason="no definition or no parser of Go"
)
def test_go_is_judged_by_go(evaluate: Eval, tmp_path: Path) -> None:
    text = 'package p\n\nfunc f(a int) string {\n\treturn "x"\n}\n'
    samples = []
    for number, part in enumerate(("(a int)", "return", '"x"', "string {")):
        left, middle, right = text.partition(part)
        samples.append(sample_of(number, language="go", left=left, middle=middle, right=right))
    write_samples(tmp_path / "go.jsonl", samples)
    assert evaluate(tmp_path / "run", data=tmp_path / "go.jsonl")[0] == 0
    assert RunInfo.read(tmp_path / "run").judges["go"].startswith("go/parser, go version go1.")
    constrained = [record for key, record in results(tmp_path / "run").items() if key[1] == "constrained"]
    assert all(record.parses and record.complete for record in constrained)


# --- reports -------------------------------------------------------------------------------------------------------


def of_languages(*names: str) -> list[Record]:
    """Forty samples of two sets in each language, in three modes."""
    return [
        replace(record, sample=f"{name}/{record.sample}", language=name)
        for seed, name in enumerate(names)
        for record in records(40, seed)
    ]


def test_tables_name_the_languages() -> None:
    data = measured([run_info()], of_languages("python", "go", "rust"))
    both = ("stack-boundary", "stack-randspan")
    languages = ("python", "go", "rust")
    assert [name for name, _ in data.groups()] == [
        "all",
        *languages,
        *(f"{lang}, {s}" for lang in languages for s in both),
    ]
    assert [int(mask.sum()) for _, mask in data.groups()] == [120, 40, 40, 40, *[20] * 6]
    rows = rows_of(success.overview(data))
    paper = {row["set"] for row in rows if row["paper"]}
    assert paper == {"python, stack-boundary", "python, stack-randspan"}  # the paper's are of Python
    assert "ast.parse" not in success.overview(data).note
    by_language = next(table for table in slices.by_slice(data) if table.key == "by-language")
    assert [row["language"] for row in rows_of(by_language)] == list(languages)
    report = report_on(data)
    assert "go, stack-boundary" in report.lead
    assert {group_of(record) for record in of_languages("python", "go")} == {*both, *(f"go, {name}" for name in both)}


def test_one_language_needs_no_table_of_languages() -> None:
    data = measured([run_info()], of_languages("go"))
    assert [name for name, _ in data.groups()] == ["all", "go, stack-boundary", "go, stack-randspan"]
    assert "by-language" not in {table.key for table in slices.by_slice(data)}
    assert "paper" not in success.overview(data).header


def test_python_alone_is_told_as_it_was() -> None:
    data = measured([run_info()], of_languages("python"))
    assert [name for name, _ in data.groups()] == ["all", "stack-boundary", "stack-randspan"]
    assert "`ast.parse`" in success.overview(data).note
