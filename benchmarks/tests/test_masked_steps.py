"""Steps of many rows whose masks are computed while the model runs, against a plain loop of one row at a time."""

from __future__ import annotations

import itertools
import os
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig

from benchmarks.gpu.masked_steps import MaskedSteps
from fim_server import Language
from fim_server.language.shapes import SINGLE_LINE
from fim_server.models.masking import contains, word_count
from fim_server.models.pytorch.masks import apply_mask_, mask_buffer
from fim_server.models.pytorch.rows import StaticRows
from fim_server.tokens.masks import fill_masks
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from fim_server.language import Matcher

LONG = bool(os.environ.get("FIM_SERVER_LONG"))
ALL = np.uint32(0xFFFFFFFF)
CPU = torch.device("cpu")
BUDGET = 24
END = 0
WORDS = [
    b"def",
    b"return",
    b"if",
    b"else",
    b"for",
    b"in",
    b"None",
    b"True",
    b"print",
    b"not",
    b"[]",
    b"{}",
    b"()",
    b"    ",
]
TOKENS = [b"", *(bytes([byte]) for byte in range(9, 127)), *WORDS]
SIZE = len(TOKENS)
STOPS = frozenset({END, *(TOKENS.index(text) for text in (b"r", b"7", b"(", b"~"))})
"""Tokens that end a row: the random network seldom says the end itself."""

HOLES = [
    ("python", "def f(a, b):\n    if a > b:\n        return ", "\n    return b\n", None),
    ("json", '{"a": [1, ', '], "b": null}\n', None),
    ("python", "values = [", "]\nprint(values)\n", None),
    (None, "any", "thing", None),
    ("python", "x = ", "\ny = 2\n", SINGLE_LINE),
    ("json", "[", "]", None),
    ("python", "print(f'{", "}')\n", None),
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary([None, *TOKENS[1:]], [END])


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=SIZE + 5,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.5,  # or all that it says would be one token
    )
    return AutoModelForCausalLM.from_config(config).eval()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class RowRequest:
    """A prompt in tokens, the matcher of its middle (None: unconstrained), and the middle's most tokens."""

    prompt: Sequence[int]
    matcher: Matcher | None
    budget: int


@dataclass(eq=False)
class _Row:
    """A request that has a row."""

    number: int
    request: RowRequest
    tokens: list[int] = field(default_factory=list)
    is_over: bool = False

    def take(self, token: int, stop_ids: Collection[int]) -> None:
        """Append a token, or end the row."""
        if self.is_over:
            return
        if token in stop_ids:
            self.is_over = True
            return
        if self.request.matcher is not None:
            try:
                self.request.matcher.commit(token)
            except ValueError:  # nothing at all was allowed
                self.is_over = True
                return
        self.tokens.append(token)
        self.is_over = len(self.tokens) >= self.request.budget


def decode_rows(
    rows: StaticRows,
    requests: Iterable[RowRequest],
    stop_ids: Collection[int],
    size: int,
    *,
    overlapped: bool = True,
) -> list[list[int]]:
    """Decode the middles in as many rows as there are, and return their tokens in the order of the requests."""
    waiting = deque(enumerate(requests))
    done: dict[int, _Row] = {}
    running: list[_Row] = []
    before: list[_Row] = []
    """The rows of the last step, in its order."""

    def work(chosen: NDArray[np.int64] | None, words: NDArray[np.uint32]) -> bool:
        for row, token in zip(before, () if chosen is None else chosen.tolist(), strict=False):
            row.take(token, stop_ids)
        return fill([row.request.matcher for row in running], words)

    with torch.inference_mode(), MaskedSteps(rows, size, overlapped=overlapped) as steps:
        while True:
            for place in reversed(range(len(running))):
                if running[place].is_over:
                    rows.remove(place)
                    last = running.pop()
                    if place < len(running):
                        running[place] = last
                        rows.tokens[place] = rows.tokens[len(running)]
            while waiting and len(running) < rows.most_rows:
                number, request = waiting.popleft()
                row = done[number] = _Row(number, request)
                if _first(rows, row, stop_ids, size):
                    running.append(row)
            if not running:
                break
            steps.step(work)
            before = list(running)
    return [done[number].tokens for number in sorted(done)]


def _first(rows: StaticRows, row: _Row, stop_ids: Collection[int], size: int) -> bool:
    """Read a prompt into a new row and choose its first token; False, and no row, if that ends the middle."""
    place = rows.new()
    logits = rows.read(place, row.request.prompt)
    if row.request.matcher is not None:
        packed, words = mask_buffer(size)
        row.request.matcher.fill_mask(words)
        apply_mask_(logits, packed)
    token = int(logits.argmax())
    row.take(token, stop_ids)
    if row.is_over:
        rows.remove(place)
        return False
    rows.tokens[place] = token
    return True


