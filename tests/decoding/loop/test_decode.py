"""The decode loop against a small exact grammar and scripted models, and the KV cache against a real network."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from fim_server.decoding.bias.hidden_characters import Visible
from fim_server.decoding.complete import complete
from fim_server.decoding.loop.constraint import Constraint
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, StopReason
from fim_server.decoding.strategies.alternatives import alternatives, candidates, complete_session
from fim_server.models.backend import PREFILL_CHUNK, Logits
from fim_server.models.masking import word_count
from fim_server.models.model import FimModel
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.models.reading import Reading, Readings
from fim_server.text.document import Split
from support.models.bracket_language import (
    CONTROL,
    END,
    END2,
    SIZE,
    WORDS,
    Brackets,
    BracketSession,
    ByteMatcher,
    ByteVocabulary,
    Script,
    ScriptedModel,
    after_prompt,
    chosen,
    noise,
    ranking,
    saying,
    scripted,
    stack_of,
)

# --- a language: brackets in order; everything else is free -------------------------------------------------------


class NothingFits(BracketSession):
    def viable(self, middle: bytes) -> bool:
        return False

    def complete(self, middle: bytes) -> bool:
        return False


# --- a model: bytes, some longer tokens, and logits from a script --------------------------------------------------


def run(script: Script, left: str = "(", right: str = ")", **options: Any) -> Completion:
    return complete(scripted(script), Brackets(), Split(left, right), DecodeOptions(**options))


# --- ending ------------------------------------------------------------------------------------------------------


def test_an_allowed_end_token_ends_the_middle() -> None:
    completion = run(saying(["a"], [END]))
    assert completion.text == "a"
    assert (completion.guarantee, completion.stop_reason) == ("exact", StopReason.END_TOKEN)
    assert not completion.truncated


def test_every_end_token_of_the_family_ends_the_middle() -> None:
    assert run(saying(["a"], [END2])).text == "a"


def test_an_end_token_is_refused_while_the_text_is_not_complete() -> None:
    completion = run(saying(["("], [END, ")"], [END]))
    assert completion.text == "()"
    assert completion.statistics.refused_tokens == 1
    assert completion.statistics.forced_share == 0.5


def test_a_refused_token_gives_way_to_the_likeliest_allowed_one() -> None:
    assert run(saying(["]", 261, "x"], [END])).text == "x"


def test_control_tokens_never_become_text() -> None:
    assert run(saying([CONTROL, "x"], [END])).text == "x"


def test_an_end_token_may_come_first() -> None:
    completion = run(saying([END]))
    assert (completion.text, completion.stop_reason) == ("", StopReason.END_TOKEN)


def test_end_tokens_are_in_the_mask_when_the_text_is_complete() -> None:
    completion = run(saying(["]", END2]))
    assert (completion.text, completion.stop_reason) == ("", StopReason.END_TOKEN)


# --- the budget --------------------------------------------------------------------------------------------------


def end_with(probabilities: dict[int, float]) -> Script:
    """Say "x" for ever, giving the end token a probability that depends on the length."""

    def script(middle: list[int]) -> torch.Tensor:
        chosen = probabilities.get(len(middle), 0.001)
        logits = torch.full((SIZE,), -1000.0)
        logits[ord("x")], logits[END] = np.log(1 - chosen), np.log(chosen)
        return logits

    return script


@pytest.mark.parametrize(
    ("probabilities", "length"),
    [
        ({3: 0.4, 7: 0.1}, 3),  # 3 * 0.4 > 7 * 0.1
        ({3: 0.2, 7: 0.1}, 7),  # 3 * 0.2 < 7 * 0.1
        ({0: 0.49, 2: 0.01}, 2),  # nothing at all is never better than something
        ({}, 10),  # all alike: the longest
    ],
)
def test_the_best_complete_point_is_returned(probabilities: dict[int, float], length: int) -> None:
    completion = run(end_with(probabilities), max_new_tokens=10)
    assert completion.text == "x" * length
    assert completion.truncated
    assert completion.stop_reason is StopReason.BUDGET
    assert completion.statistics.tokens == 10


def test_only_complete_points_count() -> None:
    completion = run(saying(["a"], ["("]), max_new_tokens=5)
    assert completion.text == "a"


def test_nothing_is_returned_with_the_reason_where_no_point_was_complete() -> None:
    completion = run(saying(["("]), max_new_tokens=5)
    assert completion.text is None
    assert completion.reason == "at no point within 5 tokens was the text complete"


def test_no_more_tokens_than_the_budget() -> None:
    model = scripted(saying(["x"]))
    completion = complete(model, Brackets(), Split("(", ")"), DecodeOptions(max_new_tokens=3))
    assert completion.text == "xxx"


def test_a_dead_end_says_so() -> None:
    completion = complete(scripted(saying(["x"])), Brackets(NothingFits), Split("(", ")"))
    assert (completion.text, completion.stop_reason) == (None, StopReason.DEAD_END)
    assert completion.reason == "nothing can connect the text before the cursor with the text after it"


# --- interruption ------------------------------------------------------------------------------------------------


def test_the_deadline_returns_the_best_text_so_far() -> None:
    model = scripted(saying(["x"]), forward_seconds=0.01)
    completion = complete(model, Brackets(), Split("(", ")"), DecodeOptions(deadline_ms=100))
    assert completion.stop_reason is StopReason.DEADLINE
    assert completion.text
    assert set(completion.text) == {"x"}


def test_a_deadline_that_has_passed_gives_nothing() -> None:
    completion = run(saying(["x"]), deadline_ms=0)
    assert (completion.text, completion.stop_reason) == (None, StopReason.DEADLINE)
    assert "deadline" in (completion.reason or "")


def test_a_cancel_flag_stops_within_one_forward_pass() -> None:
    cancelled = threading.Event()
    model = scripted(saying(["x"]))
    completion = complete(
        model,
        Brackets(),
        Split("(", ")"),
        cancelled=cancelled,
        on_token=lambda tokens: cancelled.set() if len(tokens) == 3 else None,
    )
    assert (completion.text, completion.stop_reason) == (None, StopReason.CANCELLED)
    assert completion.statistics.tokens == 3
    assert after_prompt(model.seen) == [ord("x")] * 2  # the third token never reached the model


def test_a_long_prompt_can_be_cancelled_between_its_chunks() -> None:
    cancelled = threading.Event()

    def script(middle: list[int]) -> torch.Tensor:
        cancelled.set()
        return ranking("x")

    model = scripted(script)
    completion = complete(model, Brackets(), Split("", "x" * 900), cancelled=cancelled)
    assert completion.stop_reason is StopReason.CANCELLED
    assert len(model.seen) == PREFILL_CHUNK


# --- exactness ---------------------------------------------------------------------------------------------------


def naive(script: Script, left: str, right: str, budget: int) -> list[int]:
    """Greedy decoding with a full mask at every step."""
    session, vocabulary, tokens = BracketSession(left, right), ByteVocabulary(), list[int]()
    matcher, visible = session.matcher(vocabulary), Visible(vocabulary)  # type: ignore[arg-type]
    while len(tokens) < budget:
        logits = script(tokens)
        ends = (END, END2)
        allowed = [t for t in range(SIZE) if matcher.fits(t) and (t in ends or not visible.refuses(tokens, t))]
        token = max(allowed, key=lambda t: float(logits[t]))
        if token in (END, END2):
            break
        matcher.commit(token)
        tokens.append(token)
    return tokens


@pytest.mark.parametrize("seed", range(20))
def test_checking_first_equals_masking_always(seed: int) -> None:
    left, right = "f([", "])"
    model = scripted(noise(seed))
    complete(model, Brackets(), Split(left, right), DecodeOptions(max_new_tokens=24))
    assert after_prompt(model.seen) == naive(noise(seed), left, right, 24)


@pytest.mark.parametrize("seed", range(20))
def test_every_text_is_in_the_language(seed: int) -> None:
    for temperature in (0.0, 1.0):
        completion = run(noise(seed), "f([", "])", temperature=temperature, seed=seed, max_new_tokens=24)
        if completion.text is not None:
            assert stack_of("f([" + completion.text + "])") == ""


def test_split_characters_are_joined_before_decoding() -> None:
    face = " \U0001f600".encode()
    completion = run(saying([262], [face[3]], [face[4]], [END]))
    assert completion.text == " \U0001f600"


def test_drawing_again_after_a_refusal_is_the_masked_distribution() -> None:
    logits = torch.full((SIZE,), -1000.0)
    for token, probability in (("]", 0.6), ("a", 0.3), ("b", 0.1)):
        logits[ord(token)] = np.log(probability)

    def script(middle: list[int]) -> torch.Tensor:
        return logits if not middle else ranking(END)

    texts = [run(script, temperature=1.0, seed=seed).text for seed in range(400)]
    assert set(texts) == {"a", "b"}
    assert abs(texts.count("a") / 400 - 0.75) < 0.08


def test_a_seed_repeats_a_text_and_another_seed_does_not() -> None:
    first, again, other = (run(noise(1), temperature=1.5, seed=seed, max_new_tokens=40) for seed in (5, 5, 6))
    assert first.text == again.text
    assert first.statistics.tokens == again.statistics.tokens
    assert first.text != other.text


# --- when the grammar has no say -----------------------------------------------------------------------------------


def test_without_a_guarantee_decoding_is_free_and_says_so() -> None:
    language = Brackets(settings={"guarantee": "none", "diagnostics": ["line 1 does not parse"]})
    completion = complete(scripted(saying(["]"], [END])), language, Split("(", ")"))
    assert (completion.text, completion.guarantee) == ("]", "none")
    assert completion.diagnostics == ("line 1 does not parse",)
    assert language.opened[-1].matchers == []


def test_without_the_grammar_the_budget_ends_the_text() -> None:
    completion = run(saying(["]"]), constrained=False, max_new_tokens=4)
    assert (completion.text, completion.guarantee, completion.stop_reason) == ("]]]]", "none", StopReason.BUDGET)


def test_an_unconstrained_text_ends_before_half_characters_and_control_tokens() -> None:
    assert run(saying(["a"], [262], [CONTROL]), constrained=False).text == "a "


# --- who computes the mask, and when -------------------------------------------------------------------------------


def test_a_mask_that_fits_behind_the_model_is_computed_during_its_pass() -> None:
    language = Brackets(settings={"mask_seconds": 0.01})
    model = scripted(saying(*[["x"]] * 6, [END]), forward_seconds=0.03)
    statistics = complete(model, language, Split("(", ")")).statistics
    assert language.matcher.masks == 7
    assert language.matcher.checks == 0
    assert statistics.engine_ms > 60
    assert statistics.engine_wait_ms < statistics.engine_ms / 2


def test_a_mask_that_takes_longer_than_the_model_is_computed_only_on_refusal() -> None:
    language = Brackets(settings={"mask_seconds": 0.02})
    model = scripted(saying(["x"], ["x"], ["]", "y"], ["x"], [END]), forward_seconds=0.0)
    assert complete(model, language, Split("(", ")")).text == "xxyx"
    assert language.matcher.masks == 2  # the first step's, hidden behind the prefill, and the refused one's
    assert language.matcher.checks == 4  # all but the first, whose mask lay ready


def test_statistics_add_up() -> None:
    completion = run(saying(["a"], ["]", "b"], [END]))
    statistics = completion.statistics
    assert (statistics.tokens, statistics.refused_tokens, statistics.fast_forwarded_tokens) == (2, 1, 0)
    assert statistics.prompt_tokens == len("(") + len(")") + 2
    assert 0 <= statistics.engine_wait_ms <= statistics.total_ms
    assert 0 < statistics.model_ms <= statistics.total_ms


# --- forced tokens -------------------------------------------------------------------------------------------------


class FiniteVocabulary(ByteVocabulary):
    """A vocabulary that can encode: the longest of its tokens."""

    longest_token = 4

    def encode(self, text: bytes) -> list[int]:
        tokens = []
        while text:
            tokens.append(next((token for token, word in WORDS.items() if text.startswith(word)), text[0]))
            text = text[len(self.token_bytes(tokens[-1])) :]
        return tokens

    def longer_tokens(self, start: bytes) -> list[int]:
        return [token for token, word in WORDS.items() if word.startswith(start) and word != start]


class FiniteMatcher(ByteMatcher):
    """Knows what is forced, and notes when it was asked."""

    def forced(self) -> bytes:
        assert isinstance(self.session, Finite)
        assert not self.busy.locked()
        rests = [
            text.encode()[len(self.middle) :] for text in self.session.texts if self.session.fits(text, self.middle)
        ]
        length = 0
        while rests and len({rest[: length + 1] for rest in rests}) == 1 and length < min(map(len, rests)):
            length += 1
        return rests[0][:length] if rests else b""

    def commit(self, token_id: int) -> None:
        super().commit(token_id)
        self.lengths = [*getattr(self, "lengths", []), len(self.vocabulary.token_bytes(token_id))]

    def rollback(self, n_tokens: int) -> None:
        for _ in range(n_tokens):
            self.middle = self.middle[: len(self.middle) - self.lengths.pop()]


@dataclass
class Finite(BracketSession):
    """A language of a few middles."""

    texts: tuple[str, ...] = ()

    @staticmethod
    def fits(text: str, middle: bytes) -> bool:
        return text.encode().startswith(middle)

    def viable(self, middle: bytes) -> bool:
        return any(self.fits(text, middle) for text in self.texts)

    def complete(self, middle: bytes) -> bool:
        return any(text.encode() == middle for text in self.texts)

    def matcher(self, vocabulary: ByteVocabulary, shape: Any = None, *, healing: bytes = b"") -> FiniteMatcher:
        self.matchers.append(FiniteMatcher(self, vocabulary))
        return self.matchers[-1]  # type: ignore[return-value]


def run_finite(script: Script, texts: Sequence[str], **options: Any) -> tuple[Completion, list[list[int]]]:
    """The completion, and the tokens of each forward pass after the prompt's."""
    passes: list[list[int]] = []

    class Watched(ScriptedModel):
        def forward(self, token_ids: Sequence[int], cache: list[int]) -> Logits:
            passes.append(after_prompt([*token_ids]) if CONTROL in token_ids else [*token_ids])
            return super().forward(token_ids, cache)

    model = scripted(script)
    values = {name: getattr(model, name) for name in model.__dataclass_fields__} | {"vocabulary": FiniteVocabulary()}
    language = Brackets(Finite, {"texts": tuple(texts)})
    return complete(Watched(**values), language, Split("(", ")"), DecodeOptions(**options)), passes


