"""Texts drawn with what others have told, against the model's own distribution of the texts that fit."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch

from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies import aligned
from fim_server.decoding.strategies.aligned import Aligned
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.text.document import Split
from support.models.alphabet_model import ALPHABET, model_of
from support.models.bracket_language import END, SIZE, Brackets, BracketSession, Script, backend

__all__ = ["backend"]

LONG = bool(os.environ.get("FIM_SERVER_LONG"))
SPLIT = Split("(", ")")
OPTIONS = DecodeOptions(max_new_tokens=16, heal=False, temperature=1.0)
FREE = 2
"""Tokens after which a model says little but closers and the end."""

LEAST = 1e-5
"""Least probability of a text; less likely ones are left out."""


def short(seed: int) -> Script:
    """Looks like nothing, the same for a middle, and comes to an end."""

    def script(middle: list[int]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((seed, *middle)) & 0xFFFFFFFF)
        logits = torch.full((SIZE,), -200.0)
        said = ALPHABET if len(middle) < FREE else [*b"()]", END]
        logits[said] = 1.5 * torch.randn(len(said), generator=generator)
        if len(middle) >= FREE:
            logits[ord("(")] -= 4
            logits[END] += 2
        return logits

    return script


def shares_at(script: Script, middle: list[int], warm: float) -> dict[int, float]:
    shares = torch.softmax(script(middle).double() / warm, 0)
    return {token: float(shares[token]) for token in ALPHABET}


def truth(script: Script, warm: float) -> dict[str, float]:
    """The model's distribution of the texts that fit: all of them gone through."""
    session, found = BracketSession(SPLIT.left, SPLIT.right), {}
    todo: list[tuple[list[int], float]] = [([], 1.0)]
    while todo:
        tokens, probability = todo.pop()
        if probability < LEAST:
            continue
        shares = shares_at(script, tokens, warm)
        if session.complete(bytes(tokens)):
            found[bytes(tokens).decode()] = probability * shares[END]
        following = (token for token in ALPHABET if token != END and session.viable(bytes([*tokens, token])))
        todo += [([*tokens, token], probability * shares[token]) for token in following]
    total = sum(found.values())
    return {text: probability / total for text, probability in found.items()}


def next_one(known: Aligned, script: Script, warm: float) -> dict[str, float]:
    """The distribution of the next text that would be drawn."""
    session, found = BracketSession(SPLIT.left, SPLIT.right), {}
    todo: list[tuple[list[int], float]] = [([], 1.0)]
    while todo:
        tokens, probability = todo.pop()
        if probability < LEAST:
            continue
        shares = {
            token: share
            for token, share in shares_at(script, tokens, warm).items()
            if (session.complete(bytes(tokens)) if token == END else session.viable(bytes([*tokens, token])))
        }
        for token in shares:
            place = known.places.get((*tokens, token))
            shares[token] *= 1.0 if place is None or token == END else place.worth
        total = sum(shares.values())
        if END in shares:
            found[bytes(tokens).decode()] = probability * shares.pop(END) / total
        todo += [([*tokens, token], probability * share / total) for token, share in shares.items()]
    return found


def distance(one: dict[str, float], other: dict[str, float]) -> float:
    """Total variation."""
    return sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in {*one, *other}) / 2


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[Aligned]:
    """Return the collectors of worths that a test makes."""
    made: list[Aligned] = []

    class Kept(Aligned):
        def __init__(self, temperature: float) -> None:
            super().__init__(temperature)
            made.append(self)

    monkeypatch.setattr(aligned, "Aligned", Kept)
    return made


@pytest.mark.parametrize(
    ("seed", "warm"), itertools.product(range(3), [1.0, 0.6]) if LONG else [(0, 1.0), (1, 0.6), (2, 1.0)]
)
def test_more_samples_approach_the_models_distribution(known: list[Aligned], seed: int, warm: float) -> None:
    script = short(seed)
    expected = truth(script, warm)
    model, distances = model_of(script), [distance(next_one(Aligned(warm), script, warm), expected)]
    for samples in (4, 24, 120):
        complete(model, Brackets(), SPLIT, replace(OPTIONS, samples=samples, temperature=warm, seed=seed))
        distances.append(distance(next_one(known[-1], script, warm), expected))
    assert distances[-1] < max(0.03, 0.3 * distances[0])
    assert distances[-1] <= min(distances) + 0.01


