"""The command line on files of languages without a grammar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fim_server.cli import main


@pytest.mark.parametrize("command", [["check"], ["explain", "1:1"]], ids=["check", "explain"])
@pytest.mark.parametrize(("name", "suffix"), [("a.foo", "*.foo"), ("Makefile", "*(no suffix)")])
def test_it_says_in_one_line_that_there_is_no_grammar(
    command: list[str], name: str, suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("1\n")
    assert main([command[0], str(tmp_path / name), *command[1:]]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"fim-server: there is no grammar for files named {suffix}; name a language with --language\n"
    assert main(["check", str(tmp_path / name), "--language", "json"]) == 0


def test_it_completes_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.foo"
    file.write_text("alpha = f(1, )\nbeta = g(2, )\n")
    assert main(["complete", str(file), "1:14", "--model", "embedded", "--json"]) in (0, 1)
    answer = json.loads(capfd.readouterr().out)
    assert (answer["language"], answer["guarantee"]) == ("foo", "none")
    assert answer["diagnostics"] == ["there is no grammar for foo: any text may come here"]
    assert answer["reason"] or "\n" not in answer["text"]
    assert answer["reason"] or answer["text"].count(")") <= answer["text"].count("(")
