"""Batched decoding against decoding one at a time: exactly, on a scripted network, and on real ones up to rounding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPTBigCodeConfig,
    GPTNeoXConfig,
    LlamaConfig,
    PretrainedConfig,
    Qwen2Config,
    Starcoder2Config,
)

from fim_server import Language
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, StopReason
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.decoding.strategies.batches import decode_together
from fim_server.decoding.strategies.outcomes import Task
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.pytorch import batches as torch_batches
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.models.pytorch.batches import Apart, TorchRows
from fim_server.models.pytorch.rows import StaticRows
from fim_server.text.document import Split
from support.models.batched_runs import (
    CUTS,
    SPLITS,
    CachedModel,
    cached_whole,
    rows_seen,
    runs_of,
    together,
    wandering,
)
from support.models.bracket_language import (
    END,
    SIZE,
    BracketSession,
    ByteMatcher,
    ByteVocabulary,
    Script,
    after_prompt,
    noise,
    ranking,
    saying,
)

# --- a scripted network with a real cache -------------------------------------------------------------------------


def cached(script: Script) -> CachedModel:
    """A model that says what a script makes of the middle so far."""
    return cached_whole(lambda tokens: script(after_prompt(tokens)))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_gives_the_texts_of_single_runs(seed: int, temperature: float) -> None:
    model = cached_whole(wandering(seed))
    options = DecodeOptions(max_new_tokens=12, temperature=temperature, seed=seed)
    found = together(model, SPLITS, lambda split: [None, BracketSession(split.left, split.right)], options)
    reasons = set()
    for split, (free, bound) in zip(SPLITS, found, strict=True):
        for (text, reason, run), constrained in ((free, False), (bound, True)):
            alone = single(model, split, DecodeOptions(**{**options_of(options), "constrained": constrained}))
            assert (text, reason) == (alone.text, alone.stop_reason)
            assert len(run.tokens) == alone.statistics.tokens
            assert run.refused == alone.statistics.refused_tokens
            reasons.add(reason)
    assert {StopReason.END_TOKEN, StopReason.BUDGET} <= reasons
    assert len({tuple(run.tokens) for [(_, _, run), _] in found}) > 8


def options_of(options: DecodeOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("max_new_tokens", "temperature", "seed")}


def single(model: FimModel, split: Split, options: DecodeOptions) -> Completion:
    return complete_session(model, BracketSession(split.left, split.right), split, options)


def test_runs_share_a_row_until_they_choose_differently() -> None:
    model = cached(saying(["a"], ["b"], ["]", "c"], ["d"], [END]))
    [[(free, _, _), (bound, _, _)]] = together(
        model, [Split("(", ")")], lambda split: [None, BracketSession(split.left, split.right)], DecodeOptions()
    )
    assert (free, bound) == ("ab]d", "abcd")
    assert rows_seen(model) == [1, 1, 1, 2, 2]  # the prompt, a, b, then ] and c apart, then d


def test_a_row_that_ends_leaves_the_batch() -> None:
    model = cached(lambda middle: ranking(END) if len(middle) >= 2 else ranking("x"))
    found = together(model, [Split("", ""), Split("xx", "")], lambda split: [None], DecodeOptions(max_new_tokens=5))
    assert [text for [(text, _, _)] in found] == ["xx", "xx"]
    assert rows_seen(model) == [1, 1, 2, 2]


def test_nothing_to_decode_is_no_error() -> None:
    assert decode_together(cached(saying(["x"])), []) == []


class Trouble(BracketSession):
    """A session whose matcher breaks after a few tokens."""

    def matcher(self, vocabulary: Any, shape: Any = None, *, healing: bytes = b"") -> ByteMatcher:
        made = super().matcher(vocabulary, shape)
        commit = made.commit

        def breaking(token_id: int) -> None:
            if len(made.middle) >= 2:
                raise RuntimeError("out of order")
            commit(token_id)

        made.commit = breaking  # type: ignore[method-assign]
        return made


def test_an_error_of_one_run_does_not_stop_the_others() -> None:
    model = cached(saying(*[["x"]] * 4, [END]))
    with ThreadPoolExecutor(1) as worker:
        made = [BracketSession("", ""), Trouble("", ""), None]
        tasks = [Task(model.format.encode("", "", 99), runs_of(model, [one], worker, DecodeOptions())) for one in made]
        [[first], [second], [third]] = decode_together(model, tasks)
    assert (first.ending, third.ending) == (StopReason.END_TOKEN, StopReason.END_TOKEN)
    assert isinstance(second.ending, RuntimeError)
    assert tasks[0].runs[0].tokens == tasks[2].runs[0].tokens == [ord("x")] * 4


def test_an_error_of_the_model_is_raised() -> None:
    def script(middle: list[int]) -> torch.Tensor:
        if len(middle) == 3:
            raise MemoryError("no more")
        return ranking("x")

    with pytest.raises(MemoryError):
        together(cached(script), SPLITS[:3], lambda split: [None], DecodeOptions())


def test_the_times_of_a_batch_are_shared_out() -> None:
    model = cached(saying(*[["x"]] * 6, [END]))
    found = together(model, SPLITS[:4], lambda split: [None], DecodeOptions())
    for [(_, _, run)] in found:
        assert 0 < run.passes.prefill_seconds < run.passes.model_seconds


# --- runs that go back --------------------------------------------------------------------------------------------

DEEP = 270
DEEP_BRACKETS = 9


class DeepVocabulary(ByteVocabulary):
    """Has a token that opens more brackets than landing expects of one."""

    def token_bytes(self, token_id: int) -> bytes:
        return b"(" * DEEP_BRACKETS if token_id == DEEP else super().token_bytes(token_id)


class LandingMatcher(ByteMatcher):
    """Knows that the middle ends once its brackets are closed, one token each."""

    def __init__(self, session: BracketSession, vocabulary: ByteVocabulary) -> None:
        super().__init__(session, vocabulary)
        self.earlier: list[bytes] = []
        self.rolled_back = 0

    def commit(self, token_id: int) -> None:
        self.earlier.append(self.middle)
        super().commit(token_id)

    def rollback(self, n_tokens: int) -> None:
        self.rolled_back += n_tokens
        for _ in range(n_tokens):
            self.middle = self.earlier.pop()

    def plan(self, enough: int = 0) -> list[int]:
        return [ord(")")] * self.open_after(b"")

    def lands(self, token_id: int, left: int) -> bool | None:
        return self.open_after(self.vocabulary.token_bytes(token_id)) <= left if self.fits(token_id) else None

    def fill_landing_mask(self, words: NDArray[np.uint32], left: int) -> int:
        words.fill(0)
        landing = [token for token in range(SIZE) if self.lands(token, left)]
        for token in landing:
            words[token // 32] |= np.uint32(1 << token % 32)
        return len(landing)

    def open_after(self, data: bytes) -> int:
        text = self.session.left.encode() + self.middle + data
        return text.count(b"(") - text.count(b")")


class LandingSession(BracketSession):
    def matcher(self, vocabulary: ByteVocabulary, shape: Any = None, *, healing: bytes = b"") -> ByteMatcher:
        self.matchers.append(LandingMatcher(self, vocabulary))
        return self.matchers[-1]


@pytest.mark.parametrize("seed", range(2))
def test_a_run_that_goes_back_goes_back_alone(seed: int) -> None:
    """Landing lets tokens pass and takes them back later; the other rows, and what shared the row, do not notice."""
    noises = noise(seed)

    def script(tokens: list[int]) -> torch.Tensor:
        logits = torch.full((SIZE,), -20.0)
        some = [ord("("), ord(")"), ord("a"), DEEP]
        logits[some] = noises(tokens)[some]
        logits[DEEP] += 2.0
        return logits

    vocabulary: Any = DeepVocabulary()
    model = replace(cached_whole(script), vocabulary=vocabulary)
    splits = [Split("a" * n, "") for n in range(7)]
    options = DecodeOptions(max_new_tokens=40)
    sessions: list[LandingSession] = []

    def opened(split: Split) -> list[Any]:
        sessions.append(LandingSession(split.left, split.right))
        return [None, sessions[-1]]

    found = together(model, splits, opened, options)
    assert sum(one.matchers[0].rolled_back > 0 for one in sessions if isinstance(one.matchers[0], LandingMatcher)) > 1
    for split, (free, bound) in zip(splits, found, strict=True):
        for (text, reason, run), constrained in ((free, False), (bound, True)):
            alone = complete_session(
                model,
                LandingSession(split.left, split.right),
                split,
                DecodeOptions(max_new_tokens=40, constrained=constrained),
            )
            assert (text, reason, len(run.tokens)) == (alone.text, alone.stop_reason, alone.statistics.tokens)
            assert text is not None
            assert not constrained or text.count("(") == text.count(")")


# --- real networks: the store alone -------------------------------------------------------------------------------

TINY: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(num_key_value_heads=2),
    "qwen2": Qwen2Config(num_key_value_heads=2),
    "gpt-bigcode": GPTBigCodeConfig(n_layer=2, n_head=4, n_embd=32, n_inner=48, n_positions=128, vocab_size=50),
    "gpt-neox": GPTNeoXConfig(),
    "starcoder2": Starcoder2Config(num_key_value_heads=2, sliding_window=96),
    "gemma2": Gemma2Config(num_key_value_heads=2, head_dim=8, sliding_window=96),
    "sliding": Starcoder2Config(num_key_value_heads=2, sliding_window=8),
}
SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}


def tiny(name: str) -> FimModel:
    config = TINY[name]
    if name != "gpt-bigcode":
        config.update(SIZES)
    if hasattr(config, "layer_types"):
        config.layer_types = ["sliding_attention" if name in ("sliding", "gemma2") else "full_attention"] * 2
    torch.manual_seed(1)
    network = AutoModelForCausalLM.from_config(config).eval()  # type: ignore[no-untyped-call]
    parts: Any = dict.fromkeys(("format", "vocabulary"))
    return FimModel(name=name, backend=TorchBackend(network, torch.device("cpu"), window=128), **parts)


@pytest.mark.parametrize("name", TINY)
def test_rows_read_what_they_would_read_alone(name: str) -> None:
    model = tiny(name)
    choose = random.Random(name)
    longest = 64
    prompts = [[choose.randrange(50) for _ in range(choose.randrange(9, 30))] for _ in range(4)]
    rows = [list(prompt) for prompt in prompts]
    store: TorchRows | None = None
    assert isinstance(model.backend, TorchBackend)
    with torch.inference_mode():
        for prompt in prompts:
            store = store or TorchRows(model.backend, 8, longest)
            store.read(prompt)
        assert store is not None
        assert isinstance(store.rows, Apart if name == "sliding" else StaticRows)
        for _ in range(25):
            change = choose.choice(["", "", "copy", "remove", "rewind"])
            row = choose.randrange(len(rows))
            if change == "copy" and len(rows) < 8:
                store.copy(row)
                rows.append(list(rows[row]))
            elif change == "remove" and len(rows) > 2:
                store.remove(row)
                rows[row] = rows[-1]
                rows.pop()
            elif change == "rewind" and len(rows[row]) > 12:
                store.rewind(row, 3)
                del rows[row][-3:]
            tokens = [choose.randrange(50) for _ in rows]
            for own, token in zip(rows, tokens, strict=True):
                own.append(token)
            found = store.forward(tokens)
            wanted = torch.stack([model.forward(own, model.new_cache()) for own in rows])
            torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


# --- the embedded model, on Python --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedded() -> FimModel:
    return load_model(None, "cpu", "torch")


@pytest.mark.parametrize("budget", [16, 40])
def test_a_batch_of_the_embedded_model_gives_the_texts_of_single_runs(embedded: FimModel, budget: int) -> None:
    language = Language.load("python")
    options = DecodeOptions(max_new_tokens=budget)
    found = together(embedded, CUTS, lambda split: [None, language.open(split.left, split.right)], options)
    same = refused = landed = 0
    for split, (free, bound) in zip(CUTS, found, strict=True):
        for (text, reason, run), constrained in ((free, False), (bound, True)):
            session = language.open(split.left, split.right)
            alone = complete_session(
                embedded, session, split, DecodeOptions(max_new_tokens=budget, constrained=constrained)
            )
            same += (text, reason) == (alone.text, alone.stop_reason)
            refused += run.refused
            landed += 0 if run.landing is None else run.landing.steps
            if constrained:
                assert text is not None
                assert session.check(text).complete
    assert same >= 2 * len(CUTS) - 1  # logits may differ by rounding, and texts where two tokens are as likely
    assert refused
    assert landed


def test_rows_with_captured_steps_serve_the_next_batch(embedded: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    language = Language.load("python")
    made: list[StaticRows] = []

    class Counted(StaticRows):
        captured = 1  # as on CUDA

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            made.append(self)

    def texts(splits: Sequence[Split], budget: int) -> list[str | None]:
        options = DecodeOptions(max_new_tokens=budget)
        found = together(embedded, splits, lambda split: [language.open(split.left, split.right)], options)
        return [own[0][0] for own in found]

    wanted = [texts(CUTS[:3], 12), texts(CUTS[3:5], 8), texts(CUTS, 12)]
    monkeypatch.setattr(torch_batches, "StaticRows", Counted)
    assert isinstance(embedded.backend, TorchBackend)
    try:
        assert texts(CUTS[:3], 12) == wanted[0]
        assert embedded.backend.kept_rows is made[0]
        assert texts(CUTS[3:5], 8) == wanted[1]
        assert len(made) == 1
        assert texts(CUTS, 12) == wanted[2]
        assert len(made) == 2, "more rows than there were"
    finally:
        embedded.backend.kept_rows = None


def test_a_session_that_promises_nothing_is_decoded_freely(embedded: FimModel) -> None:
    [[(text, _, run)]] = together(embedded, [Split("def f(:\n", ")")], lambda split: [None], DecodeOptions())
    assert text
    assert run.landing is None
