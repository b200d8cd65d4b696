"""Closers right of the cursor: where they end a middle, and what an empty one is weighed against."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.ending.right_closer import RightCloser
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.text.document import Split
from support.models.scripted_models import network


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    texts = [*(bytes([byte]) for byte in range(128)), b"()", b"x)", b"),", b")\n", b"\n\n"]
    return Vocabulary([*texts, None], [len(texts)])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("f(", ")\n", RightCloser(b")", True, True)),
        ("f(x", ")\n", RightCloser(b")", True, False)),
        ("f(x +", ")\n", RightCloser(b")", False, False)),
        ("x = [", "]\n", RightCloser(b"]", True, True)),
        ('x = "', '"\n', RightCloser(b'"', True, True)),
        ('x = "a', '"\n', RightCloser(b'"', True, False)),
        ('x = """', '"""\n', RightCloser(b'"""', True, True)),
        ("x = ", '"a"\n', None),
        ("f(x", "\n)\n", None),
        ("f(", "", None),
        (")", ")\n", None),
    ],
)
def test_a_right_closer_is_found(python: Language, left: str, right: str, expected: RightCloser | None) -> None:
    assert RightCloser.of(python.open(left, right), left, right) == expected


def middle(
    python: Language,
    vocabulary: Vocabulary,
    steps: dict[bytes, dict[str, float]],
    split: tuple[str, str] = ("f(", ")\n"),
    healing: str = "",
    **options: Any,
) -> Completion:
    """Decode with a model that gives shares to the texts after each text; the empty text is the end."""

    def script(tokens: list[int]) -> torch.Tensor:
        so_far = b"".join(vocabulary.token_bytes(token) for token in tokens)
        logits = torch.full((vocabulary.size,), -30.0)
        for text, share in steps[so_far].items():
            token = vocabulary.end_token_ids[0] if text == "" else vocabulary.encode(text)[0]
            logits[token] = torch.tensor(share).log()
        return logits

    left, right = split
    session = python.open(left, right)
    closing = RightCloser.of(session, left, right)
    given = DecodeOptions(max_new_tokens=8, single_line=True, right_closer=closing, **options)
    return complete_session(network(vocabulary, script), session, Split(*split), given, healing=healing)


def test_writing_the_closer_ends_the_middle(python: Language, vocabulary: Vocabulary) -> None:
    for end in (")", "),", ")\n", "", "\n"):
        assert middle(python, vocabulary, {b"": {"x": 1.0}, b"x": {end: 0.9, "y": 0.1}}).text == "x"
    nested = {b"": {"g": 1.0}, b"g": {"(": 1.0}, b"g(": {")": 1.0}, b"g()": {")": 1.0}}
    assert middle(python, vocabulary, nested).text == "g()"
    quoted = {b"": {"a": 1.0}, b"a": {'"': 1.0}}
    assert middle(python, vocabulary, quoted, ('x = "', '"\n')).text == "a"


def test_an_empty_pair_is_weighed_against_all_other_texts(python: Language, vocabulary: Vocabulary) -> None:
    after = {b"x": {"": 1.0}, b"y": {"": 1.0}}
    likelier = {b"": {"": 0.2, ")": 0.25, "\n": 0.1, "x": 0.3, "y": 0.15}, **after}
    assert middle(python, vocabulary, likelier).text == ""  # 0.55 in all
    less = {b"": {"": 0.4, ")": 0.05, "x": 0.3, "y": 0.25}, **after}
    assert middle(python, vocabulary, less).text == "x"
    # Where the pair is not fresh, the likeliest choice is taken as it is.
    assert middle(python, vocabulary, less, ("f(a", ")\n")).text == ""


def test_an_empty_pair_is_weighed_while_healing_its_bracket(python: Language, vocabulary: Vocabulary) -> None:
    """A token of both brackets is the empty middle; after the opening one alone the model does not expect the other."""
    after = {b"(": {"x": 0.9, "": 0.1}, b"(x": {")": 1.0}}
    empty = middle(python, vocabulary, {b"": {"()": 0.6, "(": 0.3, "x": 0.1}, **after}, healing="(")
    assert empty.text == "("
    some = middle(python, vocabulary, {b"": {"()": 0.4, "(": 0.35, "[": 0.25}, **after}, healing="(")
    assert some.text == "("  # of those that write it again, it is the likelier
    some = middle(python, vocabulary, {b"": {"()": 0.4, "(": 0.5}, **after}, healing="(")
    assert some.text == "(x"
    cut = {b"": {"x)": 0.9, "x": 0.1}, b"x": {"y": 1.0}}
    assert middle(python, vocabulary, cut, ("f(x", ")\n"), healing="x").text == "x"


def test_without_the_grammar_nothing_ends(python: Language, vocabulary: Vocabulary) -> None:
    steps = {b"": {"x": 1.0}, b"x": {")": 1.0}, b"x)": {"": 1.0}}
    assert middle(python, vocabulary, steps, constrained=False).text == "x)"


def test_a_closer_ends_several_lines_too(python: Language, vocabulary: Vocabulary) -> None:
    session = python.open("f(", ")\n")
    tokens = {0: "\n", 1: "x", 2: ")"}

    def script(written: list[int]) -> torch.Tensor:
        logits = torch.zeros(vocabulary.size)
        logits[vocabulary.encode(tokens[len(written)])[0]] = 30.0
        return logits

    options = DecodeOptions(max_new_tokens=8, right_closer=RightCloser.of(session, "f(", ")\n"))
    assert complete_session(network(vocabulary, script), session, Split("f(", ")\n"), options).text == "\nx"
