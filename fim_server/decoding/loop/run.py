"""One middle being decoded: what has come of it so far, and how its next token is chosen.

The model's own choice is checked alone first; the full mask is paid for only where it is refused, and then usually lies
ready, computed while the model ran. Rows of logits are the backend's; what is done with them is its arithmetic.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import takewhile
from math import prod
from typing import TYPE_CHECKING

from fim_server.decoding.bias.hidden_characters import Visible
from fim_server.decoding.bias.name_bias import with_name_bias
from fim_server.decoding.bias.project_bias import project_bias_tokens
from fim_server.decoding.bias.undefined_names import DRAWS_BEFORE_MASK, TrackedNames
from fim_server.decoding.ending.merged_tokens import MergedTokens
from fim_server.decoding.ending.rest_of_line import is_on_first_line
from fim_server.decoding.ending.right_closer import EVEN
from fim_server.decoding.loop.constraint import Constraint
from fim_server.decoding.loop.drafting import Drafting
from fim_server.decoding.loop.landing import Landing
from fim_server.decoding.loop.repetition import before_repetition
from fim_server.decoding.loop.unconstrained import Unconstrained
from fim_server.decoding.loop.watch import Interrupted
from fim_server.decoding.protocols import StartingSession
from fim_server.decoding.results import StopReason
from fim_server.language.shapes import SINGLE_LINE
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from fim_server.decoding.ending.right_closer import RightCloser
    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Beginnings, Matcher, Session, StartedPrefill, Worths
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading

RUNNERS_LOOKED_AT = 8
"""How many of the model's likeliest tokens are tried as an alternative's beginning."""

LANDING_DRAWS, MOST_LANDING_DRAWS = 8, 64
"""Tokens that the budget may rule out at a step before the shortest way to an end is taken instead, and before the step
is given up where that is none: asking about all tokens takes a tenth of a second, and far more where few are left."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The token chosen at one step."""

    token: int | None
    """None if no token may come next."""
    refused: bool
    """Whether the model's own choice was another one that the grammar refused."""
    end_probability: float | None
    """Probability of the end tokens, if the middle may end here."""
    probability: float = 1.0
    """Of the token where tokens are ``scored``: as the model had it before anything was refused; among what heals,
    as long as anything is to be healed. Of an end: of all that would end the middle there."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """A token that was allowed and likely, but not chosen: where another text could begin."""

    path: tuple[int, ...]
    """The tokens of the middle before it."""
    token: int
    probability: float
    """Of the whole way, the first token of the middle to this one, under the masked model."""


@dataclass(frozen=True, slots=True)
class CompletePoint:
    """A length at which the middle was complete."""

    tokens: int
    end_probability: float

    @property
    def score(self) -> float:
        """Length-weighted end-token probability: see the formula of :mod:`.conclusion`."""
        return self.tokens * self.end_probability


class Run:
    """One middle being decoded: the model's cache, the constraint, and what has come of it so far."""

    def __init__(
        self,
        model: FimModel,
        reading: Reading,
        constraint: Constraint,
        stop_ids: frozenset[int],
        options: DecodeOptions,
        watch: Watch,
        healing: str = "",
        constrained: bool = True,
    ) -> None:
        self.model = model
        self.allowance = healing_tokens(model, healing)
        """Tokens that what is written again may take, besides the middle's."""
        self.budget = budget_of(model, options) + self.allowance
        """Tokens that the run may have: those of the middle, and of what is written again before it."""
        self.reading = reading
        self.constraint = constraint
        self.stop_ids = stop_ids
        self._arithmetic = model.backend.arithmetic
        self._sampler = self._arithmetic.sampler(options.usable_temperature, options.seed)
        self.watch = watch
        self.fast_forward = options.fast_forward
        self.single_line = options.single_line
        self.stop_repetition = options.stop_repetition
        self.scored = options.scored
        self._least_likelihood = options.least_likelihood
        self._unlikely_if_nothing = options.unlikely_if_nothing
        self.no_comments = options.no_comments
        self._word_ends, self._line_begun = options.word_ends, options.line_begun
        self._says_something = options.says_something
        self._advice = options.project_bias
        self._preference = options.name_bias
        self.drafting = Drafting(model, None if options.fast_forward else options.drafts)
        self.passes = 0
        """After those of the prompt."""
        self._closing = options.right_closer if constrained else None
        self._following = options.rest_of_line if constrained else None
        self.merged_tokens = MergedTokens(options.single_line, self._closing, self._following) if constrained else None
        """Shared by the runs of one cut."""
        naming = options.undefined_names if options.constrained else None
        self._names = None if naming is None else TrackedNames(naming, model.vocabulary, healing)
        self._visible = Visible(model.vocabulary, options.invisible)
        self._empty: float | None = None
        """Probability of the empty middle, where it was decided that the middle is that."""
        self.landing: Landing | None = None
        """Keeps the run within its budget, where the matcher can."""
        self.healing = healing.encode()
        """What is still to be written again."""
        self._healed = self.healing
        """All of that."""
        self.healed_tokens = 0
        """Tokens that hold nothing of the middle."""
        self.runners_up: list[RunnerUp] | None = None
        """Collected where it is a list."""
        self.frontier: Beginnings | None = None
        """Told of what else might have come, where it is one."""
        self.aligned: Worths | None = None
        """What texts drawn before have told, where it is one."""
        self.chunk = options.prefill_chunk
        """Tokens of the prompt in one forward pass."""
        self.prefill: StartedPrefill | None = None
        """What reads the prompt already."""
        self.reused = 0
        self.prefilled = 0
        self.started = time.perf_counter()
        self.prefill_seconds = 0.0
        self.hidden_seconds = 0.0
        """The part of it that lies before the run began."""
        self.tokens: list[int] = []
        self.probabilities: list[float] = []
        """Of each of the tokens, as :attr:`Choice.probability`."""
        self._chosen = 1.0
        """Of the token that is appended next."""
        self.ended = 0.0
        """Of the end, where the middle was ended and is ``scored``."""
        self.unwritten: int | None = None
        """The token that would have come next, where the middle would have become too unlikely by it."""
        self.probability = 1.0
        """Of the middle so far, where runners-up are collected."""
        self.points: list[CompletePoint] = []
        self.refused = 0
        self.fast_forwarded = 0
        self._counts: dict[int, tuple[int, int, float, int]] = {}
        """What was counted when the token after so many was chosen, for going back there."""
        self.model_seconds = 0.0
        self.forward_seconds = 0.0
        """Time of the last forward pass of one token: what a mask can hide behind."""

    def forward(self, token_ids: Sequence[int]) -> Logits:
        """Timed :meth:`FimModel.forward`."""
        self.watch.check()
        started = time.perf_counter()
        logits = self.reading.forward(token_ids)
        self._note_pass(started)
        return logits

    def _note_pass(self, started: float) -> None:
        self.forward_seconds = time.perf_counter() - started
        self.model_seconds += self.forward_seconds

    def read_on(self, token_ids: Sequence[int]) -> Logits:
        """Read tokens of the middle, and behind them those of a draft, if there is one; the logits after the former."""
        self.passes += 1
        self._take_back(0)
        if not self.drafting.is_on:
            return self.forward(token_ids)
        drafted = self._drafted()
        self.watch.check()
        started = time.perf_counter()
        rows = self.reading.forward_rows([*token_ids, *drafted], 1 + len(drafted))
        self._note_pass(started)
        self.drafting.note(drafted, rows[1:])
        return rows[0]

    def _drafted(self) -> list[int]:
        """Tokens that may come next."""
        if self.healing or not self.reading.crops or (self.landing is not None and self.landing.is_near):
            return []
        return self.drafting.propose(self._written(), self.budget - len(self.tokens), self.single_line)

    def _take_back(self, tokens: int) -> None:
        """Have the model forget what it has read ahead, and so many tokens before."""
        surplus = tokens + self.drafting.drop()
        started = time.perf_counter()
        self.reading.rewind(surplus)
        self.model_seconds += time.perf_counter() - started

    def read_concurrently(self, prompt: Sequence[int]) -> Logits | None:
        """The logits after a prompt whose reading was begun before; None where it was not, or has not ended."""
        prefill, self.prefill = self.prefill, None
        if prefill is None:
            return None
        logits = prefill.logits(prompt)
        self.prefilled, self.prefill_seconds = prefill.tokens, prefill.seconds
        self.model_seconds += prefill.seconds
        self.hidden_seconds = prefill.seconds_before(self.started)
        if logits is not None:
            self.reused = prefill.reused
        return logits

    def take(self, choice: Choice) -> int | StopReason:
        """What follows from a choice, its complete point noted: the token to append, or the end."""
        if choice.end_probability is not None:
            self.points.append(CompletePoint(len(self.tokens), choice.end_probability))
        if choice.token is None:
            return StopReason.DEAD_END
        if self.watch.is_late() and not self._has_end():
            raise Interrupted(StopReason.DEADLINE)
        if choice.token in self.stop_ids:
            self.refused += choice.refused
            self.ended = choice.probability
            return StopReason.END_TOKEN
        if len(self.tokens) >= self.budget:
            return StopReason.BUDGET
        if (kept := self.repetition()) is not None:
            self.points = [point for point in self.points if point.tokens <= kept]
            return StopReason.REPETITION
        if self._is_unlikely(choice):
            self.unwritten = choice.token
            return StopReason.UNLIKELY
        self.refused += choice.refused
        self._chosen = choice.probability
        return choice.token

    def _is_unlikely(self, choice: Choice) -> bool:
        """Whether all of the middle, with what was chosen, is too unlikely to go on with."""
        if not self._least_likelihood or self.likelihood() * choice.probability >= self._least_likelihood:
            return False
        return self._unlikely_if_nothing or self._has_end()

    def _has_end(self) -> bool:
        """Return whether the middle may end somewhere in what is written so far."""
        points = (point for point in self.points if point.tokens > self.healed_tokens)
        return any(self.may_end(point.tokens) for point in points)

    def likelihood(self) -> float:
        """Probability of all of the middle so far, where its tokens are scored."""
        return prod(self.probabilities[self.healed_tokens :])

    def follow(self, path: Sequence[int], probabilities: Sequence[float]) -> None:
        """Append what another run has written."""
        for token, self._chosen in zip(path, probabilities, strict=True):
            self.append(token)

    def others(self, logits: Logits, chosen: int, least: float) -> Iterator[tuple[int, float]]:
        """The likeliest tokens besides the chosen one that may come next, with their probabilities by the logits [V].

        The end is one of them, as its lowest token, with the probability of all that means it; not of an empty middle.
        ``least``: the probability that one has to have.
        """
        if self.healing:
            logits = self._arithmetic.only(logits, self.model.vocabulary.towards(self.healing, len(logits)))
        for token, probability in self._arithmetic.top(self._arithmetic.shares(logits), RUNNERS_LOOKED_AT):
            if probability < least or len(self.tokens) >= self.budget:
                break
            means_end = token in self.stop_ids or (not self.healing and self.means_end(token))
            if token != chosen and not means_end and self.fits(token) and self._lands(token):
                yield token, probability
        if chosen not in self.stop_ids and len(self.tokens) > self.healed_tokens and self.constraint.is_complete():
            end = min(self.stop_ids)
            probability = self._probability(logits, end)
            if probability >= least and self.may_end(len(self.tokens)):
                yield end, probability

    def append(self, token: int) -> None:
        """Append an allowed token to the middle."""
        self.constraint.commit(token)
        self.tokens.append(token)
        self.probabilities.append(self._chosen)
        if self.healing:
            self._note_healed(token)

    def _note_healed(self, token: int) -> None:
        text = self.model.vocabulary.token_bytes(token)
        self.healed_tokens += len(text) <= len(self.healing)
        self.healing = self.healing[len(text) :]

    def rewind(self, tokens: int) -> None:
        """Go back to fewer tokens, after which a token was chosen; the constraint is there already.

        What was counted since is not counted any more, but for the time it took.
        """
        self._take_back(len(self.tokens) - tokens)
        del self.tokens[tokens:], self.probabilities[tokens:]
        self.healing, self.healed_tokens, self._empty = self._healed, 0, None
        for token in self.tokens:
            if not self.healing:
                break
            self._note_healed(token)
        self.points = [point for point in self.points if point.tokens < tokens]
        self.refused, self.fast_forwarded, self.probability, runners_up = self._counts[tokens]
        if self.runners_up is not None:
            del self.runners_up[runners_up:]

    def repetition(self) -> int | None:
        """Where to cut a text that repeats itself, if that is to end it; see :func:`before_repetition`.

        What ends a text because its budget does is often the same bracket over and over.
        """
        if not self.stop_repetition or (self.landing is not None and self.landing.steps):
            return None
        return before_repetition(self.tokens)

    def append_forced(self) -> list[int]:
        """Append the tokens that every continuation begins with, as far as the budget reaches; returns them.

        The middle is complete after none of them but the last: before, something has to follow.
        """
        if not self.fast_forward or self.healing or len(self.tokens) >= self.budget:
            return []
        if self.landing is not None and self.landing.is_near:
            return []  # in its own tokens the forced text may not fit
        known = self.model.size  # a tokenizer may have tokens that the model has not
        forced = list(takewhile(lambda token: token < known, self.constraint.forced(self.model.vocabulary)))
        del forced[self.budget - len(self.tokens) :]
        forced = self._visible.allowed_of(self.tokens, forced)
        if self._names is not None:
            forced = self._names.allowed_of(self.tokens, forced)
        for token in forced:
            self.constraint.commit(token)
        if forced and self.landing is not None and not self.landing.has_room(len(self.tokens) + len(forced)):
            self.constraint.rollback(len(forced))
            return []
        self.tokens += forced
        self.probabilities += [1.0] * len(forced)
        self.fast_forwarded += len(forced)
        return forced

    def choose(self, logits: Logits) -> Choice:
        """The next token, given logits [V]. The model's own choice is checked alone before any mask is used.

        Drawing again from what is left after a refusal gives each allowed token the probability it has among the
        allowed ones, so this samples from exactly the masked distribution.
        """
        if self.landing is not None:
            runners_up = 0 if self.runners_up is None else len(self.runners_up)
            self._counts[len(self.tokens)] = self.refused, self.fast_forwarded, self.probability, runners_up
            logits = self.landing.secure(self, logits)
        logits = self._advised(logits)  # in the tokenizer's tokens, joined ones among them
        logits = self._preferred(logits if self.merged_tokens is None else self.merged_tokens.folded(self, logits))
        weighed = logits if self.aligned is None or self.healing else self.aligned.weighed(self, logits)
        choice = self._choose(weighed)
        if self.aligned is not None and choice.token is not None:
            self.aligned.note(self, logits, choice.token)
        if not self.scored or choice.token is None:
            return choice
        if self.frontier is not None:
            self.frontier.note(self, logits, choice)
        return replace(choice, probability=self._probability(logits, choice.token))

    def _advised(self, logits: Logits) -> Logits:
        """The logits [V] of the next token, what is known besides mixed in.

        While something is written again, only tokens that do are left: what is known is known of those.
        """
        if self._advice is None:
            return logits
        vocabulary, arithmetic = self.model.vocabulary, self._arithmetic
        middle = self._written()

        def counts(token: int, text: bytes) -> bool:
            return self.means_end(token) or self.constraint.stands(middle, text)

        weights = project_bias_tokens(self._advice, middle, self.healing, vocabulary, len(logits), counts)
        if not weights:
            return logits
        if self.healing:
            logits = arithmetic.only(logits, vocabulary.towards(self.healing, len(logits)))
            if arithmetic.is_spent(logits):
                return logits
        probabilities = arithmetic.shares(logits)
        certainty, heaviest = float(probabilities[arithmetic.likeliest(logits)]), max(weights.values())
        shares = {
            token: self._advice.share(weight, heaviest, certainty, float(probabilities[token]))
            for token, weight in weights.items()
        }
        return arithmetic.mixed(logits, shares)

    def _preferred(self, logits: Logits) -> Logits:
        """The logits [V] of the next token, the likeliest changed by what is thought of them."""
        if self._preference is None:
            return logits
        vocabulary, arithmetic = self.model.vocabulary, self._arithmetic
        return with_name_bias(logits, self._preference, self._written(), self.healing, vocabulary, arithmetic)

    def _written(self) -> bytes:
        """The text of the middle so far."""
        return b"".join(self.model.vocabulary.token_bytes(token) for token in self.tokens)[len(self._healed) :]

    def _choose(self, logits: Logits) -> Choice:
        is_end = self.constraint.is_complete() and not self._owes_text()
        end_probability = self._end_probability(logits) if is_end else None
        if self._closing is not None and self._closing.at_once:
            logits = self._weigh_empty(self._closing, logits)
            if self._empty is not None and not self.healing:
                return Choice(min(self.stop_ids), False, self._empty)
        token = self._sampler.draw(logits)
        allowed = self.fits(token)
        means_end = end_probability is not None and token not in self.stop_ids and self.means_end(token)
        if means_end and self.may_end(len(self.tokens)):
            return Choice(min(self.stop_ids), False, end_probability)
        lands = allowed and self._lands(token)
        if not lands or (self.healing and self.runners_up is not None):
            masked = self._masked(logits)
            if masked is None:
                return Choice(None, True, end_probability)
            logits = masked
            drawn = self._draw_allowed(logits, end_probability is not None, ruled_out=allowed and not lands)
            if drawn is None:
                return Choice(None, True, end_probability)
            token = drawn
        self._note_runners_up(logits, token)
        return Choice(token, not allowed, end_probability)

    def _weigh_empty(self, closing: RightCloser, logits: Logits) -> Logits:
        """Decide whether the middle is empty, as far as this step decides it; logits [V] that lead to what was decided.

        While something is written again, a token that goes on with the closer leaves the middle empty; such a token is
        never chosen itself, because the right context has the closer.
        """
        if self._empty is not None:
            return self._rest_alone(logits) if self.healing else logits
        if len(self.tokens) > self.healed_tokens:
            return logits
        vocabulary, known = self.model.vocabulary, len(logits)
        if self.healing:
            logits = self._arithmetic.only(logits, vocabulary.towards(self.healing, known))
            start = self.healing + closing.text
            ends = {token for token in vocabulary.tokens_towards(start) if token < known}
            ends = {token for token in ends if vocabulary.token_bytes(token).startswith(start)}
        else:
            logits = self._arithmetic.copy(logits)
            starts = (closing.text, b"\n") if self.single_line else (closing.text,)
            ends = {token for start in starts for token in vocabulary.tokens_towards(start) if token < known}
            ends = {token for token in ends if vocabulary.token_bytes(token).startswith(starts)} | self.stop_ids
        if not ends or self._arithmetic.is_spent(logits):
            return logits
        share = self._arithmetic.share_of(logits, ends)
        wanted = self._arithmetic.likeliest(logits) in ends
        if share >= EVEN if closing.fresh else wanted:
            self._empty = share
            return self._rest_alone(logits) if self.healing else logits
        if self.healing or (closing.fresh and wanted):
            for token in ends:
                self._arithmetic.refuse(logits, token)
        return logits

    def _probability(self, logits: Logits, token: int) -> float:
        """Of a chosen token, given the logits [V] that it was chosen from."""
        ends = token in self.stop_ids
        if self.healing and not ends:
            logits = self._arithmetic.only(logits, self.model.vocabulary.towards(self.healing, len(logits)))
        if not ends:
            return self._arithmetic.share_of(logits, [token])
        likeliest = self._arithmetic.top(self._arithmetic.shares(logits), RUNNERS_LOOKED_AT)
        others = {other for other, _ in likeliest if other not in self.stop_ids and self.means_end(other)}
        return self._arithmetic.share_of(logits, others | self.stop_ids)

    def _rest_alone(self, logits: Logits) -> Logits:
        """The logits of tokens that write again and nothing else."""
        towards, longest = self.model.vocabulary.tokens_towards(self.healing), len(self.healing)
        lengths = ((token, len(self.model.vocabulary.token_bytes(token))) for token in towards if token < len(logits))
        return self._arithmetic.only(logits, [token for token, length in lengths if length <= longest])

    def means_end(self, token: int) -> bool:
        """Whether a token is an end where the middle may end: a line break, or what stands on the right."""
        if self.single_line and self._breaks(token):
            return True
        text = self.model.vocabulary.token_bytes(token)
        if self._following is not None and self._following.is_written_by(text):
            return is_on_first_line(self.model.vocabulary, self.tokens)
        return self._closing is not None and text.startswith(self._closing.text)

    def _masked(self, logits: Logits) -> Logits | None:
        """The logits with what may not come at minus infinity; None if nothing at all may.

        Where something is to be written again, what the grammar refuses may be among the rest: few tokens begin with
        it, so it is asked about those that are drawn.
        """
        if self.healing:
            known = len(logits)
            return self._arithmetic.only(logits, self.model.vocabulary.towards(self.healing, known))
        words = self.constraint.mask()
        return None if words is None else self._arithmetic.masked(logits, words)

    def _draw_allowed(self, logits: Logits, complete: bool, ruled_out: bool) -> int | None:
        """A token from masked logits [V] that may be wanted and that the budget admits; None if none is found.

        Takes out of the logits what it does not admit. ``ruled_out``: whether the budget has ruled out a token at this
        step already.
        """
        draws = refusals = 0
        found = None
        while not self._arithmetic.is_spent(logits):  # else every allowed token lies outside the model's own vocabulary
            token = self._sampler.draw(logits)
            fits = self.fits(token) if self.healing else not self._is_unwanted(token)
            if fits and self._lands(token):
                found = token
                break
            self._arithmetic.refuse(logits, token)
            if not fits:
                refusals += 1
                if refusals == DRAWS_BEFORE_MASK and self._names is not None and not self.healing:
                    logits[:] = self._arithmetic.masked(logits, self._names.mask(self.tokens))
                continue
            ruled_out = True
            draws += 1
            if draws == LANDING_DRAWS:
                found = self._way_to_end(complete, len(logits))
            if found is not None or draws == MOST_LANDING_DRAWS:
                break
        else:  # nothing that the model has told of may come
            found = self._again(len(logits))
            if found is None:
                found = self._way_to_end(complete, len(logits))
        if ruled_out and self.landing is not None:
            self.landing.note_refusal()
        return found

    def _again(self, size: int) -> int | None:
        """The token that writes again what is to be as it was; None where nothing is, or where it may not come."""
        if not self.healing:
            return None
        try:
            token = self.model.vocabulary.encode(self.healing)[0]
        except ValueError:  # the rest of a character that was begun
            return None
        return token if token < size and self.fits(token) and self._lands(token) else None

    def _way_to_end(self, complete: bool, size: int) -> int | None:
        """The first token of the shortest known way to an end, where the model has ``size`` tokens."""
        if complete and self.may_end(len(self.tokens)):
            return min(self.stop_ids)
        if not self.constraint.can_land():
            return None
        token = self.constraint.landing_token(self.budget - len(self.tokens) - 1)
        return None if token is None or token >= size or self._is_unwanted(token) else token

    def _lands(self, token: int) -> bool:
        """Whether the budget admits an allowed token."""
        return self.landing is None or token in self.stop_ids or self.landing.admits(token, len(self.tokens))

    def fits(self, token: int) -> bool:
        """Whether a token may come next, and may be wanted."""
        return self.constraint.allows(token) and not self._is_unwanted(token)

    def _is_unwanted(self, token: int) -> bool:
        """Return whether an allowed token may be unwanted: for a comment, a whole word, a name, or a hidden character.

        An end is unwanted, too, before the middle says something, where it has to.
        """
        if self._owes_text() and (token in self.stop_ids or self.means_end(token)):
            return True
        if token not in self.stop_ids and self._visible.refuses(self.tokens, token, self.healing):
            return True
        return self._begins_comment(token) or self._lengthens(token) or self._is_unbound(token)

    def _owes_text(self) -> bool:
        """Return whether the middle has to say something and still consists of blanks."""
        return self._says_something and not self._written().strip()

    def _is_unbound(self, token: int) -> bool:
        """Whether a token would load a name that nothing binds, or end a middle that does, where none may."""
        if self._names is None:
            return False
        return not self.may_end(len(self.tokens)) if token in self.stop_ids else self._names.refuses(self.tokens, token)

    def unbound(self, length: int) -> tuple[str, ...]:
        """The names that nothing binds and that the first ``length`` tokens would load, where none may be."""
        return () if self._names is None else self._names.unbound(self.tokens[:length])

    @property
    def has_limits(self) -> bool:
        """Return whether the grammar is not alone in refusing words: names count, or a word is whole."""
        return self._names is not None or self._word_ends

    def may_end(self, length: int) -> bool:
        """Whether the names of the first ``length`` tokens let the middle end there."""
        return not self.unbound(length)

    def _lengthens(self, token: int) -> bool:
        """Return whether a token would lengthen the word or the indentation before the middle where that is whole."""
        if not (self._word_ends or self._line_begun) or len(self.tokens) > self.healed_tokens:
            return False
        first = self.model.vocabulary.token_bytes(token)[len(self.healing) :][:1]
        if first in (b" ", b"\t"):
            return self._line_begun
        return self._word_ends and (first.isalnum() or first == b"_" or first >= b"\x80")

    def _begins_comment(self, token: int) -> bool:
        """Whether an allowed token begins a comment where none is wanted."""
        return self.no_comments and token not in self.stop_ids and self.constraint.begins_comment(token)

    def _breaks(self, token: int) -> bool:
        """Whether a token begins a new line; only after blanks, or the line would lose what stands before."""
        return self.model.vocabulary.token_bytes(token).lstrip(b" \t\r").startswith(b"\n")

    def _note_runners_up(self, logits: Logits, chosen: int) -> None:
        """Note the likeliest allowed token besides the chosen one, if it is not an end token right at the start."""
        if self.runners_up is None:
            return
        shares = self._arithmetic.shares(logits)
        for token, probability in self._arithmetic.top(shares, RUNNERS_LOOKED_AT):
            if probability == 0 or len(self.tokens) >= self.budget:
                break
            empty = token in self.stop_ids and len(self.tokens) <= self.healed_tokens
            breaks = token not in self.stop_ids and not self.healing and self.means_end(token)
            if token != chosen and not empty and not breaks and self.fits(token) and self._lands(token):
                self.runners_up.append(RunnerUp(tuple(self.tokens), token, self.probability * probability))
                break
        self.probability *= float(shares[chosen]) if chosen < len(shares) else 0.0

    def _end_probability(self, logits: Logits) -> float:
        """Probability of the end tokens under the unconstrained model."""
        return self._arithmetic.share_of(logits, self.stop_ids)


