"""The closer that stands right of the cursor: where a model that writes it means that the middle ends.

Editors close brackets and quotes as soon as they are opened. A model that has rarely seen what is right of the cursor
writes the closer itself and goes on; the grammar lets it, since something to the right could still open what that
closes. So a closer that the right context begins with counts as an end token where the middle may end, as a line break
does for a single line. And where the pair is fresh, opened right before the cursor, the greatest single choice is often
to leave it empty although it is likelier that *something* stands there: the empty middle has to be at least as likely
as all the others together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fim_server.language.session import Verdict
    from fim_server.language.spelling import Spelling

EVEN = 0.5
"""Probability of the empty middle from which on it is likelier than all others together."""


@runtime_checkable
class ClosedSession(Protocol):
    """What is asked of a session to find out."""

    @property
    def guarantee(self) -> str: ...
    @property
    def inside(self) -> str | None: ...
    @property
    def spelling(self) -> Spelling: ...
    def check(self, middle: str, /) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class RightCloser:
    """The closer right of a cursor."""

    text: bytes
    """A bracket, or where the cursor is inside of a string a quote, three of them for one that has three."""
    at_once: bool
    """Whether the middle may be empty."""
    fresh: bool
    """Whether its partner stands right before the cursor."""

    @classmethod
    def of(cls, session: ClosedSession, left: str, right: str) -> RightCloser | None:
        """The closer that a session's right context begins with, if it begins with one."""
        first = right[:1]
        if session.guarantee == "none" or first not in session.spelling.closers or not first:
            return None
        opener = next((opening for opening, closing in session.spelling.brackets if closing == first), None)
        if opener is None:
            if session.inside != "string":
                return None  # it opens a string of the right context's own
            first = first * 3 if right.startswith(first * 3) else first
            opener = first
        return cls(first.encode(), session.check("").complete, left.endswith(opener))
