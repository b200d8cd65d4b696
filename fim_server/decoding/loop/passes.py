"""Forward passes of one run, timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fim_server.decoding.loop.drafting import Drafting
from fim_server.models.reading import passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import StartedPrefill
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading


class Passes:
    """Tokens that a run has its model read, and the time that takes.

    Attributes:
        reading: The model's KV cache for this run.
        drafting: Tokens read ahead of their choice.
        prefill: A prefill of the prompt that another thread began, until :meth:`_read_concurrently` takes it.
        count: Forward passes after the prompt's.
        reused: Tokens of the prompt found in the KV cache.
        prefilled: Tokens of the prompt read for this run.
        started: Begin of the run, by ``time.perf_counter``.
        model_seconds: Time of all forward passes.
        prefill_seconds: The part of ``model_seconds`` that read the prompt.
        hidden_seconds: The part of ``prefill_seconds`` before the run began.
        forward_seconds: Time of the last pass, behind which a mask can hide.
    """

    def __init__(self, model: FimModel, reading: Reading, watch: Watch, options: DecodeOptions) -> None:
        self.reading = reading
        self.watch = watch
        self.drafting = Drafting(model, None if options.fast_forward else options.drafts)
        self.prefill: StartedPrefill | None = None
        self.count = self.reused = self.prefilled = 0
        self.started = time.perf_counter()
        self.model_seconds = self.prefill_seconds = self.hidden_seconds = self.forward_seconds = 0.0
        self._chunk = options.prefill_chunk

    def forward(self, token_ids: Sequence[int]) -> Logits:
        """Read tokens; return the logits [V] after them. Raises Interrupted instead at a deadline or cancellation."""
        self.watch.check()
        started = time.perf_counter()
        logits = self.reading.forward(token_ids)
        self._note_time(started)
        return logits

    def read(self, tokens: Sequence[int]) -> Logits:
        """Read what is new in some tokens, a chunk a pass; return the logits [V] after the last."""
        logits = None
        for part in passes(tokens, self.reading.resume(tokens), self._chunk):
            logits = self.forward(part)
        assert logits is not None, "resume leaves the last token to be read"
        return logits

    def read_prompt(self, prompt: Sequence[int]) -> Logits:
        """Read a prompt, or wait for the prefill that reads it; return the logits [V] after it.

        After an interruption the KV cache keeps the passes made: the next prompt with that prefix continues there.
        """
        logits = self._read_concurrently(prompt)
        if logits is not None:
            return logits
        kept = self.reading.resume(prompt)
        self.reused = max(0, kept - self.prefilled)
        for part in passes(prompt, kept, self._chunk):
            before = self.model_seconds
            logits = self.forward(part)
            self.prefill_seconds += self.model_seconds - before
            self.prefilled += len(part)
        assert logits is not None, "resume leaves the last token to be read"
        return logits

    def _read_concurrently(self, prompt: Sequence[int]) -> Logits | None:
        """Return the logits of the prefill that was begun; None if there is none or it stopped early."""
        prefill, self.prefill = self.prefill, None
        if prefill is None:
            return None
        logits = prefill.logits(prompt)
        self.prefilled, self.prefill_seconds = prefill.tokens, prefill.seconds
        self.model_seconds += prefill.seconds
        self.hidden_seconds = prefill.seconds_before(self.started)
        if logits is not None:
            self.reused = prefill.reused
        return logits

    def read_on(self, token_ids: Sequence[int], drafted: Sequence[int] | None) -> Logits:
        """Read tokens of the middle and behind them a draft; return the logits [V] after the former.

        ``drafted``: None where the run uses no drafts.
        """
        self.count += 1
        if drafted is None:
            return self.forward(token_ids)
        self.watch.check()
        started = time.perf_counter()
        rows = self.reading.forward_rows([*token_ids, *drafted], 1 + len(drafted))
        self._note_time(started)
        self.drafting.note(drafted, rows[1:])
        return rows[0]

    def take_back(self, tokens: int) -> None:
        """Remove the unused draft and some tokens before it from the KV cache."""
        surplus = tokens + self.drafting.drop()
        started = time.perf_counter()
        self.reading.rewind(surplus)
        self.model_seconds += time.perf_counter() - started

    def _note_time(self, started: float) -> None:
        self.forward_seconds = time.perf_counter() - started
        self.model_seconds += self.forward_seconds
