"""Rows of a batch as sequences of one of llama.cpp's contexts: a pass reads a token of each.

Row ``n`` is sequence ``n``: the library reads sequences together whose numbers follow each other. Each has a buffer of
its own, so that what the others have read costs it nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fim_server.errors import StoppedError
from fim_server.models.gguf.context import ABORTED
from fim_server.models.gguf.library import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.gguf.context import Context


class Sequences:
    """The caches of rows that are read together (:class:`..backend.Store`)."""

    def __init__(self, context: Context, size: int) -> None:
        """``context``: with a sequence for each row; ``size``: V."""
        self._context, self._size = context, size
        self._lengths: list[int] = []

    def read(self, prompt: Sequence[int]) -> NDArray[np.float32]:
        """As :meth:`..backend.Store.read`, in memory of their own. Raises RuntimeError and StoppedError."""
        context, count = self._context, len(prompt)
        if not count or min(prompt) < 0 or max(prompt) >= self._size:
            raise RuntimeError(f"not tokens of {self._size}: {'ids beyond them' if count else 'none'}")
        row = self._new(count)
        last = (count - 1) // context.most * context.most
        for start in range(0, count, context.most):
            part = prompt[start : start + context.most]
            positions = range(start, start + len(part))
            done = context.decode_at(part, positions, [row] * len(part), 1 if start == last else 0)
            if done:
                self._lengths.pop()
                context.keep(0, row)
                self._fail(done)
        return context.logits(self._size).copy()

    def copy(self, row: int) -> None:
        """As :meth:`..backend.Store.copy`. Raises RuntimeError where there is no room for it."""
        self._context.copy(row, self._new(self._lengths[row]))

    def remove(self, row: int) -> None:
        """As :meth:`..backend.Store.remove`."""
        last = len(self._lengths) - 1
        if row != last:
            self._context.copy(last, row)
            self._lengths[row] = self._lengths[last]
        self._context.keep(0, last)
        self._lengths.pop()

    def rewind(self, row: int, n_tokens: int) -> None:
        """As :meth:`..backend.Store.rewind`. Raises RuntimeError where the network cannot."""
        kept = self._lengths[row] - n_tokens
        if not self._context.keep(kept, row):
            raise RuntimeError("the network cannot take tokens back")
        self._lengths[row] = kept

    def forward(self, tokens: Sequence[int]) -> list[NDArray[np.float32]]:
        """As :meth:`..backend.Store.forward`, in memory of their own. Raises RuntimeError and StoppedError."""
        context, rows = self._context, len(self._lengths)
        if len(tokens) != rows:
            raise RuntimeError(f"{len(tokens)} tokens for {rows} rows")
        if max(self._lengths) >= context.room:
            raise RuntimeError(f"a row of {max(self._lengths) + 1} tokens is above its room, {context.room}")
        done = context.decode_at(tokens, self._lengths, range(rows), rows)
        if done:
            for row, length in enumerate(self._lengths):
                context.keep(length, row)
            self._fail(done)
        self._lengths = [length + 1 for length in self._lengths]
        return [context.logits(self._size, rows - row).copy() for row in range(rows)]

    def close(self) -> None:
        """As :meth:`..backend.Store.close`."""
        self._context.clear()
        self._lengths.clear()

    @staticmethod
    def _fail(done: int) -> NoReturn:
        if done == ABORTED:
            raise StoppedError("the model's pass was left")
        raise RuntimeError(f"llama.cpp's pass failed with {done} ({said.reason})")

    def _new(self, length: int) -> int:
        """A row's number, the last one, with so many tokens in it."""
        if len(self._lengths) >= self._context.sequences:
            raise RuntimeError(f"more than {self._context.sequences} rows")
        if length > self._context.room:
            raise RuntimeError(f"a row of {length} tokens is above its room, {self._context.room}")
        self._lengths.append(length)
        return len(self._lengths) - 1
