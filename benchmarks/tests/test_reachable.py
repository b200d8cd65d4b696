"""Lines typed to a model that is sure of them: what is not offered is the server's doing."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.suggestions.lines import Task
from benchmarks.suggestions.reachable import Asked, closers_below, main, outcomes, unwritten
from fim_server.text.document import Split

SOURCE = '''"""A file."""


def load(
    path: str,
    mode: str = "r",
) -> list[str]:
    try:
        with open(path, mode) as file:
            lines = file.read().split("\\n")
    except OSError as error:
        raise ValueError(f"{path} cannot be read") from error
    return lines


def save(path: str, lines: list[str]) -> None:
    with open(path, "w") as file:
        file.write("\\n".join(lines))
'''


def task_at(line: str) -> Task:
    """A line of the source, to be typed."""
    start = SOURCE.index(line)
    return Task("folder", "a.py", 1 + SOURCE[:start].count("\n"), SOURCE[:start], line, SOURCE[start + len(line) :])


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked("embedded")


def test_brackets_are_closed_on_lines_of_their_own_below() -> None:
    assert closers_below("def f(\n    a: list[\n        int,\n        ") == "\n    ]\n)"
    assert closers_below("x = f(a, [b") == "])"
    assert closers_below('x = ")("\n') == ""


def test_below_a_line_that_is_typed_nothing_of_its_function_stands_yet() -> None:
    task, following = unwritten(task_at('mode: str = "r",'))
    assert task.after.startswith("\n)\n\n\ndef save(")
    assert following == "\n) -> list[str]:\n    try:\n        with open(path, mode) as file:"


@pytest.mark.parametrize("inserted", [False, True])
def test_the_model_is_sure_of_every_line(asked: Asked, inserted: bool) -> None:
    lines = ["return lines", 'file.write("\\n".join(lines))', 'lines = file.read().split("\\n")', 'mode: str = "r",']
    found = list(outcomes(asked, [task_at(line) for line in lines], inserted, random.Random(1)))
    assert len(found) >= 8
    assert set(found) <= {"whole line", "right as far as it goes"}


def test_what_the_model_is_sure_of_is_offered_and_nothing_else(asked: Asked) -> None:
    offer = asked.offer(Split("def f(alpha):\n    return al", "\n"), "pha + 1")
    assert offer is not None
    assert offer.text == "pha + 1"


def test_the_outcomes_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    assert main([str(tmp_path), "--lines", "3", "--model", "embedded"]) == 0
    printed = capsys.readouterr().out
    assert "cuts" in printed
    assert "whole line" in printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["."], "no Python files to type in"),
        ([".", "--lines", "0"], "argument --lines"),
        ([".", "--model", "nowhere/at/all"], "nowhere/at/all"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "benchmarks.suggestions.reachable", *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert told in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
