"""The grammar backend against SGLang's classes: its own where it is installed, else stand-ins with their signatures.

It was run in no real SGLang, which wants a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine_stand_ins import sglang_or_stand_in, sglang_stand_in
from fim_server import Vocabulary
from fim_server.errors import VersionError
from fim_server.integrations.holes import PREFIX, Hole
from fim_server.models.load import load_model
from fim_server.models.source import locate
from fim_server.models.tokenizer import read_tokenizer

HOLES = [("def f(x):\n    return ", "\n"), ("value = call(a, [1, ", "\nprint(value)\n")]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_model("embedded").vocabulary


@pytest.fixture
def backend(vocabulary: Vocabulary) -> Iterator[Any]:
    with sglang_or_stand_in() as engine:
        from fim_server.integrations import sglang as plug_in

        plug_in.register()
        plug_in.register()
        assert engine.choices.count("fim-server") == 1
        tokenizer = read_tokenizer(Path(locate("embedded")), "embedded")
        made = engine.registry["fim-server"](None, tokenizer, vocabulary.size, set(vocabulary.end_token_ids))
        made.invalid = engine.invalid
        yield made


def grammar(backend: Any, left: str, right: str) -> Any:
    key = ("ebnf", PREFIX + json.dumps({"left": left, "right": right}))
    value, cached = backend.get_cached_or_future_value(key, False)
    assert not cached
    found = value.result()
    backend.set_cache(key, found.copy())
    return found


def expected(hole: tuple[str, str], vocabulary: Vocabulary, tokens: list[int], scores: torch.Tensor) -> torch.Tensor:
    matcher = Hole.of(hole).open().matcher(vocabulary)
    for token in tokens:
        matcher.commit(token)
    words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)
    matcher.fill_mask_plain(words)
    kept = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(scores)].astype(bool)
    return scores.masked_fill(~torch.from_numpy(kept), float("-inf"))


def test_a_batch_is_masked_row_by_row(backend: Any, vocabulary: Vocabulary) -> None:
    """As SGLang's batches do it: one object's functions serve all rows, and one row has no grammar."""
    objects = [grammar(backend, *hole) for hole in HOLES]
    written = [vocabulary.encode("x"), vocabulary.encode("2], c")]
    for made, tokens in zip(objects, written, strict=True):
        for token in tokens:
            made.accept_token(token)
    first = objects[0]
    mask = first.allocate_vocab_mask(vocab_size=vocabulary.size, batch_size=3, device="cpu")
    entries = [SimpleNamespace(row=row, grammar=made) for row, made in ((0, objects[0]), (2, objects[1]))]
    first.fill_vocab_mask_batched(entries, mask)
    scores = torch.randn(3, vocabulary.size)
    logits = scores.clone()
    first.apply_vocab_mask(logits=logits, vocab_mask=first.move_vocab_mask(mask, "cpu"))
    assert torch.equal(logits[0], expected(HOLES[0], vocabulary, written[0], scores[0]))
    assert torch.equal(logits[1], scores[1])
    assert torch.equal(logits[2], expected(HOLES[1], vocabulary, written[1], scores[2]))
    first.reset_vocab_mask(mask)
    assert bool((mask == -1).all())


def test_tokens_are_refused_taken_back_and_end(backend: Any, vocabulary: Vocabulary) -> None:
    made = grammar(backend, *HOLES[0])
    with pytest.raises(ValueError, match="is not allowed"):
        made.accept_token(vocabulary.encode(")")[0])
    for token in [*vocabulary.encode("x"), vocabulary.end_token_ids[0]]:
        assert not made.is_terminated()
        made.accept_token(token)
    assert made.is_terminated()
    made.accept_token(5)  # what a batch that runs ahead has drawn after the end
    made.rollback(1)
    assert not made.is_terminated()
    assert not made.copy().is_terminated()
    assert made.try_jump_forward(None) is None


def test_wrong_grammars_say_what_is_wrong(backend: Any) -> None:
    for key, said in (
        ('root ::= "a"', "grammars are holes"),
        (PREFIX + "{", "no JSON"),
        (PREFIX + '{"left": "x = )"}', "nothing fits"),
    ):
        made = backend.dispatch_ebnf(key)
        assert isinstance(made, backend.invalid)
        assert said in made.error_message
    assert isinstance(backend.dispatch_json("{}"), backend.invalid)


def test_nothing_is_kept_of_a_hole(backend: Any) -> None:
    for _ in range(2):
        grammar(backend, *HOLES[0])
    assert backend.cache == {}


def test_an_unknown_version_is_not_served() -> None:
    with sglang_stand_in("0.9.0") as engine:
        from fim_server.integrations import sglang as plug_in

        with pytest.raises(VersionError, match=r"does not know SGLang 0\.9\.0"):
            plug_in.register()
        assert engine.registry == {}
        assert "fim-server" not in engine.choices
