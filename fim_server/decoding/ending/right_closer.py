"""Closer right of the cursor: a model that writes it means the end of the middle.

Editors close brackets and quotes as soon as they are opened. A model that has rarely seen the right context writes the
closer itself and goes on. The grammar allows this, since text to the right could still open what that closer closes. So
a closer that begins the right context counts as an end token where the middle may end, as a line break does for a
single line.

In a fresh pair, opened right before the cursor, leaving it empty is often the greatest single choice although some text
is likelier. There the empty middle has to be at least as likely as all others together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fim_server.language.session import Verdict
    from fim_server.language.spelling import Spelling

EVEN = 0.5
"""Least probability of the empty middle in a fresh pair."""


@runtime_checkable
class ClosedSession(Protocol):
    """Session, as far as finding a closer uses it."""

    @property
    def guarantee(self) -> str: ...
    @property
    def inside(self) -> str | None: ...
    @property
    def spelling(self) -> Spelling: ...
    def check(self, middle: str, /) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class RightCloser:
    """Closer right of a cursor."""

    text: bytes
    """A bracket; inside a string its quote, or three quotes if it has three."""
    at_once: bool
    """True if the middle may be empty."""
    fresh: bool
    """True if its opener stands right before the cursor."""

    @classmethod
    def of(cls, session: ClosedSession, left: str, right: str) -> RightCloser | None:
        """Return the closer that begins a session's right context; None if none does."""
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
