"""Best-first search for the likeliest of several texts.

Greedy decoding commits to a beginning that may lead only to texts the model would hardly write. Where the grammar has
refused the model's own choice, most of the probability lies elsewhere. The search keeps every token that was allowed
and not chosen, with the probability of its path before any refusal. The likeliest of them begins the next text, which
continues greedily until it is less likely than the best whole text. The KV cache keeps the prompt, so that another text
costs only the passes of its new tokens.

The order is that of best-first search in a tree whose leaves are texts (Hart, Nilsson and Raphael 1968, with no
estimate of the rest). The search follows a branch to its end at once, because only a whole text bounds the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import conclude
from fim_server.decoding.loop.loop import branch, decode, decode_from
from fim_server.decoding.results import Statistics, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.loop.choice import Choice
    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import Completion
    from fim_server.decoding.strategies.cursor import Cursor

MOST_KEPT = 4096
"""Most beginnings to keep; the least likely are forgotten."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Tokens that a text can begin with."""

    path: tuple[int, ...]
    token: int
    probabilities: tuple[float, ...]
    """Probabilities of the path's tokens and of the last one."""
    likelihood: float
    """Probability of all of them together."""

    def __lt__(self, other: Beginning) -> bool:
        return self.likelihood > other.likelihood


class Frontier:
    """Beginnings from which no text was decoded yet.

    Attributes:
        bound: Likelihood of the best whole text with its end; a less likely beginning cannot lead to a better text.
    """

    def __init__(self) -> None:
        self._known: list[Beginning] = []
        self.bound = 0.0

    def note(self, run: Run, logits: Sequence[float], choice: Choice) -> None:
        """Keep the tokens that a run might have chosen instead; ``logits``: [V], before any refusal."""
        assert choice.token is not None, "something was chosen"
        likelihood = run.middle.likelihood()
        if likelihood <= self.bound:
            return
        for token, probability in run.others(logits, choice.token, self.bound / likelihood):
            path, probabilities = tuple(run.tokens), (*run.middle.probabilities, probability)
            heappush(self._known, Beginning(path, token, probabilities, likelihood * probability))
        if len(self._known) > MOST_KEPT:
            self._known = sorted(self._known)[: MOST_KEPT // 2]

    def take(self) -> Beginning | None:
        """Return the likeliest beginning, once; None if none can lead to a better text."""
        best = heappop(self._known) if self._known else None
        return best if best is not None and best.likelihood > self.bound else None


def searched(cursor: Cursor, options: DecodeOptions, on_token: Callable[[Sequence[int]], None]) -> Completion:
    """Return the likeliest of up to ``options.search`` texts, with the statistics of all of them.

    The first text is that of ``search=1``, and ``on_token`` gets its tokens. After the deadline the best so far is
    returned. If ``least_likelihood`` ends the first text, it is the only one.
    """
    frontier, best = Frontier(), None
    total = Statistics(prompt_tokens=len(cursor.prompt))
    for number in range(options.search):
        beginning = frontier.take() if number else None
        if number and beginning is None:
            break
        least = max(options.least_likelihood, frontier.bound) if number else options.least_likelihood
        run = cursor.start(replace(options, scored=True, least_likelihood=least))
        run.frontier = frontier
        try:
            if beginning is None:
                stop_reason = decode(run, cursor.prompt, on_token)
            else:
                stop_reason = go_on(run, cursor.prompt, beginning)
        finally:
            run.constraint.close()
        statistics = cursor.statistics_of(run)
        total.add(statistics)
        ends_all = stop_reason.is_interruption
        if best is None or not (ends_all or stop_reason is StopReason.UNLIKELY):
            found = conclude(run, cursor.session, True, stop_reason, statistics)
            likelihood = 0.0 if found.bits is None else 2.0**-found.bits
            if best is None or (found.text is not None and (best.text is None or likelihood > frontier.bound)):
                best, frontier.bound = found, likelihood
        if ends_all or (number == 0 and stop_reason is StopReason.UNLIKELY):
            break
    assert best is not None, "the first text is the best so far"
    return replace(best, statistics=total)


def go_on(run: Run, prompt: Sequence[int], beginning: Beginning) -> StopReason:
    *before, last = beginning.probabilities
    run.follow(beginning.path, before)
    if beginning.token in run.stop_ids:
        run.ended = last
        return StopReason.END_TOKEN

    def first() -> Choice:
        choice = branch(run, prompt, beginning.token, last)
        run.passes.count += 1
        return choice

    return decode_from(run, first, lambda tokens: None)
