"""Best-first search against trying everything, with models that say whatever a seed makes them say."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.search import MOST_KEPT, Beginning, Frontier
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.text.document import Split
from support.models.alphabet_model import ALPHABET, model_of
from support.models.bracket_language import (
    END,
    SIZE,
    Brackets,
    BracketSession,
    Script,
    backend,
)

__all__ = ["backend"]
"""A fixture that every test here uses."""

EVERYTHING = 100_000
SPLIT = Split("(", ")")


def said(seed: int, scale: float = 2.0) -> Script:
    """Probabilities of the alphabet's tokens that look like nothing, and none of others; the same for a middle."""

    def script(middle: list[int]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((seed, *middle)) & 0xFFFFFFFF)
        logits = torch.full((SIZE,), -200.0)
        logits[ALPHABET] = scale * torch.randn(len(ALPHABET), generator=generator)
        return logits

    return script


def texts(script: Script, budget: int) -> Iterator[tuple[str, float]]:
    """Every middle that is complete within the budget, with its bits; by going through all of them."""
    session = BracketSession(SPLIT.left, SPLIT.right)
    todo: list[tuple[list[int], float]] = [([], 0.0)]
    while todo:
        tokens, bits = todo.pop()
        shares = torch.softmax(script(tokens).double(), 0)
        middle = bytes(tokens)
        if tokens and session.complete(middle):
            yield middle.decode(), bits - math.log2(float(shares[END]))
        if len(tokens) < budget:
            todo += [
                ([*tokens, token], bits - math.log2(float(shares[token])))
                for token in ALPHABET
                if token != END and session.viable(middle + bytes([token]))
            ]


def best(script: Script, budget: int) -> tuple[str, float]:
    return min(texts(script, budget), key=lambda found: found[1])


@pytest.mark.parametrize("seed", range(40))
def test_an_exhaustive_search_finds_the_likeliest_text(seed: int) -> None:
    script, budget = said(seed), 5
    options = DecodeOptions(max_new_tokens=budget, search=EVERYTHING, scored=True, heal=False)
    model = model_of(script)
    greedy = complete(model, Brackets(), SPLIT, replace(options, search=1))
    found = complete(model, Brackets(), SPLIT, options)
    text, bits = best(script, budget)
    if greedy.text == "":  # the first choice was the end: nothing shows whether something is better, unless it is
        assert found.bits is not None
        assert found.bits <= bits + 1e-4
        return
    assert found.text == text
    assert found.bits == pytest.approx(bits, abs=1e-3)
    assert found.guarantee == "exact"


def test_search_often_differs_from_greedy_decoding() -> None:
    options = DecodeOptions(max_new_tokens=5, heal=False, scored=True)
    differing = sum(
        complete(model_of(said(seed)), Brackets(), SPLIT, options).text != best(said(seed), 5)[0] for seed in range(40)
    )
    assert differing >= 10


@pytest.mark.parametrize("seed", range(12))
def test_more_texts_are_never_worse(seed: int) -> None:
    model = model_of(said(seed))
    options = DecodeOptions(max_new_tokens=12, heal=False, scored=True)
    bits = []
    for search in (1, 2, 3, 5, 8, 20):
        found = complete(model, Brackets(), SPLIT, replace(options, search=search))
        bits.append(math.inf if found.bits is None else found.bits)
    assert bits == sorted(bits, reverse=True)


def test_an_unlikely_beginning_is_abandoned() -> None:
    """`[` is likelier than `x` at first; but then the model would go on with what the grammar refuses."""
    after: dict[str, dict[str | int, float]] = {
        "": {"[": 0.6, "x": 0.39, END: 0.01},
        "x": {END: 0.98, "x": 0.02},
        "[": {")": 0.999, "]": 0.001},
    }

    def script(middle: list[int]) -> torch.Tensor:
        shares = after.get("".join(map(chr, middle)), {END: 0.99, "x": 0.01})
        logits = torch.full((SIZE,), -200.0)
        for token, share in shares.items():
            logits[token if isinstance(token, int) else ord(token)] = math.log(share)
        return logits

    options = DecodeOptions(max_new_tokens=6, heal=False, scored=True)
    greedy = complete(model_of(script), Brackets(), SPLIT, options)
    assert greedy.text == "[]"
    assert greedy.bits == pytest.approx(-math.log2(0.6 * 0.001 * 0.99), abs=1e-3)
    found = complete(model_of(script), Brackets(), SPLIT, replace(options, search=2))
    assert found.text == "x"
    assert found.bits == pytest.approx(-math.log2(0.39 * 0.98), abs=1e-3)
    assert found.stop_reason is StopReason.END_TOKEN
    assert found.statistics.passes > greedy.statistics.passes
    again = complete(model_of(script), Brackets(), SPLIT, replace(options, search=EVERYTHING))
    assert (again.text, again.statistics.passes) == ("x", found.statistics.passes)  # nothing else can be better


