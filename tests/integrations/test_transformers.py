"""transformers' own `generate` with the embedded model: greedy, sampling and beams over a batch of different holes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

from fim_server import Language, Vocabulary
from fim_server.errors import HoleError, VocabularyError
from fim_server.integrations.holes import Hole
from fim_server.integrations.transformers import FimLogitsProcessor
from fim_server.models.masking import word_count
from fim_server.models.source import locate

HOLES: list[Hole | None] = [
    Hole("def f(x):\n    return ", "\n"),
    Hole("import os\nfor x in ", ":\n    print(x)\n", shape=Hole.of({"left": "", "shape": {"lines": 1}}).shape),
    Hole('{"a": [1, ', "}\n", "json"),
    None,
    Hole("value = call(a, [1, ", "\nprint(value)\n"),
]
NEW = 24

MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "num_return_sequences": 3},
    "hot sampling": {"do_sample": True, "temperature": 2.0},
    "beams": {"num_beams": 4, "num_return_sequences": 4},
    "sampling beams": {"num_beams": 3, "do_sample": True},
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads of torch on a machine that does something else besides take ten times as long as one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def tokenizer() -> Any:
    found = AutoTokenizer.from_pretrained(locate("embedded"))
    found.padding_side = "left"
    return found


@cache
def network() -> Any:
    return AutoModelForCausalLM.from_pretrained(locate("embedded"), dtype=torch.float32)


def prompts(holes: list[Hole | None] = HOLES) -> Any:
    texts = [hole or Hole("def g(y):\n    ", "\n") for hole in holes]
    written = [f"<|fim_suffix|>{hole.right}<|fim_prefix|>{hole.left}<|fim_middle|>" for hole in texts]
    return tokenizer()(written, return_tensors="pt", padding=True, return_token_type_ids=False)


def generated(processor: FimLogitsProcessor | None, holes: list[Hole | None] = HOLES, **settings: Any) -> Any:
    set_seed(3)
    settings = {"max_new_tokens": NEW, "pad_token_id": tokenizer().pad_token_id} | settings
    processors = [] if processor is None else [processor]
    return network().generate(**prompts(holes), logits_processor=processors, **settings)


def complete(hole: Hole, text: str) -> bool:
    return Language.load(hole.language).open(hole.left, hole.right).check(text).complete


@pytest.mark.parametrize("mode", MODES)
def test_every_row_is_a_program_within_its_budget(mode: str) -> None:
    processor = FimLogitsProcessor(tokenizer(), HOLES, max_new_tokens=NEW)
    sequences = generated(processor, **MODES[mode])
    each = len(sequences) // len(HOLES)
    middles = processor.complete_middles(sequences)
    assert len(middles) == len(sequences)
    for number, text in enumerate(middles):
        hole = HOLES[number // each]
        if hole is None:
            assert text is None
        else:
            assert text is not None, (mode, number)
            assert complete(hole, text)
            assert hole.shape is None or "\n" not in text


@pytest.mark.parametrize("mode", ["greedy", "sampling", "beams"])
def test_rows_without_a_hole_are_unchanged(mode: str) -> None:
    masked = generated(FimLogitsProcessor(tokenizer(), HOLES), **MODES[mode])
    free = generated(None, **MODES[mode])
    each = len(masked) // len(HOLES)
    length = min(masked.shape[1], free.shape[1])
    free_rows = slice(HOLES.index(None) * each, (HOLES.index(None) + 1) * each)
    assert torch.equal(masked[free_rows, :length], free[free_rows, :length])
    assert not torch.equal(masked[:, :length], free[:, :length])


def test_rows_that_were_cut_off_have_no_middle() -> None:
    processor = FimLogitsProcessor(tokenizer(), HOLES)
    sequences = generated(processor, max_new_tokens=6)
    end, begin = tokenizer().eos_token_id, prompts()["input_ids"].shape[1]
    middles = processor.complete_middles(sequences)
    assert None in [middle for middle, hole in zip(middles, HOLES, strict=True) if hole is not None]
    for row, middle, hole in zip(sequences[:, begin:].tolist(), middles, HOLES, strict=True):
        if hole is not None:
            text = tokenizer().decode(row[: row.index(end)] if end in row else row)
            assert (middle is not None) == complete(hole, text)


def plain(hole: Hole | None, vocabulary: Vocabulary, history: list[int], scores: torch.Tensor) -> torch.Tensor:
    """A row's scores under a matcher of its own that was only moved forwards."""
    if hole is None:
        return scores
    matcher = hole.open().matcher(vocabulary, shape=hole.shape)
    for token in history:
        matcher.commit(token)
    words = np.zeros(word_count(vocabulary.size), dtype=np.uint32)
    matcher.fill_mask_plain(words)
    kept = torch.from_numpy(np.unpackbits(words.view(np.uint8), bitorder="little")[: len(scores)].astype(bool))
    return scores.masked_fill(~kept, float("-inf"))


