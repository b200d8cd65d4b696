"""The samples' own tests in a run and after it, and texts that are cut as their benchmark cuts them."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from fim_server.datasets import Case, MatchTest, ProgramTest, Sample, UnitTest, write_samples
from fim_server.datasets.python import sandbox
from fim_server.errors import RunError
from fim_server.evaluation.records import (
    MODES,
    RunInfo,
    read_run,
)
from fim_server.evaluation.running import later_tests, modes, unit_tests
from fim_server.evaluation.running.modes import Decoder, Offer, Prepared, as_benchmark
from fim_server.evaluation.running.settings import WorkerSettings
from fim_server.evaluation.running.time_limit import TimeLimit
from fim_server.evaluation.running.worker import Worker
from fim_server.models.model import FimModel
from support.command_line import run_command
from support.evaluation.evaluating import Eval, results
from support.evaluation.evaluation_samples import sample_of

pytest_plugins = ("support.evaluation.fixtures",)

TESTED = UnitTest("t/1", "", "def check(f):\n    assert f(2) == 4\n", "double")


def test_the_samples_own_tests_are_run(tiny: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"unconstrained": "x * 3", "checked": "x * 2", "constrained": "x * 2"}
    offers = {
        mode: Offer(text, "exact", "end_token", "end_token", 3, 3, 0, 0, 0, ((3, 3),), 1, 1, 1, 1, 1)
        for mode, text in texts.items()
    }
    offers["unconstrained"] = replace(offers["unconstrained"], text="x * 3")
    monkeypatch.setattr(Decoder, "decode", lambda self, samples: [offers] * len(samples))
    sample = sample_of(0, left="def double(x):\n    return ", middle="x + x", right="\n", test=TESTED)
    with Worker(WorkerSettings(None, None, MODES, 8, 99, 0, 0.0, None, None, unsafe=True), tiny) as worker:
        records = worker.measure([sample, sample_of(1)])
    found = {record.mode: record for record in records[:3]}
    assert {mode: (record.passed, record.failure) for mode, record in found.items()} == {
        "unconstrained": (False, "wrong"),
        "checked": (True, None),
        "constrained": (True, None),
    }
    assert {(record.passed, record.failure) for record in records[3:]} == {(None, None)}


def test_tests_of_programs_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ran(language: str, program: str, test: ProgramTest, *, unsafe: bool) -> sandbox.Outcome:
        asked.append(program)
        return sandbox.Outcome(sandbox.Verdict.TIMEOUT, "", 0.0, ())

    monkeypatch.setattr(unit_tests, "run_program", ran)
    sample = sample_of(0, left="print(", middle="1 + 1", right=")\n", test=ProgramTest((Case("", ("2",)),)))
    assert unit_tests.run_test(sample, "1 + 1", False) == (True, None)  # as it stood there
    assert unit_tests.run_test(sample, "2", False) == (False, "timeout")
    assert asked == ["print(2)\n"]
    call = replace(sample, middle="f(1)", test=MatchTest("call"))
    assert unit_tests.run_test(call, "f( 1 )", False) == (True, None)
    assert unit_tests.run_test(call, "f(2)", False) == (False, "wrong")
    unit_tests.require_sandbox([call], unsafe=False)
    monkeypatch.setattr(unit_tests, "missing_tool", lambda language: "javac is not installed")
    with pytest.raises(RunError, match="java: tests cannot be run, javac is not installed"):
        unit_tests.require_sandbox([replace(sample, language="java")], unsafe=True)


def test_texts_stay_whole_where_no_truncation_is_wanted(tiny: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sample_of(0, set="safim", kind="control", left="if ", middle="x:", right="\n    pass\n")

    monkeypatch.setattr(modes, "truncated", lambda *asked: "cut")
    for truncation in (True, False):
        settings = WorkerSettings(None, None, ("unconstrained",), 8, 99, 0, 0.0, None, None, truncation=truncation)
        with Worker(settings, tiny) as worker:
            assert (worker.measure([sample])[0].text == "cut") is truncation


def test_unconstrained_texts_are_cut_as_their_benchmark_cuts_them() -> None:
    call = sample_of(0, set="safim", kind="block", left="if x:\n    ", middle="y", right="\n")
    offer = Offer("a = 1\n    b = (\n", "exact", "budget", "budget", 9, 9, 0, 0, 0, (), 0.0, 0.0, 0.0, 0.0, 0.0)
    one = Prepared(call, (), Language.load("python").open(call.left, call.right), 0.0)
    assert (as_benchmark(one, offer).text, as_benchmark(one, offer).won) == ("a = 1\n", "truncated")
    whole = replace(offer, text="a = 1")
    assert as_benchmark(one, whole) is whole
    assert as_benchmark(replace(one, sample=replace(call, set="block")), offer) is offer


def test_tests_can_be_run_later(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test = ProgramTest((Case("", ("2",)),))
    files = [tmp_path / "tested.jsonl", tmp_path / "other.jsonl"]
    write_samples(files[0], [sample_of(number, test=test if number else None) for number in range(3)])
    write_samples(files[1], [sample_of(number) for number in range(2)])
    monkeypatch.setattr(sandbox, "unavailable", lambda: "there is none")
    assert evaluate(tmp_path / "run", "--untested", data=files[0])[0] == 0
    assert {record.passed for record in read_run(tmp_path / "run")} == {None}
    assert evaluate(tmp_path / "run", "--unsafe", data=files[0])[0] == 2

    def later(out: str, *arguments: str, data: Path = files[0]) -> tuple[int, str, str]:
        command = ["eval", "test", str(tmp_path / "run"), "--data", str(data), "--out", str(tmp_path / out)]
        return run_command(capsys, *command, *arguments)

    assert later("out")[0] == 2  # without a sandbox
    monkeypatch.setattr(later_tests, "run_test", lambda sample, text, unsafe: (False, "timeout"))
    monkeypatch.setattr(later_tests, "BATCH_SAMPLES", 1)
    monkeypatch.setattr(later_tests, "TimeLimit", lambda ends: TimeLimit(0.0, iter(range(99)).__next__))
    assert [later("out", "--unsafe")[0] for _ in range(3)] == [5, 5, 0]
    found = results(tmp_path / "out")
    assert {record["passed"] for (name, _), record in found.items() if name == "sample-0"} == {None}
    assert {record["passed"] for (name, _), record in found.items() if name != "sample-0"} == {False}
    texts = {key: record["text"] for key, record in results(tmp_path / "run").items()}
    assert {key: record["text"] for key, record in found.items()} == texts
    assert later("out", "--unsafe", data=files[1])[2].count("is on other --data") == 1


def test_tests_run_later_know_where_lines_ended(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lines.jsonl"
    test = ProgramTest((Case("", ("2",)),))
    write_samples(file, [sample_of(1, kind="single-line", left="x = ", middle="1\n", right="y\n", test=test)])
    assert evaluate(tmp_path / "run", "--untested", "--single-line", data=file)[0] == 0
    tested: list[str] = []

    def ran(sample: Sample, text: str, unsafe: bool) -> unit_tests.Test:
        tested.append(sample.right)
        return True, None

    monkeypatch.setattr(later_tests, "run_test", ran)
    assert later_tests.test_later(tmp_path / "run", [str(file)], tmp_path / "out", unsafe=True, ends=None) == 0
    assert set(tested) == {"\ny\n"}


def test_a_test_that_cannot_be_run_is_recorded(tiny: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(sample: Sample, text: str, unsafe: bool) -> Any:
        raise OSError("no process")

    monkeypatch.setattr(unit_tests, "run_test", refused)
    sample = sample_of(0, left="def double(x):\n    return ", middle="x + x", right="\n", test=TESTED)
    with Worker(WorkerSettings(None, None, ("constrained",), 8, 99, 0, 0.0, None, None, unsafe=True), tiny) as worker:
        [record] = worker.measure([sample])
    assert record.error == "OSError: no process"
    assert record.text is None


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_without_a_sandbox_tests_run_only_where_that_is_said(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry: tuple[str, ...]
) -> None:
    sample = sample_of(0, left="def double(x):\n    return ", middle="x + x", right="\n", test=TESTED)
    write_samples(tmp_path / "tested.jsonl", [sample])
    write_samples(tmp_path / "plain.jsonl", [sample_of(1)])
    monkeypatch.setattr(sandbox, "unavailable", lambda: "bubblewrap is not installed")
    tested = functools.partial(
        evaluate, tmp_path / "run", *dry, "--modes", "constrained", data=tmp_path / "tested.jsonl"
    )
    status, output, errors = tested()
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert "no sandbox here: bubblewrap is not installed; install bubblewrap" in errors
    assert "--unsafe" in errors
    assert not (tmp_path / "run").exists()
    assert evaluate(tmp_path / "plain", data=tmp_path / "plain.jsonl")[0] == 0
    assert tested("--unsafe")[0] == 0
    if not dry:
        [record] = read_run(tmp_path / "run")
        assert record.passed is not None
        assert RunInfo.read(tmp_path / "run").machine["sandbox"] == "none"
