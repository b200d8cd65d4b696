"""Best-first search: of several texts the one that the model holds for likeliest.

Taking the likeliest allowed token at each step commits to a beginning that may lead only to what the model would never
write: where the grammar has refused its own choice, most of its probability lies elsewhere. Here every token that was
allowed and not chosen is kept with the probability of the way to it, before the grammar refused anything. The likeliest
of them all is where the next text begins, which then takes the likeliest token at each step, until it is less likely
than the best whole text. What was read of the prompt is kept, so a further text costs the passes of what is new in it.

The order is that of best-first search in a tree whose leaves are texts (Hart, Nilsson and Raphael 1968, with no
estimate of what is to come); a branch is followed to its end at once, because only a whole text bounds the others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import conclude, fill_in
from fim_server.decoding.loop.loop import decode, decode_from
from fim_server.decoding.loop.run import start
from fim_server.decoding.results import Statistics, StopReason
from fim_server.models.reading import passes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from fim_server.decoding.ending.merged_tokens import MergedTokens
    from fim_server.decoding.loop.run import Choice, Run
    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Session, StartedPrefill
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading

MOST_KEPT = 4096
"""Beginnings that are kept at most; the least likely are forgotten."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Tokens that a text can begin with, and how likely they are, each and together."""

    path: tuple[int, ...]
    token: int
    probabilities: tuple[float, ...]
    """Of the path's tokens, and of the last one."""
    likelihood: float

    def __lt__(self, other: Beginning) -> bool:
        return self.likelihood > other.likelihood


class Frontier:
    """The beginnings from which no text was written yet, and how likely the best whole text is."""

    def __init__(self) -> None:
        self._known: list[Beginning] = []
        self.bound = 0.0
        """Of the best whole text, with its end. What is less likely leads to none that is better."""

    def note(self, run: Run, logits: Sequence[float], choice: Choice) -> None:
        """Keep what might have come instead of a choice; ``logits``: [V], before anything was refused."""
        assert choice.token is not None, "something was chosen"
        likelihood = run.likelihood()
        if likelihood <= self.bound:
            return
        for token, probability in run.others(logits, choice.token, self.bound / likelihood):
            path, probabilities = tuple(run.tokens), (*run.probabilities, probability)
            heappush(self._known, Beginning(path, token, probabilities, likelihood * probability))
        if len(self._known) > MOST_KEPT:
            self._known = sorted(self._known)[: MOST_KEPT // 2]

    def take(self) -> Beginning | None:
        """The likeliest beginning, once; None where none leads to a better text."""
        best = heappop(self._known) if self._known else None
        return best if best is not None and best.likelihood > self.bound else None


def searched(
    model: FimModel,
    session: Session,
    prompt: Sequence[int],
    reading: Reading,
    options: DecodeOptions,
    watch: Watch,
    worker: ThreadPoolExecutor,
    healing: str = "",
    prefill: StartedPrefill | None = None,
    on_token: Callable[[Sequence[int]], None] = lambda tokens: None,
) -> Completion:
    """The likeliest of up to ``options.search`` texts; the first is that of ``search=1``.

    Its statistics are those of all of them together. Where the deadline passes, the best so far. The arguments are
    those of :func:`.alternatives.alternatives`, its prompt read or being read; ``on_token`` is told of the first text.
    Where that is given up as unlikely, it is all: what of it is likely is another matter than how likely a text is.
    """
    started = time.perf_counter()
    frontier, best = Frontier(), None
    joined: MergedTokens | None = None
    all_of_them = Statistics(prompt_tokens=len(prompt))
    for number in range(options.search):
        beginning = frontier.take() if number else None
        if number and beginning is None:
            break
        bounded = replace(options, scored=True, least_likelihood=max(options.least_likelihood, frontier.bound))
        run = start(
            model, reading, session, bounded if number else replace(options, scored=True), watch, worker, healing
        )
        run.frontier = frontier
        run.merged_tokens = joined = joined or run.merged_tokens
        statistics = Statistics(prompt_tokens=len(prompt))
        try:
            if beginning is None:
                run.prefill = prefill
                stop_reason = decode(run, prompt, on_token)
            else:
                stop_reason = go_on(run, prompt, beginning)
        finally:
            run.constraint.close()
        fill_in(statistics, run, time.perf_counter() - started)
        all_of_them.add(statistics)
        ends_all = stop_reason.is_interruption
        if best is None or not (ends_all or stop_reason is StopReason.UNLIKELY):
            found = conclude(run, session, True, stop_reason, statistics)
            likelihood = 0.0 if found.bits is None else 2.0**-found.bits
            if best is None or (found.text is not None and (best.text is None or likelihood > frontier.bound)):
                best, frontier.bound = found, likelihood
        if ends_all or (number == 0 and stop_reason is StopReason.UNLIKELY):
            break
    assert best is not None, "the first text is the best so far"
    return replace(best, statistics=all_of_them)


def go_on(run: Run, prompt: Sequence[int], beginning: Beginning) -> StopReason:
    """Decode the text with a beginning."""
    *before, last = beginning.probabilities
    run.follow(beginning.path, before)
    if beginning.token in run.stop_ids:
        run.ended = last
        return StopReason.END_TOKEN

    def first() -> Choice:
        run.follow([beginning.token], [last])
        wanted = [*prompt, *run.tokens]
        logits = None
        for part in passes(wanted, run.reading.resume(wanted), run.chunk):
            logits = run.forward(part)
        run.passes += 1
        assert logits is not None, "resume leaves the last token to be read"
        return run.choose(logits)

    return decode_from(run, first, lambda tokens: None)