def test_forced_tokens_are_appended_without_the_model_and_read_with_the_one_before() -> None:
    texts = ["abcf(x)d1", "abcf(x)d2", "b"]
    script = saying(["a"], ["?"], ["?"], ["?"], ["?"], ["2"], [END])
    completion, passes = run_finite(script, texts, fast_forward=True)
    assert (completion.text, completion.stop_reason) == ("abcf(x)d2", StopReason.END_TOKEN)
    assert passes == [[], [ord("a"), ord("b"), ord("c"), 260, ord("d")], [ord("2")]]
    statistics = completion.statistics
    assert (statistics.tokens, statistics.fast_forwarded_tokens, statistics.refused_tokens) == (6, 4, 0)


def test_tokens_forced_at_once_are_read_with_the_prompt() -> None:
    completion, passes = run_finite(saying([END]), ["f(x)"], fast_forward=True)
    assert completion.text == "f(x)"
    assert passes == [[260]]
    assert (completion.statistics.tokens, completion.statistics.fast_forwarded_tokens) == (1, 1)


def test_without_the_option_the_model_is_asked_for_every_token() -> None:
    completion, passes = run_finite(saying(["f"], ["("], ["x"], [")"], [END]), ["f(x)"])
    assert completion.text == "f(x)"
    assert passes == [[], [ord("f")], [ord("(")], [ord("x")], [ord(")")]]
    assert completion.statistics.fast_forwarded_tokens == 0


