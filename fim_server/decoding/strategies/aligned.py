"""Grammar-aligned sampling: texts drawn as the model would write them, given that they fit.

A mask leaves out the tokens after which nothing fits and shares their probability among the others. The result is not
the model's distribution of texts that fit. A beginning after which the grammar refuses nearly all the model would write
stays as likely as one after which it refuses nothing.

The worth of a beginning, the probability that the model continues it with text that fits, is unknown before it is
tried. Each drawn text tells something about the places that it passed, and the next text uses that: adaptive sampling
with approximate expected futures (Park et al. 2024, "Grammar-Aligned Decoding", arXiv 2405.21047, section 3), over an
exact mask. An untried beginning counts as worth 1, so it is overrated until it is tried. With more texts their
distribution approaches the model's, given that the text fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, log
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import conclude
from fim_server.decoding.loop.loop import decode
from fim_server.decoding.results import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import Completion
    from fim_server.decoding.strategies.cursor import Cursor
    from fim_server.models.backend import Logits

LEAST_WORTH, LEAST_SHARE = 1e-9, 1e-30
"""Least worth of a beginning, so that a text can still take it where nothing else fits; least share of a token."""

LEAST_WARM = 0.01
"""Least temperature. Logits divided by less overflow single precision; below it, sampling takes the likeliest token."""

Path = tuple[int, ...]


@dataclass(slots=True)
class Place:
    """Place that a drawn text passed.

    Attributes:
        fits: Probability of all tokens together that may come next.
        shares: Probabilities of the tokens drawn here.
        worth: Probability that the model continues with text that fits, as far as it is known.
    """

    fits: float
    shares: dict[int, float] = field(default_factory=dict)
    worth: float = 1.0


class Aligned:
    """Worths of beginnings, learnt from the texts drawn so far for one prompt, session and temperature.

    Tokens that write healed text are drawn as without it, and so are the tokens that the budget's end forces.
    """

    def __init__(self, temperature: float) -> None:
        self._temperature = max(temperature, LEAST_WARM)
        self._ends: list[int] | None = None
        """Tokens that mean an end where the middle may end."""
        self.places: dict[Path, Place] = {}

    def weighed(self, run: Run, logits: Logits) -> Logits:
        """Return the logits [V] of a run's next token, masked and weighed by the known worths."""
        words = run.constraint.mask()
        if words is None:
            self.places[tuple(run.tokens)] = Place(0.0)
            return logits
        arithmetic, warm = run.model.backend.arithmetic, self._temperature
        found = arithmetic.masked(logits, words)
        path, end, meant = tuple(run.tokens), run.ends.token, 0.0
        changes: dict[int, float] = {}
        if run.constraint.is_complete() and (ends := self._tokens_that_end(run)):
            found = arithmetic.shifted(found, dict.fromkeys(ends, -inf))  # a run that draws one ends as well
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
        """Take a token that a run has drawn, and the model's logits [V] there."""
        place = self.places.get(tuple(run.tokens))
        if place is None:
            return
        token = run.ends.token if token in run.stop_ids else token
        arithmetic = run.model.backend.arithmetic
        place.shares[token] = arithmetic.share_of(arithmetic.tempered(logits, self._temperature), [token])

    def end(self, path: Sequence[int]) -> None:
        """Update the worths of the places that a finished text passed."""
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
            self._ends = [token for token in range(known) if token not in run.stop_ids and run.ends.means_end(token)]
        return self._ends


def drawn(cursor: Cursor, options: DecodeOptions, on_token: Callable[[Sequence[int]], None]) -> Completion:
    """Return the last of ``options.samples`` texts, with the statistics of all of them.

    After the deadline the last whole text is returned.
    """
    aligned, last = Aligned(options.usable_temperature), None
    total = Statistics(prompt_tokens=len(cursor.prompt))
    for number in range(options.samples):
        run = cursor.start(replace(options, seed=options.seed + number))
        run.aligned = aligned
        try:
            stop_reason = decode(run, cursor.prompt, on_token)
        finally:
            run.constraint.close()
        aligned.end(run.tokens)
        statistics = cursor.statistics_of(run)
        total.add(statistics)
        interrupted = stop_reason.is_interruption
        if last is None or not interrupted:
            last = conclude(run, cursor.session, True, stop_reason, statistics)
        if interrupted:
            break
    assert last is not None, "one text at least is drawn"
    return replace(last, statistics=total)
