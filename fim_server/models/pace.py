"""Speed at which a model reads prompts on this machine, and the prompt lengths that follow from it.

Each process measures it anew, once the model is ready and while no request waits. Other processes change it more than
the machine does, and the load also decides the number of threads, so a figure kept on disk would be of other
circumstances. Other work only slows a pass. So the fastest pass counts, and later passes correct a measurement made on
a busy machine.
"""

from __future__ import annotations

import time
from bisect import insort
from typing import TYPE_CHECKING

from fim_server.models.backend import PREFILL_CHUNK, PacedBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.models.model import FimModel

PROMPT_MS, LEAST_PROMPT, MOST_PROMPT = 300.0, 192, 4096
"""Reading time that sets the length of a prompt, and its least and greatest number of tokens. With fewer, a model sees
too little context; with more, encoding alone would take milliseconds at each keystroke.
"""

LONG_FACTOR, MOST_LONG = 3, 1024
"""Factor and greatest length of a prompt that is read ahead, while no request waits. A longer one costs more memory,
and more time to read again elsewhere in the file (docs/results/model.md has its worth).
"""

PROMPT_STEP, PROMPT_GROWTH = 32, 1.25
"""Step of a prompt's length in tokens, and the least factor by which it grows, since growth means reading it all
again.
"""

PASS_MS, LEAST_CHUNK = 50.0, 8
"""Longest forward pass of a prompt, unless shorter passes cost too much, and its fewest tokens. A cancelled request
waits for the end of a pass. Fixed costs are an eighth of a pass over 8 tokens (SmolLM2-135M in 4 bits).
"""

MEASURED_TOKENS, MEASURED_MS, MEASURED_PASSES = (32, 512), 400.0, 12
"""Sizes of measured passes, the time of all of them and their number at most. A size doubles after each short pass."""

SAME_SHARE = 0.05
"""Share of the fastest pass within which the second fastest of its size confirms it."""

SHORT_MS = 20.0

MOST_COST = 0.05
"""Greatest added cost, as a share, of reading a prompt in shorter passes. On torch and a CPU, for example, a pass
fetches all weights from memory for 8 tokens as for 256.
"""


DRAFTED, KEPT_SHARE = 3, 0.45
"""Tokens of a usual draft, and the share of them that the model confirms (docs/results/drafts.md)."""

DRAFT_ROUNDS = 3


