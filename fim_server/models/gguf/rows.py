"""Rows of a batch as sequences of one of llama.cpp's contexts: a pass reads a token of each.

Row ``n`` is sequence ``n``, since the library reads sequences with consecutive numbers together. Each has a buffer of
its own, so that other rows' tokens cost it nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fim_server.errors import StoppedError
from fim_server.models.backend import require_tokens
from fim_server.models.gguf.context import ABORTED
from fim_server.models.gguf.library import first_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.gguf.context import Context


class Sequences:
    """Caches of rows that are read together (:class:`..backend.Store`)."""

    def __init__(self, context: Context, size: int) -> None:
        """Make a store. ``context``: has a sequence for each row; ``size``: V."""
        self._context, self._size = context, size
        self._rows: list[list[int]] = []
        """Tokens of each row."""

    def read(self, prompt: Sequence[int]) -> NDArray[np.float32]:
        """Append a row; its logits are in memory of their own. Raises RuntimeError and StoppedError."""
        require_tokens(prompt, self._size)
        row = self._new(prompt)
        try:
            self._read(row)
        except BaseException:
            self._rows.pop()
            raise
        return self._context.logits(self._size).copy()

    def copy(self, row: int) -> None:
        """Append a copy of a row. Raises RuntimeError where there is no room for it."""
        self._context.copy(row, self._new(self._rows[row]))

    def remove(self, row: int) -> None:
        last = len(self._rows) - 1
        if row != last:
            self._context.copy(last, row)
            self._rows[row] = self._rows[last]
        self._context.keep(0, last)
        self._rows.pop()

    def rewind(self, row: int, n_tokens: int) -> None:
        """Forget the last tokens of a row. A recurrent network cannot, and reads the rest again.

        Raises RuntimeError and StoppedError.
        """
        del self._rows[row][-n_tokens:]
        if not self._context.keep(len(self._rows[row]), row):
            self._context.keep(0, row)
            self._read(row)

    def forward(self, tokens: Sequence[int]) -> list[NDArray[np.float32]]:
        """Read one token in each row; the logits are in memory of their own. Raises RuntimeError and StoppedError."""
        context, rows, lengths = self._context, len(self._rows), [len(row) for row in self._rows]
        if len(tokens) != rows:
            raise RuntimeError(f"{len(tokens)} tokens for {rows} rows")
        if max(lengths) >= context.room:
            raise RuntimeError(f"a row of {max(lengths) + 1} tokens is above its room, {context.room}")
        done = context.decode_at(tokens, lengths, range(rows), rows)
        if done:
            are_clean = [context.keep(length, row) for row, length in enumerate(lengths)]
            self._fail(done, all(are_clean))
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        return [context.logits(self._size, rows - row).copy() for row in range(rows)]

    def close(self) -> None:
        self._context.clear()
        self._rows.clear()

    def _read(self, row: int) -> None:
        """Have an empty sequence read its row. After RuntimeError or StoppedError it is empty."""
        context, tokens = self._context, self._rows[row]
        last = (len(tokens) - 1) // context.most * context.most
        for start in range(0, len(tokens), context.most):
            part = tokens[start : start + context.most]
            positions = range(start, start + len(part))
            done = context.decode_at(part, positions, [row] * len(part), 1 if start == last else 0)
            if done:
                self._fail(done, context.keep(0, row))

    @staticmethod
    def _fail(done: int, is_clean: bool) -> NoReturn:
        if done == ABORTED and is_clean:
            raise StoppedError("the model's pass was left")
        raise RuntimeError(f"llama.cpp's pass failed with {done} ({first_error.reason})")

    def _new(self, tokens: Sequence[int]) -> int:
        """Append a row of tokens, and return its number."""
        if len(self._rows) >= self._context.sequences:
            raise RuntimeError(f"more than {self._context.sequences} rows")
        if len(tokens) > self._context.room:
            raise RuntimeError(f"a row of {len(tokens)} tokens is above its room, {self._context.room}")
        self._rows.append(list(tokens))
        return len(self._rows) - 1
