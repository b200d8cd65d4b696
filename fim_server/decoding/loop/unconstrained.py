"""Matcher of an unconstrained run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.models.masking import WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fim_server.tokens.vocabulary import Vocabulary


class Unconstrained:
    """Matcher that allows every token after the healed text."""

    def __init__(self, vocabulary: Vocabulary, healing: bytes) -> None:
        self._vocabulary = vocabulary
        self._rest = healing

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        if not self._rest:
            words.fill(0xFFFFFFFF)
            return
        words.fill(0)
        tokens = self._vocabulary.towards(self._rest, self._vocabulary.size)
        np.bitwise_or.at(words, tokens // WORD_BITS, np.uint32(1) << (tokens % WORD_BITS).astype(np.uint32))

    def allows(self, token_id: int) -> bool:
        if not self._rest:
            return True
        text = self._vocabulary.token_bytes(token_id)
        return bool(text) and (self._rest.startswith(text) or text.startswith(self._rest))

    def commit(self, token_id: int) -> None:
        if self._rest:
            self._rest = self._rest[len(self._vocabulary.token_bytes(token_id)) :]

    def is_complete(self) -> bool:
        return not self._rest
