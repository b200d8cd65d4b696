"""Logits processor for both of vLLM's interfaces, for models and settings without structured outputs.

vLLM's two model runners want different base classes, and load the same class; each calls methods of its own interface.
Both have `apply`, and its arguments tell which one runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from vllm.logger import init_logger
from vllm.sampling_params import SamplingParams
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.v1.sample.logits_processor.interface import LogitsProcessor, MoveDirectionality
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2LogitsProcessor

from fim_server.integrations.meter import meter
from fim_server.integrations.middles import Middle
from fim_server.integrations.vllm.plugin import check_ending, hole_of_request
from fim_server.integrations.vllm.structured import fill, open_middle
from fim_server.integrations.vocabularies import Vocabularies
from fim_server.models.masking import WORD_BITS, word_count
from fim_server.models.pytorch.masks import apply_mask_

if TYPE_CHECKING:
    from numpy.typing import NDArray

Held = TypeVar("Held")

logger = init_logger("vllm.fim_server")


@dataclass(frozen=True)
class Asked:
    """Request with a hole.

    Attributes:
        middle: The middle; None if the hole could not be opened.
        end_token_ids: Tokens that end the request.
    """

    middle: Middle | None
    end_token_ids: Sequence[int]


class FimLogitsProcessor(LogitsProcessor, V2LogitsProcessor):  # type: ignore[misc]  # vLLM need not be installed
    """Processor that masks the rows of requests with a hole: JSON under the key `fim_server` of their `vllm_xargs`.

    With speculative decoding vLLM loads no logits processor that is named at its start, and warns about it.
    """

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Raise HoleError, a ValueError, for a hole that cannot be filled: the request gets HTTP 400."""
        hole = hole_of_request(sampling_params)
        if hole is not None:
            check_ending(sampling_params)
            hole.open()

    def __init__(self, vllm_config: Any, device_or_states: Any, is_pin_memory: bool | None = None) -> None:
        """Take the arguments of either interface: a device and a flag (V1), or the states of requests (V2)."""
        config = vllm_config.model_config
        self._vocabularies = Vocabularies(cached_tokenizer_from_config(config), config.get_vocab_size())
        self._states: Any = None if is_pin_memory is not None else device_or_states
        self._size = config.get_vocab_size()
        self._middles: dict[int, Asked] = {}
        """By row (V1) or slot (V2): the requests with a hole."""
        self._written: dict[int, list[int]] = {}
        """By row, the tokens of a request, which vLLM appends to (V1)."""

    def _open(self, params: SamplingParams) -> Asked | None:
        """Return the middle of a request. An error here, after validation, ends the request, not the engine."""
        try:
            hole = hole_of_request(params)
            if hole is None:
                return None
            vocabulary = self._vocabularies.ending_with(params.all_stop_token_ids)
            return Asked(open_middle(hole, vocabulary, params.max_tokens), vocabulary.end_token_ids)
        except Exception:
            logger.exception("fim-server: a hole could not be opened")
            return Asked(None, sorted(params.all_stop_token_ids))

    # --- V1 -------------------------------------------------------------------------------------------------------

    def is_argmax_invariant(self) -> bool:
        """Return False: the likeliest token may be refused."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that came, went or changed their rows."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._forget(row)
        for row, params, _, written in batch_update.added:
            self._forget(row)
            opened = self._open(params)
            if opened is not None:
                self._middles[row], self._written[row] = opened, written
        for here, there, way in batch_update.moved:
            swaps = way == MoveDirectionality.SWAP
            move(self._middles, here, there, swaps)
            move(self._written, here, there, swaps)

    def _forget(self, row: int) -> None:
        self._middles.pop(row, None)
        self._written.pop(row, None)

    # --- V2 -------------------------------------------------------------------------------------------------------

    def add_request(self, req_idx: int, sampling_params: SamplingParams) -> bool:
        """Begin the request of a slot; return False if it has no hole."""
        self._middles.pop(req_idx, None)
        opened = self._open(sampling_params)
        if opened is not None:
            self._middles[req_idx] = opened
        return opened is not None

    def apply_staged_writes(self) -> None:
        """Do nothing: there are no staged writes."""

    # --- both -----------------------------------------------------------------------------------------------------

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        """Mask the rows [B, V] of requests with a hole, in place."""
        if not self._middles:
            return logits
        histories = self._rows_v1(len(logits)) if ctx is None else self._rows_v2(ctx)
        if not histories:
            return logits
        words = np.zeros((len(histories), word_count(self._size)), dtype=np.uint32)
        for place, (asked, _, history) in enumerate(histories):
            self._mask(asked, history, words[place])
        rows = torch.tensor([row for _, row, _ in histories], device=logits.device)
        logits[rows] = apply_mask_(logits[rows], words)
        return logits

    def _mask(self, asked: Asked, history: list[int], words: NDArray[np.uint32]) -> None:
        """Fill a row's mask, with end tokens alone if no continuation of the row can be a program."""
        try:
            if asked.middle is not None and asked.middle.move_to(history):
                fill(asked.middle, words, self._size)
                return
            logger.error("fim-server: a request has no hole, or a token that is not allowed; it is ended")
        except Exception:
            logger.exception("fim-server: a mask could not be filled; the request is ended")
        meter().add("refused_tokens")
        words.fill(0)
        for token in asked.end_token_ids:
            words[token // WORD_BITS] |= np.uint32(1 << (token % WORD_BITS))

    def _rows_v1(self, count: int) -> list[tuple[Asked, int, list[int]]]:
        return [(asked, row, known_tokens(self._written[row])) for row, asked in self._middles.items() if row < count]

    def _rows_v2(self, ctx: Any) -> list[tuple[Asked, int, list[int]]]:
        """Return the same: tokens are on the device, and drafted tokens are the inputs of a request's own rows."""
        slots, offsets = ctx.expanded_idx_mapping.tolist(), ctx.expanded_local_pos.tolist()
        inputs: list[int] | None = None
        written: dict[int, list[int]] = {}
        found: list[tuple[Asked, int, list[int]]] = []
        for row, (slot, offset) in enumerate(zip(slots, offsets, strict=True)):
            if slot not in self._middles:
                continue
            if slot not in written:
                begin, end = int(self._states.prompt_len.np[slot]), int(self._states.total_len.gpu[slot])
                written[slot] = self._states.all_token_ids.gpu[slot, begin:end].tolist()
            drafted: list[int] = []
            if offset:
                inputs = ctx.input_ids.tolist() if inputs is None else inputs
                drafted = inputs[row - offset + 1 : row + 1]
            found.append((self._middles[slot], row, known_tokens(written[slot] + drafted)))
        return found


def move(held: dict[int, Held], here: int, there: int, swaps: bool) -> None:
    """Move a row's entry to another row, whose own is dropped unless the two swap."""
    moved, other = held.pop(here, None), held.pop(there, None)
    if moved is not None:
        held[there] = moved
    if swaps and other is not None:
        held[here] = other


def known_tokens(tokens: list[int]) -> list[int]:
    """Return the tokens up to the first placeholder of an unknown one."""
    return tokens[: tokens.index(-1)] if -1 in tokens else tokens
