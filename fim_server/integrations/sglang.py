"""Masks in SGLang: a grammar backend whose grammars are holes.

`register` is the entry point of the group `sglang.srt.plugins`; `--grammar-backend fim-server` chooses the backend, and
a request names its hole as its `ebnf`. In a version that is not known nothing is registered, so that SGLang refuses
the choice when it starts, and its other backends refuse such a grammar.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import sglang
import torch
from sglang.srt.constrained import base_grammar_backend
from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject
from sglang.srt.server_args import add_grammar_backend_choices

from fim_server.errors import FimServerError
from fim_server.integrations.holes import Hole, hole_of, is_hole
from fim_server.integrations.middles import Middle, begin
from fim_server.integrations.versions import check_form, check_version
from fim_server.language import Session
from fim_server.models.masking import word_count
from fim_server.models.torch_backend import apply_mask_
from fim_server.tokens.vocabulary import Vocabulary

NAME = "fim-server"

KNOWN_VERSIONS = ("0.5",)

FORM = (
    (BaseGrammarObject, "accept_token", ("self", "token")),
    (BaseGrammarObject, "rollback", ("self", "k")),
    (BaseGrammarObject, "is_terminated", ("self",)),
    (BaseGrammarObject, "allocate_vocab_mask", ("self", "vocab_size", "batch_size", "device")),
    (BaseGrammarObject, "fill_vocab_mask", ("self", "vocab_mask", "idx")),
    (BaseGrammarObject, "fill_vocab_mask_batched", ("entries", "vocab_mask")),
    (BaseGrammarObject, "move_vocab_mask", ("vocab_mask", "device")),
    (BaseGrammarObject, "apply_vocab_mask", ("logits", "vocab_mask")),
    (BaseGrammarObject, "copy", ("self",)),
    (BaseGrammarBackend, "dispatch_ebnf", ("self", "key_string")),
    (BaseGrammarBackend, "set_cache", ("self", "key", "value")),
)
"""What SGLang calls of a backend and its objects, with their parameters."""


def register() -> None:
    """Offer the backend to SGLang. Raises VersionError in a version that the plug-in does not know."""
    check_version("SGLang", sglang.__version__, KNOWN_VERSIONS)
    check_form("SGLang", sglang.__version__, FORM)
    if NAME not in base_grammar_backend.GRAMMAR_BACKEND_REGISTRY:
        add_grammar_backend_choices([NAME])
        base_grammar_backend.register_grammar_backend(NAME, make_backend)


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> FimGrammarBackend:
    """As SGLang makes a registered backend. Raises VocabularyError for a tokenizer whose tokens' bytes are unknown."""
    return FimGrammarBackend(tokenizer, vocab_size, eos_token_ids)


class FimGrammarObject(BaseGrammarObject):  # type: ignore[misc]  # SGLang need not be installed
    """The middle of one request."""

    def __init__(self, session: Session, hole: Hole, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._session, self._hole, self._vocabulary = session, hole, vocabulary
        self._middle: Middle = begin(session, hole, vocabulary)

    def accept_token(self, token: int) -> None:
        """Append a token. Raises ValueError, at which SGLang ends the request, where it is refused."""
        if self._middle.ended:
            return
        if not self._middle.take(token):
            raise ValueError(f"fim-server: token {token} is not allowed")

    def rollback(self, k: int) -> None:
        """Take tokens back."""
        self._middle.rollback(k)

    def is_terminated(self) -> bool:
        """Whether the middle has its end token."""
        return self._middle.ended

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows of words that allow everything, on the CPU, whatever the device."""
        return torch.full((batch_size, word_count(vocab_size)), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Fill one row."""
        words = vocab_mask[idx].numpy().view(np.uint32)
        known = word_count(self._vocabulary.size)
        self._middle.fill(words[:known])
        words[known:] = 0

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Copy masks to a device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Mask logits [B, V] in place."""
        apply_mask_(logits, vocab_mask)

    def copy(self) -> FimGrammarObject:
        """One of the same hole at its beginning."""
        return FimGrammarObject(self._session, self._hole, self._vocabulary)

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Nothing: a text's tokens are the model's to choose."""


class FimGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]  # SGLang need not be installed
    """Opens the holes of requests. It has no grammars of other kinds: one backend masks a whole batch."""

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None) -> None:
        super().__init__()
        ends = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids
        self._vocabulary = Vocabulary.from_tokenizer(
            tokenizer, size=vocab_size, end_token_ids=list(ends) if ends else None
        )

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The grammar object of a hole; one that says what is wrong, at which SGLang answers HTTP 400."""
        if not is_hole(key_string):
            return InvalidGrammarObject("this server's grammars are holes: fim-server:{...}")
        try:
            hole = hole_of(key_string)
            return FimGrammarObject(hole.open(), hole, self._vocabulary)
        except (FimServerError, ValueError) as error:
            return InvalidGrammarObject(f"fim-server: {error}")

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep nothing: hardly two requests have the same hole."""
