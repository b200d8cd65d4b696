"""Masks in transformers' `generate`: a logits processor for batches of different holes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

from fim_server.errors import HoleError, VocabularyError
from fim_server.integrations.holes import Hole
from fim_server.integrations.middles import Middle, begin
from fim_server.models.masking import word_count
from fim_server.models.pytorch.masks import apply_mask_
from fim_server.tokens.vocabulary import Vocabulary

MOST_PADDING = 16
"""Greatest share of padding ids among a model's ids, as a divisor; with more, the tokenizer is another model's."""


class _Row:
    """Hole with its middles in progress: one for each of its rows in the loop's batch."""

    def __init__(self, hole: Hole, vocabulary: Vocabulary, budget: int | None, number: int) -> None:
        try:
            self._session = hole.open()
            self._hole, self._vocabulary, self._budget = hole, vocabulary, budget
            self._free = [self.begin()]
        except ValueError as error:
            raise HoleError(f"row {number}: {error}") from error

    def begin(self) -> Middle:
        return begin(self._session, self._hole, self._vocabulary, self._budget, searches=True)

    def at(self, histories: Sequence[Sequence[int]]) -> list[Middle | None]:
        """Return a middle for each history; None for a history with a refused token.

        A beam's history is that of another beam a step ago and one more token. So each takes the middle that has most
        of it, and moves that by the rest.
        """
        self._free += [self.begin() for _ in range(len(histories) - len(self._free))]
        free, found = list(self._free), list[Middle | None]()
        for history in histories:
            middle = max(free, key=lambda middle: (middle.shared(history), -len(middle.tokens)))
            free.remove(middle)
            found.append(middle if middle.move_to(history) else None)
        return found


class FimLogitsProcessor(LogitsProcessor):
    """Processor that lets each row of a batch write only text that fits between its two texts.

    For `generate(..., logits_processor=[processor])`, greedy, sampling or with beams. A processor serves one batch of
    prompts; several calls of `generate` with the very same prompts may use it, one after another.

    A row that ends with an end token is a program together with its texts. A row that `max_new_tokens` cuts off is
    none. If the processor knows that number as well, a row ends in time where its middle is known to be able to. The
    search for an end begins near the budget's end (`Middle`); a shape of one line does not always end in time.
    `complete_middles` tells which rows did.
    """

    def __init__(
        self,
        tokenizer: Any,
        holes: Iterable[Hole | Mapping[str, Any] | Sequence[str] | None],
        *,
        size: int | None = None,
        end_token_ids: Iterable[int] | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        """Open the holes.

        Raises HoleError for a hole that cannot be filled (the message names the row), VocabularyError for a tokenizer
        whose tokens' bytes are unknown, or that is another model's.

        Args:
            tokenizer: The model's own, a fast one, or a `Vocabulary`.
            holes: One for each prompt, as a `Hole`, a mapping with its attributes, or (left, right); None leaves the
                row as it is.
            size: Number of the model's logits; by default found at the first step.
            end_token_ids: The `eos_token_id` of `generate`; by default the tokenizer's end-of-text token.
            max_new_tokens: The `max_new_tokens` of `generate`.
        """
        if isinstance(tokenizer, Vocabulary):
            self._vocabulary = tokenizer
        else:
            self._vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size, end_token_ids=end_token_ids)
        if not self._vocabulary.end_token_ids:
            raise VocabularyError("the tokenizer names no end-of-text token: give end_token_ids")
        # The end token takes one of the budget's tokens.
        budget = None if max_new_tokens is None else max(0, max_new_tokens - 1)
        self._size = size
        self._rows: list[_Row | None] = [
            None if hole is None else _Row(Hole.of(hole), self._vocabulary, budget, number)
            for number, hole in enumerate(holes)
        ]
        if not self._rows:
            raise HoleError("no holes: one is needed for each row, or None")
        self._prompts: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores [B, V] with refused tokens at minus infinity; rows without a hole are unchanged.

        Raises:
            ValueError: The rows are not those of the holes, or the prompts not those of the first step.
            VocabularyError: The model has another number of logits than the tokenizer has tokens.
        """
        self._check_size(scores.shape[-1])
        each = self._rows_each(len(scores))
        histories = self._histories(input_ids)
        masked = [number for number in range(len(scores)) if self._rows[number // each] is not None]
        if not masked:
            return scores
        words = np.zeros((len(masked), word_count(self._vocabulary.size)), dtype=np.uint32)
        place = 0
        for number, row in enumerate(self._rows):
            if row is None:
                continue
            for middle in row.at(histories[number * each : (number + 1) * each]):
                # A beam of no probability may hold a refused token, and nothing that comes of it is a program.
                if middle is not None:
                    middle.fill(words[place])
                place += 1
        index = torch.tensor(masked, device=scores.device)
        changed = scores.clone()
        changed[index] = apply_mask_(scores[index], words)
        return changed

    def complete_middles(self, sequences: torch.Tensor) -> list[str | None]:
        """Return the middles that `generate` has written, without prompts and end tokens.

        None for a row that was cut off, for one that is in no program (beams that found fewer programs than wanted),
        and for a row without a hole.

        Args:
            sequences: Result of `generate`: [B, T], or its `sequences`.
        """
        each = self._rows_each(len(sequences))
        found: list[str | None] = []
        for number, history in enumerate(self._histories(sequences)):
            row = self._rows[number // each]
            middle = None if row is None else row.begin()
            if middle is None or not middle.move_to(history) or not middle.is_complete:
                found.append(None)
                continue
            written = b"".join(self._vocabulary.token_bytes(token) for token in middle.tokens)
            found.append(written.decode())
        return found

    def _check_size(self, size: int) -> None:
        known = self._vocabulary.size
        if self._size is not None and size != self._size:
            raise VocabularyError(f"the model has {size} logits, and not the {self._size} that were given as size")
        if size < known and any(self._vocabulary.token_bytes(token) for token in range(size, known)):
            raise VocabularyError(
                f"the model has {size} logits and the tokenizer {known} tokens: it is another model's"
            )
        if self._size is None and size - known > size // MOST_PADDING:
            raise VocabularyError(
                f"the model has {size} logits and the tokenizer {known} tokens: it may be another model's; if not, say "
                f"size={size}"
            )

    def _rows_each(self, rows: int) -> int:
        """Return the loop's rows for one hole: beams, or samples."""
        each, rest = divmod(rows, len(self._rows))
        if rest or not each:
            raise ValueError(f"{rows} rows for {len(self._rows)} holes: one is needed for each prompt, or None")
        return each

    def _histories(self, ids: torch.Tensor) -> list[list[int]]:
        """Return the tokens of each row after its prompt, which is the input of the first step."""
        each = self._rows_each(len(ids))
        if self._prompts is None:
            self._prompts = ids[::each].clone()
        length = self._prompts.shape[1]
        if not torch.equal(ids[:, :length], self._prompts.to(ids.device).repeat_interleave(each, 0)):
            raise ValueError("a FimLogitsProcessor serves one batch of prompts, and these are others")
        found: list[list[int]] = ids[:, length:].tolist()
        return found