def test_forced_tokens_keep_to_the_budget() -> None:
    completion, passes = run_finite(saying(["a"], ["x"]), ["abcdefgh"], fast_forward=True, max_new_tokens=5)
    assert (completion.text, completion.stop_reason) == (None, StopReason.BUDGET)
    assert passes == [list(b"abcde")]
    assert completion.statistics.tokens == 5


def test_a_forced_token_that_the_model_has_not_is_left_to_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedModel, "size", 260)  # its f(x) is beyond that
    completion, passes = run_finite(saying(["?"], ["f"], ["("], ["x"], [")"], [END]), ["af(x)"], fast_forward=True)
    assert completion.text == "af(x)"
    assert passes[0] == [ord("a")]
    assert all(260 not in tokens for tokens in passes)


def test_nothing_is_forced_where_the_middle_may_end_or_the_matcher_cannot_tell() -> None:
    completion, _ = run_finite(saying([END]), ["", "abc"], fast_forward=True)
    assert (completion.text, completion.statistics.tokens) == ("", 0)
    assert run(saying(["a"], [END]), fast_forward=True).statistics.fast_forwarded_tokens == 0


@pytest.mark.parametrize("seed", range(20))
def test_fast_forwarding_ends_in_the_language_too(seed: int) -> None:
    texts = ["ab((cd", "ab((ce", "abf(x)", "]]]]", "]]f(x)", "]]f(x)((", "éa", "éb"]
    completion, _ = run_finite(noise(seed), texts, fast_forward=True, temperature=1.0, seed=seed)
    assert completion.text in texts
    assert completion.statistics.tokens >= completion.statistics.fast_forwarded_tokens


