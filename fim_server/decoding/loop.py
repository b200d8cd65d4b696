"""Decoding: a model's tokens under a session's constraint.

Three functions, after gpt-fast: :func:`prefill` reads the prompt, :func:`decode_one_token` appends one token and
chooses the next, :func:`decode` repeats that until the middle ends. The model's own choice is checked alone first; the
full mask is paid for only where it is refused, and then usually lies ready, computed while the model ran.

A middle that ends with an end token the grammar allows is returned whole. Where the budget or the deadline ends first,
the middle is cut back to the best *complete point*: of all the lengths n (in tokens) at which left + middle + right was
in the language, the one with the greatest

    score(n) = n * p_end(n)

where p_end(n) is the probability the unconstrained model gave to its end tokens after n tokens; of equal scores, the
longest. The probability says where the model would have stopped, and the length keeps it from stopping at once (Melcer
et al., arXiv 2402.17988, who take the complete point of the greatest end-token probability and note its liking for
short texts). At a deadline somebody is waiting, and the longest complete point is taken.

By its budget's end a middle has always come to an end (:mod:`.landing`): the text that the budget forced
competes with the complete points before it by the same score.

:func:`alternatives` goes on from there: it decodes again from the places where the model nearly chose otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from fim_server.decoding.constraint import Constraint, Matcher, apply_mask
from fim_server.decoding.landing import Landing
from fim_server.language.shapes import SINGLE_LINE
from fim_server.models.load import PREFILL_CHUNK, Reading, Readings

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.load import FimModel
    from fim_server.text.document import Split

RUNNERS_LOOKED_AT = 8
"""How many of the model's likeliest tokens are tried as an alternative's beginning."""

REPEATED_TOKENS, REPEATED_TIMES = 24, 4

HEALED_CHARACTERS = 48
"""How much of the cursor's line is looked at for its last token."""

LANDING_DRAWS, MOST_LANDING_DRAWS = 8, 64
"""Tokens that the budget may rule out at a step before the shortest way to an end is taken instead, and before the step
is given up where that is none: asking about all tokens takes a tenth of a second, and far more where few are left."""

ATTEMPTS = 2
"""Runs for each alternative that is asked for: some come to a text that is there already."""


class Session(Protocol):
    """What decoding asks of ``language.open(left, right)``."""

    @property
    def guarantee(self) -> str: ...
    @property
    def diagnostics(self) -> Sequence[str]: ...
    def matcher(self, vocabulary: Any, /, shape: Any = None) -> Matcher: ...


class Verdict(Protocol):
    """What a session says of a text."""

    @property
    def viable(self) -> bool: ...


@runtime_checkable
class CheckingSession(Protocol):
    """A session that can be asked about a text."""

    def check(self, middle: str, /) -> Verdict: ...


class Language(Protocol):
    """What completing asks of a language."""

    def open(self, left: str, right: str, /) -> Session: ...


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How to decode."""

    max_new_tokens: int = 128
    """Budget of the middle, in tokens; at most half the model's window is given to it."""
    temperature: float = 0.0
    """0 takes the likeliest token; above, tokens are drawn from softmax(logits / temperature)."""
    constrained: bool = True
    """False decodes without the grammar, whatever the session could guarantee: the baseline to compare with."""
    seed: int = 0
    """Seed of the draws."""
    deadline_ms: float | None = None
    """Milliseconds from the start after which the best text so far is returned."""
    max_prompt_tokens: int = 1024
    """Longest prompt; the model's window may be shorter. 1,024 tokens prefill in about 0.1 s with a 6M model on one
    CPU thread."""
    prompt_grid: int = 1
    """Contexts that do not fit into the prompt lose a multiple of this many tokens; above 1, so that the prompt of the
    next keystroke begins as this one's."""
    single_line: bool = False
    """The middle has no line break. Where the model would begin a new line and the middle may end, it ends."""
    stop_repetition: bool = False
    """End where the model repeats itself: after :data:`REPEATED_TOKENS` tokens of at least :data:`REPEATED_TIMES` equal
    stretches. What was repeated is cut to two of them, or to a complete point before."""
    heal: bool = False
    """Let the middle begin where the last token left of the cursor begins, if the grammar allows that
    (:class:`Healing`). For :func:`complete`; others heal by themselves."""
    no_comments: bool = False
    """The middle begins no comment, which would take in the rest of the cursor's line: a program still, but not the
    user's."""
    landing: bool = True
    """Choose only tokens after which the middle can still end within the budget, so that every one ends in time
    (:mod:`.landing`), wherever a way to do that is known at the cursor. Not for ``single_line``: the engine
    knows no distances there. What stops earlier may stop before a complete point all the same (``deadline_ms``,
    ``stop_repetition``, cancelling), and with ``no_comments`` a way that needs a comment is none."""
    fast_forward: bool = False
    """Append the tokens that every continuation begins with without asking the model for them: it reads them in the
    same forward pass as the token before. Neither the guarantee nor the forced text changes, but the model sees that
    text in its tokenizer's own tokens, where it might have chosen others."""


