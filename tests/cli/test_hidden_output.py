"""No output of a command holds a character that moves a terminal's cursor, or that readers do not see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fim_server.decoding import complete as decoding
from fim_server.decoding.results import Completion, StopReason, Won
from fim_server.text.hidden import HIDDEN
from fim_server.text.terminal import Progress, Table, paint, plain_lines
from support.command_line import run_command

ESCAPES = "\x1b[2J\x1b]0;owned\x07"
REVERSED = "\u202e\u2066\u200b\U000e0041"
HOLE = f'# {ESCAPES} {REVERSED}\nx = 1\ndef f(a):\n    return a + \n\n\ny = "{REVERSED}"\n'
CURSOR = "4:16"
COMMANDS = [
    ["complete", "FILE", CURSOR, "--show"],
    ["complete", "FILE", CURSOR, "--diff"],
    ["complete", "FILE", CURSOR, "--json"],
    ["complete", "FILE", CURSOR],
    ["explain", "FILE", CURSOR, "--text", f"{ESCAPES}{REVERSED}"],
    ["explain", "FILE", CURSOR, "--json"],
    ["check", "FILE"],
    ["check", "FILE", "--json"],
    ["complete", f"no{ESCAPES}{REVERSED}", "1:1"],
    ["complete", "FILE", CURSOR, "--model", f"no{ESCAPES}{REVERSED}"],
    ["complete", "FILE", CURSOR, f"--no{ESCAPES}{REVERSED}"],
    ["models", "get", f"no{ESCAPES}{REVERSED}"],
]


@pytest.fixture
def hole(tmp_path: Path) -> Path:
    path = tmp_path / f"a\x1b[31m{REVERSED}.py"
    path.write_text(HOLE, encoding="utf-8")
    return path


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-in for a model that writes the last of some texts."""
    texts = ["a"]
    done = Completion("a", "exact", StopReason.END_TOKEN, None, won=Won.END_TOKEN)

    def complete(*asked: Any, **more: Any) -> Completion:
        return Completion(texts[-1], "exact", StopReason.END_TOKEN, None, won=Won.END_TOKEN, statistics=done.statistics)

    monkeypatch.setattr(decoding, "complete", complete)
    return texts


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: ascii(" ".join(command))[1:60])
def test_hidden_characters_of_files_and_names_are_escaped(
    command: list[str], hole: Path, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(hole) if part == "FILE" else part for part in command]
    _, out, err = run_command(capsys, *given)
    assert out + err
    assert "unrecognized" not in err or command[-1].startswith("--no")
    assert HIDDEN.search(out + err) is None, ascii(out + err)
    if "--json" in command and out:
        assert json.loads(out)["file"] == str(hole)  # escapes of JSON's own: nothing is lost


@pytest.mark.parametrize("form", ["", "--show", "--diff"])
def test_a_text_is_escaped_on_a_terminal(
    form: str, hole: Path, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told.append(f'"{ESCAPES}{REVERSED}"')
    monkeypatch.setattr("fim_server.cli.complete.is_terminal", lambda stream: True)
    options = [form, "--color=never"] if form else []
    _, out, err = run_command(capsys, "complete", str(hole), CURSOR, *options)
    assert out, err
    assert "\\x1b[2J" in out
    assert "\\u202e" in out
    assert HIDDEN.search(out) is None, ascii(out)


def test_colours_are_the_only_escape_sequences() -> None:
    assert paint(f"a{ESCAPES}", "bold") == "\x1b[1ma\\x1b[2J\\x1b]0;owned\\x07\x1b[0m"
    assert paint("a\tb", "bold", colour=False) == "a\tb"


def test_tables_and_progress_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("name", "is"), [(f"a{ESCAPES}{REVERSED}\nb", "x")])
    for line in plain_lines([table, f"b{ESCAPES}"]):
        assert HIDDEN.search(line) is None, ascii(line)
        assert "\n" not in line
    with Progress() as shown:
        shown.say(f"a{ESCAPES}{REVERSED}")
        shown.update(f"a{ESCAPES}{REVERSED}" + "x" * 10_000_000)
        shown.log(f"a{ESCAPES}{REVERSED}")
    err = capsys.readouterr().err
    assert err
    assert HIDDEN.search(err) is None, ascii(err[:200])
    assert len(err) < 10_000


def test_a_long_name_is_shown_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run_command(capsys, "models", "get", "x" * 100_000)
    assert status == 2
    assert len(err) < 3_000
    assert err.count("\n") == 1


def test_texts_reach_programs_unchanged(hole: Path, told: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told.append('"\u0645\u06cc\u200c\u0634"')
    _, out, _ = run_command(capsys, "complete", str(hole), CURSOR)
    assert out == '"\u0645\u06cc\u200c\u0634"\n'
