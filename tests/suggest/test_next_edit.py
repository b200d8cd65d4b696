"""Choice of a next edit that parses."""

from __future__ import annotations

import ast

import pytest

from fim_server.language import Language
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.propose import Proposal
from fim_server.recovery.budget import Budget
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.next_edit import EditQuestion, guarantee_of, next_edit

URI = "file:///a.py"
PYTHON = Language.load("python")
TEXT = "def f(items):\n    for one in values:\n        print(one, 'values')\n    return len(values)\n"
RENAMED = Edit(URI, 0, "def f(values):", "def f(items):")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time."""
    monkeypatch.setattr("fim_server.suggest.next_edit.SECONDS", 60.0)


def question(text: str, *dismissed: int) -> EditQuestion:
    return EditQuestion(URI, text, [RENAMED], dismissed=dismissed)


def test_the_first_use_is_chosen_and_parses() -> None:
    found = next_edit(DocumentSessions(), PYTHON, question(TEXT))
    assert found is not None
    one = found.proposal
    assert (one.start, one.text, found.guarantee) == (TEXT.index("values"), "items", "exact")
    ast.parse(TEXT[: one.start] + one.text + TEXT[one.end :])


def test_a_dismissed_edit_gives_way_to_the_next_one() -> None:
    contexts = DocumentSessions()
    first = next_edit(contexts, PYTHON, question(TEXT))
    assert first is not None
    second = next_edit(contexts, PYTHON, question(TEXT, first.key))
    assert second is not None
    assert second.proposal.start == TEXT.rindex("values")  # not the one in the string
    assert next_edit(contexts, PYTHON, question(TEXT, first.key, second.key)) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [("items)", "a bracket too much"), ("", "no expression"), ("item", "an unbound name"), ("in", "a keyword")],
)
def test_an_edit_that_breaks_the_program_is_refused(text: str, why: str) -> None:
    start = TEXT.index("values")
    refused = Proposal(start, start + len("values"), text, 1.0)
    assert guarantee_of(DocumentSessions(), PYTHON, question(TEXT), refused) is None, why


def test_an_edit_that_leaves_a_name_unbound_elsewhere_is_refused() -> None:
    text = "def f(rows):\n    def g(data=None):\n        return data\n    return g(rows)\n"
    start = text.index("data")
    asked, contexts = question(text), DocumentSessions()
    assert guarantee_of(contexts, PYTHON, asked, Proposal(start, start + 4, "rows", 1.0)) is None
    assert guarantee_of(contexts, PYTHON, asked, Proposal(start, start + 4, "rows", 1.0, is_use=True)) == "exact"


def test_a_document_that_is_read_in_part_so_far_gets_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "".join(f'    "key{number}": [{number}, ({number}, None)],\n' for number in range(3000))
    text = f"{TEXT}\n\nT = {{\n{entries}}}\n"
    contexts = DocumentSessions(Budget(seconds=60.0))
    assert next_edit(contexts, PYTHON, question(text)) is not None
    contexts.clear()
    monkeypatch.setattr("fim_server.recovery.budget.SWIFT", 1_000.0)
    contexts = DocumentSessions(Budget(seconds=60.0))
    assert next_edit(contexts, PYTHON, question(text)) is None
    contexts.clear()


def test_a_header_without_its_block_gets_no_edit() -> None:
    text = "def f(items):\n    if values:\n"
    assert next_edit(DocumentSessions(), PYTHON, question(text)) is None


def test_an_import_follows_its_first_use() -> None:
    text = "import json\n\nx = os.sep\n"
    found = next_edit(DocumentSessions(), PYTHON, EditQuestion(URI, text, [Edit(URI, 2, "x = 1", "x = os.sep")]))
    assert found is not None
    one = found.proposal
    assert text[: one.start] + one.text + text[one.end :] == "import json\nimport os\n\nx = os.sep\n"


def test_no_import_goes_while_the_document_does_not_parse() -> None:
    text = "import os\n\n\ndef a():\n\n\ndef b():\n    return 1\n"
    asked = EditQuestion(URI, text, [Edit(URI, 4, "    return os.sep", "")])
    assert next_edit(DocumentSessions(), PYTHON, asked) is None