class StopReason(StrEnum):
    """Why a middle ended where it did."""

    END_TOKEN = "end_token"
    """The model ended it, at a point where the grammar allows that."""
    BUDGET = "budget"
    """``max_new_tokens`` were generated."""
    DEADLINE = "deadline"
    """``deadline_ms`` passed."""
    CANCELLED = "cancelled"
    """The caller set the cancel flag."""
    REPETITION = "repetition"
    """The model had begun to say the same over and over."""
    DEAD_END = "dead_end"
    """No token at all may come next."""


class Won(StrEnum):
    """What the text of a completion is."""

    END_TOKEN = "end_token"
    """The model's own, whole."""
    LANDED = "landed"
    """Whole, and its end such as the budget's end allowed it."""
    POINT = "point"
    """What there was at a complete point, most often cut back to it; it may have won against the landed text."""
    BUDGET = "budget"
    """Unconstrained: what there was when decoding stopped."""


@dataclass(slots=True)
class Statistics:
    """What a completion cost."""

    prompt_tokens: int = 0
    tokens: int = 0
    """Tokens generated, those cut off again at the end included."""
    refused_tokens: int = 0
    """Steps at which the grammar refused the model's own choice; ``landing_steps`` are those of the budget."""
    reused_tokens: int = 0
    """Tokens of the prompt that the model had read before."""
    forced_share: float = 0.0
    """``refused_tokens / tokens``: the share of the text that the grammar chose among the model's alternatives."""
    fast_forwarded_tokens: int = 0
    """Those of ``tokens`` that the model was not asked for, because nothing else could come (``fast_forward``)."""
    landing_steps: int = 0
    """Steps at which the budget's end ruled out what would have been chosen (``landing``)."""
    open_ms: float = 0.0
    """Opening the session on the whole file."""
    model_ms: float = 0.0
    """Forward passes, prefill included."""
    prefill_ms: float = 0.0
    """The part of ``model_ms`` that read the prompt."""
    decode_ms: float = 0.0
    """Everything after that but waiting for the engine: forward passes, choosing tokens."""
    engine_ms: float = 0.0
    """Masks, checks and commits, including masks computed while the model ran."""
    engine_wait_ms: float = 0.0
    """The part of ``engine_ms`` that decoding waited for."""
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """A middle and what is known about it. Line breaks are ``"\\n"``."""

    text: str | None
    """The middle, or None if there is none to offer."""
    guarantee: str
    """``"exact"``: left + text + right is in the language. ``"none"``: nothing is known about it."""
    stop_reason: StopReason
    reason: str | None
    """Why there is no text, in words."""
    truncated: bool = False
    """Whether the model would have gone on: the text was cut back to a complete point."""
    won: Won | None = None
    """What the text is, or None if there is none."""
    diagnostics: tuple[str, ...] = ()
    """What the session has to say about the contexts."""
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True)
class Choice:
    """The token chosen at one step."""

    token: int | None
    """None if no token may come next."""
    refused: bool
    """Whether the model's own choice was another one that the grammar refused."""
    end_probability: float | None
    """Probability of the end tokens, if the middle may end here."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """A token that was allowed and likely, but not chosen: where another text could begin."""

    path: tuple[int, ...]
    """The tokens of the middle before it."""
    token: int
    probability: float
    """Of the whole way, the first token of the middle to this one, under the masked model."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that the model would write next."""

    text: str
    probability: float
    allowed: bool


@dataclass(frozen=True, slots=True)
class CompletePoint:
    """A length at which the middle was complete."""

    tokens: int
    end_probability: float

    @property
    def score(self) -> float:
        """Length-weighted end-token probability: see the module's formula."""
        return self.tokens * self.end_probability


