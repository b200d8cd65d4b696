"""A word that is whole is not made a longer one, healed or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fim_server.decoding.alternatives import complete_session
from fim_server.decoding.healing import Healing
from fim_server.decoding.options import DecodeOptions
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
