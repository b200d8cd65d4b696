"""Tokens that hold the end of a middle and what stands behind it, beside models that spell the same texts without."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from math import log2
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.ending.merged_tokens import MergedTokens
from fim_server.decoding.ending.right_closer import RightCloser
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.pytorch.backend import TorchArithmetic
from fim_server.models.remote.rows import RemoteArithmetic, RemoteRow
from support.models.listed_probabilities import texts_of

DEVICE = torch.device("cpu")

PIECES = ["x)", "))", ")))", ")\n", "x)\n", "):", "x\r\n", '."', '."""', "\n\n"]


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    texts = [*(bytes([byte]) for byte in range(128)), *map(str.encode, PIECES)]
    return Vocabulary([*texts, None], [len(texts)])


def test_a_merged_token_writes_its_first_part_and_ends(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {"y": 0.9, "": 0.1}}
    (found,) = texts_of(python, vocabulary, {b"": {"x)": 0.5, "x": 0.1, "y": 0.4}, **after}, ("f(", ")\n"))
    assert found.text == "x"
    assert found.bits == pytest.approx(-log2(0.5 + 0.1 * 0.1), abs=1e-3)
    (quoted,) = texts_of(python, vocabulary, {b"": {'."': 0.9, "y": 0.1}}, ('x = "', '"\n'))
    assert quoted.text == "."
    (quoted,) = texts_of(python, vocabulary, {b"": {'."""': 0.9, "y": 0.1}}, ('x = """', '"""\n'))
    assert quoted.text == "."
    (several,) = texts_of(python, vocabulary, {b"": {"x)": 0.9, "y": 0.1}}, ("f(", ")\n"), single_line=False)
    assert several.text == "x"


def test_a_merged_token_keeps_the_closers_of_the_middle(python: Language, vocabulary: Vocabulary) -> None:
    (one,) = texts_of(python, vocabulary, {b"": {"))": 0.6, ",": 0.4}}, ("f(g(x", ")\n"))
    assert one.text == ")"
    (two,) = texts_of(python, vocabulary, {b"": {")))": 0.6, ",": 0.4}}, ("f(g(h(x", ")\n"))
    assert two.text == "))"
    (none,) = texts_of(python, vocabulary, {b"": {"))": 0.6, "y": 0.4}}, ("f(x", ")\n"))
    assert none.text == ""


def test_a_merged_token_ends_before_its_line_break(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {")\n": 0.6, ",": 0.4}, b"x)": {"+": 0.7, "": 0.3}}
    (found,) = texts_of(python, vocabulary, {b"": {"x": 1.0}, **after}, ("f(", "\n"))
    assert found.text == "x)"
    assert found.bits == pytest.approx(-log2(0.6), abs=1e-3)
    (carriage,) = texts_of(python, vocabulary, {b"": {"x\r\n": 0.6, "y": 0.4}}, ("a = ", "\r\n"))
    assert carriage.text == "x"
    several = {b"": {"x)\n": 1.0}, b"x)\n": {"": 1.0}}
    (found,) = texts_of(python, vocabulary, several, ("f(", ""), single_line=False)
    assert found.text == "x)\n"  # no line break ends it


def test_a_required_merged_token_stays_whole(python: Language, vocabulary: Vocabulary) -> None:
    """The closer on the right is another one: after the first part alone the middle could not end."""
    (found,) = texts_of(python, vocabulary, {b"": {"x)": 0.6, "y": 0.4}, b"x)": {"": 1.0}}, ("f(g(", ")\n"))
    assert found.text == "x)"
    assert found.bits == pytest.approx(-log2(0.6), abs=1e-3)


def test_a_line_that_cannot_end_goes_on_after_the_first_part(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {",": 0.8, ")": 0.2}, b"x,": {")": 1.0}, b"x,)": {"": 1.0}}
    (found,) = texts_of(python, vocabulary, {b"": {"x\r\n": 0.6, "y": 0.4}, **after}, ("f(", "\n"))
    assert found.text == "x,)"


def test_merged_tokens_split_while_healing(python: Language, vocabulary: Vocabulary) -> None:
    steps = {b"": {"x)": 0.9, "y": 0.1}}
    (found,) = texts_of(python, vocabulary, steps, ("f(x", ")\n"), healing="x")
    assert found.text == "x"
    doubled = {b"": {")))": 0.9, "x": 0.1}}
    (found,) = texts_of(python, vocabulary, doubled, ("f(g(h()", ")\n"), healing=")")
    assert found.text == "))"


def test_an_alternative_that_begins_so_ends_so(python: Language, vocabulary: Vocabulary) -> None:
    steps = {b"": {"y": 0.55, "x)": 0.4, "x": 0.05}, b"y": {"": 1.0}, b"x": {"z": 1.0}}
    found = texts_of(python, vocabulary, steps, ("f(", ")\n"), count=2)
    assert [completion.text for completion in found] == ["y", "x"]
    (best,) = texts_of(python, vocabulary, {**steps, b"y": {"": 0.3, "z": 0.7}}, ("f(", ")\n"), search=4)
    assert best.text == "x"


@dataclass(frozen=True)
class Known:
    """Advice that knows one text."""

    text: str

    def __call__(self, middle: str) -> list[tuple[str, float]]:
        return [(self.text[len(middle) :], 0.9)] if self.text.startswith(middle) else []

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        return weight


