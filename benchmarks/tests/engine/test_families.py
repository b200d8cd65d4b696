"""``./dev bench engine --families``: families are the grammar's, reports tell what each took; none is judged."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import report as reports
from benchmarks.__main__ import run
from benchmarks.families import operations
from benchmarks.families.derivations import Derivations, Way
from benchmarks.families.generated import Generated, Generation, generated
from benchmarks.families.listed import LISTED
from benchmarks.families.measuring import shape_of
from benchmarks.families.operations import OPERATIONS
from benchmarks.families.report import Line, Report, Run
from benchmarks.families.texts import CannotGrowError, Family, Placement, of_size
from benchmarks.processes import EndedError, Limits, answers_of_limited_process
from fim_server.language import Language
from support.bench_command import complaint, printed

WHOLE = (Placement.LEFT, Placement.RIGHT, Placement.CUT_RIGHT, Placement.AROUND)


@pytest.fixture(scope="module")
def python() -> Generation:
    return generated("python")


@pytest.fixture(scope="module")
def by_name(python: Generation) -> dict[str, Generated]:
    return {family.name: family for family in python.families}


# --- derivations --------------------------------------------------------------------------------------------------

SUMS: dict[str, Any] = {
    "start": "sum",
    "rules": [
        {"lhs": "sum", "rhs": ["term"]},
        {"lhs": "sum", "rhs": ["sum", "PLUS", "term"]},
        {"lhs": "term", "rhs": ["LONG"]},
        {"lhs": "term", "rhs": ["X"]},
        {"lhs": "term", "rhs": ["OPEN", "sum", "CLOSE"]},
        {"lhs": "unused", "rhs": ["OPEN", "endless"]},
        {"lhs": "endless", "rhs": ["X", "endless"]},
    ],
}


def test_derivations_are_the_shortest() -> None:
    derivations = Derivations(SUMS, lambda name: 9 if name == "LONG" else 1)
    assert derivations.shortest == {"sum": ("X",), "term": ("X",)}
    ways = derivations.ways_to("term")
    assert ways == {"term": Way((), ()), "sum": Way((), (), (("sum", "term"),))}
    assert derivations.context("term") == ways["sum"]
    assert derivations.context("unused") is None
    through_brackets = derivations.around(derivations.rules[4], 1).then(ways["sum"])
    assert through_brackets == Way(("OPEN",), ("CLOSE",), (("term", "sum"), ("sum", "term")))


# --- families -----------------------------------------------------------------------------------------------------


def test_a_grammar_gives_families_that_parse(python: Generation) -> None:
    assert 100 <= len(python.families) <= 300
    assert python.occurrences >= len(python.families)
    assert python.left_out == {}
    names = [family.name for family in python.families]
    assert len(set(names)) == len(names)
    texts = {family.written(2).text for family in python.families}
    assert len(texts) == len(names)


def test_generation_is_deterministic(python: Generation) -> None:
    again = generated("python")
    assert [(each.name, each.written(3)) for each in again.families] == [
        (each.name, each.written(3)) for each in python.families
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ('sum: "+x"', "x+x+x\n"),
        ('power: "x**"', "x**x**x\n"),
        ('subscripts: ",x:x"', "x[x,x,x:x,x:x]\n"),
        ('plain_params: ",x:x"', "def x(x,x,x:x,x:x):x\n"),
        ('dict_items: ",x:x"', "{**x,**x,x:x,x:x}\n"),
        ('simple_line: ";del x"', "x;x;del x;del x\n"),
        ('if_stmt: "elif x:x\\n"', "if x:x\nelif x:x\nelif x:x\nelif x:x\n"),
        ('statement: "if x:\\n…"', "if x:\n if x:\n  x\n"),
        ('expression: "x if x else"', "x if x else x if x else x\n"),
        ("atom: \"f'{…}'\"", "f'{f'{x}'}'\n"),
    ],
)
def test_families_repeat_what_their_name_says(by_name: dict[str, Generated], name: str, text: str) -> None:
    assert by_name[name].written(2).text == text


def test_nests_stay_within_the_limits(by_name: dict[str, Generated]) -> None:
    language = Language.load("python")
    for name, deepest in (('atom: "[…]"', 200), ('statement: "if x:\\n…"', 99), ('target: "(…)"', 200)):
        family = by_name[name]
        assert family.deepest == deepest
        one, three = family.written(deepest), family.written(3 * deepest)
        for written in (one, three):
            assert language.open(written.text, "").check("").complete
        assert not language.open(family._nested(deepest + 1).text, "").check("").viable
        assert len(three.text) > 2.5 * len(one.text)
        left, right = three.split(Placement.CUT_LEFT)
        assert language.open(left, right).check("").viable


def test_what_cannot_stand_side_by_side_cannot_grow(by_name: dict[str, Generated]) -> None:
    family = by_name['atom: "[…]"']
    alone = Generated(family.name, family.speller, family.context, family.unit, family.core, deepest=5)
    assert alone.written(5).text == "[[[[[x]]]]]\n"
    with pytest.raises(CannotGrowError):
        alone.written(6)


def families_of(language: str) -> list[Family]:
    return [*generated(language).families, *LISTED[language]]


@pytest.mark.parametrize("language_name", ["python", "json"])
def test_cursors_stand_where_they_are_said_to(language_name: str) -> None:
    language = Language.load(language_name)
    for family in families_of(language_name):
        written = of_size(family.written, 600)
        for placement in Placement:
            left, right = written.split(placement)
            assert left + right == written.text or placement not in WHOLE, (family.name, placement)
            assert placement is not Placement.GAP or len(left + right) < len(written.text), family.name
            if not family.parses:
                continue
            verdict = language.open(left, right).check("")
            assert verdict.viable, (family.name, placement)
            assert verdict.complete or placement not in WHOLE, (family.name, placement)


def test_json_texts_are_json() -> None:
    for family in families_of("json"):
        if family.parses:
            json.loads(of_size(family.written, 500).text)


@pytest.mark.parametrize("size", [4_000, 20_000])
def test_texts_have_about_their_size(python: Generation, size: int) -> None:
    families: list[Family] = [*python.families[::9], *LISTED["python"]]
    for family in families:
        assert 0.5 < len(of_size(family.written, size).text) / size < 2, family.name


def test_a_shape_is_one_short_line() -> None:
    assert shape_of("if x:\n", "\tx\n") == "if x:\\n¦\\tx\\n"
    assert shape_of("a" * 40, "b" * 40) == "…" + "a" * 15 + "¦" + "b" * 15 + "…"


# --- the report ---------------------------------------------------------------------------------------------------


def line(*runs: Run, operation: str = "open", expected: tuple[str, ...] = ()) -> Line:
    return Line("family", "right", operation, "¦x", expected, list(runs))


def test_figures_are_above_what_every_session_takes() -> None:
    square = line(Run(1_000, 1_000, 0.011, 0.001, 4 << 20, "exact"), Run(2_000, 2_000, 0.041, 0.001, 8 << 20, "exact"))
    assert square.exponent is not None
    assert math.isclose(square.exponent, 2)
    assert math.isclose(square.microseconds, 20)
    assert square.bytes == (8 << 20) / 2_000
    assert square.over() == ["time", "exponent", "memory"]
    small = line(Run(1_000, 1_000, 0.002, 0.001, 0, "exact"), Run(2_000, 2_000, 0.003, 0.001, 0, "exact"))
    assert small.exponent is None
    assert small.over() == []


def test_what_has_no_answer_comes_first_and_is_over() -> None:
    slow = line(Run(1_000, 1_000, 0.9, 0.0, 0, "exact"), Run(2_000, 2_000, 1.0, 0.0, None, failed="over 1 s"))
    slower = line(Run(1_000, 1_000, 1.9, 0.0, 0, "exact"), Run(2_000, 2_000, 4.0, 0.0, 0, "exact"))
    report = Report({}, (1_000, 2_000), False, [slower, slow])
    printed = "\n".join(reports.lines(report))
    assert slow.over()[0] == "time"
    assert printed.index("over 1 s") < printed.index("4,000")
    assert "> 1,000" in printed
    assert "families over any goal: 1 of 1" in printed


def test_wrong_verdicts_are_named() -> None:
    wrong = line(Run(10, 10, 0.0, 0.0, 0, "refused"), operation="check", expected=("complete",))
    assert wrong.wrong
    assert "wrong verdicts: 1: family (right)" in reports.lines(Report({}, (10,), False, [wrong]))


# --- processes ----------------------------------------------------------------------------------------------------


def counting(most: int) -> Iterator[int]:
    yield from range(most)


def stopping(status: int | None) -> Iterator[int]:
    yield 1
    if status is None:
        time.sleep(60)
    os._exit(status or 0)


def working() -> Iterator[int]:
    yield 1
    while True:
        math.factorial(1_000)


def waiting() -> Iterator[int]:
    yield 1
    time.sleep(1.5)
    yield 2


def growing() -> Iterator[int]:
    yield len(bytearray(1 << 30))


def test_answers_come_from_a_process_of_their_own() -> None:
    assert list(answers_of_limited_process(Limits(60, 1 << 30), counting, 3)) == [0, 1, 2]
    answers = answers_of_limited_process(Limits(10, 1 << 30), stopping, 3)
    assert next(answers) == 1
    with pytest.raises(EndedError) as ended:
        next(answers)
    assert ended.value.status == 3


def test_a_process_that_takes_too_long_is_ended() -> None:
    answers = answers_of_limited_process(Limits(2, 1 << 30), stopping, None)
    assert next(answers) == 1
    with pytest.raises(TimeoutError):
        next(answers)
    busy = answers_of_limited_process(Limits(0.5, 1 << 30, cpu_time=True), working)
    assert next(busy) == 1
    with pytest.raises(TimeoutError):
        next(busy)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the processor time of another process")
def test_processor_time_leaves_out_what_others_take() -> None:
    patient = answers_of_limited_process(Limits(0.5, 1 << 30, cpu_time=True), waiting)
    assert list(patient) == [1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process' memory")
def test_a_process_gets_no_more_memory_than_allowed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EndedError):
        list(answers_of_limited_process(Limits(60, 100 << 20), growing))
    assert "MemoryError" in capfd.readouterr().err


# --- the command --------------------------------------------------------------------------------------------------

FAMILIES = ["engine", "--families", "--only", 'sum: "+x"', "--only", "numbers: 1,", "--sizes", "300,900"]


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """A run of two families, everything of each."""
    status, output, _ = printed(*FAMILIES, "--operations", "all", "--cursors", "all", "--cpu-time", "--json")
    assert status == 0
    parsed: dict[str, Any] = json.loads(output)
    return parsed


def test_the_command_prints_json(answer: dict[str, Any]) -> None:
    assert answer["sizes"] == [300, 900]
    assert answer["left_out"] == {}
    found = [(each["family"], each["cursor"], each["operation"]) for each in answer["lines"]]
    names = ('sum: "+x"', "numbers: 1,")
    assert found == [(name, placement, what) for name in names for placement in Placement for what in OPERATIONS]
    for each in answer["lines"]:
        assert [run["size"] for run in each["runs"]] == [300, 900]
        assert not each["wrong"]
        for each_run in each["runs"]:
            assert each_run["failed"] is None
            assert each_run["seconds"] > 0


def test_the_command_prints_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FAMILIES, "--cursors", "cut-right,left", "--all"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("machine: ")
    for title in ("the worst by time (goal: at most 5 µs", "the worst by growth", "the worst by memory", "all:"):
        assert f"\n{title}" in printed
    assert "wrong verdicts: 0\nleft out: 0\n" in printed
    everything = printed.partition("\nall:\n")[2].partition("\n\n")[0].splitlines()
    assert everything[0].split()[:7] == ["family", "cursor", "what", "ms", "at", "300", "ms"]
    assert len(everything) == 1 + 2 * 2 * 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the process begins afresh, without what is patched here")
def test_an_operation_over_its_limit_is_a_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(*_: object) -> str:
        time.sleep(60)
        return ""

    def explain(*_: object) -> str:
        os.kill(os.getpid(), 9)
        return ""

    monkeypatch.setitem(operations.QUESTIONS, "check", check)
    arguments = [*FAMILIES[:4], "--sizes", "300,900", "--cursors", "right", "--most-seconds", "1", "--json"]
    assert run([*arguments, "--operations", "open,check,completion"]) == 0
    lines = {each["operation"]: each for each in json.loads(capsys.readouterr().out)["lines"]}
    assert [run["failed"] for run in lines["check"]["runs"]] == ["over 1 s"]
    assert lines["check"]["over"] == ["time"]
    assert [run["failed"] for run in lines["completion"]["runs"]] == [None, None]
    monkeypatch.setitem(operations.QUESTIONS, "explain", explain)
    assert run([*arguments, "--operations", "explain"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["lines"]
    assert [run["failed"] for run in only["runs"]] == ["ended: SIGKILL"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "no such construct"], "no family of python has no such construct in its name"),
        (["--language", "cobol"], "invalid choice: 'cobol'"),
        (["--operations", "open,sing"], "'sing' is none of open, check"),
        (["--cursors", "beyond"], "'beyond' is none of left, right, cut-right"),
        (["--sizes", "4,0"], "'0' is not a number above 0"),
        (["--sizes", "400", "--long"], "not allowed with argument"),
        (["--most-seconds", "0"], "not a number above 0"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str) -> None:
    assert message in complaint("engine", "--families", "--json", *arguments).splitlines()[-1]
