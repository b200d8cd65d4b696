"""Prefill on another thread while the engine opens the session; the caller waits for the longer of the two."""

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
"""Kept from one prompt to the next, because starting a thread takes time. They serve all models and clients; a prompt
beyond their number waits for a free one."""


class ConcurrentPrefill:
    """Prefill of a prompt on another thread, in the same passes as :func:`.loop.prefill`.

    So the logits are the same to the last bit. The stops that watch the making thread and the deadline hold for it.

    Attributes:
        prompt: Tokens to read.
        reading: KV cache; the thread's own until :meth:`logits` or :meth:`close` returns.
        reused: Tokens found in the KV cache.
        tokens: Tokens read, once the thread has ended.
        seconds: Time it took to read them.
        ended: End of the prefill by ``time.perf_counter``; None if it never began.
    """

    def __init__(
        self, model: FimModel, split: Split, options: DecodeOptions, readings: Readings | Lent, heals: bool = False
    ) -> None:
        """Begin to read, unless `DecodeOptions.fast_forward` is on; ``heals``: as in :func:`.read_before`."""
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
        """Wait for the prompt and return the logits [V] after it; None if it was not read or differs from ``prompt``.

        Call it once. Raises the model's errors.
        """
        future, self._future = self._future, None
        logits = None if future is None else future.result()
        return logits if self.prompt == prompt else None

    def seconds_before(self, moment: float) -> float:
        """Return the part of ``seconds`` before a moment of ``time.perf_counter``, once the prefill has ended."""
        return 0.0 if self.ended is None else max(0.0, self.seconds - max(0.0, self.ended - moment))

    def stop(self) -> None:
        """Stop after the present forward pass."""
        self._stop.set()

    def close(self) -> None:
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
