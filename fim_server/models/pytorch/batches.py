"""Caches of rows that torch reads together: one buffer a layer, or a cache a row where the network needs it.

Prompts are read one after the other, each into a cache of its own, which then becomes a row.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Protocol

import torch

from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.pytorch.rows import StaticRows

if TYPE_CHECKING:
    from collections.abc import Sequence


class Reader(Protocol):
    """Part of :class:`.backend.TorchBackend` that rows need."""

    network: Any
    place: torch.device
    kept_rows: StaticRows | None

    def new_cache(self, room: int | None = None, /) -> Any: ...

    def forward(self, token_ids: Sequence[int], cache: Any, /) -> torch.Tensor: ...


class TorchRows:
    """Store (:class:`.backend.Store`) of rows in shared buffers if the first prompt's cache allows it, else apart."""

    def __init__(self, backend: Reader, rows: int, positions: int) -> None:
        self._backend, self._most, self._positions = backend, rows, positions
        self._rows: StaticRows | Apart | None = None

    @property
    def rows(self) -> StaticRows | Apart:
        assert self._rows is not None, "something was read"
        return self._rows

    def read(self, prompt: Sequence[int]) -> torch.Tensor:
        cache, backend = self._backend.new_cache(), self._backend
        logits = read(backend, cache, prompt)
        if self._rows is None:
            fits = StaticRows.can_hold(backend.network, cache, self._positions)
            self._rows = self._buffers() if fits else Apart(backend)
        if isinstance(self._rows, StaticRows):
            self._rows.add(cache, len(prompt))
        else:
            self._rows.add(cache, prompt)
        return logits

    def _buffers(self) -> StaticRows:
        """Return the buffers of an earlier batch if they are large enough, or new ones."""
        backend = self._backend
        kept, backend.kept_rows = backend.kept_rows, None
        if kept is None or kept.most_rows < self._most or kept.positions < self._positions:
            return StaticRows(backend.network, backend.place, self._most, self._positions)
        kept.clear()
        return kept

    def copy(self, row: int) -> None:
        self.rows.copy(row)

    def remove(self, row: int) -> None:
        self.rows.remove(row)

    def rewind(self, row: int, n_tokens: int) -> None:
        self.rows.rewind(row, n_tokens)

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        return self.rows.forward(tokens)

    def close(self) -> None:
        """Leave captured steps to the next batch: capturing takes longer than a few steps."""
        if isinstance(self._rows, StaticRows) and self._rows.captured:
            self._backend.kept_rows = self._rows


def read(backend: Reader, cache: Any, tokens: Sequence[int]) -> torch.Tensor:
    """Append tokens to a cache in chunks; return the logits [V] after the last.

    Raises ValueError where there are none.
    """
    if not tokens:
        raise ValueError("no tokens to read")
    for begin in range(0, len(tokens), PREFILL_CHUNK):
        logits = backend.forward(tokens[begin : begin + PREFILL_CHUNK], cache)
    return logits


class Apart:
    """Cache for each row, read one after the other: for caches that are more than keys and values by position."""

    def __init__(self, backend: Reader) -> None:
        self._backend = backend
        self._rows: list[tuple[Any, list[int]]] = []
        """Caches, and the tokens in them."""

    def add(self, cache: Any, prompt: Sequence[int]) -> None:
        """Append a row with a copy of a prompt's cache."""
        self._rows.append((copy.deepcopy(cache), list(prompt)))

    def copy(self, row: int) -> None:
        self.add(*self._rows[row])

    def remove(self, row: int) -> None:
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def rewind(self, row: int, n_tokens: int) -> None:
        """Read all but the last tokens again, since such caches cannot be cropped."""
        cache, kept = self._backend.new_cache(), self._rows[row][1][:-n_tokens]
        read(self._backend, cache, kept)
        self._rows[row] = cache, kept

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        logits: list[torch.Tensor] = []
        for token, (cache, read) in zip(tokens, self._rows, strict=True):
            logits.append(self._backend.forward([token], cache))
            read.append(token)
        return torch.stack(logits)
