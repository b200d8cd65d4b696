"""An explicit request returns a text that fits, whatever the model writes, and however late."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.language import Language, Stop
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.pace import Pace
from fim_server.models.turn import Turn
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.context import sessions
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.job import Loaded, PromptTokens
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.postprocess import endings
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.postprocess.short_texts import FIRST_END_SHARE, WRITING_SHARE, of_a_short_text, with_time_to_end
from fim_server.suggest.ranking.display import display
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from support.models.sure_backend import SureBackend

SETTINGS = ServerSettings(
    languages={}, names="off", alternatives=1, max_tokens=40, max_line_tokens=40, invoked_deadline_ms=None
)

PLACES = [
    ("rust", "fn f(v: &[i32]) -> i32 {\n    v.iter().‸\n}\n"),
    ("rust", "fn f() {\n    let x: i32 = v.iter().‸\n}\n"),
    ("java", "class A {\n    void f() {\n        List<String> a = new ‸\n    }\n}\n"),
    ("go", "package a\n\nfunc f() {\n\tx := map[string]int{‸}\n}\n"),
    ("python", 'def f(x):\n    """‸\n    return x\n'),
    ("python", "import os\nprint(os.‸sep)\n"),
    ("python", "f(‸)\n"),
    ("python", "x = [a for ‸]\n"),
    ("python", "if f(‸)\n    pass\n"),
    ("python", "while f(‸):\n"),
    ("python", "try:\n    x = ‸\n"),
    ("json", '{"a": {"b": ‸}}\n'),
]


class Slow(SureBackend):
    """Network that has written nothing by the deadline."""

    def forward(self, token_ids: Any, cache: Any) -> Any:
        time.sleep(0.05)
        return super().forward(token_ids, cache)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for every search, however busy the machine is."""
    for module, name in ((sessions, "STAND_IN_SECONDS"), (sessions, "REOPENS_SECONDS"), (endings, "ENDING_SECONDS")):
        monkeypatch.setattr(module, name, 60)


@pytest.fixture(scope="module")
def embedded() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


def asked(
    embedded: FimModel, language: str, marked: str, text: str, kind: type[SureBackend] = SureBackend, **settings: Any
) -> tuple[Split, Answer, DocumentSessions]:
    """Return the answer to an explicit request where the model is sure of a text."""
    backend = kind(embedded)
    model = replace(embedded, backend=backend, turn=Turn())
    loading: Future[Loaded] = Future()
    loading.set_result(Loaded(model, Pace(), KeptReadings(model)))
    left, _, right = marked.partition("‸")
    split, known = Split(left, right), DocumentSessions()
    healing, begun = Healing.of(model, split).text, left.encode()
    backend.aim(begun[: len(begun) - len(healing.encode())], (healing + text).encode())
    single_line = wants_single_line(Place.of(split), SETTINGS, owes_block(split, language))
    values = replace(SETTINGS, **settings)
    request = Request("file:///a", split, language, "/a", True, single_line, values)
    work = Completer(known, PromptTokens(), count(1), lambda: True).answer(
        loading, request, Stop(), time.perf_counter()
    )
    assert work is not None
    return split, display(work.answer, request), known


def assert_fits(language: str, split: Split, answer: Answer) -> None:
    assert answer.suggestions, answer.reason
    for suggestion in answer.suggestions:
        assert suggestion.text.strip()
        right = split.right if suggestion.origin.stand_in is None else suggestion.origin.stand_in.inserted(split.right)
        assert Language.load(language).open(split.left, right[suggestion.covered :]).check(suggestion.text).complete


@pytest.mark.parametrize(("language", "marked"), PLACES)
def test_a_request_gets_a_text_although_the_model_writes_none(embedded: FimModel, language: str, marked: str) -> None:
    split, answer, _ = asked(embedded, language, marked, "")
    assert_fits(language, split, answer)


@pytest.mark.parametrize(("language", "marked"), PLACES)
@pytest.mark.parametrize("text", ["a(" * 60, "B<" * 60, "(a, " * 40, "$ " * 60])
def test_a_request_gets_a_text_although_the_model_loops(
    embedded: FimModel, language: str, marked: str, text: str
) -> None:
    split, answer, _ = asked(embedded, language, marked, text)
    assert_fits(language, split, answer)


@pytest.mark.parametrize(("language", "marked"), PLACES)
def test_a_request_gets_a_text_although_the_model_has_no_time(embedded: FimModel, language: str, marked: str) -> None:
    split, answer, _ = asked(embedded, language, marked, "b.c(d", Slow, invoked_deadline_ms=20.0)
    assert_fits(language, split, answer)
    assert not answer.lasting  # asked again, the model may have more time


def test_the_beginning_of_a_loop_gets_an_ending(embedded: FimModel) -> None:
    _, answer, _ = asked(embedded, "java", PLACES[2][1], "ArrayList<" * 40, min_confidence=0)
    assert answer.suggestions[0].text.startswith("ArrayList")
    assert answer.suggestions[0].text.count("ArrayList") < 4


def test_the_first_text_leaves_time_for_a_short_one() -> None:
    options = with_time_to_end(DecodeOptions(deadline_ms=1000))
    assert (options.deadline_ms, options.first_end_ms) == (1000 * WRITING_SHARE, 1000 * FIRST_END_SHARE)
    assert with_time_to_end(DecodeOptions()) == DecodeOptions()


def test_a_short_text_has_as_many_lines_as_it_needs(embedded: FimModel) -> None:
    python = Language.load("python")
    for right, single_line in (("\n", False), ("\nexcept A:\n    b\n", True)):
        session = python.open("try:\n    a = ", right)
        options = of_a_short_text(DecodeOptions(), session, embedded.vocabulary, 1000)
        assert (options.single_line, options.says_something) == (single_line, True)
        assert options.deadline_ms is not None
        assert options.deadline_ms < 1000
