"""Carriage returns that stand alone are read as each language reads them, in documents and in what is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fim_server import Language
from fim_server.text.document import Document
from support.command_line import run_command

# The bracket is in the comment where a carriage return is no line break.
IN_COMMENT = {
    "go": ("package p\nfunc f() { // a\r}", "\n"),
    "rust": ("fn f() { // a\r}", "\n"),
    "java": ("class A { // a\r}", "\n"),
    "python": ("f( # a\r)", "\n"),
}


@pytest.mark.parametrize(("name", "keeps"), [("go", True), ("rust", True), ("java", False), ("python", False)])
def test_a_comment_ends_at_a_carriage_return_where_the_language_says_so(name: str, keeps: bool) -> None:
    assert Language.keeps_returns(name) == keeps
    left, right = IN_COMMENT[name]
    document = Document.from_text(left + right)
    split = document.split(len(left), Language.keeps_returns(name))
    session = Language.load(name).open(split.left, split.right)
    assert session.check("").complete != keeps
    assert session.check("\n}").complete == keeps
    assert split.restore("\n}") == "\n}"


@pytest.mark.parametrize(("name", "suffix"), [("go", "go"), ("java", "java")])
def test_files_are_checked_as_the_language_reads_them(
    name: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes("".join(IN_COMMENT[name]).encode())
    status, out, err = run_command(capsys, "check", str(path))
    assert status == int(Language.keeps_returns(name)), out + err


def test_the_key_is_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "a.lark").write_text('s: "a"\n')
    (tmp_path / "a.toml").write_text('name = "a"\nsuffixes = [".a"]\nstart = "s"\nkeeps_returns = 1\n')
    with pytest.raises(ValueError, match="keeps_returns"):
        Language.from_files(str(tmp_path / "a.lark"), str(tmp_path / "a.toml"))