def fill(matchers: Sequence[Matcher | None], words: NDArray[np.uint32]) -> bool:
    """Fill the rows' masks [rows, W], all ones where a row has no matcher; False if no row has a matcher."""
    constrained = [number for number, matcher in enumerate(matchers) if matcher is not None]
    if not constrained:
        return False
    found = [matcher for matcher in matchers if matcher is not None]
    if len(found) == len(matchers):
        fill_masks(found, words)
    else:
        own = np.zeros((len(found), words.shape[1]), dtype=np.uint32)
        fill_masks(found, own)
        words[:] = ALL
        words[constrained] = own
    return True


def matcher_of(vocabulary: Vocabulary, number: int) -> Matcher | None:
    language, left, right, shape = HOLES[number]
    if language is None:
        return None
    session = Language.load(language).open(left, right)
    return session.matcher(vocabulary) if shape is None else session.matcher(vocabulary, shape=shape)


def requests(vocabulary: Vocabulary, budget: int) -> list[RowRequest]:
    draw = random.Random(5)
    return [
        RowRequest(
            [draw.randrange(1, SIZE) for _ in range(draw.randrange(3, 40))], matcher_of(vocabulary, number), budget
        )
        for number in range(len(HOLES))
    ]


def plainly(network: Any, request: RowRequest) -> list[int]:
    """Decode with transformers' own cache, one row, and a plain mask before each choice."""
    cache, given = DynamicCache(config=network.config), list(request.prompt)
    tokens: list[int] = []
    words = np.zeros(word_count(SIZE), dtype=np.uint32)
    with torch.inference_mode():
        while len(tokens) < request.budget:
            logits = network(torch.tensor([given]), past_key_values=cache).logits[0, -1].numpy().copy()
            if request.matcher is not None:
                request.matcher.fill_mask_plain(words)
                for token in range(len(logits)):
                    if not contains(words, token):
                        logits[token] = -np.inf
            token = int(logits.argmax())
            if token in STOPS:
                break
            if request.matcher is not None:
                request.matcher.commit(token)
            tokens.append(token)
            given = [token]
    return tokens


@pytest.fixture(scope="module")
def alone(vocabulary: Vocabulary, network: Any) -> list[list[int]]:
    """Tokens of each row decoded alone."""
    return [plainly(network, request) for request in requests(vocabulary, BUDGET)]


@pytest.mark.parametrize(
    ("most_rows", "overlapped", "span_step"),
    itertools.product([1, 3, 16], [True, False], [1, 32])
    if LONG
    else [(1, True, 1), (3, True, 32), (3, False, 1), (16, True, 1), (16, False, 32)],
)
def test_rows_of_different_languages_decode_as_each_does_alone(
    vocabulary: Vocabulary, network: Any, alone: list[list[int]], most_rows: int, overlapped: bool, span_step: int
) -> None:
    assert len({len(tokens) for tokens in alone}) > 1, "rows end at different steps"
    rows = StaticRows(network, CPU, most_rows, 64, span_step=span_step)
    found = decode_rows(rows, requests(vocabulary, BUDGET), STOPS, SIZE, overlapped=overlapped)
    assert found == alone
    assert rows.lengths == []
    for (language, left, right, _), tokens in zip(HOLES, found, strict=True):
        if language is not None:
            text = b"".join(TOKENS[token] for token in tokens).decode()
            assert Language.load(language).open(left, right).check(text).viable


def test_rows_can_be_reused(vocabulary: Vocabulary, network: Any) -> None:
    rows = StaticRows(network, CPU, 4, 64)
    first, second = (decode_rows(rows, requests(vocabulary, 12), STOPS, SIZE) for _ in range(2))
    assert first == second


def test_work_gets_the_tokens_of_the_step_before(network: Any) -> None:
    rows = StaticRows(network, CPU, 2, 32)
    told: list[list[int] | None] = []
    allowed = iter([7, 9, 11])

    def work(chosen: NDArray[np.int64] | None, words: NDArray[np.uint32]) -> bool:
        told.append(None if chosen is None else chosen.tolist())
        token = next(allowed)
        words[:] = 0
        words[:, token // 32] = 1 << token % 32
        return True

    with torch.inference_mode(), MaskedSteps(rows, SIZE) as steps:
        for row in range(2):
            rows.new()
            rows.read(row, [1, 2, 3])
        for _ in range(3):
            steps.step(work)
        last = steps.chosen()
        assert last is not None
        assert last.tolist() == [11, 11]
    assert told == [None, [7, 7], [9, 9]]


def test_an_error_of_the_work_is_raised(network: Any) -> None:
    def work(chosen: Any, words: Any) -> bool:
        raise KeyError("a matcher's")

    for overlapped in (True, False):
        rows = StaticRows(network, CPU, 1, 32)
        with torch.inference_mode(), MaskedSteps(rows, SIZE, overlapped=overlapped) as steps:
            rows.new()
            rows.read(0, [1])
            with pytest.raises(KeyError):
                steps.step(work)
