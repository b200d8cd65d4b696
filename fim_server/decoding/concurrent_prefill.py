"""A prompt that is read while the session is opened that its completion needs: the longer of the two is waited for."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from fim_server.decoding.loop.watch import Interrupted, Watch
from fim_server.decoding.strategies.alternatives import read_before
from fim_server.language.stop import Stop, watching
from fim_server.models.reading import passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.options import DecodeOptions
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Lent, Readings
    from fim_server.text.document import Split

THREADS = ThreadPoolExecutor(64, "fim-read")
"""Kept from one prompt to the next: who starts a thread waits until it runs. One more prompt than there are threads, of
all models and clients, is read once one of them is free."""


class ConcurrentPrefill:
    """A prompt being read on another thread, in the passes that :func:`.loop.prefill` would read it in.

    So the logits are the same to the last bit. Its thread is watched by what watches the thread that makes it, and
    keeps the deadline.

    Attributes:
        prompt: Its tokens.
        reading: What reads it; the thread's own until :meth:`logits` or :meth:`close` returns.
        reused: Tokens that had been read before.
        tokens: Tokens read here, after the thread has ended.
        seconds: What reading them took.
        ended: When it ended, by ``time.perf_counter``; None where it never began.
    """

    def __init__(
        self, model: FimModel, split: Split, options: DecodeOptions, readings: Readings | Lent, heals: bool = False
    ) -> None:
        """``heals``: as in :func:`.alternatives.read_before`. Nothing is read yet with `DecodeOptions.fast_forward`."""
        self.prompt, self.reading = read_before(model, split, options, readings, heals)
        self.reused = self.tokens = 0
        self.seconds = 0.0
        self.ended: float | None = None
        self._chunk = options.prefill_chunk
        self._stop = Stop()
        self._watch = Watch(options.deadline_ms, self._stop)
        self._future: Future[Logits | None] | None = None
        if not options.fast_forward:
            self._future = THREADS.submit(self._watched, (*watching(), self._stop))

    def logits(self, prompt: Sequence[int]) -> Logits | None:
        """The logits [V] after the prompt, once it is read; None where not all of it was, or another is asked for.

        To be asked once. Raises what the model does.
        """
        future, self._future = self._future, None
        logits = None if future is None else future.result()
        return logits if self.prompt == prompt else None

    def seconds_before(self, moment: float) -> float:
        """How much of its time lies before a moment of ``time.perf_counter``; to be asked after it has ended."""
        return 0.0 if self.ended is None else max(0.0, self.seconds - max(0.0, self.ended - moment))

    def stop(self) -> None:
        """Read no further than to the end of the pass that is under way."""
        self._stop.set()

    def close(self) -> None:
        """Stop reading, and wait until that is so."""
        self.stop()
        future, self._future = self._future, None
        if future is not None:
            future.exception()

    def _watched(self, stops: Sequence[Stop]) -> Logits | None:
        with ExitStack() as watched:
            for stop in stops:
                watched.enter_context(stop)
            return self._read()

    def _read(self) -> Logits | None:
        logits = None
        began = time.perf_counter()
        try:
            self.reused = self.reading.resume(self.prompt)
            for part in passes(self.prompt, self.reused, self._chunk):
                self._watch.check()
                logits = self.reading.forward(part)
                self.tokens += len(part)
        except Interrupted:
            return None
        finally:
            self.ended = time.perf_counter()
            self.seconds = self.ended - began
        return logits
