"""One middle being decoded."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from fim_server.decoding.bias.name_bias import with_name_bias
from fim_server.decoding.bias.project_bias import with_project_bias
from fim_server.decoding.ending.ends import Ends
from fim_server.decoding.ending.merged_tokens import MergedTokens
from fim_server.decoding.loop.budget import Budget
from fim_server.decoding.loop.choice import Chooser
from fim_server.decoding.loop.constraint import Constraint
from fim_server.decoding.loop.middle import CompletePoint, Middle
from fim_server.decoding.loop.passes import Passes
from fim_server.decoding.loop.repetition import before_repetition
from fim_server.decoding.loop.rules import Rules
from fim_server.decoding.loop.unconstrained import Unconstrained
from fim_server.decoding.loop.watch import Interrupted
from fim_server.decoding.protocols import StartingSession
from fim_server.decoding.results import StopReason
from fim_server.language.shapes import SINGLE_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from fim_server.decoding.loop.choice import Choice
    from fim_server.decoding.loop.landing import Landing
    from fim_server.decoding.loop.watch import Watch
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import Beginnings, Matcher, Session, Worths
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading


class Run:
    """State of one middle: its tokens, its forward passes, its constraint and the choice of its next token.

    Attributes:
        middle: Tokens so far.
        constrained: Whether a grammar constrains it.
        passes: Forward passes.
        budget: Tokens that it may have.
        ends: Tokens that mean its end.
        rules: Rules besides the grammar.
        chooser: Choice of the next token.
        merged_tokens: Shared by the runs at one cursor; None without a constraint.
        frontier: Beginnings of other texts; collected if it is not None.
        aligned: Worths of beginnings that earlier texts had; None if runs do not learn from each other.
        refused: Steps at which the grammar or a rule refused the model's own choice.
        fast_forwarded: Tokens that the model was not asked for.
        ended: Probability of the end, where the run chose it and tokens are scored.
        unwritten: The token that would have made the middle too unlikely.
    """

    def __init__(
        self,
        model: FimModel,
        reading: Reading,
        constraint: Constraint,
        stop_ids: frozenset[int],
        options: DecodeOptions,
        watch: Watch,
        budget: Budget,
        healing: str = "",
        constrained: bool = True,
    ) -> None:
        self.model = model
        self.constrained = constrained
        self.constraint = constraint
        self.options = options
        self.budget = budget
        self.middle = Middle(model.vocabulary, healing.encode())
        self.passes = Passes(model, reading, watch, options)
        self.ends = Ends(model, self.middle, stop_ids, options, constrained)
        self.rules = Rules(model, constraint, self.middle, self.ends, options, healing)
        self.chooser = Chooser(model, constraint, self.middle, self.ends, self.rules, budget, options)
        self.merged_tokens: MergedTokens | None = None
        if constrained:
            self.merged_tokens = MergedTokens(options.single_line, self.ends.closer, self.ends.rest)
        self.frontier: Beginnings | None = None
        self.aligned: Worths | None = None
        self.refused = self.fast_forwarded = 0
        self.ended = 0.0
        self.unwritten: int | None = None
        self._chosen = 1.0
        """Probability of the token that is appended next."""
        self._counts: dict[int, tuple[int, int, float, int]] = {}
        """Counts when the token after so many was chosen, for going back there."""

    @property
    def tokens(self) -> list[int]:
        """Return the tokens so far, those of the healed text included."""
        return self.middle.tokens

    @property
    def stop_ids(self) -> frozenset[int]:
        return self.ends.stop_ids

    @property
    def landing(self) -> Landing | None:
        """Return what keeps the run within its budget; None without a session, or if the option `landing` is off."""
        return self.budget.landing

    def choose(self, logits: Logits) -> Choice:
        """Choose the next token, given logits [V], or after landing went back the token of an earlier step.

        Biases come first, then the grammar and the rules.
        """
        if self.landing is not None:
            runners_up = len(self.chooser.runners_up or ())
            counts = self.refused, self.fast_forwarded, self.chooser.path_probability, runners_up
            self._counts[len(self.tokens)] = counts
            logits = self.landing.secure(self, logits)
        logits = self._biased(logits)
        weighed = logits if self.aligned is None or self.middle.healing else self.aligned.weighed(self, logits)
        choice = self.chooser.choose(weighed)
        if self.aligned is not None and choice.token is not None:
            self.aligned.note(self, logits, choice.token)
        if not self.options.scored or choice.token is None:
            return choice
        if self.frontier is not None:
            self.frontier.note(self, logits, choice)
        return replace(choice, probability=self.chooser.probability(logits, choice.token))

    def _biased(self, logits: Logits) -> Logits:
        """Return the logits [V] with the project bias, merged tokens and the name bias applied.

        The project bias comes first, because it is in the tokenizer's own tokens, merged ones among them.
        """
        options, middle, vocabulary = self.options, self.middle, self.model.vocabulary
        arithmetic = self.model.backend.arithmetic
        if options.project_bias is not None:
            written = middle.text()

            def counts(token: int, text: bytes) -> bool:
                return self.ends.means_end(token) or self.constraint.stands(written, text)

            bias, healing = options.project_bias, middle.healing
            logits = with_project_bias(logits, bias, written, healing, vocabulary, arithmetic, counts)
        if self.merged_tokens is not None:
            logits = self.merged_tokens.folded(self, logits)
        if options.name_bias is not None:
            bias_of_names, written = options.name_bias, middle.text()
            logits = with_name_bias(logits, bias_of_names, written, middle.healing, vocabulary, arithmetic)
        return logits

    def others(self, logits: Logits, chosen: int, least: float) -> Iterator[tuple[int, float]]:
        """Yield the likeliest other tokens of a step; see :meth:`.choice.Chooser.others`."""
        return self.chooser.others(logits, chosen, least)

    def take(self, choice: Choice) -> int | StopReason:
        """Note a choice's complete point; return the token to append, or the reason to stop.

        Raises Interrupted if the middle has no end yet and ``first_end_ms`` is over.
        """
        if choice.end_probability is not None:
            self.middle.points.append(CompletePoint(len(self.tokens), choice.end_probability))
        if choice.token is None:
            return StopReason.DEAD_END
        if self.passes.watch.is_late() and not self._has_end():
            raise Interrupted(StopReason.DEADLINE)
        if choice.token in self.stop_ids:
            self.refused += choice.refused
            self.ended = choice.probability
            return StopReason.END_TOKEN
        if len(self.tokens) >= self.budget.tokens:
            return StopReason.BUDGET
        if (kept := self.repetition()) is not None:
            self.middle.points = [point for point in self.middle.points if point.tokens <= kept]
            return StopReason.REPETITION
        if self._is_unlikely(choice):
            self.unwritten = choice.token
            return StopReason.UNLIKELY
        self.refused += choice.refused
        self._chosen = choice.probability
        if self.options.single_line and not self.constrained and self._breaks_line(choice.token):
            self.append(choice.token)
            return StopReason.END_TOKEN
        return choice.token

    def _breaks_line(self, token: int) -> bool:
        """Return whether a token has a line break after the healed text."""
        return b"\n" in self.model.vocabulary.token_bytes(token)[len(self.middle.healing) :]

    def _is_unlikely(self, choice: Choice) -> bool:
        """Return whether the middle with the chosen token is too unlikely to go on with."""
        least = self.options.least_likelihood
        if not least or self.middle.likelihood() * choice.probability >= least:
            return False
        return self.options.unlikely_if_nothing or self._has_end()

    def _has_end(self) -> bool:
        """Return whether the middle may end somewhere in its tokens so far."""
        points = (point for point in self.middle.points if point.tokens > self.middle.healed_tokens)
        return any(self.rules.may_end(point.tokens) for point in points)

    def repetition(self) -> int | None:
        """Return where to cut a text that repeats itself (:func:`.before_repetition`); None if it goes on.

        A text that landing forces may be the same bracket over and over, and counts as none.
        """
        if not self.options.stop_repetition or self.budget.landing_steps:
            return None
        return before_repetition(self.tokens)

    def append(self, token: int) -> None:
        self.constraint.commit(token)
        self.middle.append(token, self._chosen)

    def follow(self, path: Sequence[int], probabilities: Sequence[float]) -> None:
        for token, self._chosen in zip(path, probabilities, strict=True):
            self.append(token)

    def append_forced(self) -> list[int]:
        """Append the tokens that every continuation begins with, as far as the budget reaches; return them.

        The middle is complete after none of them but the last.
        """
        if not self.options.fast_forward or self.middle.healing or len(self.tokens) >= self.budget.tokens:
            return []
        if self.budget.is_near:
            return []  # in its own tokens the forced text may not fit
        known = self.model.size  # a tokenizer may have tokens that the model lacks
        forced = list(takewhile(lambda token: token < known, self.constraint.forced(self.model.vocabulary)))
        forced = self.rules.allowed_of(forced[: self.budget.tokens - len(self.tokens)])
        for token in forced:
            self.constraint.commit(token)
        if forced and not self.budget.has_room(len(self.tokens) + len(forced)):
            self.constraint.rollback(len(forced))
            return []
        self.middle.extend(forced)
        self.fast_forwarded += len(forced)
        return forced

    def rewind(self, tokens: int) -> None:
        """Go back to fewer tokens, at which a choice was made; the constraint is there already.

        Counts go back as well, times do not.
        """
        self.passes.take_back(len(self.tokens) - tokens)
        self.middle.cut(tokens)
        self.ends.empty = None
        self.refused, self.fast_forwarded, self.chooser.path_probability, runners_up = self._counts[tokens]
        if self.chooser.runners_up is not None:
            del self.chooser.runners_up[runners_up:]

    def read_on(self, token_ids: Sequence[int]) -> Logits:
        """Read tokens of the middle, and behind them a draft, if any; return the logits [V] after the former."""
        self.passes.take_back(0)
        return self.passes.read_on(token_ids, self._drafted() if self.passes.drafting.is_on else None)

    def _drafted(self) -> list[int]:
        if self.middle.healing or not self.passes.reading.crops or self.budget.is_near:
            return []
        room = self.budget.tokens - len(self.tokens)
        return self.passes.drafting.propose(self.middle.text(), room, self.options.single_line)


def start(
    model: FimModel,
    reading: Reading,
    session: Session | None,
    options: DecodeOptions,
    watch: Watch,
    worker: ThreadPoolExecutor,
    healing: str = "",
) -> Run:
    """Start a run under a session's constraint, or unconstrained without a session.

    Args:
        model: Its backend makes the logits.
        reading: KV cache of the run.
        session: Session at the cursor.
        options: How to decode.
        watch: Deadline and cancel flag.
        worker: Thread that computes the masks.
        healing: Text to write again before the middle (:class:`.healing.Healing`).
    """
    budget = Budget(model, options, healing)
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
    constraint = Constraint(make_matcher, words, worker, budget.tokens if lands else None, begin)
    if lands:
        budget.land(constraint)
    return Run(model, reading, constraint, stop_ids, options, watch, budget, healing, session is not None)