class Interrupted(Exception):
    """Raised between two forward passes when the deadline has passed or the cancel flag is set."""

    def __init__(self, stop_reason: StopReason) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class Sampler:
    """Draws a token from logits [V]: the likeliest at temperature 0, else by a seeded generator of its own."""

    def __init__(self, options: DecodeOptions, device: torch.device) -> None:
        self._temperature = options.temperature
        self._generator = torch.Generator(device).manual_seed(options.seed)

    def draw(self, logits: torch.Tensor) -> int:
        """One token id."""
        if self._temperature <= 0:
            return int(logits.argmax())
        probabilities = torch.softmax(logits / self._temperature, dim=-1)
        return int(torch.multinomial(probabilities, 1, generator=self._generator))


class Unconstrained:
    """Stands in for a matcher where the grammar has no say: everything may come next, and the middle may end."""

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        words.fill(0xFFFFFFFF)

    def allows(self, token_id: int) -> bool:
        return True

    def commit(self, token_id: int) -> None:
        pass

    def is_complete(self) -> bool:
        return True


class Watch:
    """The deadline and the cancel flag, looked at before every forward pass."""

    def __init__(self, deadline_ms: float | None, cancelled: threading.Event | None) -> None:
        self._end = None if deadline_ms is None else time.perf_counter() + deadline_ms / 1000
        self._cancelled = cancelled

    def check(self) -> None:
        """Raises :class:`Interrupted` if decoding should stop."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise Interrupted(StopReason.CANCELLED)
        if self._end is not None and time.perf_counter() >= self._end:
            raise Interrupted(StopReason.DEADLINE)


@dataclass(frozen=True, slots=True)
class Healing:
    """A cut that is moved back to where a token begins, for a tokenizer that would not have cut there.

    A model has rarely seen a word go on after its first letters, or a word without its blank: after ``return `` it
    writes what follows a blank that stands by itself. So the last token left of the cursor is taken from the prompt,
    and the middle has to begin with its text (design, section 10; *token healing*). Of several blanks only the last one
    is taken: tokenizers leave it to the word that follows. An indentation is left as it is.
    """

    split: Split
    """The cut before that token."""
    text: str
    """The token's text; empty if there is nothing to heal."""

    @classmethod
    def of(cls, model: FimModel, split: Split) -> Healing:
        """The healing of a cut: the last token of its line left of the cursor."""
        line = split.left[split.left.rfind("\n") + 1 :][-HEALED_CHARACTERS:]
        try:
            tokens = model.vocabulary.encode(line) if line.strip() else []
            text = model.vocabulary.token_bytes(tokens[-1]).decode() if tokens else ""
        except ValueError:  # it ends a character that began before, or has one that the vocabulary lacks
            text = ""
        if not text:
            return cls(split, "")
        if text.isspace():
            text = text[-1]
        return cls(replace(split, left=split.left[: -len(text)]), text)

    def undo(self, completion: Completion) -> Completion:
        """The completion for the cut as it was."""
        if not self.text or completion.text is None:
            return completion
        return replace(completion, text=completion.text[len(self.text) :])


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
        budget: int,
    ) -> None:
        self.model = model
        self.budget = budget
        """Tokens that the middle may have."""
        self.reading = reading
        self.constraint = constraint
        self.stop_ids = stop_ids
        self.sampler = Sampler(options, model.device)
        self.watch = watch
        self.fast_forward = options.fast_forward
        self.single_line = options.single_line
        self.stop_repetition = options.stop_repetition
        self.no_comments = options.no_comments
        self.landing: Landing | None = None
        """Keeps the run within its budget, where the matcher can."""
        self.healing = b""
        """What the rest of the middle has to begin with."""
        self.healed_tokens = 0
        """Tokens that hold nothing but what was healed."""
        self.runners_up: list[RunnerUp] | None = None
        """Collected where it is a list."""
        self.reused = 0
        self.started = time.perf_counter()
        self.prefill_seconds = 0.0
        self.tokens: list[int] = []
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

    def forward(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Timed :meth:`FimModel.forward`."""
        self.watch.check()
        started = time.perf_counter()
        logits = self.reading.forward(token_ids)
        self.forward_seconds = time.perf_counter() - started
        self.model_seconds += self.forward_seconds
        return logits

    def take(self, choice: Choice) -> int | StopReason:
        """What follows from a choice, its complete point noted: the token to append, or the end."""
        if choice.end_probability is not None:
            self.points.append(CompletePoint(len(self.tokens), choice.end_probability))
        if choice.token is None:
            return StopReason.DEAD_END
        if choice.token in self.stop_ids:
            self.refused += choice.refused
            return StopReason.END_TOKEN
        if len(self.tokens) >= self.budget:
            return StopReason.BUDGET
        if (kept := self.repetition()) is not None:
            self.points = [point for point in self.points if point.tokens <= kept]
            return StopReason.REPETITION
        self.refused += choice.refused
        return choice.token

    def append(self, token: int) -> None:
        """Append an allowed token to the middle."""
        self.constraint.commit(token)
        self.tokens.append(token)
        if self.healing:
            text = self.model.vocabulary.token_bytes(token)
            if len(text) <= len(self.healing):
                self.healed_tokens = len(self.tokens)
            self.healing = self.healing[len(text) :]

    def rewind(self, tokens: int) -> None:
        """Go back to fewer tokens, after which a token was chosen; the constraint is there already.

        What was counted since is not counted any more, but for the time it took.
        """
        started = time.perf_counter()
        self.reading.rewind(len(self.tokens) - tokens)
        self.model_seconds += time.perf_counter() - started
        del self.tokens[tokens:]
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

    def append_forced(self, budget: int) -> list[int]:
        """Append the tokens that every continuation begins with, as far as the budget reaches; returns them.

        The middle is complete after none of them but the last: before, something has to follow.
        """
        if not self.fast_forward or self.healing or len(self.tokens) >= budget:
            return []
        if self.landing is not None and self.landing.is_near:
            return []  # in its own tokens the forced text may not fit
        known = self.model.size  # a tokenizer may have tokens that the model has not
        forced = list(takewhile(lambda token: token < known, self.constraint.forced(self.model.vocabulary)))
        del forced[budget - len(self.tokens) :]
        for token in forced:
            self.constraint.commit(token)
        if forced and self.landing is not None and not self.landing.has_room(len(self.tokens) + len(forced)):
            self.constraint.rollback(len(forced))
            return []
        self.tokens += forced
        self.fast_forwarded += len(forced)
        return forced

    def choose(self, logits: torch.Tensor) -> Choice:
        """The next token, given logits [V]. The model's own choice is checked alone before any mask is used.

        Drawing again from what is left after a refusal gives each allowed token the probability it has among the
        allowed ones, so this samples from exactly the masked distribution.
        """
        if self.healing:
            return self._heal(logits)
        if self.landing is not None:
            runners_up = 0 if self.runners_up is None else len(self.runners_up)
            self._counts[len(self.tokens)] = self.refused, self.fast_forwarded, self.probability, runners_up
            logits = self.landing.secure(self, logits)
        end_probability = self._end_probability(logits) if self.constraint.is_complete() else None
        token = self.sampler.draw(logits)
        allowed = self._fits(token)
        if self.single_line and end_probability is not None and token not in self.stop_ids and self._breaks(token):
            return Choice(min(self.stop_ids), False, end_probability)
        if not allowed or not self._lands(token):
            words = self.constraint.mask()
            if words is None:
                return Choice(None, True, end_probability)
            logits = apply_mask(logits, words)
            drawn = self._draw_allowed(logits, end_probability is not None, ruled_out=allowed)
            if drawn is None:
                return Choice(None, True, end_probability)
            token = drawn
        self._note_runners_up(logits, token)
        return Choice(token, not allowed, end_probability)

    def _draw_allowed(self, logits: torch.Tensor, complete: bool, ruled_out: bool) -> int | None:
        """A token from masked logits [V] that may be wanted and that the budget admits; None if none is found.

        Takes out of the logits what it does not admit. ``ruled_out``: whether the budget has ruled out a token at this
        step already.
        """
        draws = 0
        found = None
        while not bool(torch.isinf(logits.max())):  # else every allowed token lies outside the model's own vocabulary
            token = self.sampler.draw(logits)
            begins_comment = self._begins_comment(token)
            if not begins_comment and self._lands(token):
                found = token
                break
            logits[token] = float("-inf")
            if begins_comment:
                continue
            ruled_out = True
            draws += 1
            if draws == LANDING_DRAWS:
                found = self._way_to_end(complete, len(logits))
            if found is not None or draws == MOST_LANDING_DRAWS:
                break
        if ruled_out and self.landing is not None:
            self.landing.note_refusal()
        return found

    def _way_to_end(self, complete: bool, size: int) -> int | None:
        """The first token of the shortest known way to an end, where the model has ``size`` tokens."""
        if complete:
            return min(self.stop_ids)
        token = self.constraint.landing_token(self.budget - len(self.tokens) - 1)
        return None if token is None or token >= size or self._begins_comment(token) else token

    def _lands(self, token: int) -> bool:
        """Whether the budget admits an allowed token."""
        return self.landing is None or token in self.stop_ids or self.landing.admits(token, len(self.tokens))

    def _heal(self, logits: torch.Tensor) -> Choice:
        """The next token while the middle has to begin with a given text."""
        wanted = int(logits.argmax())
        ids = [token for token in self.model.vocabulary.tokens_towards(self.healing) if token < len(logits)]
        masked = torch.full_like(logits, float("-inf"))
        masked[ids] = logits[ids]
        while not bool(torch.isinf(masked.max())):
            token = self.sampler.draw(masked)
            if self._fits(token):  # what it lands at is asked once all is written again
                self._note_runners_up(masked, token)
                return Choice(token, token != wanted, None)
            masked[token] = float("-inf")
        return Choice(None, True, None)

    def _fits(self, token: int) -> bool:
        """Whether a token may come next, and may be wanted."""
        return self.constraint.allows(token) and not self._begins_comment(token)

    def _begins_comment(self, token: int) -> bool:
        """Whether an allowed token begins a comment where none is wanted."""
        return self.no_comments and token not in self.stop_ids and self.constraint.begins_comment(token)

    def _breaks(self, token: int) -> bool:
        """Whether a token begins a new line; only after blanks, or the line would lose what stands before."""
        return self.model.vocabulary.token_bytes(token).lstrip(b" \t\r").startswith(b"\n")

    def _note_runners_up(self, logits: torch.Tensor, chosen: int) -> None:
        """Note the likeliest allowed token besides the chosen one, if it is not an end token right at the start."""
        if self.runners_up is None:
            return
        shares = torch.softmax(logits, dim=-1)
        probabilities, ids = shares.topk(min(RUNNERS_LOOKED_AT, len(logits)))
        for token, probability in zip(ids.tolist(), probabilities.tolist(), strict=True):
            if probability == 0 or len(self.tokens) >= self.budget:
                break
            empty = token in self.stop_ids and len(self.tokens) <= self.healed_tokens
            breaks = self.single_line and token not in self.stop_ids and self._breaks(token)
            if token != chosen and not empty and not breaks and self._fits(token) and self._lands(token):
                self.runners_up.append(RunnerUp(tuple(self.tokens), token, self.probability * probability))
                break
        self.probability *= float(shares[chosen]) if chosen < len(shares) else 0.0

    def _end_probability(self, logits: torch.Tensor) -> float:
        """Probability of the end tokens under the unconstrained model."""
        ids = torch.tensor(sorted(self.stop_ids), device=logits.device)
        return float((logits[ids].logsumexp(0) - logits.logsumexp(0)).exp())


def before_repetition(tokens: Sequence[int]) -> int | None:
    """The number of tokens before the third of the equal stretches that a text ends with, or None if there are none."""
    for period in range(1, REPEATED_TOKENS // REPEATED_TIMES + 1):
        length = 0
        while length + period < len(tokens) and tokens[-1 - length] == tokens[-1 - length - period]:
            length += 1
        repeated = length + period
        if length and repeated >= max(REPEATED_TOKENS, REPEATED_TIMES * period):
            return len(tokens) - repeated + 2 * period
    return None


def prefill(run: Run, prompt: Sequence[int], chunk: int, budget: int) -> Choice:
    """Read what is new in the prompt, ``chunk`` tokens a forward pass; choose the first token that is not forced."""
    prompt = [*prompt, *run.append_forced(budget)]
    run.constraint.prefetch(float("inf"))
    before = run.model_seconds
    run.reused = run.reading.resume(prompt)
    for start in range(run.reused, len(prompt), chunk):
        logits = run.forward(prompt[start : start + chunk])
    run.prefill_seconds = run.model_seconds - before
    return run.choose(logits)


def decode_one_token(run: Run, token: int, budget: int) -> Choice:
    """Append a token to the middle, and those forced after it; choose the next, whose mask is computed meanwhile."""
    run.append(token)
    forced = run.append_forced(budget)
    run.constraint.prefetch(run.forward_seconds)
    return run.choose(run.forward([token, *forced]))


def decode(run: Run, prompt: Sequence[int], chunk: int, budget: int, on_token: Callable[[int], None]) -> StopReason:
    """Decode a middle of at most ``budget`` tokens into ``run.tokens``, noting its complete points."""
    return decode_from(run, lambda: prefill(run, prompt, chunk, budget), budget, on_token)


def decode_from(run: Run, first: Callable[[], Choice], budget: int, on_token: Callable[[int], None]) -> StopReason:
    """Go on decoding from a first choice."""
    try:
        choice = first()
        while True:
            token = run.take(choice)
            if isinstance(token, StopReason):
                return token
            on_token(len(run.tokens) + 1)
            choice = decode_one_token(run, token, budget)
    except Interrupted as interruption:
        return interruption.stop_reason


def complete(
    model: FimModel,
    language: Language,
    split: Split,
    options: DecodeOptions | None = None,
    cancelled: threading.Event | None = None,
    on_token: Callable[[int], None] = lambda count: None,
) -> Completion:
    """Complete a split document.

    The engine always sees the whole file; the model sees as much around the cursor as its window holds. ``cancelled``
    stops the work within one forward pass when it is set. ``on_token`` is told the number of tokens so far. Never
    raises on the user's code: a file that does not parse gives ``guarantee="none"`` and an unconstrained text.
    """
    options = options or DecodeOptions()
    started = time.perf_counter()
    session = language.open(split.left, split.right)
    healing = Healing.of(model, split) if options.heal else Healing(split, "")
    if healing.text:
        healed = language.open(healing.split.left, split.right)
        if takes(healed, healing.text, session.guarantee):
            session = healed
        else:
            healing = Healing(split, "")
    opened = time.perf_counter() - started
    if options.deadline_ms is not None:
        options = replace(options, deadline_ms=options.deadline_ms - 1000 * opened)
    completion = complete_session(model, session, healing.split, options, cancelled, on_token, healing=healing.text)
    completion = healing.undo(completion)
    out_of_room = (StopReason.DEAD_END, StopReason.BUDGET)
    if healing.text and completion.text is None and completion.stop_reason in out_of_room:
        # What was healed takes some of the budget.
        session = language.open(split.left, split.right)
        completion = complete_session(model, session, split, options, cancelled, on_token)
    completion.statistics.open_ms = 1000 * opened
    completion.statistics.total_ms = 1000 * (time.perf_counter() - started)
    return completion


def takes(session: Session, text: str, guarantee: str) -> bool:
    """Whether a middle may begin with a text in a session, which is to have a guarantee."""
    if session.guarantee != guarantee:
        return False
    return guarantee == "none" or (isinstance(session, CheckingSession) and session.check(text).viable)


def complete_session(
    model: FimModel,
    session: Session,
    split: Split,
    options: DecodeOptions | None = None,
    cancelled: threading.Event | None = None,
    on_token: Callable[[int], None] = lambda count: None,
    readings: Readings | None = None,
    healing: str = "",
) -> Completion:
    """As :func:`complete`, in a session that is open: the model reads ``split``, whatever contexts the session has.

    ``readings``: what the model has read for the requests before, and will have read after this one. ``healing``: what
    the middle has to begin with (:class:`Healing`); the session must allow it.
    """
    return next(alternatives(model, session, split, 1, options, cancelled, on_token, readings, healing))


def alternatives(
    model: FimModel,
    session: Session,
    split: Split,
    count: int,
    options: DecodeOptions | None = None,
    cancelled: threading.Event | None = None,
    on_token: Callable[[int], None] = lambda count: None,
    readings: Readings | None = None,
    healing: str = "",
) -> Iterator[Completion]:
    """The completion, and then up to ``count - 1`` others with other texts, the more likely beginnings first.

    Each of them leaves an earlier one at the token where the model's second choice was the likeliest of all second
    choices met so far, and goes on from there as the first did. The deadline holds for all of them together. At least
    one completion comes, others only if they have a text.
    """
    options = options or DecodeOptions()
    started = time.perf_counter()
    watch = Watch(options.deadline_ms, cancelled)
    budget = budget_of(model, options)
    limit = min(options.max_prompt_tokens, model.window - budget)
    prompt = model.format.encode(split.left, split.right, limit, options.prompt_grid)
    reading = readings.nearest(prompt) if readings is not None else Reading(model)
    constrained = options.constrained and session.guarantee != "none"
    runners: list[RunnerUp] = []
    texts: set[str | None] = set()
    with ThreadPoolExecutor(1, thread_name_prefix="fim-mask") as worker:
        for attempt in range(1 if count == 1 else count * ATTEMPTS):
            statistics = Statistics(prompt_tokens=len(prompt))
            run = start(model, reading, session if constrained else None, options, watch, worker, budget)
            run.runners_up = None if count == 1 else runners
            run.healing = healing.encode()
            try:
                if attempt == 0:
                    stop_reason = decode(run, prompt, PREFILL_CHUNK, budget, on_token)
                elif (runner := take_likeliest(runners)) is not None:
                    stop_reason = branch_off(run, prompt, runner, budget, on_token)
                else:
                    break
            finally:
                run.constraint.close()
            fill_in(statistics, run, time.perf_counter() - started)
            completion = conclude(run, session, constrained, stop_reason, statistics)
            if completion.text not in texts or attempt == 0:
                texts.update((completion.text, healing, "", None))
                latest = completion.statistics
                yield completion
            else:  # nobody sees it, but it took its time
                latest.prefill_ms += statistics.prefill_ms
                latest.decode_ms += statistics.decode_ms
                latest.engine_wait_ms += statistics.engine_wait_ms
            if len(texts) - len({"", healing, None}) >= count or stop_reason in (
                StopReason.CANCELLED,
                StopReason.DEADLINE,
            ):
                break


def take_likeliest(runners: list[RunnerUp]) -> RunnerUp | None:
    """Remove and return the likeliest runner-up."""
    if not runners:
        return None
    best = max(runners, key=lambda runner: runner.probability)
    runners.remove(best)
    return best


def branch_off(
    run: Run, prompt: Sequence[int], runner: RunnerUp, budget: int, on_token: Callable[[int], None]
) -> StopReason:
    """Decode the middle that begins with a runner-up's path and goes on with its token."""
    for token in runner.path:
        run.append(token)
    run.probability = runner.probability
    if runner.token in run.stop_ids:
        return StopReason.END_TOKEN

    def first() -> Choice:
        run.append(runner.token)
        wanted = [*prompt, *run.tokens]
        logits = None
        for start in range(run.reading.resume(wanted), len(wanted), PREFILL_CHUNK):
            logits = run.forward(wanted[start : start + PREFILL_CHUNK])
        assert logits is not None, "resume leaves the last token to be read"
        return run.choose(logits)

    return decode_from(run, first, budget, on_token)


def candidates(
    model: FimModel,
    session: Session,
    split: Split,
    count: int,
    options: DecodeOptions,
    readings: Readings | None = None,
) -> list[Candidate]:
    """The ``count`` tokens that the unconstrained model would most likely write at the cursor, likeliest first."""
    limit = min(options.max_prompt_tokens, model.window - min(options.max_new_tokens, model.window // 2))
    prompt = model.format.encode(split.left, split.right, limit, options.prompt_grid)
    reading = readings.nearest(prompt) if readings is not None else Reading(model)
    for begin in range(reading.resume(prompt), len(prompt), PREFILL_CHUNK):
        logits = reading.forward(prompt[begin : begin + PREFILL_CHUNK])
    probabilities, ids = torch.softmax(logits, dim=-1).topk(min(count, len(logits)))
    vocabulary = model.vocabulary
    matcher = session.matcher(vocabulary)
    return [
        Candidate(
            text="" if token in vocabulary.end_token_ids else vocabulary.token_bytes(token).decode("utf-8", "replace"),
            probability=probability,
            allowed=session.guarantee != "none" and token < vocabulary.size and matcher.allows(token),
        )
        for token, probability in zip(ids.tolist(), probabilities.tolist(), strict=True)
    ]


def budget_of(model: FimModel, options: DecodeOptions) -> int:
    """Tokens that a middle may have: at most half of the model's window."""
    return min(options.max_new_tokens, model.window // 2)


def start(
    model: FimModel,
    reading: Reading,
    session: Session | None,
    options: DecodeOptions,
    watch: Watch,
    worker: ThreadPoolExecutor,
    budget: int | None = None,
) -> Run:
    """A run under a session's constraint, or under none; ``budget`` is :func:`budget_of` if it is not given."""
    budget = budget_of(model, options) if budget is None else budget
    stop_ids = frozenset(model.vocabulary.end_token_ids)
    if session is None:
        stop_ids |= model.format.control_ids  # no grammar keeps these out of the text

    def make_matcher() -> Matcher:
        if session is None:
            return Unconstrained()
        if options.single_line:
            return session.matcher(model.vocabulary, shape=SINGLE_LINE)
        return session.matcher(model.vocabulary)

    lands = options.landing and session is not None and not options.single_line
    constraint = Constraint(make_matcher, model.vocabulary.size, worker, budget if lands else None)
    run = Run(model, reading, constraint, stop_ids, options, watch, budget)
    if lands:
        run.landing = Landing(constraint, budget)
    return run


def fill_in(statistics: Statistics, run: Run, total_seconds: float) -> None:
    """Take a finished run's counts and times."""
    statistics.tokens = len(run.tokens)
    statistics.refused_tokens = run.refused
    statistics.fast_forwarded_tokens = run.fast_forwarded
    statistics.landing_steps = 0 if run.landing is None else run.landing.steps
    statistics.forced_share = min(1.0, run.refused / len(run.tokens)) if run.tokens else 0.0
    statistics.reused_tokens = run.reused
    statistics.model_ms = 1000 * run.model_seconds
    statistics.prefill_ms = 1000 * run.prefill_seconds
    statistics.engine_ms = 1000 * run.constraint.engine_seconds
    statistics.engine_wait_ms = 1000 * run.constraint.waited_seconds
    decoding = time.perf_counter() - run.started - run.prefill_seconds - run.constraint.waited_seconds
    statistics.decode_ms = 1000 * max(0.0, decoding)
    statistics.total_ms = 1000 * total_seconds


def conclude(
    run: Run, session: Session, constrained: bool, stop_reason: StopReason, statistics: Statistics
) -> Completion:
    """The completion that a finished run amounts to."""
    length = final_length(run, constrained, stop_reason)
    won = None if length is None else winner(run, length, constrained, stop_reason)
    return Completion(
        text=None if length is None else text_of(run.model, run.tokens[:length], strict=constrained),
        guarantee=session.guarantee if constrained else "none",
        stop_reason=stop_reason,
        reason=explain_nothing(run, stop_reason) if length is None else None,
        truncated=won not in (None, Won.END_TOKEN) or stop_reason is not StopReason.END_TOKEN,
        won=won,
        diagnostics=tuple(session.diagnostics),
        statistics=statistics,
    )


def final_length(run: Run, constrained: bool, stop_reason: StopReason) -> int | None:
    """How many of the run's tokens are the middle, or None if there is none to offer."""
    if stop_reason is StopReason.CANCELLED:
        return None
    landed = run.landing is not None and run.landing.steps > 0
    if stop_reason is StopReason.END_TOKEN and not landed:
        return len(run.tokens)
    if not constrained and stop_reason is not StopReason.REPETITION:
        return len(run.tokens) or None
    points = [point for point in run.points if point.tokens > run.healed_tokens]  # nothing at all is no completion
    waited_for = stop_reason is StopReason.DEADLINE
    best = max(points, key=lambda point: (0 if waited_for else point.score, point.tokens), default=None)
    if best is None:
        return len(run.tokens) if stop_reason is StopReason.END_TOKEN else None
    return best.tokens


def winner(run: Run, length: int, constrained: bool, stop_reason: StopReason) -> Won:
    """What the first ``length`` tokens of a finished run are."""
    whole = length == len(run.tokens)
    if whole and stop_reason in (StopReason.END_TOKEN, StopReason.BUDGET) and run.landing and run.landing.steps:
        return Won.LANDED
    if whole and stop_reason is StopReason.END_TOKEN:
        return Won.END_TOKEN
    return Won.POINT if constrained or stop_reason is StopReason.REPETITION else Won.BUDGET


def explain_nothing(run: Run, stop_reason: StopReason) -> str:
    """Why a run came to nothing, in words."""
    tokens = len(run.tokens)
    match stop_reason:
        case StopReason.BUDGET if run.landing is not None and run.landing.needed is not None:
            known = f"the shortest completion known takes {run.landing.needed}"
            return f"at no point within {tokens} tokens was the text complete; {known}"
        case StopReason.CANCELLED:
            return "cancelled"
        case StopReason.DEAD_END if tokens == 0:
            return "nothing can connect the text before the cursor with the text after it"
        case StopReason.DEAD_END:
            return f"no token can follow the first {tokens}, and at no point before was the text complete"
        case StopReason.REPETITION:
            return f"the model repeats itself, and at no point within {tokens} tokens was the text complete"
        case StopReason.DEADLINE:
            return f"the deadline passed after {tokens} tokens, and at no point was the text complete"
        case _:
            return f"at no point within {tokens} tokens was the text complete"


def text_of(model: FimModel, tokens: Sequence[int], strict: bool) -> str:
    """The text of tokens: their bytes, joined and then decoded, because a token may hold part of a character.

    A complete middle is always valid UTF-8 (``strict``); any other is cut before the first byte that is not.
    """
    data = b"".join(model.vocabulary.token_bytes(token) for token in tokens)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if strict:
            raise
        return data[: error.start].decode()
