"""Landing: a middle that ends within its budget.

With b tokens of budget left, only tokens are chosen whose result can still be completed within b - 1 (design, section
10), and to know that takes a search. So while the budget is far, tokens are chosen freely, and only every so often it
is asked how far the middle is from an end: the more slack there is, the later it is asked again. Should that show that
a token was chosen that should not have been, the run goes back to before it and chooses anew. So the tokens are those
that asking every time would have allowed, but for some of which asking would not have known: the search for an end
(``Matcher.plan``) is bounded, and what it does not find counts as not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.errors import SearchLimitError

if TYPE_CHECKING:
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.models.backend import Logits

SLACK_PER_TOKEN = 4
"""Tokens of slack that one token is expected to use up at most: itself, and three that it makes necessary."""

UNKNOWN_TOKENS = 32
"""Tokens left up to which a distance that is not known counts as too far."""

UNKNOWN_STEPS = 32
"""Tokens after which a distance that was not known is asked for again."""

MOST_PLACES = 64
"""Places to go back to that are kept, each with the logits of its next token; of more, every other one is forgotten."""

NO_WAY = -(1 << 30)
"""The slack where no tokens end the middle at all."""


class LandingRun(Protocol):
    """What landing asks of a run: its tokens, and to be taken back to fewer of them."""

    @property
    def tokens(self) -> list[int]: ...
    def rewind(self, tokens: int) -> None: ...


class Landing:
    """Keeps one run within its budget."""

    def __init__(self, constraint: Constraint, budget: int) -> None:
        self._constraint = constraint
        self._budget = budget
        self._checked: int | None = None
        """Tokens of the run when it was last known to end within its budget; logits are kept from there on."""
        self._next = 0
        """Tokens of the run when its distance is to be asked for again."""
        self._logits: dict[int, Logits] = {}
        self._near_until = 0
        """Tokens of the run up to which every one is asked about: it had come so far when it went back last."""
        self.needed: int | None = None
        """Tokens of the shortest known middle, where the budget has no room for it."""
        self.steps = 0
        """Steps at which the budget ruled out a token."""

    @property
    def is_near(self) -> bool:
        """Whether every token has to be asked about."""
        return self._checked is not None and self._next == self._checked

    def has_room(self, count: int) -> bool:
        """Whether a run that has come to ``count`` tokens unasked can go on from there.

        From where it was once known to end within its budget it can go back. Before, it has to be known, unless it was
        not known earlier either.
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
        if self._checked is None:  # nothing is promised; a shorter way than is known may come up all the same
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
        """The most tokens after which the model was asked and the run can end within its budget; ``safe`` are such.

        Takes the constraint back there. By halves: what is safe after some tokens is safe after fewer.
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
        """Whether an allowed token may be chosen after ``count``; always true while the budget is far."""
        left = self._budget - count - 1
        return left < 0 or not self.is_near or self._constraint.lands(token, left)  # at the end nothing is chosen

    def note_refusal(self) -> None:
        """The budget ruled out a token that would have been chosen at this step."""
        self.steps += 1

    def _slack(self, count: int) -> int | None:
        """Tokens to spare after ``count``; negative if all ways known are too long, None if none is known."""
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
