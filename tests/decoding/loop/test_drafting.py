"""Drafts decide how many passes a text takes, and nothing else: against the same texts token by token."""

from __future__ import annotations

import json.scanner
import platform
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.decoding.strategies.alternatives import alternatives
from fim_server.language import Language
from fim_server.models.backend import Logits
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.reading import Reading, Readings
from fim_server.models.smollm2.build import build
from fim_server.text.document import Split
from support.models.tiny_base import tiny_weights, write_tiny_base
from support.models.tiny_models import write_tiny_model

SPLITS = [
    Split("def f(values):\n    return ", "\n"),
    Split("def total(values):\n    result = 0\n    for value in values:\n        res", "\n    return result\n"),
    Split("import os\n\nos.pa", "\n"),
    Split("x = call(", ")\n"),
    Split("def f(name):\n    print('größe', ", ")\n"),
]


def cuts(count: int, seed: int) -> Iterator[Split]:
    """A module, a part of a line cut out of it."""
    text = Path(json.scanner.__file__).read_text(encoding="utf-8")
    chance = random.Random(seed)
    for _ in range(count):
        start = chance.randrange(len(text))
        yield Split(text[:start], text[max(start, text.find("\n", start)) :])


class Guesses:
    """Knows the text that was written without drafts, and says some of it, something else, or nothing."""

    def __init__(self, text: str, seed: int) -> None:
        self._text = text
        self._chance = random.Random(seed)

    def __call__(self, middle: str) -> str:
        rest = self._text.removeprefix(middle) if self._text.startswith(middle) else ""
        right = rest[: self._chance.randrange(len(rest) + 1)]
        return right + self._chance.choice(["", "", "zebra(", "\n\n", " größe", ")"])


@pytest.fixture(scope="module")
def language() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module", params=["embedded", "random", "export"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    """The embedded model and a random one on torch, and an export of a random one that gives rows."""
    if request.param == "embedded":
        return load_model("embedded", "cpu", "torch")
    folder = tmp_path_factory.mktemp("drafts")
    if request.param == "random":
        return load_model(str(write_tiny_model(folder / "model", 32, window=512)), "cpu", "torch")
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime is not installed")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("whether rows are the same to the last bit is known of x86-64")
    return exported(folder)


def exported(folder: Path) -> FimModel:
    pytest.importorskip("gguf", reason="what writes the random base is not installed")
    build(write_tiny_base(folder / "tiny.gguf", tiny_weights()), folder / "model", lambda line: None, folder / "none")
    return load_model(str(folder / "model"), "cpu", "onnx")


def written(
    model: FimModel, language: Language, split: Split, options: DecodeOptions, count: int = 1
) -> list[Completion]:
    session = language.open(split.left, split.right)
    healing = Healing.of(model, split)
    found = alternatives(model, session, healing.split, count, options, healing=healing.text)
    return [healing.undo(completion) for completion in found]


def outcome(completion: Completion) -> tuple[Any, ...]:
    """All of a completion but its costs and its probabilities' last bits."""
    cost = completion.statistics
    counts = cost.tokens, cost.refused_tokens, cost.landing_steps
    shares = [round(token.probability, 3) for token in completion.written]
    return (
        completion.text,
        completion.won,
        completion.stop_reason,
        completion.begun,
        completion.following,
        counts,
        shares,
    )


OPTIONS = [
    DecodeOptions(max_new_tokens=24, single_line=True, scored=True, stop_repetition=True),
    DecodeOptions(max_new_tokens=40, scored=True),
    DecodeOptions(max_new_tokens=7, scored=True),  # where every token has to land
    DecodeOptions(max_new_tokens=24, temperature=0.9, seed=3),
    DecodeOptions(max_new_tokens=16, constrained=False),
    DecodeOptions(max_new_tokens=24, scored=True, least_likelihood=1e-6),
]


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_texts_are_those_without_drafts(model: FimModel, language: Language, number: int) -> None:
    options = OPTIONS[number]
    drafted = accepted = 0
    for seed, split in enumerate([*SPLITS, *cuts(1, number)]):
        (plain,) = written(model, language, split, options)
        guesses = Guesses(plain.text or plain.begun, seed)
        (found,) = written(model, language, split, replace(options, drafts=guesses))
        assert outcome(found) == outcome(plain)
        cost = found.statistics
        assert plain.statistics.drafted_tokens == plain.statistics.accepted_tokens == 0
        assert cost.passes <= plain.statistics.passes
        if not plain.statistics.landing_steps:
            assert cost.passes + cost.accepted_tokens == plain.statistics.passes
        drafted += cost.drafted_tokens
        accepted += cost.accepted_tokens
    assert drafted > accepted > 0


