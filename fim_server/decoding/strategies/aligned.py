"""Samples that are not distorted: texts drawn as the model would write them, were it to write only what fits.

A mask leaves out the tokens after which nothing fits, and shares what they had among the others. That is not the
model's distribution of texts that fit: a beginning after which nearly all that the model would write is refused stays
as likely as one after which nothing is. What a beginning is worth, the probability that the model goes on with what
fits, is not known before it is tried; but each text that was drawn tells of the places that it passed. Here the next
one counts that: adaptive sampling with approximate expected futures (Park et al. 2024, "Grammar-Aligned Decoding",
arXiv 2405.21047, section 3), over an exact mask. What was not tried counts as worth 1, so beginnings are overrated
until they are tried, and with more texts their distribution comes nearer to the model's, given that the text fits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import conclude, fill_in
from fim_server.decoding.loop.loop import decode
from fim_server.decoding.loop.run import start
from fim_server.decoding.results import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Session, StartedPrefill
    from fim_server.decoding.results import Completion
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading

LEAST_WORTH, LEAST_SHARE = 1e-9, 1e-30
"""What a beginning is worth at least, so that it stays a text's where nothing else fits; the least share of a token."""

LEAST_WARM = 0.01
"""Logits divided by less would be no numbers of single precision; below it the likeliest token is drawn as it is."""

Path = tuple[int, ...]


@dataclass(slots=True)
class Place:
    """Somewhere in the texts that were drawn.

    Attributes:
        fits: The probability of all tokens that may come next, together.
        shares: Of the tokens that were drawn here, their probabilities.
        worth: The probability that the model goes on with what fits, as far as is known.
    """

    fits: float
    shares: dict[int, float] = field(default_factory=dict)
    worth: float = 1.0


class Aligned:
    """What the texts drawn so far have told. For one prompt, one session and one temperature.

    Tokens that write again what stands left of the cursor are drawn as without it, and so is what has to end because
    the budget does.
    """

    def __init__(self, temperature: float) -> None:
        self._temperature = max(temperature, LEAST_WARM)
        self._ends: list[int] | None = None
        """Tokens that mean an end where the middle may end."""
        self.places: dict[Path, Place] = {}

    def weighed(self, run: Run, logits: Logits) -> Logits:
        """The logits [V] of a run's next token, all that may not come at minus infinity, by what is known of it."""
        words = run.constraint.mask()
        if words is None:
            self.places[tuple(run.tokens)] = Place(0.0)
            return logits
        arithmetic, warm = run.model.backend.arithmetic, self._temperature
        found = arithmetic.masked(logits, words)
        path, end, meant = tuple(run.tokens), min(run.stop_ids), 0.0
        changes: dict[int, float] = {}
        if run.constraint.is_complete() and (ends := self._tokens_that_end(run)):
            found = arithmetic.shifted(found, dict.fromkeys(ends, -inf))  # whoever draws one ends as well
            meant = arithmetic.share_of(arithmetic.tempered(logits, warm), ends)
            ended = max(arithmetic.share_of(arithmetic.tempered(logits, warm), [end]), LEAST_SHARE)
            changes[end] = warm * log((ended + meant) / ended)
        if arithmetic.is_spent(found):  # all that may come lies outside the model's own vocabulary
            return logits
        known = arithmetic.likeliest(found)
        fits = arithmetic.share_of(arithmetic.tempered(logits, warm), [known]) / arithmetic.share_of(
            arithmetic.tempered(found, warm), [known]
        )
        place = self.places.setdefault(path, Place(min(1.0, fits + meant)))
        for token in place.shares:
            if (after := self.places.get((*path, token))) is not None:
                changes[token] = warm * log(after.worth)
        return arithmetic.shifted(found, changes) if changes else found

    def note(self, run: Run, logits: Logits, token: int) -> None:
        """A token was drawn where the model's logits were these, [V]."""
        place = self.places.get(tuple(run.tokens))
        if place is None:
            return
        token = min(run.stop_ids) if token in run.stop_ids else token
        arithmetic = run.model.backend.arithmetic
        place.shares[token] = arithmetic.share_of(arithmetic.tempered(logits, self._temperature), [token])

    def end(self, path: Sequence[int]) -> None:
        """A text ended, of which so many tokens are known: what was passed is worth what has become of it."""
        for length in reversed(range(len(path) + 1)):
            way = tuple(path[:length])
            place = self.places.get(way)
            if place is not None:
                after = ((share, self.places.get((*way, token))) for token, share in place.shares.items())
                lost = sum(share * (1 - one.worth) for share, one in after if one is not None)
                place.worth = min(1.0, max(LEAST_WORTH, place.fits - lost))

    def _tokens_that_end(self, run: Run) -> list[int]:
        if self._ends is None:
            known = min(run.model.size, run.model.vocabulary.size)
            self._ends = [token for token in range(known) if token not in run.stop_ids and run.means_end(token)]
        return self._ends


def drawn(
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
    """The last of ``options.samples`` texts, each drawn with what the ones before have told.

    Its statistics are those of all of them together. Where the deadline passes, the last whole one. The arguments are
    those of :func:`.search.searched`.
    """
    started = time.perf_counter()
    aligned, last = Aligned(options.usable_temperature), None
    all_of_them = Statistics(prompt_tokens=len(prompt))
    for number in range(options.samples):
        run = start(model, reading, session, replace(options, seed=options.seed + number), watch, worker, healing)
        run.aligned = aligned
        statistics = Statistics(prompt_tokens=len(prompt))
        try:
            run.prefill, prefill = prefill, None
            stop_reason = decode(run, prompt, on_token)
        finally:
            run.constraint.close()
        aligned.end(run.tokens)
        fill_in(statistics, run, time.perf_counter() - started)
        all_of_them.add(statistics)
        interrupted = stop_reason.is_interruption
        if last is None or not interrupted:
            last = conclude(run, session, True, stop_reason, statistics)
        if interrupted:
            break
    assert last is not None, "one text at least is drawn"
    return replace(last, statistics=all_of_them)
