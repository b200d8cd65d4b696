"""How fast a model reads prompts on this machine, and what follows from it where somebody waits.

It is found out anew in each process. What else runs changes it by more than the machine does, and the threads that a
model gets are chosen by the load as well, so that a figure kept on disk would be of other circumstances; measuring
takes less time than loading. Other work only ever slows a pass, so the fastest one counts, and where a machine was busy
while the model was loaded the passes that follow correct what was measured.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fim_server.models.backend import PREFILL_CHUNK, PacedBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.model import FimModel

PROMPT_MS, LEAST_PROMPT, MOST_PROMPT = 300.0, 192, 4096
"""A prompt has as many tokens as are read in this time, at least and at most so many. Below the least a model sees too
little to say anything; above the most, encoding a prompt would itself take some milliseconds at each keystroke."""

LONG_FACTOR, MOST_LONG = 3, 1024
"""A prompt that is read while nobody waits is this many times as long, up to so many tokens: the longer it is, the more
it costs to read it again at another place, and the more memory (docs/results/model.md has what it is worth)."""

PROMPT_STEP, PROMPT_GROWTH = 32, 1.25
"""Prompts have a multiple of this many tokens, and become longer only by this factor at least: each time all of one is
read again."""

PASS_MS, LEAST_CHUNK = 50.0, 8
"""How long one forward pass of a prompt may take, for a pass is what an interruption waits for, unless shorter passes
cost too much, and the fewest tokens that it reads: with fewer, fixed costs are most of it (with 8, an eighth, measured
with SmolLM2-135M in four bits)."""

MEASURED_TOKENS, MEASURED_MS, MEASURED_PASSES = (32, 512), 400.0, 12
"""Passes are measured from this many tokens, twice as many after each that was short, to this many; about how long, and
how many of them at most."""

SHORT_MS = 20.0

MOST_COST = 0.05
"""By which share more reading a prompt may cost for being read in shorter passes. A pass has a cost that does not
depend on how many tokens it reads: on torch and a CPU all weights are fetched from memory for 8 tokens as for 256."""


DRAFTED, KEPT_SHARE = 3, 0.45
"""Tokens of a usual draft, and how many of them are what the model chooses (docs/results/drafts.md)."""

DRAFT_ROUNDS = 3


class Pace:
    """How fast prompts are read: the fastest passes seen."""

    def __init__(self) -> None:
        self.tokens_per_second = 0.0
        """0 as long as nothing is known."""
        self.is_told = False
        """Whether the backend has told it, and passes say nothing of it."""
        self.drafts_pay = True
        """Whether a pass over several tokens costs little enough for drafts to save time."""
        self._prompt_tokens = LEAST_PROMPT
        self._least_chunk = LEAST_CHUNK

    def note(self, tokens: int, seconds: float) -> None:
        """Take a pass, or several, into account."""
        if seconds > 0 and not self.is_told:
            self.tokens_per_second = max(self.tokens_per_second, tokens / seconds)

    def note_passes(self, short: tuple[int, float], long: tuple[int, float]) -> None:
        """Take the times of two passes of different sizes into account, each as its tokens and seconds."""
        each = max(0.0, (long[1] - short[1]) / (long[0] - short[0]))
        fixed = max(0.0, short[1] - each * short[0])
        spare = (1 + MOST_COST) * (each + fixed / PREFILL_CHUNK) - each
        self._least_chunk = max(LEAST_CHUNK, min(PREFILL_CHUNK, int(fixed / spare))) if spare > 0 else LEAST_CHUNK

    def note_rows(self, one: float, several: float) -> None:
        """Take the seconds of a pass over one token, and of one over a draft and the token before it, into account.

        llama.cpp reads four tokens in 3.5 times the time of one where weights are quantised, on a CPU, so that drafts
        made texts take 1.4 times as long; the other runtimes take a fifth more.
        """
        self.drafts_pay = several < (1 + KEPT_SHARE * DRAFTED) * one

    @property
    def prompt_tokens(self) -> int:
        """The longest prompt for somebody who waits; it grows in large steps alone."""
        found = self._tokens_in(PROMPT_MS) // PROMPT_STEP * PROMPT_STEP
        found = max(LEAST_PROMPT, min(MOST_PROMPT, found))
        if found >= PROMPT_GROWTH * self._prompt_tokens or (found == MOST_PROMPT):
            self._prompt_tokens = found
        return self._prompt_tokens

    @property
    def long_prompt_tokens(self) -> int:
        """The longest prompt that is read while nobody waits."""
        return max(self.prompt_tokens, min(MOST_LONG, LONG_FACTOR * self.prompt_tokens))

    @property
    def chunk(self) -> int:
        """The prompt tokens of one forward pass."""
        if not self.tokens_per_second:
            return PREFILL_CHUNK
        wanted = max(self._least_chunk, self._tokens_in(PASS_MS))
        return max(LEAST_CHUNK, min(PREFILL_CHUNK, wanted // LEAST_CHUNK * LEAST_CHUNK))

    def _tokens_in(self, milliseconds: float) -> int:
        return int(self.tokens_per_second * milliseconds / 1000)


def measure(model: FimModel) -> Pace:
    """Read some tokens and see how long it takes, which is less than half a second where the model is fast enough.

    Raises RuntimeError where the model's runtime does.
    """
    pace = Pace()
    if isinstance(model.backend, PacedBackend):
        pace.tokens_per_second, pace.is_told = model.backend.reading_speed(), True
        return pace
    size, most = MEASURED_TOKENS
    size, most = min(size, model.window), min(most, model.window)
    cache = model.new_cache(most)
    tokens = [number % model.size for number in range(most)]  # which they are makes no difference
    best: dict[int, float] = {}

    def read(count: int) -> float:
        started = time.perf_counter()
        model.forward(tokens[:count], cache)
        seconds = time.perf_counter() - started
        cache.crop(-count)
        best[count] = min(seconds, best.get(count, seconds))
        return seconds

    began = time.perf_counter()
    for number in range(MEASURED_PASSES):
        seconds = read(size)
        pace.note(size, seconds)
        # The first one of a size may take several times as long as the next.
        if number and 1000 * (time.perf_counter() - began) > MEASURED_MS:
            break
        if 1000 * seconds < SHORT_MS:
            size = min(2 * size, most)
    largest = max(best)
    if largest > LEAST_CHUNK:
        for _ in range(2):
            read(LEAST_CHUNK)
        pace.note_passes((LEAST_CHUNK, best[LEAST_CHUNK]), (largest, best[largest]))
    if model.gives_rows:
        model.forward(tokens[:LEAST_CHUNK], cache)
        pace.note_rows(*(fastest(model, cache, tokens[:count]) for count in (1, DRAFTED + 1)))
    return pace


def fastest(model: FimModel, cache: Any, tokens: Sequence[int]) -> float:
    """The seconds that a pass takes which gives a row for each token; the cache is as before."""
    seconds = []
    for _ in range(DRAFT_ROUNDS):
        started = time.perf_counter()
        model.forward_rows(tokens, cache, len(tokens))
        seconds.append(time.perf_counter() - started)
        cache.crop(-len(tokens))
    return min(seconds)
