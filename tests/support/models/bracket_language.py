"""A language of brackets, and models that are scripted for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fim_server.models.backend import Logits
from fim_server.models.model import FimModel
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.prompt import BoundFormat
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.tokens.formats import Slot

PAIRS = {")": "(", "]": "["}


def stack_of(text: str) -> str | None:
    """The open brackets, or None after a mismatch."""
    stack = ""
    for character in text:
        if character in "([":
            stack += character
        elif character in PAIRS:
            if stack[-1:] != PAIRS[character]:
                return None
            stack = stack[:-1]
    return stack


class ByteMatcher:
    """Exact over bytes: a middle is viable while it has no mismatch, complete when the whole text is balanced."""

    def __init__(self, session: BracketSession, vocabulary: ByteVocabulary) -> None:
        self.session = session
        self.vocabulary = vocabulary
        self.middle = b""
        self.masks = 0
        self.checks = 0
        self.busy = threading.Lock()

    def fits(self, token_id: int) -> bool:
        if token_id in self.vocabulary.end_token_ids:
            return self.is_complete()
        data = self.vocabulary.token_bytes(token_id)
        return bool(data) and self.session.viable(self.middle + data)

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        with self.alone():
            self.masks += 1
            time.sleep(self.session.mask_seconds)
            words.fill(0)
            for token_id in range(self.vocabulary.size):
                if self.fits(token_id):
                    words[token_id // 32] |= np.uint32(1 << token_id % 32)

    def allows(self, token_id: int) -> bool:
        with self.alone():
            self.checks += 1
            return self.fits(token_id)

    def commit(self, token_id: int) -> None:
        with self.alone():
            if not self.fits(token_id):
                raise ValueError(f"token {token_id} is not allowed")
            self.middle += self.vocabulary.token_bytes(token_id)

    def is_complete(self) -> bool:
        return self.session.complete(self.middle)

    def alone(self) -> threading.Lock:
        assert not self.busy.locked(), "two threads in one matcher"
        return self.busy


@dataclass
class BracketSession:
    left: str
    right: str
    guarantee: str = "exact"
    diagnostics: Sequence[str] = ()
    mask_seconds: float = 0.0
    matchers: list[ByteMatcher] = field(default_factory=list)

    def viable(self, middle: bytes) -> bool:
        try:
            text = middle.decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return False
            text = middle[: error.start].decode()
        return stack_of(self.left + text) is not None

    def complete(self, middle: bytes) -> bool:
        try:
            return stack_of(self.left + middle.decode() + self.right) == ""
        except UnicodeDecodeError:
            return False

    def matcher(self, vocabulary: ByteVocabulary, shape: Any = None, *, healing: bytes = b"") -> ByteMatcher:
        self.matchers.append(ByteMatcher(self, vocabulary))
        return self.matchers[-1]


@dataclass
class Brackets:
    """A language whose sessions can be looked into afterwards."""

    make: Callable[..., BracketSession] = BracketSession
    settings: dict[str, Any] = field(default_factory=dict)
    opened: list[BracketSession] = field(default_factory=list)

    def open(self, left: str, right: str) -> BracketSession:
        self.opened.append(self.make(left, right, **self.settings))
        return self.opened[-1]

    @property
    def matcher(self) -> ByteMatcher:
        return self.opened[-1].matchers[-1]


END, END2, CONTROL = 256, 257, 258

WORDS = {259: b"((", 260: b"f(x)", 261: b"]]", 262: " \U0001f600".encode()[:3]}

SIZE = 300


class ByteVocabulary:
    size = SIZE
    end_token_ids = (END, END2)

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else WORDS.get(token_id, b"")

    def unsettled(self, text: str) -> str:
        """A byte is a token whatever follows."""
        return ""

    def token_at(self, text: bytes) -> int:
        """The token that a text begins with."""
        return next((token for token, word in WORDS.items() if text.startswith(word)), text[0])


class ByteTokenizer:
    """Encodes to bytes; enough for a prompt."""

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
        return list(text.encode())


Script = Callable[[list[int]], torch.Tensor]


@dataclass(frozen=True)
class ScriptedModel(FimModel):
    """Logits [SIZE] as a function of the tokens of the middle so far."""

    script: Script = field(kw_only=True)
    forward_seconds: float = 0.0
    seen: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        return SIZE

    def new_cache(self, room: int | None = None) -> list[int]:
        return []

    def forward(self, token_ids: Sequence[int], cache: list[int]) -> Logits:
        cache.extend(token_ids)
        self.seen[:] = cache
        time.sleep(self.forward_seconds)
        logits = self.script(after_prompt(cache))
        return logits.numpy().copy() if isinstance(self.backend, NumpyBackend) else logits


def after_prompt(tokens: list[int]) -> list[int]:
    """The tokens of the middle; the prompt ends with the last control token."""
    return tokens[len(tokens) - tokens[::-1].index(CONTROL) :] if CONTROL in tokens else []


class NumpyBackend(TorchBackend):
    """The scripts' logits as numpy arrays, with the arithmetic that onnxruntime's have."""

    arithmetic: Any = NumpyArithmetic()

    def __init__(self) -> None:
        self.network, self.place, self.window = None, torch.device("cpu"), 4096


NO_NETWORK = TorchBackend(None, torch.device("cpu"), window=4096)
"""Backend that lends its arithmetic; the script gives the logits."""

chosen = {"backend": NO_NETWORK}
"""The backend of the scripted models."""


@pytest.fixture(autouse=True, params=["torch", "numpy"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here decodes with tensors, and again with arrays."""
    monkeypatch.setitem(chosen, "backend", NO_NETWORK if request.param == "torch" else NumpyBackend())


def scripted(script: Script, **settings: Any) -> ScriptedModel:
    tokenizer: Any = ByteTokenizer()
    pieces = (Slot.SUFFIX, CONTROL, Slot.PREFIX, CONTROL)
    bound = BoundFormat("test", tokenizer, pieces, (END, END2), frozenset({CONTROL}))
    vocabulary: Any = ByteVocabulary()
    return ScriptedModel("test", chosen["backend"], bound, vocabulary, script=script, **settings)


def ranking(*tokens: int | str) -> torch.Tensor:
    """Logits that prefer tokens in this order, with a large step between any two."""
    logits = torch.full((SIZE,), -100.0)
    for place, token in enumerate(tokens):
        logits[ord(token) if isinstance(token, str) else token] = 50.0 - 10 * place
    return logits


def saying(*steps: Sequence[int | str]) -> Script:
    """Step n prefers the n-th list of tokens; the last goes on for ever."""
    return lambda middle: ranking(*steps[min(len(middle), len(steps) - 1)])


def noise(seed: int) -> Script:
    """Random logits, equal for equal middles."""

    def script(middle: list[int]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((seed, *middle)) & 0xFFFFFFFF)
        return 3 * torch.randn(SIZE, generator=generator)

    return script
