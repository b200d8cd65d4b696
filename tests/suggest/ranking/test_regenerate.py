"""Further texts after a flagged one: the bias on their tokens, and the cases with one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import exp, isclose
from typing import Any

import pytest

from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.decoding.strategies import alternatives
from fim_server.errors import StoppedError
from fim_server.models.backend import LostError
from fim_server.suggest.job import Work
from fim_server.suggest.postprocess import stage
from fim_server.suggest.ranking.display import shown
from fim_server.suggest.ranking.reasons import Reason
from fim_server.suggest.ranking.red_flags import DEFINED_AGAIN, NO_FLAG, RedFlag
from fim_server.suggest.ranking.regenerate import Unlike, unlike_flagged, without_repeats
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.suggestion import Suggestion
from fim_server.workers.worker import CompletionWorker
from support.editors.answers import suggestion
from support.editors.watched import request

TOKENS = ("a", "b", "c")
PATIENCE = 60.0


def tree(draw: random.Random, depth: int) -> dict[str, list[float]]:
    """Return the probabilities of the next token after each text."""
    found = {}
    for length in range(depth):
        for path in product(TOKENS, repeat=length):
            weights = [draw.random() for _ in TOKENS]
            found["".join(path)] = [weight / sum(weights) for weight in weights]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_bias_follows_bayes_rule(seed: int) -> None:
    """Compare with all texts of five tokens: those with the flagged beginning lose their share."""
    draw = random.Random(seed)
    first = "".join(draw.choice(TOKENS) for _ in range(3))
    chances, doubt = tree(draw, 5), draw.choice([0.5, 0.95])
    steps = (chances[first[:at]][TOKENS.index(first[at])] for at in range(3))
    written = tuple(Written(at, chance) for at, chance in enumerate(steps, 1))
    unlike = Unlike(first, written, doubt, None)

    def chance_of(text: str, changed: bool) -> float:
        found = 1.0
        for at, token in enumerate(text):
            changes = unlike(text[:at], "", TOKENS) if changed else [0.0] * len(TOKENS)
            weights = [one * exp(change) for one, change in zip(chances[text[:at]], changes, strict=True)]
            found *= weights[TOKENS.index(token)] / sum(weights)
        return found

    texts = ["".join(path) for path in product(TOKENS, repeat=5)]
    kept = {text: chance_of(text, False) * (1 - doubt if text.startswith(first) else 1) for text in texts}
    total = sum(kept.values())
    assert all(isclose(chance_of(text, True), kept[text] / total, rel_tol=1e-9) for text in texts)
    for text in (first, first + "a"):  # the beginning is written or ruled out: no bias
        assert unlike(text, "", TOKENS) == [0.0] * len(TOKENS)


def test_healed_text_has_no_bias() -> None:
    def others(middle: str, healing: str, texts: Any) -> list[float]:
        return [float(text == "abx") for text in texts]

    written = (Written(1, 0.9), Written(2, 0.5))
    unlike = Unlike("xy", written, 0.8, others)
    assert unlike._change("xyz") == unlike._change("xy")
    texts = ["a", "ab", "abx", "abxyz", "abz", None]
    expected = [0, 0, 1 + unlike._change("x"), unlike._change("xy"), 0, 0]
    assert unlike("", "ab", texts) == pytest.approx(expected)
    assert exp(unlike._change("x")) == pytest.approx(1 - 0.8 * 0.5)
    assert exp(unlike._change("xy")) == exp(unlike._change("xyz")) == pytest.approx(0.2)
    assert unlike("q", "", ["x"]) == [0.0]
    assert exp(Unlike("x", (), 1.0, None)._change("x")) == pytest.approx(1e-9)


@pytest.mark.parametrize("error", [StoppedError("too long"), LostError("no answer")])
def test_a_second_text_that_fails_leaves_the_first(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    settings = ServerSettings(model="embedded", prefetch=False, min_confidence=0.0, deadline_ms=None)
    worker, calls, write = CompletionWorker(settings), [], alternatives.alternatives
    worker.load().result(PATIENCE)  # which writes a text of its own

    def failing(*arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 1:
            raise error
        return write(*arguments, **more)

    monkeypatch.setattr(alternatives, "alternatives", failing)
    monkeypatch.setattr(stage, "flag_of", lambda *about: RedFlag(1, 0.0))
    work = worker.submit(replace(request("file:///a.py"), settings=settings)).future.result(PATIENCE)
    worker.close()
    assert work is not None
    assert (len(calls), len(work.completions), len(work.answer.suggestions)) == (2, 1, 1)


@pytest.mark.parametrize(("invoked", "interrupted"), [(False, False), (False, True), (True, False)])
def test_a_flagged_text_has_the_model_write_another(
    monkeypatch: pytest.MonkeyPatch, invoked: bool, interrupted: bool
) -> None:
    """On request, too, if there is no other text; not if the first was interrupted."""
    settings = ServerSettings(model="embedded", prefetch=False, min_confidence=0.0, alternatives=1, deadline_ms=None)
    worker = CompletionWorker(settings)

    def asked() -> Work:
        one = replace(request("file:///a.py"), invoked=invoked, settings=settings)
        work = worker.submit(one).future.result(PATIENCE)
        assert work is not None
        return work

    sure = asked()
    assert len(sure.completions) == len(sure.answer.suggestions) == 1
    first = sure.answer.suggestions[0]

    def flagged(language: str, spelling: object, split: object, text: str, *about: object) -> RedFlag:
        return RedFlag(1, 0.0, len(text), reason=Reason.REPEATED_LINE) if text == first.text else NO_FLAG

    monkeypatch.setattr(stage, "flag_of", flagged)
    monkeypatch.setattr(StopReason, "is_interruption", property(lambda reason: interrupted))
    work = asked()
    worker.close()
    texts = [one.text for one in work.answer.suggestions]
    assert (first.text in texts) == (not invoked or interrupted)  # on request repeats give way
    assert len(work.completions) == (1 if interrupted else 2)
    if not invoked and not interrupted:
        assert len(texts) == 2
        assert shown(next(one for one in work.answer.suggestions if one.text == first.text), "", 0.45) is None


def suggestion_of(text: str, flag: RedFlag = NO_FLAG) -> Suggestion:
    completion = Completion(text, "exact", StopReason.END_TOKEN, None)
    return suggestion(text, completion=completion, flag=flag)


def test_repeats_come_last_on_request() -> None:
    first = suggestion_of("def pop(self):", RedFlag(7, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN))
    near, unknown = (
        suggestion_of("a = b", RedFlag(1, 0.05, reason=Reason.REPEATED_LINE)),
        suggestion_of("c = d", RedFlag(1, 0.05, reason=Reason.UNDEFINED_NAME)),
    )
    assert without_repeats([first, near, unknown]) == [unknown, near]
    assert without_repeats([first, near]) == [first, near]  # something is shown
    assert without_repeats([]) == []


def test_repeats_call_for_another_text_on_request() -> None:
    first = suggestion_of("def pop(self):", RedFlag(7, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN))
    unknown = suggestion_of("c = d", RedFlag(1, 0.05, reason=Reason.UNDEFINED_NAME))
    unlike = unlike_flagged([first], [], None, True)
    assert unlike is not None
    assert unlike.beginning == "def pop"
    assert unlike_flagged([first, unknown], [], None, True) is None
    assert unlike_flagged([unknown], [], None, True) is None
    assert unlike_flagged([unknown], [], None, False) is not None
    assert unlike_flagged([suggestion_of("a")], [], None, False) is None


def test_repeats_and_flagged_texts_are_ruled_out_together() -> None:
    first = suggestion_of("def pop(self):", RedFlag(7, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN))
    below = suggestion_of("async def pop(self):").origin.completion
    unlike = unlike_flagged([first], [below], None, True)
    assert unlike is not None
    assert unlike.beginning == "async def pop(self):"
    assert isinstance(unlike.others, Unlike)
    assert unlike.others.beginning == "def pop"


def test_a_repeat_of_the_text_below_calls_for_another_text() -> None:
    below = replace(
        suggestion_of("\n    return result\n").origin.completion, written=(Written(11, 0.5), Written(19, 0.5))
    )
    for invoked in (False, True):
        unlike = unlike_flagged([], [below], None, invoked)
        assert unlike is not None
        assert unlike.beginning == "\n    return result"
        assert exp(unlike._change(unlike.beginning)) == pytest.approx(0.001)
    assert unlike_flagged([], [], None, True) is None
