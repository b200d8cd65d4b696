"""Foretold texts mixed into the model's distribution, token by token, healed or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fim_server.decoding.bias.lexeme_check import WORD_ENDS, LexemeCheck
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.decoding.strategies.alternatives import complete_session, read_before
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.recovery.recovery import recover
from fim_server.text.document import Split

OPTIONS = DecodeOptions(max_new_tokens=24, single_line=True, scored=True)


class Known:
    """Knows one text that begins at the cursor, with a weight that is all believed."""

    def __init__(self, text: str, weight: float) -> None:
        self.text, self.weight = text, weight
        self.asked: list[str] = []
        self.beside: list[tuple[float, float, float, float]] = []

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        self.asked.append(middle)
        rest = self.text.removeprefix(middle)
        return [(rest, self.weight)] if self.text.startswith(middle) and rest else []

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        self.beside.append((weight, heaviest, certainty, probability))
        return weight


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model("embedded", "cpu")


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


def completed(model: FimModel, python: Language, split: Split, options: DecodeOptions) -> Completion:
    session = python.open(split.left, split.right)
    healing = Healing.of(model, split)
    return healing.undo(complete_session(model, session, healing.split, options, healing=healing.text))


SPLITS = [
    (Split("def f(values):\n    return ", "\n"), "zebra_of(values, 'größe')"),
    (Split("def f(values):\n    ret", "\n"), "urn zebra_of(values)"),
    (Split("import os\n\nos.pa", "\n"), "th.zebra(os.sep)"),
    (Split("x = call(", ")\n"), "zebra, key=zebra.stripes"),
]


@pytest.mark.parametrize(("split", "text"), SPLITS)
def test_an_almost_certain_foretold_text_is_written(model: FimModel, python: Language, split: Split, text: str) -> None:
    known = Known(text, 0.99)
    found = completed(model, python, split, replace(OPTIONS, project_bias=known))
    assert (found.text or "").startswith(text)
    tokens = [token for token in found.written if token.end <= len(text)]
    assert tokens
    assert all(token.probability >= 0.98 for token in tokens)
    assert all(text.startswith(middle) or middle.startswith(text) for middle in known.asked)


@pytest.mark.parametrize(("split", "text"), SPLITS)
def test_a_bias_without_texts_changes_nothing(model: FimModel, python: Language, split: Split, text: str) -> None:
    plain = completed(model, python, split, OPTIONS)
    for known in (Known("", 0.9), Known(text, 1e-12)):
        found = completed(model, python, split, replace(OPTIONS, project_bias=known))
        assert found.text == plain.text
        assert [token.end for token in found.written] == [token.end for token in plain.written]


def test_the_grammar_refuses_foretold_texts_too(model: FimModel, python: Language) -> None:
    split = Split("x = call(", ")\n")
    found = completed(model, python, split, replace(OPTIONS, project_bias=Known("]] + [[", 0.99)))
    assert found.text is not None
    assert python.open(split.left, split.right).check(found.text).complete


REFUSED = [
    (Split("def f(values):\n    x = values[0]\n    ", "\n    return x\n"), "except"),
    (Split("def f(values):\n    x = values[0]\n    el", "\n    return x\n"), "if"),
    (Split("x = call(", ")\n"), "class"),
]


@pytest.mark.parametrize(("split", "word"), REFUSED)
def test_a_keyword_that_may_not_stand_there_begins_no_name(
    model: FimModel, python: Language, split: Split, word: str
) -> None:
    assert python.open(split.left, split.right).check(word).viable  # as the beginning of a name
    plain = completed(model, python, split, OPTIONS)
    found = completed(model, python, split, replace(OPTIONS, project_bias=Known(word, 0.99)))
    assert found.text == plain.text


def test_the_grammar_refuses_foretold_texts_in_a_broken_file(model: FimModel, python: Language) -> None:
    found = recover(python.open, "def broken(:\n    pass\n\nx = call(", ")\n")
    assert found is not None
    healing = Healing.of(model, Split(found.left, found.right))

    def text(options: DecodeOptions) -> str | None:
        return complete_session(model, found, healing.split, options, healing=healing.text).text

    assert text(replace(OPTIONS, project_bias=Known("class", 0.99))) == text(OPTIONS)
    assert text(replace(OPTIONS, project_bias=Known("zebra", 0.99))) != text(OPTIONS)


STANDING = [
    (Split("try:\n    x = values[0]\n", "    pass\n"), "", "except"),
    (Split("def f(values):\n    x = values[0]\n    ", "\n"), "", "except"),
    (Split("def f(values):\n    x = values[0]\n    ", "\n"), "exc", "ept"),
    (Split("def f(values):\n    x = values[0]\n    ", "\n"), "exc", "ellent"),
    (Split("if x:\n    pass\n", ""), "y = 1\n", "elif"),
    (Split("if x:\n    pass\n", ""), "", "elif"),
    (Split("x = f'{value", "}'\n"), "!", "r"),
    (Split("x = [1", "]\n"), "0, ", "1e"),
    (Split("x = [1", "]\n"), "0, ", "1x"),
    (Split("x = call(", ")\n"), "größe", "n"),
    (Split("x = call(", ")\n"), "größe", "="),
    (Split("x = call(", ")\n"), "größe=", ")"),
    (Split("x = ", "\n"), "1", " +"),
]


def test_a_lexeme_stands_if_some_text_can_end_it(python: Language) -> None:
    verdicts = []
    for split, middle, text in STANDING:
        session = python.open(split.left, split.right)
        ends = WORD_ENDS if text[-1].isalnum() else (b"",)
        viable = any(session.check(middle + text + end.decode()).viable for end in ends)
        standing = LexemeCheck(session.start())
        cut = len(middle.encode()) // 2
        first = standing.allows(middle.encode()[:cut], b"zebra (")
        assert standing.allows(middle.encode(), text.encode()) == viable, (split, middle, text)
        assert standing.allows(middle.encode(), text.encode()) == viable
        assert standing.allows(middle.encode()[:cut], b"zebra (") == first
        verdicts.append(viable)
    assert set(verdicts) == {True, False}


def test_everything_stands_after_a_refused_middle(python: Language) -> None:
    standing = LexemeCheck(python.open("x = call(", ")\n").start())
    assert standing.allows(b"] ]", b"except")
    assert not standing.allows(b"", b"except")


def test_shares_while_healing_are_among_healing_tokens(model: FimModel, python: Language) -> None:
    split = Split("import os\n\nos.pa", "\n")
    known = Known("th.zebra(os.sep)", 0.5)
    found = completed(model, python, split, replace(OPTIONS, project_bias=known))
    healing = Healing.of(model, split)
    prompt, reading = read_before(model, healing.split, OPTIONS, None, True)
    arithmetic = model.backend.arithmetic
    towards = [token for token in model.vocabulary.tokens_towards(healing.text.encode()) if token < model.size]
    shares = arithmetic.shares(arithmetic.only(reading.forward(prompt), towards))
    token = model.vocabulary.encode((healing.text + "th").encode())[0]
    weight, heaviest, certainty, probability = known.beside[0]
    assert (weight, heaviest) == (0.5, 0.5)
    assert certainty == pytest.approx(float(shares.max()), rel=1e-3)
    assert probability == pytest.approx(float(shares[token]), rel=1e-3)
    assert (found.text or "").startswith("th")
    assert found.written[0].probability == pytest.approx(0.5 + 0.5 * probability, rel=1e-3)
