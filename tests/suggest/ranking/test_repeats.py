"""Suggestions repeat nothing: with the embedded model, and with one that writes given texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fim_server.decoding.ending.trimming.loops import start_of_loop
from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.decoding.strategies import alternatives
from fim_server.language import Language
from fim_server.suggest.ranking.display import display
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker
from support.editors.watched import request

PATIENCE = 120.0
SETTINGS = ServerSettings(model="embedded", prefetch=False, min_confidence=0.0, deadline_ms=None)


@pytest.fixture(scope="module")
def worker() -> Iterator[CompletionWorker]:
    made = CompletionWorker(SETTINGS)
    made.load().result(PATIENCE)
    yield made
    made.close()


def asked(worker: CompletionWorker, split: Split, invoked: bool, **settings: Any) -> tuple[Suggestion, ...]:
    one = replace(request("file:///a.py"), split=split, invoked=invoked, settings=replace(SETTINGS, **settings))
    work = worker.submit(one).future.result(PATIENCE)
    assert work is not None
    return display(work.answer, one).suggestions


def writing(monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[str]:
    """Have the model write given texts in turn; return the list of those it has written."""
    written: list[str] = []

    def write(*about: Any, **more: Any) -> Iterator[Completion]:
        for text in texts[len(written) :][: about[3] if len(about) > 3 else 1]:
            written.append(text)
            healed = more["healing"] + text
            tokens = (Written(len(healed), 0.9),)
            yield Completion(healed, "exact", StopReason.END_TOKEN, None, written=tokens)

    monkeypatch.setattr(alternatives, "alternatives", write)
    return written


STACK = (
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    ",
    "\n\n    def pop(self):\n        pass\n",
)
LOOP = "def evens(xs):\n    result = []\n    for x in xs:\n        ", "\n    return result\n"
TABS = "for x in xs:\n\tif x:\n\t\t", "\n"


@pytest.mark.parametrize("invoked", [False, True])
@pytest.mark.parametrize(
    ("place", "texts", "expected"),
    [
        (LOOP, ("return result", "result.append(x)"), "result.append(x)"),
        (
            STACK,
            ("def pop(self):\n        return 1", "def push(self, x):\n        return 2"),
            "def push(self, x):\n        return 2",
        ),
        (TABS, ("\ttotal += x",), "total += x"),
        (TABS, ("total = a + a + a + a + a",), "total = a"),
    ],
)
def test_text_near_the_cursor_is_not_suggested_again(
    monkeypatch: pytest.MonkeyPatch,
    worker: CompletionWorker,
    invoked: bool,
    place: tuple[str, str],
    texts: tuple[str, ...],
    expected: str,
) -> None:
    written = writing(monkeypatch, *texts)
    suggestions = asked(worker, Split(*place), invoked, alternatives=1, names="off")
    assert [suggestion.text for suggestion in suggestions] == [expected]
    assert written == list(texts)
    ast.parse(place[0] + expected + place[1])


def test_the_engine_ends_a_loop_that_can_end_nowhere(monkeypatch: pytest.MonkeyPatch, worker: CompletionWorker) -> None:
    loops = ("not not not not not y",) * 9
    writing(monkeypatch, *loops)
    assert not asked(worker, Split("x = ", "\n"), False, alternatives=1, names="off", min_confidence=0.45)
    for invoked in (False, True):
        writing(monkeypatch, *loops)
        (suggestion,) = asked(worker, Split("x = ", "\n"), invoked, alternatives=1, names="off")
        assert suggestion.text.startswith("not ")
        assert suggestion.text.count("not") == 1
        ast.parse("x = " + suggestion.text)


def test_a_comment_absorbs_a_rest_that_nothing_else_can_take(
    monkeypatch: pytest.MonkeyPatch, worker: CompletionWorker
) -> None:
    writing(monkeypatch, *("",) * 9)
    (suggestion,) = asked(worker, Split("# The first line.\n", " and the second one.\nx = 1\n"), True, alternatives=1)
    assert suggestion.text.startswith("#")


@pytest.mark.parametrize(
    "place",
    [
        ('def mean(xs):\n    """', "\n    return sum(xs)\n"),
        ("for x in xs:\n\t", "\n"),
        ("import os\nprint(os.", "sep)\n"),
        STACK,
        LOOP,
    ],
)
def test_the_embedded_models_suggestions_repeat_nothing(worker: CompletionWorker, place: tuple[str, str]) -> None:
    spelling = Language.load("python").spelling
    before = place[0].rpartition("\n")[2]
    for invoked in (False, True):
        suggestions = asked(worker, Split(*place), invoked, inside_strings=True)
        assert suggestions or not invoked
        for suggestion in suggestions:
            ast.parse(place[0] + suggestion.text + place[1][suggestion.covered :])
            assert start_of_loop(suggestion.text, before, spelling) is None
            assert before.strip() or not before or suggestion.text[0] not in " \t"
            assert not suggestion.text.startswith(("return result", "def pop"))
