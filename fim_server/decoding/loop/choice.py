"""Choice of the next token from a row of logits.

The grammar first checks the model's own choice alone. Only a refusal pays for the full mask, which is then usually
ready, because a worker computes it while the model runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.decoding.bias.undefined_names import DRAWS_BEFORE_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.decoding.ending.ends import Ends
    from fim_server.decoding.loop.budget import Budget
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.decoding.loop.middle import Middle
    from fim_server.decoding.loop.rules import Rules
    from fim_server.decoding.options import SamplingOptions
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

RUNNERS_LOOKED_AT = 8
"""The model's likeliest tokens that are tried as an alternative's beginning."""

LANDING_DRAWS, MOST_LANDING_DRAWS = 8, 64
"""Tokens that landing may rule out at a step. After the first number the run takes the shortest known way to an end;
after the second it gives the step up where no way is known. Checking all tokens takes a tenth of a second or more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Token chosen at one step."""

    token: int | None
    """None if no token may come next."""
    refused: bool
    """True if the grammar or a rule refused the model's own choice."""
    end_probability: float | None
    """Probability of the end tokens, if the middle may end here."""
    probability: float = 1.0
    """By the model with the biases, before any refusal, where tokens are ``scored``; among the tokens that heal while
    healed text is left. Of an end: of all tokens that mean the end there."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """Token that was allowed and likely but not chosen: the beginning of an alternative."""

    path: tuple[int, ...]
    """Tokens before it."""
    token: int
    probability: float
    """Probability of the path and the token together, under the masked model."""


class Chooser:
    """Chooser of a run's tokens.

    Attributes:
        runners_up: Collected if it is a list.
        path_probability: Probability of the middle so far under the masked model, where runners-up are collected.
    """

    def __init__(
        self,
        model: FimModel,
        constraint: Constraint,
        middle: Middle,
        ends: Ends,
        rules: Rules,
        budget: Budget,
        options: SamplingOptions,
    ) -> None:
        self._vocabulary = model.vocabulary
        self._arithmetic = model.backend.arithmetic
        self._sampler = self._arithmetic.sampler(options.usable_temperature, options.seed)
        self._constraint = constraint
        self._middle = middle
        self._ends = ends
        self._rules = rules
        self._budget = budget
        self.runners_up: list[RunnerUp] | None = None
        self.path_probability = 1.0

    def choose(self, logits: Logits) -> Choice:
        """Choose the next token, given logits [V].

        Drawing again after a refusal gives each allowed token its probability among the allowed ones: this samples
        from exactly the masked distribution.
        """
        middle, ends = self._middle, self._ends
        may_end = self._constraint.is_complete() and not self._rules.owes_text()
        end_probability = self._arithmetic.share_of(logits, ends.stop_ids) if may_end else None
        logits = ends.weigh_empty(logits)
        if ends.empty is not None and not middle.healing:
            return Choice(ends.token, False, ends.empty)
        token = self._sampler.draw(logits)
        allowed = self._rules.fits(token)
        means_end = may_end and token not in ends.stop_ids and ends.means_end(token)
        if means_end and self._rules.may_end(len(middle.tokens)):
            return Choice(ends.token, False, end_probability)
        lands = allowed and self._lands(token)
        if not lands or (middle.healing and self.runners_up is not None):
            masked = self._masked(logits)
            if masked is None:
                return Choice(None, True, end_probability)
            logits = masked
            drawn = self._draw_allowed(logits, may_end, ruled_out=allowed and not lands)
            if drawn is None:
                return Choice(None, True, end_probability)
            token = drawn
        self._note_runner_up(logits, token)
        return Choice(token, not allowed, end_probability)

    def probability(self, logits: Logits, token: int) -> float:
        """Return the probability of a chosen token, given the logits [V] before any refusal."""
        if token not in self._ends.stop_ids:
            return self._arithmetic.share_of(self._towards_healing(logits), [token])
        likeliest = self._arithmetic.top(self._arithmetic.shares(logits), RUNNERS_LOOKED_AT)
        others = {other for other, _ in likeliest if self._is_other_end(other)}
        return self._arithmetic.share_of(logits, others | self._ends.stop_ids)

    def others(self, logits: Logits, chosen: int, least: float) -> Iterator[tuple[int, float]]:
        """Yield the likeliest tokens besides the chosen one that may come next, with their probabilities.

        The end counts as one of them, with the probability of all tokens that mean it, unless the middle is empty.

        Args:
            logits: [V], before any refusal.
            chosen: The token to leave out.
            least: Least probability of a token.
        """
        logits = self._towards_healing(logits)
        middle, ends = self._middle, self._ends
        for token, probability in self._arithmetic.top(self._arithmetic.shares(logits), RUNNERS_LOOKED_AT):
            if probability < least or len(middle.tokens) >= self._budget.tokens:
                break
            is_end = token in ends.stop_ids or (not middle.healing and ends.means_end(token))
            if token != chosen and not is_end and self._rules.fits(token) and self._lands(token):
                yield token, probability
        if chosen not in ends.stop_ids and not middle.is_empty and self._constraint.is_complete():
            probability = self.probability(logits, ends.token)
            if probability >= least and self._rules.may_end(len(middle.tokens)):
                yield ends.token, probability

    def _towards_healing(self, logits: Logits) -> Logits:
        """Return the logits [V] of the tokens that write the healed text, or of all if none is left."""
        healing = self._middle.healing
        return self._arithmetic.only(logits, self._vocabulary.towards(healing, len(logits))) if healing else logits

    def _is_other_end(self, token: int) -> bool:
        return token not in self._ends.stop_ids and self._ends.means_end(token)

    def _masked(self, logits: Logits) -> Logits | None:
        """Return the logits [V] with refused tokens at minus infinity; None if the grammar refuses all.

        While healed text is left, the few tokens that write it remain, and the grammar checks those that are drawn.
        """
        if self._middle.healing:
            return self._towards_healing(logits)
        words = self._constraint.mask()
        return None if words is None else self._arithmetic.masked(logits, words)

    def _draw_allowed(self, logits: Logits, may_end: bool, ruled_out: bool) -> int | None:
        """Draw from masked logits [V] until rules and landing admit a token; None if there is none.

        Sets the logits of refused tokens to minus infinity. ``ruled_out``: whether landing has already ruled out a
        token at this step.
        """
        healing, names = self._middle.healing, self._rules.names
        draws = refusals = 0
        found = None
        while not self._arithmetic.is_spent(logits):  # else every allowed token lies outside the model's own vocabulary
            token = self._sampler.draw(logits)
            fits = self._rules.fits(token) if healing else not self._rules.refuses(token)
            if fits and self._lands(token):
                found = token
                break
            self._arithmetic.refuse(logits, token)
            if not fits:
                refusals += 1
                if refusals == DRAWS_BEFORE_MASK and names is not None and not healing:
                    logits[:] = self._arithmetic.masked(logits, names.mask(self._middle.tokens))
                continue
            ruled_out = True
            draws += 1
            if draws == LANDING_DRAWS:
                found = self._way_to_end(may_end, len(logits))
            if found is not None or draws == MOST_LANDING_DRAWS:
                break
        else:  # no token of the row may come
            found = self._same_again(len(logits))
            if found is None:
                found = self._way_to_end(may_end, len(logits))
        if ruled_out:
            self._budget.note_refusal()
        return found

    def _same_again(self, size: int) -> int | None:
        """Return the tokenizer's own first token of the healed text, if one of ``size`` tokens and allowed."""
        if not self._middle.healing:
            return None
        try:
            token = self._vocabulary.encode(self._middle.healing)[0]
        except ValueError:  # the rest of a character that was begun
            return None
        return token if token < size and self._rules.fits(token) and self._lands(token) else None

    def _way_to_end(self, may_end: bool, size: int) -> int | None:
        """Return the first token of the shortest known way to an end, where the model has ``size`` tokens."""
        written = len(self._middle.tokens)
        if may_end and self._rules.may_end(written):
            return self._ends.token
        if not self._constraint.can_land():
            return None
        token = self._constraint.landing_token(self._budget.tokens - written - 1)
        return None if token is None or token >= size or self._rules.refuses(token) else token

    def _lands(self, token: int) -> bool:
        return token in self._ends.stop_ids or self._budget.admits(token, len(self._middle.tokens))

    def _note_runner_up(self, logits: Logits, chosen: int) -> None:
        """Note the likeliest allowed token besides the chosen one, if it is not an end right at the start."""
        if self.runners_up is None:
            return
        middle, ends = self._middle, self._ends
        shares = self._arithmetic.shares(logits)
        for token, probability in self._arithmetic.top(shares, RUNNERS_LOOKED_AT):
            if probability == 0 or len(middle.tokens) >= self._budget.tokens:
                break
            empty = token in ends.stop_ids and middle.is_empty
            breaks = not middle.healing and self._is_other_end(token)
            if token != chosen and not empty and not breaks and self._rules.fits(token) and self._lands(token):
                self.runners_up.append(RunnerUp(tuple(middle.tokens), token, self.path_probability * probability))
                break
        self.path_probability *= float(shares[chosen]) if chosen < len(shares) else 0.0
