"""A session's matcher beside a model: its questions timed, its masks computed while the model runs."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

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


class Constraint:
    """A matcher, its mask buffer and its clock.

    The mask of the next step may be computed on a worker thread while the model runs (:meth:`prefetch`); every other
    method waits for that to end, because a matcher is used by one thread at a time.
    """

    def __init__(
        self,
        make_matcher: Callable[[], Matcher],
        words: NDArray[np.uint32],
        worker: ThreadPoolExecutor,
        budget: int | None = None,
        start: Callable[[], MiddleState] | None = None,
    ) -> None:
        """``make_matcher`` is called on the worker: the first matcher of a shape reads the whole file once more.

        ``words``: memory for a packed mask over the matcher's vocabulary, zeroed and the constraint's own. ``budget``:
        the tokens that the middle will have to end within, so that how it can is found out there as well. ``start``:
        a state before the middle, for :meth:`stands`.
        """
        self._worker = worker
        self._budget = budget
        self._words = words
        self._start = start
        self._standing: LexemeCheck | None = None
        self._filling: Future[None] | None = None
        self._filled = False
        self._mask_seconds = 0.0
        self.engine_seconds = 0.0
        """Time spent in the engine, hidden behind the model or not."""
        self.waited_seconds = 0.0
        """The part of it that decoding had to wait for."""
        self._opening: Future[None] | None = worker.submit(self._open, make_matcher)

    def prefetch(self, hidden_seconds: float) -> None:
        """Start computing this step's mask, if it should fit behind ``hidden_seconds`` of the model's work.

        Most steps need no mask, so one that takes longer than the model would only delay them. The last mask's time
        is the forecast; the first mask has none and hides behind the prefill.
        """
        if not self._filled and self._filling is None and self._mask_seconds <= hidden_seconds:
            self._filling = self._worker.submit(self._fill)

    def allows(self, token_id: int) -> bool:
        """Whether one token may come next, without paying for a mask that is not there already."""
        started = time.perf_counter()
        self._join()
        allowed = contains(self._words, token_id) if self._filled else self._matcher.allows(token_id)
        self._account(started)
        return allowed

    def mask(self) -> NDArray[np.uint32] | None:
        """The packed mask of this step, valid until the next commit, or None if nothing at all may come next."""
        started = time.perf_counter()
        self._join()
        if not self._filled:
            self._fill(timed=False)
        self._account(started)
        return self._words if self._words.any() else None

    def is_complete(self) -> bool:
        """Whether the middle may end here."""
        started = time.perf_counter()
        self._join()
        complete = self._matcher.is_complete()
        self._account(started)
        return complete

    def completes(self, token_id: int) -> bool:
        """Whether the middle may end after a token, which is allowed and text.

        False where the matcher cannot tell.
        """
        return self._after(token_id, lambda matcher: self._matcher.is_complete())

    def begins_comment(self, token_id: int) -> bool:
        """Whether the middle would end inside a comment after a token, which is allowed and text.

        False where the matcher cannot tell.
        """
        return self._after(token_id, lambda matcher: matcher.inside == "comment")

    def _after(self, token_id: int, holds: Callable[[InsideMatcher], bool]) -> bool:
        """Whether something holds after a token; False where the matcher cannot go back."""
        started = time.perf_counter()
        self._join()
        matcher = self._inside_matcher
        if matcher is None:
            return False
        matcher.commit(token_id)
        found = holds(matcher)
        matcher.rollback(1)
        self._account(started)
        return found

    def stands(self, middle: bytes, text: bytes) -> bool:
        """Whether a text can follow a middle, the end of its last lexeme at its end (:class:`.standing.LexemeCheck`).

        True where nothing can tell. No shape is asked about.
        """
        if self._start is None:
            return True
        started = time.perf_counter()
        self._join()
        if self._standing is None:
            self._standing = LexemeCheck(self._start())
        stands = self._standing.allows(middle, text)
        self._account(started)
        return stands

    def commit(self, token_id: int) -> None:
        """Append a token. Raises ValueError if it is not allowed."""
        started = time.perf_counter()
        self._join()
        self._matcher.commit(token_id)
        self._filled = False
        self._account(started)

    def can_land(self) -> bool:
        """Whether the matcher knows how the middle can end."""
        started = time.perf_counter()
        self._join()
        self._account(started)
        return self._landing_matcher is not None

    def distance(self, enough: int) -> int | None:
        """Tokens in which the middle can end: of one way that needs at most ``enough``, or of a shortest.

        None if there is no way. Raises SearchLimitError if that is not known. This and the next three need
        :meth:`can_land`.
        """
        started = time.perf_counter()
        self._join()
        try:
            plan = self._lander.plan(enough)
        finally:
            self._account(started)
        return None if plan is None else len(plan)

    def lands(self, token_id: int, left: int) -> bool:
        """Whether the middle is known to end within ``left`` tokens after an allowed one."""
        started = time.perf_counter()
        self._join()
        lands = self._lander.lands(token_id, left) is True
        self._account(started)
        return lands

    def landing_token(self, left: int) -> int | None:
        """A token after which the middle can end within ``left``; None if none is known, or if it is complete."""
        started = time.perf_counter()
        self._join()
        try:
            plan = self._lander.plan(left + 1)
        except SearchLimitError:
            plan = None
        self._account(started)
        return plan[0] if plan and len(plan) <= left + 1 else None

    def rollback(self, n_tokens: int) -> None:
        """Take back the last tokens."""
        started = time.perf_counter()
        self._join()
        self._lander.rollback(n_tokens)
        self._filled = False
        self._account(started)

    @property
    def _lander(self) -> LandingMatcher:
        assert self._landing_matcher is not None, "asked before"
        return self._landing_matcher

    def forced(self, vocabulary: Vocabulary) -> list[int]:
        """The tokens that every continuation begins with; none if the matcher cannot tell."""
        started = time.perf_counter()
        self._join()
        if not isinstance(self._matcher, ForcedMatcher):
            return []
        tokens = forced_tokens(self._matcher, vocabulary)
        self._account(started)
        return tokens

    def close(self) -> None:
        """Wait for the worker to leave the matcher."""
        started = time.perf_counter()
        self._join()
        self._account(started)

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
                # A mask that was asked for meanwhile has no matcher to come from: its error would hide this one.
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
