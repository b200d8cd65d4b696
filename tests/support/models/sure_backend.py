"""A network that is sure of one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fim_server.models.masking import word_count
from fim_server.models.numpy_logits import NumpyArithmetic

if TYPE_CHECKING:
    from fim_server.models.model import FimModel

SURE = 0.995
"""Probability of the next token of the text; all others share the rest."""


class Cache(list[int]):
    """Tokens that the network has read."""

    def crop(self, length: int) -> None:
        """Forget the last ``-length`` tokens."""
        del self[length:]


class SureBackend:
    """Network that is sure of one text, and of an end token behind it and behind any other text."""

    name, device, window, threads = "onnx", "cpu", 4096, 1

    def __init__(self, model: FimModel) -> None:
        self.arithmetic = NumpyArithmetic()
        self.size, self._vocabulary = model.size, model.vocabulary
        self._left, self._prompt, self._text = b"", b"", b""
        self._next: dict[int, int] = {}

    def aim(self, left: bytes, text: bytes) -> None:
        """Expect ``text`` behind a prompt whose last text ``left`` ends with."""
        self._left, self._prompt, self._text, at = left, b"", text, 0
        self._next = {}
        for token in self._vocabulary.encode(text):
            self._next[at] = token
            at += len(self._vocabulary.token_bytes(token))

    def new_cache(self, room: int | None = None) -> Cache:
        """See :meth:`.backend.Backend.new_cache`."""
        return Cache()

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        """See :meth:`.backend.Backend.mask_words`."""
        return np.zeros(word_count(size), np.uint32)

    def forward(self, token_ids: Sequence[int], cache: Cache) -> NDArray[np.float32]:
        """See :meth:`.backend.Backend.forward`."""
        cache.extend(token_ids)
        row = np.full(self.size, np.log((1 - SURE) / self.size), np.float32)
        row[self._follows(self._written(cache))] = np.log(SURE)
        return row

    def _written(self, cache: Sequence[int]) -> bytes:
        """Return the text behind the prompt, whose text after its last control token the left context ends with."""
        pieces = []
        for token in reversed(cache):
            piece = self._vocabulary.token_bytes(token)
            if not piece:
                break
            pieces.append(piece)
        text = b"".join(reversed(pieces))
        if self._left.endswith(text):
            self._prompt = text
        return text.removeprefix(self._prompt)

    def _follows(self, written: bytes) -> int:
        """Return the token that continues a beginning of the text."""
        vocabulary, rest = self._vocabulary, self._text.removeprefix(written)
        if not self._text.startswith(written) or not rest:
            return min(vocabulary.end_token_ids)
        if len(written) in self._next:
            return self._next[len(written)]
        towards = (token for token in vocabulary.tokens_towards(rest) if token < self.size)
        return max((token for token in towards if rest.startswith(vocabulary.token_bytes(token))), key=self._length)

    def _length(self, token: int) -> int:
        return len(self._vocabulary.token_bytes(token))
