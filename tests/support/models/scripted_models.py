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
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.tokens.formats import Slot

Script = Callable[[list[int]], torch.Tensor]


class Cache(list[int]):
    """Tokens that a scripted network has read."""

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


class Rows:
    """The rows of a batch (:class:`fim_server.models.backend.Store`): the tokens of each middle."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._rows: list[list[int]] = []

    def read(self, prompt: Sequence[int]) -> torch.Tensor:
        self._rows.append([])
        return self._script([])

    def copy(self, row: int) -> None:
        self._rows.append(list(self._rows[row]))

    def remove(self, row: int) -> None:
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def rewind(self, row: int, n_tokens: int) -> None:
        del self._rows[row][-n_tokens:]

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        return torch.stack([self._script(list(row)) for row in self._rows])

    def close(self) -> None:
        self._rows.clear()


class ScriptedBackend(TorchBackend):
    """Reads batches by a script; single middles are their model's."""

    def __init__(self, script: Script) -> None:
        super().__init__(None, torch.device("cpu"), window=4096)
        self._script = script

    def store(self, rows: int, positions: int) -> Rows:
        return Rows(self._script)


class NoTokenizer:
    """The networks here read no prompt."""

    def encode(self, text: str, **options: bool) -> list[int]:
        return []


def network(vocabulary: Vocabulary, script: Script) -> Network:
    tokenizer: Any = NoTokenizer()
    bound = BoundFormat(
        "test", tokenizer, (Slot.SUFFIX, -1), tuple(vocabulary.end_token_ids), frozenset(), plain=lambda text: []
    )
    backend = ScriptedBackend(script)
    return Network("test", backend, bound, vocabulary, script=script)