def test_alternatives_are_those_without_drafts(model: FimModel, language: Language) -> None:
    options = DecodeOptions(max_new_tokens=12, single_line=True, scored=True)
    for seed, split in enumerate(SPLITS):
        plain = written(model, language, split, options, 3)
        guesses = Guesses(plain[0].text or "", seed)
        found = written(model, language, split, replace(options, drafts=guesses), 3)
        assert [outcome(one) for one in found] == [outcome(one) for one in plain]


def test_drafts_not_chosen_do_not_count_as_read(model: FimModel, language: Language) -> None:
    """A reading that a run has left goes on as a fresh one does."""
    readings = Readings(model)
    for seed, split in enumerate(SPLITS):
        (plain,) = written(model, language, split, OPTIONS[0])
        session = language.open(split.left, split.right)
        options = replace(OPTIONS[0], drafts=Guesses((plain.text or "") + "; zebra(zebra)", seed))
        for _ in range(2):
            next(alternatives(model, session, split, 1, options, readings=readings))
        prompt = model.format.encode(split.left + "ze", split.right, 200)
        kept, fresh = readings.nearest(prompt), Reading(model)
        kept.resume(prompt)
        found, wanted = kept.forward(prompt[len(kept) :]), fresh.forward(prompt)
        assert np.allclose(np.asarray(found), np.asarray(wanted), atol=1e-3)


def test_rows_are_those_of_one_token_after_another(model: FimModel) -> None:
    tokens = model.vocabulary.encode(b"def f(values):\n    return sum(values)\n" * 4)
    one, many = Reading(model), Reading(model)
    wanted = [one.forward(tokens[:9]), *(one.forward([token]) for token in tokens[9:40])]
    found: list[Logits] = [many.forward(tokens[:9])]
    sizes = iter([2, 5, 1, 8, 3, 7, 5])
    while len(many) < 40:
        part = tokens[len(many) : len(many) + next(sizes)]
        rows = many.forward_rows([*part, 7, 8, 9], len(part) + 3)
        found += rows[: len(part)]
        many.rewind(3)
    for row, other in zip(found[: len(wanted)], wanted, strict=True):
        if model.runtime == "onnx":
            assert np.array_equal(row, other)
        else:
            assert np.allclose(row, other, atol=1e-4)


def test_a_single_token_fits_where_the_room_ends(model: FimModel) -> None:
    tokens = list(range(20, 60))
    short, long = model.new_cache(40), model.new_cache()
    for cache in (short, long):
        model.forward(tokens[:39], cache)
    found, wanted = model.forward(tokens[39:], short), model.forward(tokens[39:], long)
    assert np.allclose(np.asarray(found), np.asarray(wanted), atol=1e-4)


def test_a_graph_of_the_last_row_takes_no_drafts(language: Language) -> None:
    if not onnx_backend.is_installed():
        pytest.skip("onnxruntime is not installed")
    model = load_model("embedded", "cpu", "onnx")
    assert not model.gives_rows

    def never(middle: str) -> str:
        raise AssertionError

    (found,) = written(model, language, SPLITS[0], replace(OPTIONS[0], drafts=never))
    assert found.statistics.drafted_tokens == 0
    assert found.statistics.passes > 0


def test_nothing_is_drafted_where_nothing_can_be_taken_back(
    language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sliding window, each wrong draft would have the whole text read again."""
    from transformers import DynamicCache

    model = load_model("embedded", "cpu", "torch")
    options = replace(OPTIONS[1], drafts=lambda middle: "zebra zebra zebra")
    (plain,) = written(model, language, SPLITS[0], OPTIONS[1])

    def crop(cache: DynamicCache, length: int) -> None:
        raise RuntimeError

    (often,) = written(model, language, SPLITS[0], options)
    monkeypatch.setattr(DynamicCache, "crop", crop)
    (found,) = written(model, language, SPLITS[0], options)
    assert found.text == often.text == plain.text
    assert 0 < found.statistics.drafted_tokens <= 6 < often.statistics.drafted_tokens


def test_a_draft_ends_with_its_line_and_its_budget(language: Language) -> None:
    from fim_server.decoding.constants import DECODING
    from fim_server.decoding.loop.drafting import Drafting

    model = load_model("embedded", "cpu", "torch")
    drafting = Drafting(model, lambda middle: "values, key=len)\nprint(values)\n" * 3)
    text = model.vocabulary.token_bytes

    def proposed(most: int, single_line: bool) -> bytes:
        return b"".join(text(token) for token in drafting.propose(b"sorted(", most, single_line))

    assert len(drafting.propose(b"", 99, False)) == DECODING.draft_tokens
    assert b"values, key=len)".startswith(proposed(99, True))
    assert drafting.propose(b"", 2, False) == drafting.propose(b"", 99, False)[:2]
    assert drafting.propose(b"", 0, False) == []
    assert drafting.propose("ö".encode()[:1], 9, False) == []
