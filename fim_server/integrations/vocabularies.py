"""Vocabularies of a tokenizer, for requests that name end tokens of their own."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from fim_server.errors import HoleError
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection

MOST_VOCABULARIES = 8
"""Sets of end tokens whose vocabularies are kept: each has a token table of some megabytes."""


class Vocabularies:
    """Vocabularies of a tokenizer by their end tokens; requests may name further ones."""

    def __init__(self, tokenizer: Any, size: int) -> None:
        """Take a tokenizer and the number of the model's logits."""
        self._tokenizer, self._size = tokenizer, size
        self._known: dict[frozenset[int], Vocabulary] = {}
        self._lock = Lock()

    def ending_with(self, end_token_ids: Collection[int]) -> Vocabulary:
        """Return the vocabulary with some end tokens. Raises HoleError without any, and VocabularyError."""
        if not end_token_ids:
            raise HoleError("the model names no end token")
        key = frozenset(end_token_ids)
        with self._lock:
            if key not in self._known:
                if len(self._known) >= MOST_VOCABULARIES:
                    self._known.clear()
                self._known[key] = Vocabulary.from_tokenizer(self._tokenizer, size=self._size, end_token_ids=key)
            return self._known[key]