class Pace:
    """Speed of reading prompts, from the fastest passes seen."""

    def __init__(self) -> None:
        self.tokens_per_second = 0.0
        """Speed; 0 while it is unknown."""
        self.is_reported = False
        """True if the backend has measured its own speed, so that the times of passes do not matter."""
        self.drafts_pay = True
        """True if a pass over several tokens is cheap enough for drafts to save time."""
        self._prompt_tokens = LEAST_PROMPT
        self._least_chunk = LEAST_CHUNK

    def note(self, tokens: int, seconds: float) -> None:
        if seconds > 0 and not self.is_reported:
            self.tokens_per_second = max(self.tokens_per_second, tokens / seconds)

    def note_passes(self, short: tuple[int, float], long: tuple[int, float]) -> None:
        """Take two passes of different sizes into account, each given as its tokens and seconds."""
        each = max(0.0, (long[1] - short[1]) / (long[0] - short[0]))
        fixed = max(0.0, short[1] - each * short[0])
        spare = (1 + MOST_COST) * (each + fixed / PREFILL_CHUNK) - each
        self._least_chunk = max(LEAST_CHUNK, min(PREFILL_CHUNK, int(fixed / spare))) if spare > 0 else LEAST_CHUNK

    def note_rows(self, one: float, several: float) -> None:
        """Compare the seconds of a pass over one token with those over a draft and the token before it.

        On a CPU with quantised weights, llama.cpp takes 3.5 times as long for four tokens as for one, so drafts make
        texts take 1.4 times as long. The other runtimes take a fifth more.
        """
        self.drafts_pay = several < (1 + KEPT_SHARE * DRAFTED) * one

    @property
    def prompt_tokens(self) -> int:
        """Longest prompt for a request that waits; it grows in large steps only."""
        found = self._tokens_in(PROMPT_MS) // PROMPT_STEP * PROMPT_STEP
        found = max(LEAST_PROMPT, min(MOST_PROMPT, found))
        if found >= PROMPT_GROWTH * self._prompt_tokens or (found == MOST_PROMPT):
            self._prompt_tokens = found
        return self._prompt_tokens

    @property
    def long_prompt_tokens(self) -> int:
        return max(self.prompt_tokens, min(MOST_LONG, LONG_FACTOR * self.prompt_tokens))

    @property
    def chunk(self) -> int:
        if not self.tokens_per_second:
            return PREFILL_CHUNK
        wanted = max(self._least_chunk, self._tokens_in(PASS_MS))
        return max(LEAST_CHUNK, min(PREFILL_CHUNK, wanted // LEAST_CHUNK * LEAST_CHUNK))

    def _tokens_in(self, milliseconds: float) -> int:
        return int(self.tokens_per_second * milliseconds / 1000)


def first_pace(model: FimModel, tokens: int, seconds: float) -> Pace:
    """Return the pace known before any measurement: the backend's report, else that of the first pass."""
    pace = Pace()
    if isinstance(model.backend, PacedBackend):
        pace.tokens_per_second, pace.is_reported = model.backend.reading_speed(), True
    else:
        pace.note(tokens, seconds)
    return pace


def measure(model: FimModel, pace: Pace, wait: Callable[[], object] = lambda: None) -> None:
    """Measure the reading speed, within half a second where the model is fast enough, and note it in ``pace``.

    ``wait`` is called before each pass: it may let others make theirs. Raises the runtime's RuntimeError.
    """
    if pace.is_reported:
        return
    size, most = MEASURED_TOKENS
    size, most = min(size, model.window), min(most, model.window)
    cache = model.new_cache(most)
    tokens = [number % model.size for number in range(most)]  # which they are makes no difference
    times: dict[int, list[float]] = {}

    def timed(read: Callable[[], object]) -> float:
        wait()
        started = time.perf_counter()
        read()
        return time.perf_counter() - started

    def read(count: int) -> float:
        seconds = timed(lambda: model.forward(tokens[:count], cache))
        cache.crop(-count)
        insort(times.setdefault(count, []), seconds)
        return seconds

    spent = 0.0
    for number in range(MEASURED_PASSES):
        seconds = read(size)
        spent += seconds
        pace.note(size, seconds)
        # The first one of a size may take several times as long as the next.
        if number and 1000 * spent > MEASURED_MS:
            break
        if 1000 * seconds < SHORT_MS and size < most:
            size = min(2 * size, most)
        elif is_confirmed(times[size]):
            break
    largest = max(times)
    if largest > LEAST_CHUNK:
        for _ in range(2):
            read(LEAST_CHUNK)
        pace.note_passes((LEAST_CHUNK, times[LEAST_CHUNK][0]), (largest, times[largest][0]))
    if model.gives_rows:
        wait()
        model.forward(tokens[:LEAST_CHUNK], cache)

        def fastest(count: int) -> float:
            """Return the seconds of a pass that gives a row for each token; the cache stays as it is."""
            seconds = []
            for _ in range(DRAFT_ROUNDS):
                seconds.append(timed(lambda: model.forward_rows(tokens[:count], cache, count)))
                cache.crop(-count)
            return min(seconds)

        pace.note_rows(fastest(1), fastest(DRAFTED + 1))


def is_confirmed(seconds: Sequence[float]) -> bool:
    """Return whether the second of the sorted times is close to the first, so that more passes tell nothing new."""
    return len(seconds) > 1 and seconds[1] <= (1 + SAME_SHARE) * seconds[0]
