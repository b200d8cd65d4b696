"""Structured-output backend of vLLM whose grammars are holes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.logger import init_logger
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

from fim_server.integrations.holes import Hole, hole_of
from fim_server.integrations.meter import meter
from fim_server.integrations.middles import Middle, begin
from fim_server.integrations.vocabularies import Vocabularies
from fim_server.models.masking import word_count
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

logger = init_logger("vllm.fim_server")


def open_middle(hole: Hole, vocabulary: Vocabulary, max_tokens: int | None) -> Middle:
    """Open a hole and return its middle; ``max_tokens`` has room for an end token. Raises HoleError."""
    started = time.perf_counter()
    session = hole.open()
    middle = begin(session, hole, vocabulary, None if max_tokens is None else max(0, max_tokens - 1))
    meter().add("sessions")
    meter().add("session_seconds", time.perf_counter() - started)
    return middle


def fill(middle: Middle, words: NDArray[np.uint32], size: int) -> None:
    """Fill a row of a mask, which may have words beyond those of ``size`` tokens."""
    started = time.perf_counter()
    known = word_count(size)
    middle.fill(words[:known])
    words[known:] = 0
    meter().mask(time.perf_counter() - started)


class FimGrammar(StructuredOutputGrammar):  # type: ignore[misc]  # vLLM need not be installed
    """Middle of one request."""

    def __init__(self, middle: Middle, size: int) -> None:
        self._middle, self._size = middle, size
        self._failed = False
        """A mask could not be filled, so nothing is taken any more."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Append tokens; return False, at which vLLM ends the request, if one of them is refused."""
        for token in tokens:
            if self._failed or not self._middle.take(token):
                meter().add("refused_tokens")
                logger.error("fim-server: token %d of request %s is not allowed", token, request_id)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Return the drafted tokens up to the first refused one."""
        return tokens[: self._middle.valid(tokens)]

    def rollback(self, num_tokens: int) -> None:
        self._middle.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Fill one row of int32 words. An error ends this request at its next token, not the engine."""
        try:
            fill(self._middle, bitmask[batch_index].numpy().view(np.uint32), self._size)
        except Exception:
            logger.exception("fim-server: a mask could not be filled")
            self._failed = True
            bitmask[batch_index].fill_(-1)

    def is_terminated(self) -> bool:
        return self._middle.ended

    def reset(self) -> None:
        self._middle.rollback(len(self._middle.tokens))


class FimBackend(StructuredOutputBackend):  # type: ignore[misc]  # vLLM need not be installed
    """Backend that begins the grammars of requests with a hole."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._vocabularies = Vocabularies(tokenizer, vocab_size)

    def begin(self, request: Any) -> FimGrammar:
        """Return the grammar of a request, which ends within its tokens. Raises HoleError."""
        params = request.sampling_params
        return self._grammar(params.structured_outputs.grammar, params.all_stop_token_ids, params.max_tokens)

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> FimGrammar:
        """Return the grammar of a hole, without a budget. Raises HoleError."""
        return self._grammar(grammar_spec, stop_token_ids or set(), None)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return rows of words that allow everything."""
        return torch.full((max_num_seqs, word_count(self.vocab_size)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Do nothing: there is nothing to free."""

    def _grammar(self, grammar: str, end_token_ids: Collection[int], max_tokens: int | None) -> FimGrammar:
        hole = hole_of(grammar)
        vocabulary = self._vocabularies.ending_with(end_token_ids)
        return FimGrammar(open_middle(hole, vocabulary, max_tokens), vocabulary.size)
