"""A word that is whole is not made a longer one, healed or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import candidates, complete_session
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.text.document import Split

OPTIONS = DecodeOptions(max_new_tokens=8, word_ends=True)


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model("embedded", "cpu")


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


def middle(model: FimModel, python: Language, split: Split, options: DecodeOptions, heal: bool) -> str | None:
    session = python.open(split.left, split.right)
    healing = Healing.of(model, split) if heal else Healing(split, "")
    found = complete_session(model, session, healing.split, options, healing=healing.text)
    return healing.undo(found).text


@pytest.mark.parametrize("heal", [True, False])
def test_the_middle_does_not_go_on_with_the_word(model: FimModel, python: Language, heal: bool) -> None:
    lengthened = 0
    for word in ("r", "re", "retu", "pri", "sel", "self", "rang", "le", "x1", "_"):
        split = Split(f"def f(self, x1, values):\n    {word}", "\n\n\nf(1, 2, 3)\n")
        text = middle(model, python, split, OPTIONS, heal)
        assert text is None or not (text[:1].isalnum() or text[:1] == "_"), (word, text)
        free = middle(model, python, split, replace(OPTIONS, word_ends=False), heal)
        lengthened += bool(free) and (free or "")[:1].isalnum()
    assert lengthened >= 3


def test_candidates_are_those_of_the_cut_that_is_completed(model: FimModel, python: Language) -> None:
    split = Split("import os\n\n\ndef f(path):\n    ret", "\n")
    session = python.open(split.left, split.right)
    healing = Healing.of(model, split)
    assert healing.text
    found = candidates(model, session, healing.split, 8, DecodeOptions(), healing=healing.text)
    written = middle(model, python, split, DecodeOptions(max_new_tokens=8), heal=True)
    assert written
    best = max((one for one in found if one.allowed), key=lambda one: one.probability)
    assert written.startswith(best.text)
    assert sum(one.probability for one in found) <= 1 + 1e-6
    assert all(session.check(one.text).viable == one.allowed for one in found if one.text)