def test_the_mask_alone_distorts_the_distribution() -> None:
    distances = [distance(next_one(Aligned(1.0), short(seed), 1.0), truth(short(seed), 1.0)) for seed in range(6)]
    assert sum(one > 0.1 for one in distances) >= 4


def test_every_text_fits_and_the_statistics_are_of_all() -> None:
    session = BracketSession(SPLIT.left, SPLIT.right)
    for seed in range(20 if LONG else 8):
        found = complete(model_of(short(seed)), Brackets(), SPLIT, replace(OPTIONS, samples=6, seed=seed))
        assert found.text is not None
        assert session.complete(found.text.encode())
        assert found.statistics.refused_tokens == 0  # nothing is drawn that does not fit
    one = complete(model_of(short(1)), Brackets(), SPLIT, OPTIONS)
    six = complete(model_of(short(1)), Brackets(), SPLIT, replace(OPTIONS, samples=6))
    assert six.statistics.passes > one.statistics.passes


def test_a_line_break_counts_as_the_end_of_a_line() -> None:
    """The model ends lines by breaking them; its end token by itself is next to nothing."""

    def script(middle: list[int]) -> torch.Tensor:
        logits = torch.full((SIZE,), -200.0)
        logits[[ord("x"), ord("\n"), END]] = torch.tensor([0.7, 0.3, 1e-9]).log()
        return logits

    options = replace(OPTIONS, samples=2, single_line=True, max_new_tokens=40)
    lengths = [
        len(complete(model_of(script), Brackets(), SPLIT, replace(options, seed=seed)).text or "") for seed in range(40)
    ]
    assert np.mean(lengths) == pytest.approx(0.7 / 0.3, abs=1.5)


@pytest.mark.parametrize("warm", [1e-30, 1e-5, 0.01, 1e5, 1e30])
@pytest.mark.filterwarnings("error")
def test_samples_fit_at_any_temperature(warm: float) -> None:
    session = BracketSession(SPLIT.left, SPLIT.right)
    for seed in range(4 if LONG else 2):
        options = replace(OPTIONS, temperature=warm, samples=5, seed=seed)
        found = complete(model_of(short(seed)), Brackets(), SPLIT, options)
        assert found.text is None or session.complete(found.text.encode())
        assert found.text is not None or found.stop_reason is StopReason.BUDGET


def test_it_ends_where_it_is_cancelled() -> None:
    cancelled = threading.Event()
    cancelled.set()
    found = complete(model_of(short(1)), Brackets(), SPLIT, replace(OPTIONS, samples=1000), cancelled)
    assert found.stop_reason is StopReason.CANCELLED
    late = complete(model_of(short(1)), Brackets(), SPLIT, replace(OPTIONS, samples=100_000, deadline_ms=200))
    assert late.text is not None


def test_the_worth_of_a_beginning_is_what_is_not_lost() -> None:
    made = Aligned(1.0)
    made.places = {
        (): aligned.Place(0.8, {1: 0.5}),
        (1,): aligned.Place(0.4, {2: 0.3, END: 0.1}),
        (1, 2): aligned.Place(0.0),
    }
    made.end([1, 2])
    assert made.places[1,].worth == pytest.approx(0.1, abs=1e-6)
    assert made.places[()].worth == pytest.approx(0.8 - 0.5 * 0.9, abs=1e-6)
    assert prod(place.worth for place in made.places.values()) > 0


def test_with_a_real_model_and_language() -> None:
    model, python = load_model("embedded", "cpu"), Language.load("python")
    split = Split("import os\n\ndef names(path):\n    return [", "]\n\nprint(names('.'))\n")
    for seed in range(3):
        options = DecodeOptions(max_new_tokens=16, temperature=1.0, samples=4, single_line=True, seed=seed)
        found = complete(model, python, split, options)
        assert found.text is not None
        assert python.open(split.left, split.right).check(found.text).complete
