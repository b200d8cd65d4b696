"""Landing: a middle that ends within its budget.

With b tokens of budget left, a run chooses only tokens after which the middle can be completed within b - 1 (design,
section 10). Knowing that takes a search for an end. So while the budget is far, the run chooses freely and searches
only now and then: the more slack there is, the later. If a search finds a token that should not have been chosen, the
run goes back to before it and chooses anew.

The tokens are thus those that a search at every token would allow, except where it would fail. The search
(``Matcher.plan``) is bounded, and an end that it does not find counts as none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.errors import SearchLimitError

if TYPE_CHECKING:
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.models.backend import Logits

SLACK_PER_TOKEN = 4
"""Slack in tokens that one token is expected to use up at most: itself, and three that it makes necessary."""

UNKNOWN_TOKENS = 32
"""Tokens left up to which an unknown distance counts as too far."""

UNKNOWN_STEPS = 32
"""Tokens after which to search again after an unknown distance."""

MOST_PLACES = 64
"""Places to go back to, each with the logits of its next token; beyond them, every other one is forgotten."""

NO_WAY = -(1 << 30)
"""Slack where no tokens end the middle at all."""


class LandingRun(Protocol):
    """Run, as far as landing uses it."""

    @property
    def tokens(self) -> list[int]: ...
    def rewind(self, tokens: int) -> None: ...


class Landing:
    """Landing of one run.

    Attributes:
        needed: Tokens of the shortest known middle, if the budget has no room for it.
        steps: Steps at which the budget ruled out a token.
    """

    def __init__(self, constraint: Constraint, budget: int) -> None:
        self._constraint = constraint
        self._budget = budget
        self._checked: int | None = None
        """Tokens of the run when it was last known to end within its budget; logits are kept from there on."""
        self._next = 0
        """Tokens of the run at the next search for an end."""
        self._logits: dict[int, Logits] = {}
        self._near_until = 0
        """Tokens of the run when it last went back; up to them every token is checked."""
        self.needed: int | None = None
        self.steps = 0

    @property
    def is_near(self) -> bool:
        """Return whether every token is checked."""
        return self._checked is not None and self._next == self._checked

    def has_room(self, count: int) -> bool:
        """Return whether a run that has come to ``count`` tokens unchecked can go on from there.

        It can if it was once known to end within its budget, because it can go back there. Otherwise an end has to be
        known now, unless none was known earlier either.
        """
        if self._checked is not None or self._next > self._budget or not self._constraint.can_land():
            return True
        slack = self._slack(count)
        return self._next > 0 if slack is None else slack >= 0

    def secure(self, run: LandingRun, logits: Logits) -> Logits:
        """Make sure that the run can end within its budget, going back if need be.

        ``logits``: [V], of the next token. Returns those of the token to choose now: the same, or after going back
        those of an earlier step.
        """
        count = len(run.tokens)
        if self._checked is not None:
            self._keep(count, logits)
        if count < self._next:
            return logits
        if not self._constraint.can_land():
            self._next = self._budget + 1
            return logits
        slack = self._slack(count)
        if slack is not None and slack >= 0:
            self._note(count, logits, slack)
            return logits
        if slack is None and self._budget - count > UNKNOWN_TOKENS:
            self._next = count + UNKNOWN_STEPS
            return logits
        if self._checked is None:  # a shorter way than the known ones may still come up
            self._next = self._budget + 1
            self.needed = None if slack is None or slack == NO_WAY else self._budget - slack
            return logits
        self._near_until = count
        count = self._last_safe(run.tokens, self._checked)
        logits = self._logits[count]
        run.rewind(count)
        self._note(count, logits, 0)
        return logits

    def _last_safe(self, tokens: list[int], safe: int) -> int:
        """Move the constraint to the most tokens that have logits and can end within the budget; return their number.

        ``safe`` tokens can. By halves: if the run can end after some tokens, it can after fewer.
        """
        at = unsafe = len(tokens)
        places = sorted(self._logits)  # tokens that were forced have none
        while True:
            between = [place for place in places if safe < place < unsafe]
            middle = between[len(between) // 2] if between else safe
            if middle < at:
                self._constraint.rollback(at - middle)
            for token in tokens[at:middle]:
                self._constraint.commit(token)
            at = middle
            if not between:
                return safe
            slack = self._slack(middle)
            if slack is not None and slack >= 0:
                safe = middle
            else:
                unsafe = middle

    def admits(self, token: int, count: int) -> bool:
        """Return whether an allowed token may be chosen after ``count``; always true while the budget is far."""
        left = self._budget - count - 1
        return left < 0 or not self.is_near or self._constraint.lands(token, left)  # at the end nothing is chosen

    def note_refusal(self) -> None:
        self.steps += 1

    def _slack(self, count: int) -> int | None:
        """Return the tokens to spare after ``count``: negative without a way in time, None if the search is cut off."""
        left = self._budget - count
        try:
            distance = self._constraint.distance(left)
        except SearchLimitError:
            return None
        return NO_WAY if distance is None else left - distance

    def _note(self, count: int, logits: Logits, slack: int) -> None:
        self._checked = count
        self._next = count + (0 if count < self._near_until else slack // SLACK_PER_TOKEN)
        self._logits = {count: logits}

    def _keep(self, count: int, logits: Logits) -> None:
        if len(self._logits) >= MOST_PLACES:
            self._logits = {place: self._logits[place] for place in sorted(self._logits)[::2]}  # the safe one stays
        self._logits[count] = logits