def test_a_refused_commit_raises() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as worker:
        words = np.zeros(word_count(SIZE), dtype=np.uint32)
        constraint = Constraint(
            lambda: BracketSession("", "").matcher(ByteVocabulary()),
            words,
            worker,
        )
        with pytest.raises(ValueError, match="not allowed"):
            constraint.commit(ord(")"))


# --- a real network -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=SIZE,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    return LlamaForCausalLM(config).train(False)


def real(network: Any) -> FimModel:
    model = scripted(saying([END]))
    return FimModel("tiny", TorchBackend(network, torch.device("cpu")), model.format, model.vocabulary)


def test_cached_and_chunked_passes_give_the_same_logits_as_one(network: Any) -> None:
    model, tokens = real(network), torch.randint(SIZE, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    with torch.inference_mode():
        whole = network(torch.tensor([tokens])).logits[0]
    cache = model.new_cache()
    assert torch.allclose(model.forward(tokens[:40], cache), whole[39], atol=1e-5)
    assert torch.allclose(model.forward(tokens[40:59], cache), whole[58], atol=1e-5)
    assert torch.allclose(model.forward(tokens[59:], cache), whole[59], atol=1e-5)


def test_a_real_network_completes_in_the_language(network: Any) -> None:
    completion = complete(real(network), Brackets(), Split("f([", "])"), DecodeOptions(max_new_tokens=32))
    assert completion.statistics.tokens == 32 or completion.stop_reason is StopReason.END_TOKEN
    if completion.text is not None:
        assert stack_of("f([" + completion.text + "])") == ""


def test_the_prompt_is_cut_to_the_window_and_the_engine_sees_the_whole_file(network: Any) -> None:
    language = Brackets()
    split = Split("(" * 3000, ")" * 3000)
    completion = complete(real(network), language, split, DecodeOptions(max_new_tokens=400, constrained=False))
    assert (language.opened[0].left, language.opened[0].right) == (split.left, split.right)
    assert completion.statistics.prompt_tokens == 256
    assert completion.statistics.tokens <= 256


# --- what editors need: kept readings, single lines, alternatives ---------------------------------------------------


class Cache(list[int]):
    """A KV cache of nothing but its tokens, which can forget its end."""

    def crop(self, length: int) -> None:
        assert length < 0
        del self[length:]


class SlidingCache(Cache):
    def crop(self, length: int) -> None:
        raise RuntimeError("a sliding window cannot be cropped")


@dataclass(frozen=True)
class CountingModel(ScriptedModel):
    """A scripted model that notes how many tokens each forward pass reads."""

    cache: type[Cache] = Cache
    passes: list[int] = field(default_factory=list)

    def new_cache(self, room: int | None = None) -> list[int]:
        return self.cache()

    def forward(self, token_ids: Sequence[int], cache: list[int]) -> Logits:
        self.passes.append(len(token_ids))
        return super().forward(token_ids, cache)


def counting(script: Script, **settings: Any) -> CountingModel:
    model = scripted(script)
    return CountingModel("test", chosen["backend"], model.format, model.vocabulary, script=script, **settings)


def test_a_reading_keeps_what_two_requests_have_in_common() -> None:
    model = counting(saying([END]))
    reading = Reading(model)
    assert reading.resume([1, 2, 3]) == 0
    reading.forward([1, 2, 3])
    assert reading.resume([1, 2, 3, 4, 5]) == 3
    reading.forward([4, 5])
    assert reading.resume([1, 2, 9, 9]) == 2
    reading.forward([9, 9])
    assert model.seen == [1, 2, 9, 9]
    assert reading.resume([1, 2, 9, 9]) == 3  # the last token's logits are wanted
    assert reading.resume([7]) == 0
    reading.forward([7])
    assert model.seen == [7]
    reading.forget()
    assert reading.resume([7, 8]) == 0


def test_a_reading_that_cannot_go_back_starts_again() -> None:
    reading = Reading(counting(saying([END]), cache=SlidingCache))
    reading.forward([1, 2, 3])
    assert reading.resume([1, 2, 3, 4]) == 3
    assert reading.resume([1, 2, 9]) == 0


def test_a_reading_that_failed_is_forgotten() -> None:
    def failing(middle: list[int]) -> torch.Tensor:
        raise MemoryError

    reading = Reading(counting(failing))
    with pytest.raises(MemoryError):
        reading.forward([1, 2])
    assert reading.resume([1, 2, 3]) == 0


def test_readings_of_several_beginnings_are_kept() -> None:
    readings = Readings(counting(saying([END])), most=2)
    first, second = [1, 2, 3, 4], [5, 6, 7, 8]
    one = readings.nearest(first)
    one.forward(first)
    two = readings.nearest(second)
    assert two is not one
    two.forward(second)
    assert readings.nearest([1, 2, 3, 9]) is one
    assert readings.nearest([5, 6, 7, 9]) is two
    assert readings.nearest([1, 9, 9, 9]) not in (one, two)  # too little in common; the first is given up for it
    assert readings.nearest([5, 6, 7, 9]) is two
    assert readings.nearest(first) is not one


def test_the_next_keystroke_reads_the_new_tokens_alone() -> None:
    model = counting(saying(["a"], [END]))
    readings = Readings(model)
    texts = []
    for left in ("(some text", "(some text x", "(some text xy", "(some tex"):
        model.passes.clear()
        session = BracketSession(left, ")")
        completion = complete_session(model, session, Split(left, ")"), readings=readings)
        fresh = complete_session(counting(saying(["a"], [END])), BracketSession(left, ")"), Split(left, ")"))
        assert (completion.text, completion.stop_reason) == (fresh.text, fresh.stop_reason)
        texts.append((sum(model.passes), completion.statistics.reused_tokens))
    first, *others = texts
    assert first[1] == 0
    assert all(read < first[0] / 2 and reused > 0 for read, reused in others)


def test_several_readings_outlive_a_look_elsewhere() -> None:
    readings = Readings(counting(saying([END])), most=2)

    def read(tokens: list[int]) -> int:
        reading = readings.nearest(tokens)
        kept = reading.resume(tokens)
        reading.forward(tokens[kept:])
        return kept

    assert read([1, 2, 3, 4]) == 0
    assert read([9, 8, 7, 6]) == 0
    assert read([1, 2, 3, 4, 5]) == 4
    assert read([9, 8, 7, 5]) == 3
    assert read([5, 5, 5, 5]) == 0  # takes the place of the first one
    assert read([9, 8, 7, 5]) == 3
    assert read([1, 2, 3, 4]) == 0


def test_a_single_line_ends_where_the_model_begins_another() -> None:
    completion = run(saying(["a"], ["\n"]), single_line=True)
    assert (completion.text, completion.stop_reason) == ("a", StopReason.END_TOKEN)
    assert run(saying(["a"], ["\n"], ["b"], [END])).text == "a\nb"


class OneLine(BracketSession):
    """Its matchers refuse line breaks where a single line is asked for."""

    def matcher(self, vocabulary: ByteVocabulary, shape: Any = None, *, healing: bytes = b"") -> ByteMatcher:
        matcher = super().matcher(vocabulary)
        if shape is not None:
            fits = matcher.fits
            matcher.fits = lambda token_id: token_id != ord("\n") and fits(token_id)  # type: ignore[method-assign]
        return matcher


def test_a_single_line_goes_on_where_the_text_is_not_complete() -> None:
    script = saying(["("], ["\n", ")"], ["\n", "x"], [END])
    completion = complete(scripted(script), Brackets(OneLine), Split("(", ")"), DecodeOptions(single_line=True))
    assert completion.text == "()"


def branching(first: str, second: str) -> Script:
    """Says the first word, and the second if something makes it begin with that."""

    def script(middle: list[int]) -> torch.Tensor:
        words = [word for word in (first, second) if list(word.encode()[: len(middle)]) == middle]
        rest = [word[len(middle)] for word in words if len(word) > len(middle)]
        logits = torch.full((SIZE,), -100.0)
        logits[END] = 1.0
        for place, character in enumerate(dict.fromkeys(rest)):
            logits[ord(character)] = 10.0 - place
        return logits

    return script


def others(script: Script, count: int, left: str = "(", right: str = ")", **options: Any) -> list[Completion]:
    model = counting(script)
    session = BracketSession(left, right)
    return list(alternatives(model, session, Split(left, right), count, DecodeOptions(**options)))


def test_alternatives_begin_with_the_completion_itself() -> None:
    for seed in range(20):
        found = others(noise(seed), 4, max_new_tokens=12)
        alone = run(noise(seed), max_new_tokens=12)
        assert found[0].text == alone.text
        assert len(found) <= 4
        texts = [completion.text for completion in found[1:]]
        assert None not in texts
        assert "" not in texts
        assert len({completion.text for completion in found}) == len(found)
        for completion in found:
            assert completion.text is None or stack_of("(" + completion.text + ")") == ""


def test_an_alternative_leaves_where_the_model_nearly_chose_otherwise() -> None:
    found = others(branching("call", "carry"), 2)
    assert [completion.text for completion in found] == ["call", "carry"]


def test_one_completion_is_all_if_one_is_wanted() -> None:
    assert [completion.text for completion in others(branching("call", "carry"), 1)] == ["call"]


def test_alternatives_share_one_deadline() -> None:
    model = scripted(saying(["x"]), forward_seconds=0.01)
    started = time.perf_counter()
    options = DecodeOptions(deadline_ms=100)
    found = list(alternatives(model, BracketSession("(", ")"), Split("(", ")"), 5, options))
    assert time.perf_counter() - started < 5
    assert len(found) == 1
    assert found[0].stop_reason is StopReason.DEADLINE


def test_a_cancelled_search_gives_one_completion_without_a_text() -> None:
    cancelled = threading.Event()
    cancelled.set()
    model = counting(saying(["x"]))
    (found,) = alternatives(model, BracketSession("(", ")"), Split("(", ")"), 3, DecodeOptions(), cancelled)
    assert (found.text, found.stop_reason) == (None, StopReason.CANCELLED)
    assert model.passes == []


def test_candidates_are_the_models_likeliest_tokens_and_say_what_is_allowed() -> None:
    model = counting(saying([")", "x", END, "]"]))
    found = candidates(model, BracketSession("", ""), Split("", ""), 4, DecodeOptions())
    assert [(one.text, one.allowed) for one in found] == [(")", False), ("x", True), ("", True), ("]", False)]
    assert [one.probability for one in found] == sorted((one.probability for one in found), reverse=True)