def test_foretold_texts_may_be_in_merged_tokens(python: Language, vocabulary: Vocabulary) -> None:
    """The project's memory knows a text with the closer behind it, and that is in the tokenizer's tokens."""
    steps = {b"": {"y": 0.9, "x": 0.1}, b"x": {"z": 1.0}, b"y": {"": 1.0}}
    for known in ("x)\n", "x) + 1"):
        (found,) = texts_of(python, vocabulary, steps, ("f(", ")\n"), project_bias=Known(known))
        assert found.text == "x"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_where_nothing_may_come_nothing_is_likely(kind: str) -> None:
    row, arithmetic = row_of(kind, {0: 1.0}, 3)
    row[:] = -np.inf
    assert arithmetic.likely(row, 0.01) == []


@pytest.mark.parametrize("seed", range(40))
def test_the_text_is_that_of_a_model_without_them(python: Language, vocabulary: Vocabulary, seed: int) -> None:
    """Its twin gives the first parts and the end what the joined tokens have: text and likelihood are the same."""
    drawn = random.Random(seed)
    starts = ["x", "y", "1"]
    joined = {"x": ["x)", "x)\n"], "y": [], "1": []}

    @cache
    def shares(so_far: bytes) -> dict[str, float]:
        weights = {text: drawn.random() for text in [*starts, *joined["x"], "+", ""]}
        return {text: weight / sum(weights.values()) for text, weight in weights.items()}

    def apart(so_far: bytes) -> dict[str, float]:
        found = shares(so_far)
        apart = {text: found[text] for text in [*starts, "+", ""]}
        apart["x"] += sum(found[text] for text in joined["x"])
        if so_far.endswith(b"x"):
            before = shares(so_far[:-1])
            ended = sum(before[text] for text in joined["x"])
            share = ended / (ended + before["x"])
            apart = {text: (1 - share) * weight for text, weight in apart.items()}
            apart[""] += share
        return apart

    split = ("f(a, ", ")\n")
    (found,) = texts_of(python, vocabulary, shares, split)
    (expected,) = texts_of(python, vocabulary, apart, split)
    assert found.text == expected.text
    assert (found.bits is None) == (expected.bits is None)
    if found.bits is not None and expected.bits is not None:
        assert found.bits == pytest.approx(expected.bits, abs=1e-2)


ROWS = ("numpy", "torch", "remote")


def row_of(kind: str, shares: dict[int, float], size: int) -> tuple[Any, Any]:
    """A row of logits of some kind, and its arithmetic."""
    if kind == "remote":
        told = {token: float(np.log(share)) for token, share in shares.items()}
        return RemoteRow(size, lambda: told, lambda tokens: None), RemoteArithmetic()
    values = np.full(size, -30.0, dtype=np.float32)
    values[list(shares)] = np.log(list(shares.values()))
    return (values, NumpyArithmetic()) if kind == "numpy" else (torch.tensor(values), TorchArithmetic(DEVICE))


def run_at(vocabulary: Vocabulary, arithmetic: Any, tokens: list[int]) -> Any:
    """A run in which all fits, and nothing is complete but after a first part."""
    constraint = SimpleNamespace(completes=lambda token: True, is_complete=lambda: False)
    model = SimpleNamespace(vocabulary=vocabulary, backend=SimpleNamespace(arithmetic=arithmetic))
    return SimpleNamespace(
        model=model,
        constraint=constraint,
        tokens=tokens,
        middle=SimpleNamespace(healing=b""),
        stop_ids=frozenset(vocabulary.end_token_ids),
        rules=SimpleNamespace(fits=lambda token: True),
        ends=SimpleNamespace(token=min(vocabulary.end_token_ids), means_end=lambda token: False),
    )


@pytest.mark.parametrize("kind", ROWS)
def test_probabilities_add_up(kind: str) -> None:
    x, y, whole, end = range(4)
    vocabulary = Vocabulary([b"x", b"y", b"x)", None], [end])
    joined = MergedTokens(False, RightCloser(b")", True, False))
    told = {whole: 0.5, y: 0.3, x: 0.1} if kind == "remote" else {whole: 0.5, y: 0.3, x: 0.1, end: 0.1}
    row, arithmetic = row_of(kind, told, 4)
    row = joined.folded(run_at(vocabulary, arithmetic, []), row)
    shares = [arithmetic.share_of(row, [token]) for token in (x, y, whole)]
    assert shares == pytest.approx([0.6, 0.3, 0.0], abs=1e-5)
    told = {y: 0.9, end: 0.05} if kind == "remote" else {y: 0.9, end: 0.05, whole: 0.05}
    row, arithmetic = row_of(kind, told, 4)
    row = joined.folded(run_at(vocabulary, arithmetic, [x]), row)
    share = 0.5 / 0.6
    assert arithmetic.share_of(row, [end]) == pytest.approx(share + (1 - share) * 0.05, abs=1e-4)
    assert arithmetic.share_of(row, [y]) <= (1 - share) * 0.95 + 1e-4
    row, arithmetic = row_of(kind, told, 4)
    assert arithmetic.share_of(joined.folded(run_at(vocabulary, arithmetic, [y]), row), [end]) < 0.11


@pytest.mark.parametrize("kind", ROWS)
def test_a_first_part_beyond_the_models_tokens_does_not_count(kind: str) -> None:
    """A tokenizer may have more tokens than the model."""
    vocabulary = Vocabulary([b"x)", b"y", None, b"x"], [2])
    row, arithmetic = row_of(kind, {0: 0.9, 1: 0.1}, 3)
    row = MergedTokens(False, RightCloser(b")", True, False)).folded(run_at(vocabulary, arithmetic, []), row)
    assert arithmetic.share_of(row, [0]) == pytest.approx(0.9, abs=1e-5)
