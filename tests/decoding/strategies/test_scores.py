"""Probabilities of tokens, as they are noted while decoding, against the model asked again by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.decoding.complete import complete
from fim_server.decoding.loop.conclusion import cuts_lexeme
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.alternatives import prompt_of
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.reading import Reading
from fim_server.text.document import Split

OPTIONS = DecodeOptions(max_new_tokens=24, heal=False, scored=True)
SPLITS = [
    Split("def area(width, height):\n    return ", "\n\nprint(area(2, 3))\n"),
    Split("import os\n\nfor name in os.", ":\n    print(name)\n"),
    Split("total = sum([", "])\n"),
]


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model("embedded", "cpu")


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.mark.parametrize("split", SPLITS)
def test_each_token_has_the_probability_that_the_model_gives_it(
    model: FimModel, python: Language, split: Split
) -> None:
    found = complete(model, python, split, OPTIONS)
    assert found.text
    assert found.written[-1].end == len(found.text)
    prompt, room = prompt_of(model, split, OPTIONS, heals=False)
    arithmetic = model.backend.arithmetic
    read: list[int] = []
    at = 0
    for token in found.written:
        logits = Reading(model, room).forward([*prompt, *read])
        piece = found.text[at : token.end].encode()
        tokens = [one for one in range(model.vocabulary.size) if model.vocabulary.token_bytes(one) == piece]
        assert arithmetic.share_of(logits, tokens[:1]) == pytest.approx(token.probability, abs=2e-2)
        read, at = [*read, tokens[0]], token.end


@pytest.mark.parametrize("split", SPLITS)
def test_scoring_changes_no_text(model: FimModel, python: Language, split: Split) -> None:
    for options in (OPTIONS, replace(OPTIONS, heal=True), replace(OPTIONS, single_line=True)):
        scored, plain = (complete(model, python, split, replace(options, scored=one)) for one in (True, False))
        assert (scored.text, scored.stop_reason) == (plain.text, plain.stop_reason)
        assert plain.written == ()


def test_healing_tokens_do_not_count_among_the_texts_tokens(model: FimModel, python: Language) -> None:
    split = Split("import os\n\nfor name in os.li", "stdir():\n    print(name)\n")
    found = complete(model, python, split, replace(OPTIONS, heal=True))
    ends = [token.end for token in found.written]
    assert found.text is not None
    assert ends == sorted(ends)
    assert all(0 < end <= len(found.text) for end in ends)
    assert all(0 <= token.probability <= 1 for token in found.written)


@pytest.mark.parametrize("split", SPLITS)
def test_a_middle_that_has_become_unlikely_ends_at_a_complete_point(
    model: FimModel, python: Language, split: Split
) -> None:
    whole = complete(model, python, split, OPTIONS)
    likelihood = prod(token.probability for token in whole.written)
    for least in (0.5, 0.1, 0.01):
        found = complete(model, python, split, replace(OPTIONS, least_likelihood=least))
        if found.stop_reason is not StopReason.UNLIKELY:
            assert found.text == whole.text
            assert likelihood >= least
            continue
        if found.text is None:
            assert found.reason is not None
            assert "not sure" in found.reason
            continue
        assert prod(token.probability for token in found.written) >= least
        assert python.open(split.left, split.right).check(found.text).complete
    assert complete(model, python, split, replace(OPTIONS, least_likelihood=0.9999)).stop_reason is StopReason.UNLIKELY


@pytest.mark.parametrize("split", SPLITS)
def test_a_middle_that_has_become_unlikely_is_not_cut_within_a_lexeme(
    model: FimModel, python: Language, split: Split
) -> None:
    options = replace(OPTIONS, max_new_tokens=48)
    whole = complete(model, python, split, options).text or ""
    for least in (0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-6):
        found = complete(model, python, split, replace(options, least_likelihood=least))
        if found.stop_reason is StopReason.UNLIKELY and found.text is not None and whole.startswith(found.text):
            around = found.text[-1] + whole[len(found.text) : len(found.text) + 1]
            assert not (around.isidentifier() and len(around) == 2), around
            assert whole[len(found.text) :].startswith(found.following)
            assert around not in ('""', "''", "==", "**"), around


def test_what_is_a_part_of_a_lexeme_ends_no_text(model: FimModel, python: Language) -> None:
    def cuts(*pieces: str, unwritten: str | None = None) -> list[bool]:
        tokens = [model.vocabulary.encode(piece) for piece in pieces]
        more = None if unwritten is None else model.vocabulary.encode(unwritten)[0]
        run: Any = SimpleNamespace(model=model, tokens=[one for some in tokens for one in some], unwritten=more)
        return [cuts_lexeme(run, length) for length in accumulate(map(len, tokens))]

    assert cuts('""', '"', "a") == [True, False, False]
    assert cuts("x", " ", "=") == [False, False, False]
    assert cuts("(", "(", ")", ")") == [False] * 4
    assert cuts("a", "(b)") == [False, False]
    assert cuts("x1", "_", "y") == [True, True, False]
    assert cuts("x1", unwritten="_") == [True]
    assert cuts("x1", unwritten="(") == [False]


@pytest.mark.parametrize("split", SPLITS)
def test_with_says_something_an_unlikely_middle_is_written(model: FimModel, python: Language, split: Split) -> None:
    sure = replace(OPTIONS, least_likelihood=0.9999)
    nothing = complete(model, python, split, sure)
    assert nothing.text is None
    assert python.open(split.left, split.right).check(nothing.begun).viable
    assert [token.end for token in nothing.written] == sorted(token.end for token in nothing.written)
    found = complete(model, python, split, replace(sure, unlikely_if_nothing=False))
    assert found.text
    assert found.begun == ""
    assert python.open(split.left, split.right).check(found.text).complete
