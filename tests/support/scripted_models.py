"""Models whose logits are a function of the middle so far: what decoding is tested with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fim_server import Vocabulary
from fim_server.models.model import FimModel
from fim_server.models.prompt import BoundFormat
from fim_server.models.torch_backend import TorchBackend
from fim_server.tokens.formats import Slot

Script = Callable[[list[int]], torch.Tensor]


class Cache(list[int]):
    """What a scripted network has read."""

    def crop(self, count: int) -> None:
        assert count < 0
        del self[count:]


class Counted(threading.Event):
    """A cancel flag that is set once it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@dataclass(frozen=True)
class Scripted(FimModel):
    """A model whose cache is the tokens that it has read."""

    @property
    def size(self) -> int:
        return self.vocabulary.size

    def new_cache(self, room: int | None = None) -> Cache:
        return Cache()


@dataclass(frozen=True)
class Network(Scripted):
    """Logits as a function of the tokens of the middle so far."""

    script: Script = field(kw_only=True)
    seen: list[list[int]] = field(default_factory=list)

    def forward(self, token_ids: Sequence[int], cache: Cache) -> torch.Tensor:
        cache.extend(token_ids)
        middle = list(cache[cache.index(-1) + 1 :])
        self.seen.append(middle)
        return self.script(middle)


class NoTokenizer:
    """The networks here read no prompt."""

    def encode(self, text: str, **options: bool) -> list[int]:
        return []


def network(vocabulary: Vocabulary, script: Script) -> Network:
    tokenizer: Any = NoTokenizer()
    bound = BoundFormat(
        "test", tokenizer, (Slot.SUFFIX, -1), tuple(vocabulary.end_token_ids), frozenset(), plain=lambda text: []
    )
    backend = TorchBackend(None, torch.device("cpu"), window=4096)
    return Network("test", backend, bound, vocabulary, script=script)
