"""Cursor at which several texts are decoded, one after another."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import fill_in
from fim_server.decoding.loop.run import start
from fim_server.decoding.results import Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from fim_server.decoding.ending.merged_tokens import MergedTokens
    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Session, StartedPrefill
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading


@dataclass(slots=True)
class Cursor:
    """State shared by the runs at one cursor.

    Attributes:
        prompt: Tokens that the model reads first.
        reading: KV cache; it keeps the prompt from one run to the next.
        worker: Thread that computes the masks.
        healing: Text to write again before the middle (:class:`.healing.Healing`).
        prefill: A prefill of the prompt on another thread, for the first run.
    """

    model: FimModel
    session: Session
    constrained: bool
    prompt: Sequence[int]
    reading: Reading
    watch: Watch
    worker: ThreadPoolExecutor
    healing: str
    prefill: StartedPrefill | None
    started: float = field(default_factory=time.perf_counter)
    _merged_tokens: MergedTokens | None = None

    def start(self, options: DecodeOptions) -> Run:
        """Start a run. Its constraint has to be closed."""
        session = self.session if self.constrained else None
        run = start(self.model, self.reading, session, options, self.watch, self.worker, self.healing)
        run.merged_tokens = self._merged_tokens = self._merged_tokens or run.merged_tokens
        run.passes.prefill, self.prefill = self.prefill, None
        return run

    def statistics_of(self, run: Run) -> Statistics:
        statistics = Statistics(prompt_tokens=len(self.prompt))
        fill_in(statistics, run, time.perf_counter() - self.started)
        return statistics
