"""Middle of a hole in progress under another package's decoding loop.

Such a loop reports the tokens that it has taken; it may go back (refused drafts) or jump to another history (beams). So
a middle moves to a list of tokens, by way of the prefix that this shares with the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from fim_server.errors import SearchLimitError
from fim_server.models.masking import WORD_BITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fim_server.integrations.holes import Hole
    from fim_server.language import Matcher, Session
    from fim_server.tokens.vocabulary import Vocabulary

MOST_SLACK, SLACK_SHARE = 16, 4
"""Tokens to spare under which a middle is made to end within its budget: at most so many, and at most that part of the
budget. A token that lengthens the shortest known end by more can still be chosen before. Of 31,300 tokens drawn at
random from masks, 4 lengthened it by more than 16, 17 by more than 6."""

ASKED_AGAIN = 4
"""Tokens of slack that one token is expected to use up at most, as in `decoding.loop.landing`."""

UNKNOWN_STEPS = 8
"""Tokens after which to search again for an end that was not found."""


class Middle:
    """Middle between the texts of a hole, in tokens, which may have to end within a budget.

    Attributes:
        tokens: Tokens taken, without those after an end token.
    """

    def __init__(
        self, matcher: Matcher, end_token_ids: Collection[int], budget: int | None = None, searches: bool = False
    ) -> None:
        """Wrap a matcher that has no tokens yet and no other user.

        Args:
            matcher: From `Session.matcher`.
            end_token_ids: Those of its vocabulary.
            budget: Most tokens, the end token not counted; None: no end is promised.
            searches: Near the budget's end, find every token with which the middle can end in time, which takes some 10
                ms a step and at times a second. Otherwise only the known end is written from there.
        """
        self._matcher = matcher
        self.end_token_ids = frozenset(end_token_ids)
        self._budget = budget
        self._searches = searches
        self._slack = 0 if budget is None else min(MOST_SLACK, budget // SLACK_SHARE)
        self._ask_at = 0
        """Tokens at the next search for an end."""
        self._leaving = False
        """True while the known end is being written."""
        self.tokens: list[int] = []

    def foresee(self) -> None:
        """Find an end of the middle, which takes longest the first time, when some loops have a thread to spare."""
        if self._budget is not None:
            with suppress(SearchLimitError):
                self._matcher.plan(self._budget - self._slack - 1 if self._budget > self._slack else 0)

    @property
    def ended(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] in self.end_token_ids

    def take(self, token: int) -> bool:
        """Append a token; return False if it is refused, and nothing changes then. An ended middle takes nothing."""
        try:
            self._matcher.commit(token)
        except (ValueError, OverflowError, TypeError):  # refused, or no id of the vocabulary at all
            return False
        self.tokens.append(token)
        return True

    def rollback(self, count: int) -> None:
        """Take back tokens. Raises ValueError if there are not so many."""
        if count:
            self._matcher.rollback(count)
            del self.tokens[len(self.tokens) - count :]
            self._ask_at = 0
            self._leaving = False

    def shared(self, tokens: Sequence[int]) -> int:
        count = 0
        for own, other in zip(self.tokens, tokens, strict=False):
            if own != other:
                break
            count += 1
        return count

    def move_to(self, tokens: Sequence[int]) -> bool:
        """Become the middle of another history, up to its first end token; return False if a token of it is refused.

        It then holds the tokens before the refused one.
        """
        self.rollback(len(self.tokens) - self.shared(tokens))
        for token in tokens[len(self.tokens) :]:
            if self.ended:
                break
            if not self.take(token):
                return False
        return True

    def valid(self, tokens: Sequence[int]) -> int:
        """Return how many tokens could be taken, one after the other; take none."""
        count = 0
        for token in tokens:
            if not self.take(token):
                break
            count += 1
        known = self._ask_at, self._leaving
        self.rollback(count)
        self._ask_at, self._leaving = known
        return count

    @property
    def is_complete(self) -> bool:
        """Return whether the middle may end here, or has ended."""
        return self.ended or self._matcher.is_complete()

    def fill(self, words: NDArray[np.uint32]) -> None:
        """Fill a packed mask [W] of the tokens that may come; after an end token only end tokens."""
        if self.ended:
            words.fill(0)
            self._allow(words, sorted(self.end_token_ids))
            return
        left = self._near()
        if left is None:
            self._matcher.fill_mask(words)
            return
        if self._searches and left > 0:
            self._matcher.fill_landing_mask(words, left - 1)
            if words.any():
                return
        words.fill(0)
        self._allow(words, self._way_out(left))
        if not words.any():
            self._matcher.fill_mask(words)

    def _near(self) -> int | None:
        """Return the tokens left of the budget if it is near and can be kept, else None."""
        if self._budget is None or len(self.tokens) < self._ask_at:
            return None
        left = self._budget - len(self.tokens)
        if left < 0:  # drafted tokens may go beyond the budget, where they are not kept
            return None
        if self._leaving:  # the rest of the known end is known: another search only takes time
            return left
        try:
            plan = self._matcher.plan(max(0, left - self._slack - 1))
        except SearchLimitError:
            self._ask_at = len(self.tokens) + UNKNOWN_STEPS
            return None
        if plan is None or len(plan) > left:
            return None
        slack = left - len(plan)
        if slack > self._slack:
            self._ask_at = len(self.tokens) + max(1, (slack - self._slack) // ASKED_AGAIN)
            return None
        self._leaving = not self._searches
        return left

    def _way_out(self, left: int) -> list[int]:
        """Return the next token of a known end, or the end tokens."""
        try:
            plan = self._matcher.plan(left)
        except SearchLimitError:
            return []
        if plan is None:
            return []
        return plan[:1] or sorted(self.end_token_ids)

    @staticmethod
    def _allow(words: NDArray[np.uint32], tokens: Sequence[int]) -> None:
        for token in tokens:
            words[token // WORD_BITS] |= 1 << (token % WORD_BITS)


def begin(
    session: Session, hole: Hole, vocabulary: Vocabulary, budget: int | None = None, searches: bool = False
) -> Middle:
    """Return the middle of a hole before its first token. ``budget``, ``searches``: as in `Middle`."""
    middle = Middle(session.matcher(vocabulary, shape=hole.shape), vocabulary.end_token_ids, budget, searches)
    middle.foresee()
    return middle