def test_reordered_beams_have_the_masks_of_their_own_histories() -> None:
    """Random beams: at each step every beam goes on from any beam of the same hole."""
    torch.manual_seed(1)
    vocabulary = Vocabulary.from_tokenizer(tokenizer())
    beams, size = 3, vocabulary.size
    processor = FimLogitsProcessor(tokenizer(), HOLES)
    prompt = prompts()["input_ids"].repeat_interleave(beams, 0)
    ids = prompt
    for _ in range(12):
        scores = torch.randn(len(ids), size)
        given = scores.clone()
        found = processor(ids, scores)
        assert torch.equal(scores, given)  # in memory of its own
        for row in range(len(ids)):
            history = ids[row, prompt.shape[1] :].tolist()
            assert torch.equal(found[row], plain(HOLES[row // beams], vocabulary, history, scores[row]))
        found[:, tokenizer().eos_token_id] = float("-inf")
        parents = torch.arange(len(ids)) // beams * beams + torch.randint(beams, (len(ids),))
        tokens = torch.multinomial(found[parents].softmax(-1), 1)
        ids = torch.cat([ids[parents], tokens], 1)


def test_a_beam_with_a_refused_token_is_given_no_token_at_all() -> None:
    holes: list[Hole | None] = [Hole('{"a": [1, ', "}\n", "json")]
    processor = FimLogitsProcessor(tokenizer(), holes)
    ids = prompts(holes)["input_ids"].repeat_interleave(2, 0)
    scores = torch.zeros(2, len(tokenizer()))
    processor(ids, scores)
    refused, taken = (tokenizer().encode(text, add_special_tokens=False)[0] for text in ("}", "2"))
    found = processor(torch.cat([ids, torch.tensor([[refused], [taken]])], 1), scores)
    assert bool(found[0].isinf().all())
    assert not bool(found[1].isinf().all())
    sequences = torch.cat([ids, torch.tensor([[refused], [taken]])], 1)
    assert processor.complete_middles(sequences) == [None, None]


def test_another_models_tokenizer_is_refused() -> None:
    processor = FimLogitsProcessor(tokenizer(), HOLES)
    ids = prompts()["input_ids"]
    with pytest.raises(VocabularyError, match=r"has 300 logits and the tokenizer \d+ tokens: it is another model's"):
        processor(ids, torch.zeros(len(ids), 300))
    with pytest.raises(VocabularyError, match=r"may be another model's; if not, say size=49152"):
        processor(ids, torch.zeros(len(ids), 49152))
    with pytest.raises(VocabularyError, match="another model's"):
        network().generate(**prompts(), logits_processor=[FimLogitsProcessor(smaller(), HOLES)], max_new_tokens=2)


def smaller() -> Vocabulary:
    return Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256])


def test_logits_that_only_pad_the_model_are_refused() -> None:
    processor = FimLogitsProcessor(tokenizer(), HOLES)
    ids = prompts()["input_ids"]
    size = len(tokenizer()) + 128
    found = processor(ids, torch.zeros(len(ids), size))
    assert bool(found[0, -128:].isinf().all())
    assert not bool(found[3].isinf().any())
    with pytest.raises(VocabularyError, match="were given as size"):
        FimLogitsProcessor(tokenizer(), HOLES, size=size)(ids, torch.zeros(len(ids), size + 1))


def test_wrong_calls_are_named() -> None:
    with pytest.raises(HoleError, match=r"^row 1: nothing fits between left and right"):
        FimLogitsProcessor(tokenizer(), [("a = ", "\n"), ("a = )", "\n")])
    with pytest.raises(HoleError, match="no holes"):
        FimLogitsProcessor(tokenizer(), [])
    with pytest.raises(VocabularyError, match="end_token_ids"):
        FimLogitsProcessor(tokenizer(), HOLES, end_token_ids=[])
    processor = FimLogitsProcessor(tokenizer(), HOLES)
    ids = prompts()["input_ids"]
    with pytest.raises(ValueError, match="7 rows for 5 holes"):
        processor(ids.repeat(2, 1)[:7], torch.zeros(7, len(tokenizer())))
    processor(ids, torch.zeros(len(ids), len(tokenizer())))
    with pytest.raises(ValueError, match="serves one batch of prompts"):
        processor(ids.flip(0), torch.zeros(len(ids), len(tokenizer())))
