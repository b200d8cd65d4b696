"""The grammar backend against SGLang's classes: its own where it is installed, else stand-ins with their signatures.

`python -m benchmarks.engines.sglang` does the same with a real SGLang (docs/engines.md).
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

from fim_server import Vocabulary
from fim_server.errors import VersionError
from fim_server.integrations.holes import PREFIX, Hole
from fim_server.integrations.middles import Middle, begin
from fim_server.models.load import load_model
from fim_server.models.source import locate
from fim_server.models.tokenizer import read_tokenizer
from support.models.engine_stand_ins import sglang_or_stand_in, sglang_stand_in

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
        engine.apply_hooks()
        assert engine.choices.count("fim-server") == 1
        tokenizer = read_tokenizer(Path(locate("embedded")), "embedded")
        made = engine.registry["fim-server"](None, tokenizer, vocabulary.size, set(vocabulary.end_token_ids))
        made.invalid = engine.invalid
        made.manager = object.__new__(engine.manager)
        made.manager.grammar_backend, made.manager.grammar_queue = made, []
        made.end_token_id = vocabulary.end_token_ids[0]
        yield made


def grammar(backend: Any, left: str, right: str) -> Any:
    key = ("ebnf", PREFIX + json.dumps({"left": left, "right": right}))
    value, cached = backend.get_cached_or_future_value(key, False)
    assert not cached
    found = value.result()
    backend.set_cache(key, found.copy())
    return found


def asked(backend: Any, hole: tuple[str, str], **settings: Any) -> Any:
    """The grammar of a request with such settings, as SGLang's scheduler comes by it."""
    given = {"ignore_eos": False, "min_new_tokens": 0, "stop_strs": [], "stop_regex_strs": [], "stop_token_ids": None}
    others = {"json_schema": None, "regex": None, "structural_tag": None, "ebnf_full_assistant": False}
    ebnf = PREFIX + json.dumps({"left": hole[0], "right": hole[1]})
    params = {"ebnf": ebnf, "max_new_tokens": 64, "custom_params": None} | given | others | settings
    req = SimpleNamespace(
        sampling_params=SimpleNamespace(**params),
        eos_token_ids=None,
        tokenizer=SimpleNamespace(eos_token_id=backend.end_token_id, additional_stop_token_ids=None),
        origin_input_ids=[1],
        require_reasoning=False,
    )
    assert backend.manager.process_req_with_grammar(req)
    return req.grammar.result()


def expected(hole: tuple[str, str], vocabulary: Vocabulary, tokens: list[int], scores: torch.Tensor) -> torch.Tensor:
    matcher = Hole.of(hole).open().matcher(vocabulary)
    for token in tokens:
        matcher.commit(token)
    words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)
    matcher.fill_mask_plain(words)
    kept = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(scores)].astype(bool)
    return scores.masked_fill(~torch.from_numpy(kept), float("-inf"))


def test_a_batch_is_masked_row_by_row(backend: Any, vocabulary: Vocabulary) -> None:
    """One object's functions serve all rows of a batch, and one row has no grammar, as in SGLang."""
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


def drawn(made: Any, vocabulary: Vocabulary, seed: int, most: int) -> list[int]:
    """Tokens that are drawn from masks, up to the end or so many."""
    generator = torch.Generator().manual_seed(seed)
    tokens: list[int] = []
    while not made.is_terminated() and len(tokens) < most:
        mask = made.allocate_vocab_mask(vocab_size=vocabulary.size, batch_size=1, device="cpu")
        made.fill_vocab_mask(mask, 0)
        logits = torch.randn(1, vocabulary.size, generator=generator)
        made.apply_vocab_mask(logits=logits, vocab_mask=mask)
        tokens.append(int(logits.argmax()))
        made.accept_token(tokens[-1])
    return tokens


@pytest.mark.parametrize("seed", range(6))
def test_a_middle_ends_within_the_tokens_of_its_request(backend: Any, vocabulary: Vocabulary, seed: int) -> None:
    """SGLang tells a backend nothing of them: they come by way of the hook."""
    made = asked(backend, HOLES[1], max_new_tokens=24)
    tokens = drawn(made, vocabulary, seed, 24)
    assert made.is_terminated()
    left, right = HOLES[1]
    text = b"".join(map(vocabulary.token_bytes, tokens[:-1])).decode()
    assert Hole(left, right).open().check(text).complete


def test_a_request_ends_at_its_own_tokens_too(backend: Any, vocabulary: Vocabulary) -> None:
    further = vocabulary.encode("@")[0]
    made = asked(backend, HOLES[0], stop_token_ids={further})
    made.accept_token(vocabulary.encode("x")[0])
    made.accept_token(further)
    assert made.is_terminated()


@pytest.mark.parametrize(
    "settings",
    [{"ignore_eos": True}, {"min_new_tokens": 2}, {"stop_strs": ["\n"]}, {"stop_regex_strs": ["b"]}],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_that_keep_a_middle_from_its_end_are_refused(backend: Any, settings: dict[str, Any]) -> None:
    made = asked(backend, HOLES[0], **settings)
    assert isinstance(made, backend.invalid)
    assert made.error_message.startswith("fim-server: ")


def test_requests_to_other_backends_stay_as_they_are(backend: Any) -> None:
    from fim_server.integrations import sglang as plug_in

    params = SimpleNamespace(ebnf=PREFIX + "{}")
    plug_in.hand_on(SimpleNamespace(grammar_backend=None), SimpleNamespace(sampling_params=params))
    assert type(params.ebnf) is str


def test_unused_copies_are_not_begun(backend: Any, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang copies every grammar for its cache, in the thread of its steps, where a middle takes milliseconds."""
    from fim_server.integrations import sglang as plug_in

    begun: list[Middle] = []

    def begins(*args: Any) -> Middle:
        begun.append(begin(*args))
        return begun[-1]

    monkeypatch.setattr(plug_in, "begin", begins)
    made = grammar(backend, *HOLES[0])
    assert len(begun) == 1
    other = made.copy()
    other.accept_token(vocabulary.encode("x")[0])
    assert len(begun) == 2
    assert made.middle.tokens == []


def test_a_mask_that_fails_ends_its_request_alone(
    backend: Any, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    made, other = (grammar(backend, *hole) for hole in HOLES)
    monkeypatch.setattr(made.middle, "fill", fails)
    mask = made.allocate_vocab_mask(vocab_size=vocabulary.size, batch_size=2, device="cpu")
    made.fill_vocab_mask_batched([SimpleNamespace(row=0, grammar=made), SimpleNamespace(row=1, grammar=other)], mask)
    assert bool((mask[0] == -1).all())
    assert not bool((mask[1] == -1).all())
    with pytest.raises(ValueError, match="could not be filled"):
        made.accept_token(vocabulary.encode("x")[0])


def test_wrong_grammars_say_what_is_wrong(backend: Any) -> None:
    for key, said in (
        ('root ::= "a"', "grammars are holes"),
        (PREFIX + "{", "no JSON"),
        (PREFIX + '{"left": "x = )"}', "nothing fits"),
    ):
        made = backend.dispatch_ebnf(key)
        assert isinstance(made, backend.invalid)
        assert said in made.error_message
    for other in (backend.dispatch_json("{}"), backend.dispatch_regex("a"), backend.dispatch_structural_tag("{}")):
        assert isinstance(other, backend.invalid)
        assert "grammars are holes" in other.error_message


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
