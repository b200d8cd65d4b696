"""Imports that an edit made needless, in languages without name analysis."""

from __future__ import annotations

import pytest

from fim_server.language import Language
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.imports import needless_imports
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.next_edit import EditQuestion, next_edit

URI = "file:///a.go"
GO = """package main

import (
\t"fmt"
\tshort "example.com/long/path"

\t"example.com/more/words"
)

func main() {
\tfmt.Println(1)
%s
}
"""


def after(old: str, new: str, text: str = GO) -> str | None:
    """Return the text with the first proposal after an edit of its last line."""
    text = text % new
    edit = Edit(URI, 10, old, new)
    found = next(needless_imports([edit], text), None)
    return None if found is None else text[: found.start] + found.text + text[found.end :]


@pytest.mark.parametrize(
    ("use", "line"),
    [("\twords.Count(1)", '\t"example.com/more/words"\n'), ("\tshort.Call()", '\tshort "example.com/long/path"\n')],
)
def test_an_import_goes_with_its_last_use(use: str, line: str) -> None:
    assert after(use, "") == (GO % "").replace(line, "")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("\tfmt.Println(2)", "", "it is used elsewhere"),
        ("\twords.Count(1)", "\twords.Count(2)", "it is still used"),
        ("\tmore.Count(1)", "", "it is a folder's name"),
        ("\tpath.Call()", "", "the import has another name"),
        ("\tother.Call()", "", "it is not imported"),
    ],
)
def test_other_imports_stay(old: str, new: str, why: str) -> None:
    assert after(old, new) is None, why


def test_a_path_elsewhere_is_no_import() -> None:
    text = 'package main\n\nvar paths = []string{\n\t"words",\n}\n%s\n'
    assert after("\twords.Count(1)", "", text) is None
    assert after("words.Count(1)", "", 'import "words"\n%s\n') is None


def test_the_server_proposes_it() -> None:
    text = GO % ""
    asked = EditQuestion(URI, text, [Edit(URI, 10, "\twords.Count(1)", "")])
    found = next_edit(DocumentSessions(), Language.load("go"), asked)
    assert found is not None
    assert found.guarantee == "exact"
    assert text[found.proposal.start : found.proposal.end] == '\t"example.com/more/words"\n'