def test_a_search_ends_at_its_deadline_with_the_best_text() -> None:
    cancelled = threading.Event()
    told: list[int] = []

    def on_token(tokens: object) -> None:
        told.append(1)
        if len(told) == 30:
            cancelled.set()

    options = DecodeOptions(max_new_tokens=12, heal=False, search=EVERYTHING)
    script = said(3, 0.1)
    found = complete(model_of(script), Brackets(), SPLIT, options, cancelled, on_token)
    assert found.text is not None
    assert len(told) <= 31
    late = complete(model_of(script), Brackets(), SPLIT, replace(options, deadline_ms=0.0))
    assert late.stop_reason is StopReason.DEADLINE


def test_the_frontier_is_bounded() -> None:
    frontier = Frontier()

    class Writing:
        tokens: tuple[int, ...] = ()
        middle = SimpleNamespace(probabilities=(), likelihood=lambda: 1.0)

        def others(self, logits: object, token: int, least: float) -> Iterator[tuple[int, float]]:
            return ((token, token / 10_000) for token in range(1, 9))

    class Chosen:
        token = 0

    for _ in range(MOST_KEPT):
        frontier.note(Writing(), [], Chosen())  # type: ignore[arg-type]
    kept = 0
    while frontier.take() is not None:
        kept += 1
    assert MOST_KEPT // 4 < kept <= MOST_KEPT
    frontier.note(Writing(), [], Chosen())  # type: ignore[arg-type]
    taken = frontier.take()
    assert taken == Beginning((), 8, (0.0008,), 0.0008)
    frontier.bound = 0.0007
    assert frontier.take() is None


def test_with_a_real_model_and_language() -> None:
    model, python = load_model("embedded", "cpu"), Language.load("python")
    split = Split("import os\n\ndef names(path):\n    return ", "\n\nprint(names('.'))\n")
    options = DecodeOptions(max_new_tokens=24, scored=True)
    greedy = complete(model, python, split, options)
    found = complete(model, python, split, replace(options, search=8))
    assert found.text is not None
    assert python.open(split.left, split.right).check(found.text).complete
    if greedy.bits is not None:
        assert found.bits is not None
        assert found.bits <= greedy.bits


def test_a_first_text_given_up_as_unlikely_ends_the_search() -> None:
    options = DecodeOptions(max_new_tokens=12, heal=False, scored=True, least_likelihood=0.9)
    told: list[int] = []
    plain = complete(model_of(said(5)), Brackets(), SPLIT, options, on_token=lambda tokens: told.append(len(tokens)))
    once = len(told)
    found = complete(
        model_of(said(5)),
        Brackets(),
        SPLIT,
        replace(options, search=50),
        on_token=lambda tokens: told.append(len(tokens)),
    )
    assert plain.stop_reason is StopReason.UNLIKELY
    assert (found.text, found.stop_reason, found.statistics.passes) == (
        plain.text,
        plain.stop_reason,
        plain.statistics.passes,
    )
    assert len(told) == 2 * once


def test_only_the_first_text_is_told() -> None:
    options = DecodeOptions(max_new_tokens=12, heal=False, scored=True)
    first: list[list[int]] = []
    told: list[list[int]] = []
    one = complete(model_of(said(7)), Brackets(), SPLIT, options, on_token=lambda tokens: first.append(list(tokens)))
    many = complete(
        model_of(said(7)),
        Brackets(),
        SPLIT,
        replace(options, search=20),
        on_token=lambda tokens: told.append(list(tokens)),
    )
    assert many.statistics.passes > one.statistics.passes
    assert told == first
