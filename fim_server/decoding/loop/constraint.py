"""Constraint of a run: a session's matcher, timed, whose masks a worker computes while the model runs."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from fim_server.decoding.bias.lexeme_check import LexemeCheck
from fim_server.decoding.protocols import InsideMatcher, LandingMatcher
from fim_server.errors import SearchLimitError
from fim_server.models.masking import contains
from fim_server.tokens.forced import ForcedMatcher, forced_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.decoding.protocols import Matcher, MiddleState
    from fim_server.tokens.vocabulary import Vocabulary


P = ParamSpec("P")
R = TypeVar("R")


def timed(method: Callable[Concatenate[Constraint, P], R]) -> Callable[Concatenate[Constraint, P], R]:
    """Have a method wait for the worker, and count its time as the engine's."""

    @wraps(method)
    def call(self: Constraint, /, *args: P.args, **named: P.kwargs) -> R:
        started = time.perf_counter()
        self._join()
        try:
            return method(self, *args, **named)
        finally:
            self._account(started)

    return call


class Constraint:
    """Matcher, its mask buffer and its clock.

    A worker may compute the mask of the next step while the model runs (:meth:`prefetch`). Every other method waits for
    it, because one thread at a time may use a matcher.

    Attributes:
        engine_seconds: Time of the engine, hidden behind the model or not.
        waited_seconds: The part of it that decoding waited for.
    """

    def __init__(
        self,
        make_matcher: Callable[[], Matcher],
        words: NDArray[np.uint32],
        worker: ThreadPoolExecutor,
        budget: int | None = None,
        start: Callable[[], MiddleState] | None = None,
    ) -> None:
        """Open the matcher on the worker: the first matcher of a shape reads the whole file once more.

        Args:
            make_matcher: Makes the matcher.
            words: Zeroed memory for a packed mask over the matcher's vocabulary, the constraint's own.
            worker: Thread of the matcher.
            budget: Tokens within which the middle has to end, so that the worker finds a way to its end at once.
            start: Makes a state before the middle, for :meth:`stands`.
        """
        self._worker = worker
        self._budget = budget
        self._words = words
        self._start = start
        self._lexeme_check: LexemeCheck | None = None
        self._filling: Future[None] | None = None
        self._filled = False
        self._mask_seconds = 0.0
        self.engine_seconds = self.waited_seconds = 0.0
        self._opening: Future[None] | None = worker.submit(self._open, make_matcher)

    def prefetch(self, hidden_seconds: float) -> None:
        """Start computing this step's mask, if it should fit behind ``hidden_seconds`` of the model's work.

        Most steps need no mask, so one that takes longer than the model would only delay them. The last mask's time is
        the forecast; the first mask has none and hides behind the prefill.
        """
        if not self._filled and self._filling is None and self._mask_seconds <= hidden_seconds:
            self._filling = self._worker.submit(self._fill)

    @timed
    def allows(self, token_id: int) -> bool:
        """Return whether a token may come next, without computing a mask."""
        return contains(self._words, token_id) if self._filled else self._matcher.allows(token_id)

    @timed
    def mask(self) -> NDArray[np.uint32] | None:
        """Return the packed mask of this step, valid until the next commit; None if no token may come next."""
        if not self._filled:
            self._fill(timed=False)
        return self._words if self._words.any() else None

    @timed
    def is_complete(self) -> bool:
        return self._matcher.is_complete()

    def completes(self, token_id: int) -> bool:
        """Return whether the middle may end after an allowed token; False where the matcher cannot go back."""
        return self._after(token_id, lambda matcher: self._matcher.is_complete())

    def begins_comment(self, token_id: int) -> bool:
        """Return whether an allowed token would end in a comment; False where the matcher cannot go back."""
        return self._after(token_id, lambda matcher: matcher.inside == "comment")

    @timed
    def _after(self, token_id: int, holds: Callable[[InsideMatcher], bool]) -> bool:
        """Return whether a condition holds after a token; False where the matcher cannot go back."""
        matcher = self._inside_matcher
        if matcher is None:
            return False
        matcher.commit(token_id)
        found = holds(matcher)
        matcher.rollback(1)
        return found

    def stands(self, middle: bytes, text: bytes) -> bool:
        """Return whether a text can follow a middle, its last lexeme ending with it (:class:`.LexemeCheck`).

        True without a state of the middle. The shape does not count.
        """
        return self._start is None or self._stands(self._start, middle, text)

    @timed
    def _stands(self, start: Callable[[], MiddleState], middle: bytes, text: bytes) -> bool:
        if self._lexeme_check is None:
            self._lexeme_check = LexemeCheck(start())
        return self._lexeme_check.allows(middle, text)

    @timed
    def commit(self, token_id: int) -> None:
        """Append a token. Raises ValueError if it is not allowed."""
        self._matcher.commit(token_id)
        self._filled = False

    @timed
    def can_land(self) -> bool:
        return self._landing_matcher is not None

    @timed
    def distance(self, enough: int) -> int | None:
        """Return the tokens in which the middle can end: by a way of at most ``enough``, or by a shortest one.

        None if there is no way. Raises SearchLimitError if the search is cut off. This method and the next three need
        :meth:`can_land`.
        """
        plan = self._lander.plan(enough)
        return None if plan is None else len(plan)

    @timed
    def lands(self, token_id: int, left: int) -> bool:
        """Return whether the middle is known to end within ``left`` tokens after an allowed one."""
        return self._lander.lands(token_id, left) is True

    @timed
    def landing_token(self, left: int) -> int | None:
        """Return a token after which the middle can end within ``left``; None if none is known or it is complete."""
        try:
            plan = self._lander.plan(left + 1)
        except SearchLimitError:
            plan = None
        return plan[0] if plan and len(plan) <= left + 1 else None

    @timed
    def rollback(self, n_tokens: int) -> None:
        self._lander.rollback(n_tokens)
        self._filled = False

    @property
    def _lander(self) -> LandingMatcher:
        assert self._landing_matcher is not None, "asked before"
        return self._landing_matcher

    @timed
    def forced(self, vocabulary: Vocabulary) -> list[int]:
        """Return the tokens that every continuation begins with; none if the matcher cannot tell."""
        return forced_tokens(self._matcher, vocabulary) if isinstance(self._matcher, ForcedMatcher) else []

    @timed
    def close(self) -> None:
        """Wait for the worker to leave the matcher."""

    def _open(self, make_matcher: Callable[[], Matcher]) -> None:
        started = time.perf_counter()
        matcher = make_matcher()
        self._matcher = matcher
        self._inside_matcher = matcher if isinstance(matcher, InsideMatcher) else None
        self._landing_matcher = matcher if isinstance(matcher, LandingMatcher) else None
        if self._landing_matcher is not None and self._budget is not None:
            with suppress(SearchLimitError):
                self._landing_matcher.plan(self._budget)  # kept by the matcher
        self.engine_seconds += time.perf_counter() - started

    def _fill(self, timed: bool = True) -> None:
        started = time.perf_counter()
        self._matcher.fill_mask(self._words)
        self._filled = True
        self._mask_seconds = time.perf_counter() - started
        if timed:
            self.engine_seconds += self._mask_seconds

    def _join(self) -> None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            started = time.perf_counter()
            try:
                opening.result()
            except BaseException:
                # A mask requested meanwhile has no matcher, and its error would hide this one.
                filling, self._filling = self._filling, None
                if filling is not None and not filling.cancel():
                    filling.exception()
                raise
            self.engine_seconds -= time.perf_counter() - started
        if self._filling is not None:
            filling, self._filling = self._filling, None
            started = time.perf_counter()
            filling.result()
            self.engine_seconds -= time.perf_counter() - started  # the worker's clock and the caller's both count it

    def _account(self, started: float) -> None:
        elapsed = time.perf_counter() - started
        self.engine_seconds += elapsed
        self.waited_seconds += elapsed
