"""Budget of a run, in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.loop.landing import Landing
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.decoding.options import BudgetOptions
    from fim_server.models.model import FimModel


class Budget:
    """Tokens that a run may have.

    Attributes:
        healed: Tokens for writing the healed text again.
        tokens: All tokens: the middle's and ``healed``.
        landing: Keeps the run within the budget; None without a session, or if the option `landing` is off.
    """

    def __init__(self, model: FimModel, options: BudgetOptions, healing: str) -> None:
        self.healed = min(len(model.vocabulary.encode(healing)), MOST_UNSETTLED) if healing else 0
        self.tokens = budget_of(model, options) + self.healed
        self.landing: Landing | None = None

    def land(self, constraint: Constraint) -> None:
        """Admit only tokens after which the middle can end within the budget."""
        self.landing = Landing(constraint, self.tokens)

    @property
    def is_near(self) -> bool:
        """Return whether landing checks every token."""
        return self.landing is not None and self.landing.is_near

    def admits(self, token: int, count: int) -> bool:
        """Return whether landing admits an allowed token that is no end after ``count`` tokens."""
        return self.landing is None or self.landing.admits(token, count)

    def has_room(self, count: int) -> bool:
        """Return whether the run can go on from ``count`` tokens that landing has not seen."""
        return self.landing is None or self.landing.has_room(count)

    def note_refusal(self) -> None:
        if self.landing is not None:
            self.landing.note_refusal()

    @property
    def landing_steps(self) -> int:
        return 0 if self.landing is None else self.landing.steps


def budget_of(model: FimModel, options: BudgetOptions) -> int:
    """Return the tokens that a middle may have: at most half of the model's window."""
    return min(options.max_new_tokens, model.window // 2)
