"""Another text where the first one is doubted: the probabilities that its tokens have then, and when it is written."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import exp, isclose, prod
from typing import Any

import pytest

from fim_server.decoding.results import Written
from fim_server.server import completing
from fim_server.server.doubts import NO_DOUBT, Doubt
from fim_server.server.second_thoughts import Unlike
from fim_server.server.settings import ServerSettings
from fim_server.server.showing import shown
from fim_server.server.work import Work
from fim_server.server.worker import CompletionWorker
from watched import request

TOKENS = ("a", "b", "ab")
PATIENCE = 60.0


def tree(draw: random.Random, depth: int) -> dict[tuple[str, ...], list[float]]:
    """The probabilities of the next token after each sequence of tokens."""
    found = {}
    for length in range(depth):
        for path in product(TOKENS, repeat=length):
            weights = [draw.random() for _ in TOKENS]
            found[path] = [weight / sum(weights) for weight in weights]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_as_likely_as_where_the_doubted_beginning_is_ruled_out(seed: int) -> None:
    """Against all texts of four tokens: those that begin so are as much less likely as they are doubted."""
    draw = random.Random(seed)
    first = tuple(draw.choice(TOKENS) for _ in range(3))
    chances, doubt = tree(draw, 4), draw.choice([0.5, 0.95])
    ends = [len("".join(first[: at + 1])) for at in range(3)]
    steps = [chances[first[:at]][TOKENS.index(first[at])] for at in range(3)]
    written = tuple(Written(end, chance) for end, chance in zip(ends, steps, strict=True))
    unlike = Unlike("".join(first), written, doubt, None)

    def chance_of(path: tuple[str, ...], changed: bool) -> float:
        found = 1.0
        for at, token in enumerate(path):
            before = path[:at]
            # A text that is written in other tokens is another event for the first one's probabilities.
            follows = changed and before == first[:at]
            changes = unlike("".join(before), "", TOKENS) if follows else [0.0] * len(TOKENS)
            if follows and at < 3:
                changes = [change if one == first[at] else 0.0 for one, change in zip(TOKENS, changes, strict=True)]
            weights = [one * exp(change) for one, change in zip(chances[before], changes, strict=True)]
            found *= weights[TOKENS.index(token)] / sum(weights)
        return found

    paths = list(product(TOKENS, repeat=4))
    kept = {path: chance_of(path, False) * (1 - doubt if path[:3] == first else 1) for path in paths}
    total = sum(kept.values())
    assert all(isclose(chance_of(path, True), kept[path] / total, rel_tol=1e-9) for path in paths)


def test_what_is_written_again_first_counts_for_nothing() -> None:
    def others(middle: str, healing: str, texts: Any) -> list[float]:
        return [float(text == "abx") for text in texts]

    written = (Written(1, 0.9), Written(2, 0.5))
    unlike = Unlike("xy", written, 0.8, others)
    texts = ["a", "ab", "abx", "abxyz", "abz", None]
    expected = [0, 0, 1 + unlike._change("x"), unlike._change("xy"), 0, 0]
    assert unlike("", "ab", texts) == pytest.approx(expected)
    assert exp(unlike._change("x")) == pytest.approx(1 - 0.8 * 0.5)
    assert exp(unlike._change("xy")) == exp(unlike._change("xyz")) == pytest.approx(0.2)
    assert unlike("q", "", ["x"]) == [0.0]
    assert exp(Unlike("x", (), 1.0, None)._change("x")) == pytest.approx(1e-9)


@pytest.mark.parametrize("invoked", [False, True])
def test_where_the_first_text_is_doubted_another_one_is_written(monkeypatch: pytest.MonkeyPatch, invoked: bool) -> None:
    settings = ServerSettings(model="embedded", prefetch=False, min_confidence=0.0, alternatives=1, deadline_ms=None)
    worker = CompletionWorker(settings)

    def asked() -> Work:
        one = replace(request("file:///a.py"), invoked=invoked, settings=settings)
        work = worker.submit(one).future.result(PATIENCE)
        assert work is not None
        return work

    sure = asked()
    assert len(sure.completions) == len(sure.answer.offers) == 1
    first = sure.answer.offers[0]

    def doubted(language: str, spelling: object, split: object, text: str, unknown: object) -> Doubt:
        return Doubt(1, 0.0, len(text)) if text == first.text else NO_DOUBT

    monkeypatch.setattr(completing, "doubt_of", doubted)
    work = asked()
    worker.close()
    assert len(work.completions) == (1 if invoked else 2)
    assert prod(one.written[0].probability for one in work.completions) > 0
    if not invoked:
        assert {one.text for one in work.answer.offers} > {first.text}
        assert shown(next(one for one in work.answer.offers if one.text == first.text), "", 0.45) is None
