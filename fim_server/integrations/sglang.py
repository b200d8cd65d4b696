"""Masks in SGLang: a grammar backend whose grammars are holes.

`register` is the entry point of the group `sglang.srt.plugins`; `--grammar-backend fim-server` chooses the backend, and
a request names its hole as its `ebnf`. SGLang gives a backend nothing else of a request. So a hook of SGLang's own
registry wraps the function that asks for a grammar, and passes the request's end tokens on.

In an unknown version nothing is registered: SGLang then refuses the choice at its start, and its other backends refuse
such a grammar.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import sglang
import torch
from sglang.srt.constrained import base_grammar_backend
from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.server_args import add_grammar_backend_choices

from fim_server.errors import FimServerError
from fim_server.integrations.holes import hole_of, is_hole
from fim_server.integrations.middles import Middle, begin
from fim_server.integrations.versions import check_form, check_version
from fim_server.integrations.vocabularies import Vocabularies
from fim_server.models.masking import word_count
from fim_server.models.pytorch.masks import apply_mask_
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
    (GrammarManager, "process_req_with_grammar", ("self", "req")),
)
"""Methods that SGLang calls of a backend and its objects, and the hooked one, with their parameters."""

HOOKED = "sglang.srt.constrained.grammar_manager.GrammarManager.process_req_with_grammar"

NO_HOLE = "this server's grammars are holes: fim-server:{...}"

logger = logging.getLogger(__name__)


def register() -> None:
    """Register the backend with SGLang. Raises VersionError in a version that the plug-in does not know."""
    check_version("SGLang", sglang.__version__, KNOWN_VERSIONS)
    check_form("SGLang", sglang.__version__, FORM)
    if NAME not in base_grammar_backend.GRAMMAR_BACKEND_REGISTRY:
        add_grammar_backend_choices([NAME])
        base_grammar_backend.register_grammar_backend(NAME, make_backend)
        HookRegistry.register(HOOKED, hand_on, HookType.BEFORE)


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> FimGrammarBackend:
    """Make the backend for SGLang. Raises VocabularyError for a tokenizer whose tokens' bytes are unknown."""
    return FimGrammarBackend(tokenizer, vocab_size, eos_token_ids)


class Grammar(str):
    """Hole of a request, as SGLang passes it on, with the request's other settings.

    Attributes:
        budget: Most tokens of the middle, its end token not counted.
        end_token_ids: Tokens at which the request stops.
        wrong: Reason why a middle would not end where it is complete, or None.
    """

    __slots__ = ("budget", "end_token_ids", "wrong")

    budget: int | None
    end_token_ids: frozenset[int]
    wrong: str | None


def hand_on(manager: Any, req: Any) -> None:
    """Pass the end tokens of a request to the backend, before SGLang asks that for the request's grammar."""
    params = req.sampling_params
    if not isinstance(manager.grammar_backend, FimGrammarBackend) or not is_hole(params.ebnf):
        return
    grammar = Grammar(params.ebnf)
    grammar.budget = None if params.max_new_tokens is None else max(0, params.max_new_tokens - 1)
    grammar.end_token_ids = frozenset(stopping_tokens(req))
    grammar.wrong = wrong_ending(params)
    params.ebnf = grammar


def stopping_tokens(req: Any) -> Iterable[int]:
    """Yield the tokens at which SGLang ends a request."""
    yield from req.eos_token_ids or ()
    yield from req.sampling_params.stop_token_ids or ()
    if req.tokenizer is not None:
        yield from () if req.tokenizer.eos_token_id is None else (req.tokenizer.eos_token_id,)
        yield from getattr(req.tokenizer, "additional_stop_token_ids", None) or ()


def wrong_ending(params: Any) -> str | None:
    """Return the setting of a request that keeps a middle from ending where it is complete; None if none does."""
    if params.ignore_eos:
        return "ignore_eos: a middle ends with an end token"
    if params.min_new_tokens:
        return "min_new_tokens: a middle may have to end before"
    if params.stop_strs or params.stop_regex_strs:
        return 'stop: it would cut a middle where it is not complete; "shape": {"lines": 1} ends it at a line'
    return None


class FimGrammarObject(BaseGrammarObject):  # type: ignore[misc]  # SGLang need not be installed
    """Middle of one request."""

    def __init__(self, begins: Callable[[], Middle], size: int) -> None:
        """Take a function that begins a middle, and the number of the vocabulary's tokens."""
        super().__init__()
        self._begins, self._size = begins, size
        self._begun: Middle | None = None
        self._failed = False
        """A mask could not be filled, so nothing is taken any more."""

    @property
    def middle(self) -> Middle:
        """Return the middle, begun at its first use, because SGLang makes copies that it never uses."""
        if self._begun is None:
            self._begun = self._begins()
        return self._begun

    def accept_token(self, token: int) -> None:
        """Append a token. Raises ValueError, at which SGLang ends the request, if it is refused."""
        if self._failed:
            raise ValueError("fim-server: a mask could not be filled")
        if self.middle.ended:
            return
        if not self.middle.take(token):
            raise ValueError(f"fim-server: token {token} is not allowed")

    def rollback(self, k: int) -> None:
        self.middle.rollback(k)

    def is_terminated(self) -> bool:
        return self.middle.ended

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return rows of words that allow everything, on the CPU, whatever the device."""
        return torch.full((batch_size, word_count(vocab_size)), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Fill one row. An error ends this request at its next token, not the engine."""
        try:
            words = vocab_mask[idx].numpy().view(np.uint32)
            known = word_count(self._size)
            self.middle.fill(words[:known])
            words[known:] = 0
        except Exception:
            logger.exception("fim-server: a mask could not be filled")
            self._failed = True
            vocab_mask[idx].fill_(-1)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Mask logits [B, V] in place."""
        apply_mask_(logits, vocab_mask)

    def copy(self) -> FimGrammarObject:
        """Return an object of the same hole at its beginning."""
        return FimGrammarObject(self._begins, self._size)

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Do nothing: the model chooses a text's tokens."""


class FimGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]  # SGLang need not be installed
    """Opener of requests' holes. It has no grammars of other kinds: one backend masks a whole batch."""

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None) -> None:
        super().__init__()
        given = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids or ()
        vocabulary = Vocabulary.from_tokenizer(tokenizer, size=vocab_size, end_token_ids=list(given) or None)
        self._end_token_ids = frozenset(vocabulary.end_token_ids)
        self._vocabularies = Vocabularies(tokenizer, vocab_size)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar object of a hole, or one with an error, at which SGLang answers HTTP 400."""
        if not is_hole(key_string):
            return InvalidGrammarObject(NO_HOLE)
        budget, end_token_ids = None, self._end_token_ids
        if isinstance(key_string, Grammar):
            if key_string.wrong is not None:
                return InvalidGrammarObject(f"fim-server: {key_string.wrong}")
            budget, end_token_ids = key_string.budget, key_string.end_token_ids or end_token_ids
        try:
            hole = hole_of(key_string)
            vocabulary = self._vocabularies.ending_with(end_token_ids)
            made = FimGrammarObject(partial(begin, hole.open(), hole, vocabulary, budget), vocabulary.size)
            made.is_terminated()  # so that the middle is begun here, not in SGLang's steps
        except (FimServerError, ValueError) as error:
            return InvalidGrammarObject(f"fim-server: {error}")
        return made

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject(NO_HOLE)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject(NO_HOLE)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject(NO_HOLE)

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep nothing: hardly two requests have the same hole."""
