"""Tokens that hold the end of a middle and what stands behind it, beside models that spell the same texts without."""

from __future__ import annotations

import random
from functools import cache
from math import log2

import pytest

from fim_server import Language, Vocabulary
from told_shares import texts_of

PIECES = ["x)", "))", ")))", ")\n", "x)\n", "):", "x\r\n", '."', '."""', "\n\n"]


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    texts = [*(bytes([byte]) for byte in range(128)), *map(str.encode, PIECES)]
    return Vocabulary([*texts, None], [len(texts)])


def test_what_is_written_is_the_first_part_and_then_nothing(python: Language, vocabulary: Vocabulary) -> None:
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


def test_a_closer_of_its_own_is_written_before_the_one_on_the_right(python: Language, vocabulary: Vocabulary) -> None:
    (one,) = texts_of(python, vocabulary, {b"": {"))": 0.6, ",": 0.4}}, ("f(g(x", ")\n"))
    assert one.text == ")"
    (two,) = texts_of(python, vocabulary, {b"": {")))": 0.6, ",": 0.4}}, ("f(g(h(x", ")\n"))
    assert two.text == "))"
    (none,) = texts_of(python, vocabulary, {b"": {"))": 0.6, "y": 0.4}}, ("f(x", ")\n"))
    assert none.text == ""


def test_a_line_ends_before_its_break(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {")\n": 0.6, ",": 0.4}, b"x)": {"+": 0.7, "": 0.3}}
    (found,) = texts_of(python, vocabulary, {b"": {"x": 1.0}, **after}, ("f(", "\n"))
    assert found.text == "x)"
    assert found.bits == pytest.approx(-log2(0.6), abs=1e-3)
    (carriage,) = texts_of(python, vocabulary, {b"": {"x\r\n": 0.6, "y": 0.4}}, ("a = ", "\r\n"))
    assert carriage.text == "x"
    several = {b"": {"x)\n": 1.0}, b"x)\n": {"": 1.0}}
    (found,) = texts_of(python, vocabulary, several, ("f(", ""), single_line=False)
    assert found.text == "x)\n"  # no line break ends it


def test_what_has_to_come_stays_whole(python: Language, vocabulary: Vocabulary) -> None:
    """The closer on the right is another one: after the first part alone the middle could not end."""
    (found,) = texts_of(python, vocabulary, {b"": {"x)": 0.6, "y": 0.4}, b"x)": {"": 1.0}}, ("f(g(", ")\n"))
    assert found.text == "x)"
    assert found.bits == pytest.approx(-log2(0.6), abs=1e-3)


def test_a_line_that_cannot_end_goes_on_after_the_first_part(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {",": 0.8, ")": 0.2}, b"x,": {")": 1.0}, b"x,)": {"": 1.0}}
    (found,) = texts_of(python, vocabulary, {b"": {"x\r\n": 0.6, "y": 0.4}, **after}, ("f(", "\n"))
    assert found.text == "x,)"


def test_so_it_is_where_something_is_written_again(python: Language, vocabulary: Vocabulary) -> None:
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
