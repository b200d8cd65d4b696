"""Next edits that a model writes."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from fim_server.language import Language, Stop
from fim_server.models.model import FimModel
from fim_server.models.prompt import with_edits
from fim_server.next_edit.edit_memory import Edit
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.next_edit import EditQuestion, NextEdit
from fim_server.suggest.written_edit import hunks, written_edit
from fim_server.tokens.formats import Kind
from support.models.text_models import Written, text_model

URI = "file:///project/a.py"
PYTHON = Language.load("python")
TEXT = """def area(width, height):
    return width * height


def volume(width, height):
    return width * height * depth


print(volume(1, 2))
"""
EDIT = Edit(URI, 5, "    return width * height", "    return width * height * depth")
RIGHT = TEXT.replace("volume(width, height)", "volume(width, height, depth)")
SWEEP, ZETA = "sweep-next-edit-1.5b", "zeta-2.1"


def model_writing(text: str, name: str = SWEEP) -> FimModel:
    before = {SWEEP: b"updated/a.py\n", ZETA: b"<|marker_1|>"}[name]
    model = text_model(Written([(before, text.encode())]))
    return replace(model, format=with_edits(model.format, Kind((name,))))


def answer(model: FimModel, text: str = TEXT, **asked: object) -> NextEdit | None:
    question = EditQuestion(URI, text, [EDIT], cursor=text.index("depth"), paths={URI: "a.py"})
    return written_edit(DocumentSessions(), PYTHON, replace(question, **asked), model, Stop())  # type: ignore[arg-type]


def applied(found: NextEdit | None) -> str:
    assert found is not None
    one = found.proposal
    return TEXT[: one.start] + one.text + TEXT[one.end :]


@pytest.mark.parametrize(("name", "end"), [(SWEEP, ""), (ZETA, "<|marker_2|>")])
def test_the_model_writes_the_parameter_that_is_missing(name: str, end: str) -> None:
    found = answer(model_writing(RIGHT + end, name))
    assert applied(found) == RIGHT
    assert found is not None
    assert (found.guarantee, found.proposal.text) == ("exact", ", depth")


def test_only_the_nearest_change_is_proposed() -> None:
    both = RIGHT.replace("volume(1, 2)", "volume(1, 2, 3)").replace("def area", "def areas")
    assert applied(answer(model_writing(both))) == RIGHT


def test_changes_that_parse_together_alone_are_proposed_together() -> None:
    text = TEXT.replace("(1, 2))", "(1,\n             2))")
    both = text.replace("print(volume(1,", "x = [volume(1,").replace("2))", "2)]")
    found = answer(model_writing(both), text, cursor=text.index("print"))
    assert found is not None
    one = found.proposal
    assert text[: one.start] + one.text + text[one.end :] == both


@pytest.mark.parametrize("written", [TEXT, TEXT.rstrip("\n"), "", "\n"], ids=["same", "no break", "empty", "blank"])
def test_a_text_without_a_change_is_no_proposal(written: str) -> None:
    assert answer(model_writing(written)) is None


def test_a_text_that_the_grammar_refuses_is_no_proposal() -> None:
    assert answer(model_writing(TEXT.replace("height):", "height:"))) is None


def test_an_unsure_model_proposes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.suggest.written_edit.LEAST_WRITTEN", 1.0)
    assert answer(model_writing(RIGHT)) is None


def test_a_dismissed_edit_does_not_come_again() -> None:
    model = model_writing(RIGHT)
    found = answer(model)
    assert found is not None
    assert answer(model, dismissed={found.key}) is None


def test_a_model_that_is_stopped_writes_nothing() -> None:
    stopped = Stop()
    stopped.set()
    question = EditQuestion(URI, TEXT, [EDIT], cursor=0)
    assert written_edit(DocumentSessions(), PYTHON, question, model_writing(RIGHT), stopped) is None


def test_other_models_are_not_asked() -> None:
    assert answer(text_model(Written([(b"", RIGHT.encode())]))) is None


def test_a_file_that_is_broken_elsewhere_gets_an_edit_by_its_other_lines() -> None:
    broken = TEXT + "\n\nx = 1\n" * 20 + "def (:\n"
    window = RIGHT + "\n\nx = 1\n\n\nx = 1\n\n\nx ="
    found = answer(model_writing(window.rpartition("\n")[0]), broken)
    assert found is not None
    assert (found.guarantee, found.proposal.text) == ("partial", ", depth")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc", "a\nB\nc"),
        ("a\nb\nc", "a\nc"),
        ("a\nb\nc", "a\nb"),
        ("a\nb\nc", "a\nb\nx\nc"),
        ("a\nb\nc", "a\nb\nc\nx"),
        ("a\nb\nc\n", "x\na\nb\nc\n"),
        ("a\nb\nc", "b\nc"),
        ("a", "b\nc"),
        ("ab\nab\nab", "ab\nabab\nab"),
    ],
)
def test_a_change_of_lines_makes_the_new_window(old: str, new: str) -> None:
    *_, one = hunks(old, new, 3, 3, 1.0)
    text = f"0\n\n{old}"
    assert text[: one.start] + one.text + text[one.end :] == f"0\n\n{new}"


def test_the_right_text_parses() -> None:
    ast.parse(RIGHT)
