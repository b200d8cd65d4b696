"""Reasons for which suggestions are not shown: their choice, their messages and their log lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.language import Language
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.context.sessions import Opened
from fim_server.suggest.postprocess.stage import trimmed_text
from fim_server.suggest.ranking.display import DISMISSED, display, refusal_of_text
from fim_server.suggest.ranking.reasons import Reason, Suppression, reasons_in_words
from fim_server.suggest.ranking.red_flags import DEFINED_AGAIN, REPEATED_LINE, RedFlag
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split
from support.editors.answers import suggestion
from support.editors.watched import request

AUTOMATIC = request("file:///a.py")


def of(text: str, probability: float, **fields: Any) -> Suggestion:
    ends: dict[str, Any] = {"cuts": (len(text),), "lexemes": (len(text),)}
    return suggestion(text, tokens=(Written(len(text), probability),), **ends, **fields)


def shown(*suggestions: Suggestion) -> Answer:
    return display(AUTOMATIC.answered(suggestions), AUTOMATIC)


@pytest.mark.parametrize(
    ("flag", "reason", "message"),
    [
        (RedFlag(), Reason.LOW_CONFIDENCE, "the model is not sure enough (setting minConfidence)"),
        (RedFlag(9), Reason.LOW_CONFIDENCE, "the model is not sure enough (setting minConfidence)"),
        (RedFlag(2, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN), Reason.DEFINED_AGAIN, "it defines a name again"),
        (RedFlag(2, REPEATED_LINE, reason=Reason.REPEATED_LINE), Reason.REPEATED_LINE, "it repeats a near line"),
        (RedFlag(2, 0.05, reason=Reason.UNDEFINED_NAME), Reason.UNDEFINED_NAME, "it loads an undefined name"),
    ],
)
def test_a_hidden_suggestion_has_its_reason(flag: RedFlag, reason: Reason, message: str) -> None:
    found = shown(of("cost", 0.01, flag=flag))
    assert (found.suggestions, found.reason) == ((), message)
    (suppressed,) = found.suppressed
    assert (suppressed.reason, suppressed.message) == (reason, message)
    assert suppressed.confidence is not None
    assert suppressed.confidence < 0.1


def test_a_shown_suggestion_has_no_reason_and_hidden_ones_beside_it_do() -> None:
    found = shown(of("cost", 0.99), of("other", 0.01))
    assert [one.text for one in found.suggestions] == ["cost"]
    assert found.reason is None
    assert [one.reason for one in found.suppressed] == [Reason.LOW_CONFIDENCE]


def test_an_explicit_request_suppresses_nothing() -> None:
    explicit = replace(AUTOMATIC, invoked=True)
    found = display(explicit.answered((of("cost", 0.01),)), explicit)
    assert ([one.text for one in found.suggestions], found.suppressed) == (["cost"], ())


@pytest.mark.parametrize(
    ("text", "covered", "reason"),
    [
        (" \n", 0, Reason.NO_TEXT),
        ("a\u200bb", 0, Reason.HIDDEN_CHARACTER),
        ("a", 1, Reason.MISSING_CLOSER),
        ("a)", 1, None),
    ],
)
def test_texts_that_are_no_suggestion(text: str, covered: int, reason: Reason | None) -> None:
    found = refusal_of_text(text, Split("f(", ")\n"), covered)
    assert (None if found is None else found.reason) is reason


def test_reasons_for_the_log_have_confidences_and_no_code() -> None:
    flagged = of("secret", 0.01, flag=RedFlag(2, 0.05, reason=Reason.UNDEFINED_NAME))
    low, unknown = map(str, shown(of("secret", 0.01), flagged).suppressed)
    assert low.startswith("low confidence (0.0")
    assert unknown == "loads an undefined name (0.050)"
    assert str(refusal_of_text(" ", Split("", ""), 0)) == "no text"


@pytest.mark.parametrize(
    ("reason", "suppressed", "words"),
    [
        (None, [], ""),
        ("no model", [], "no model"),
        ("in a word", [(Reason.IN_WORD, "in a word", None)], "in a word"),
        ("not sure", [(Reason.LOW_CONFIDENCE, "not sure", 0.2)] * 2, "not sure: confidence 0.200, 0.200"),
        ("no model", [(Reason.LOOP, "it loops", 0.1)], "no model; suppressed: repeats itself (0.100)"),
        (
            "not sure",
            [(Reason.LOW_CONFIDENCE, "not sure", 0.2), (Reason.NO_TEXT, "x", None), (Reason.NO_TEXT, "y", None)],
            "not sure: confidence 0.200; suppressed: no text",
        ),
        (
            "not sure",
            [(Reason.LOW_CONFIDENCE, "unlikely", None), (Reason.LOW_CONFIDENCE, "not sure", 0.2)],
            "not sure: confidence 0.200",
        ),
        (None, [(Reason.LOW_CONFIDENCE, "not sure", 0.2)], "suppressed: low confidence (0.200)"),
    ],
)
def test_the_reasons_in_words_name_each_once(
    reason: str | None, suppressed: list[tuple[Reason, str, float | None]], words: str
) -> None:
    assert reasons_in_words(reason, [Suppression(*each) for each in suppressed]) == words


@pytest.mark.parametrize(
    ("stop", "reason"), [(StopReason.UNLIKELY, Reason.LOW_CONFIDENCE), (StopReason.DEADLINE, Reason.NO_TEXT)]
)
def test_a_text_that_became_unlikely_lacks_confidence(stop: StopReason, reason: Reason) -> None:
    opened = Opened(Language.load("python").open("x = ", ""), "exact", "x = ", "")
    found = trimmed_text(Completion(None, "exact", stop, "nothing"), AUTOMATIC, opened)
    assert found == Suppression(reason, "nothing")


@pytest.mark.parametrize(("dismissed", "kept"), [("ab", ()), ("a", ()), ("abc", ()), ("b", ("ab",)), ("", ("ab",))])
def test_a_dismissed_suggestion_is_hidden_until_requested(dismissed: str, kept: tuple[str, ...]) -> None:
    asked = replace(AUTOMATIC, dismissed=(dismissed,) if dismissed else ())
    answer = asked.answered((of("ab", 0.9),))
    found = display(answer, asked)
    assert tuple(one.text for one in found.suggestions) == kept
    assert [one.reason for one in found.suppressed] == ([] if kept else [Reason.DISMISSED])
    assert found.reason == (None if kept else DISMISSED.message)
    assert display(answer, replace(asked, invoked=True)).suggestions
