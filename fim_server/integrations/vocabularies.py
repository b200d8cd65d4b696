"""A tokenizer's vocabularies for requests that name tokens of their own to end at."""

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
    """A tokenizer's vocabularies, by the tokens that end a text; requests may name further ones."""

    def __init__(self, tokenizer: Any, size: int) -> None:
        """``size``: the number of the model's logits."""
        self._tokenizer, self._size = tokenizer, size
        self._known: dict[frozenset[int], Vocabulary] = {}
        self._lock = Lock()

    def ending_with(self, end_token_ids: Collection[int]) -> Vocabulary:
        """The vocabulary with these end tokens. Raises HoleError for none, VocabularyError for an odd tokenizer."""
        if not end_token_ids:
            raise HoleError("the model names no end token")
        key = frozenset(end_token_ids)
        with self._lock:
            if key not in self._known:
                if len(self._known) >= MOST_VOCABULARIES:
                    self._known.clear()
                self._known[key] = Vocabulary.from_tokenizer(self._tokenizer, size=self._size, end_token_ids=key)
            return self._known[key]