def budget_of(model: FimModel, options: DecodeOptions) -> int:
    """Tokens that a middle may have: at most half of the model's window."""
    return min(options.max_new_tokens, model.window // 2)


def healing_tokens(model: FimModel, healing: str) -> int:
    """Tokens that a text to be written again may take, besides those of the middle."""
    return min(len(model.vocabulary.encode(healing)), MOST_UNSETTLED) if healing else 0


def start(
    model: FimModel,
    reading: Reading,
    session: Session | None,
    options: DecodeOptions,
    watch: Watch,
    worker: ThreadPoolExecutor,
    healing: str = "",
) -> Run:
    """A run under a session's constraint, or under none. ``worker``: where its masks are computed.

    ``healing``: what it has to write before the middle (:class:`.healing.Healing`).
    """
    budget = budget_of(model, options) + healing_tokens(model, healing)
    written_first: dict[str, bytes] = {"healing": healing.encode()} if healing else {}
    stop_ids = frozenset(model.vocabulary.end_token_ids)
    if session is None:
        stop_ids |= model.format.control_ids  # no grammar keeps these out of the text

    def make_matcher() -> Matcher:
        if session is None:
            return Unconstrained(model.vocabulary, healing.encode())
        if options.single_line:
            return session.matcher(model.vocabulary, shape=SINGLE_LINE, **written_first)
        return session.matcher(model.vocabulary, **written_first)

    lands = options.landing and session is not None
    words = model.backend.mask_words(model.vocabulary.size)
    begin = session.start if isinstance(session, StartingSession) else None
    constraint = Constraint(make_matcher, words, worker, budget if lands else None, begin)
    run = Run(model, reading, constraint, stop_ids, options, watch, healing, session is not None)
    if lands:
        run.landing = Landing(constraint, budget)
    return run
