"""The sessions of open documents: reused from keystroke to keystroke, and recovered where a document is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.server.place import Place, contains_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.document import Split
    from fim_server.language import Language, Session


@dataclass(frozen=True, slots=True)
class Opened:
    """A session at a cursor, and what it stands for."""

    session: Session
    guarantee: str
    """`exact`; `partial`: broken lines elsewhere were left out; `none`."""
    diagnostics: tuple[str, ...] = ()
    covered: int = 0
    """Closers right of the cursor that the middle has to bring itself, because with them the text does not parse."""
    ignored: tuple[tuple[int, int], ...] = ()
    """Lines left out, if the guarantee is `partial`: the first one (0-based) and their number."""


class Contexts:
    """Opens sessions. Used by one thread."""

    def open(self, uri: str, language: Language, split: Split) -> Opened:
        """The session of a cursor.

        Where the text does not parse with the closers right of the cursor, but would without some of them, they are
        left to the middle: an editor put them there for a bracket that is closed already.
        """
        session = language.open(split.left, split.right)
        if session.guarantee == "none":
            for covered in range(1, len(Place.of(split).closers) + 1):
                without = language.open(split.left, split.right[covered:])
                if without.guarantee == "exact":
                    return Opened(without, "exact", covered=covered)
        return Opened(session, session.guarantee, tuple(session.diagnostics))

    def forget(self, uri: str) -> None:
        """Forget what is known of a document."""

    def clear(self) -> None:
        """Forget all sessions."""


def fits(text: str, split: Split, opened: Opened) -> str | None:
    """Why an editor could not show a text, or None: it has to bring the closers that it stands for."""
    closers = split.right[: opened.covered]
    return None if contains_in_order(text, closers) else f"it lacks the {closers} right of the cursor"


def without_repetition(text: str, right: str, is_complete: Callable[[str], bool]) -> str:
    """A text without its last lines, if these stand right of the cursor already and the text may end before them.

    Models like to write what follows once more; no grammar forbids that.
    """
    lines = text.split("\n")
    following = [line for line in right.split("\n", len(lines) + 2)[1:] if line.strip()]
    for kept in range(len(lines)):
        repeated = [line for line in lines[kept:] if line.strip()]
        if repeated and same_lines(repeated, following[: len(repeated)]):
            shortened = "\n".join(lines[:kept])
            if is_complete(shortened):
                return shortened
    return text


def same_lines(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether lines are equal but for blanks at their ends."""
    return [line.rstrip() for line in some] == [line.rstrip() for line in others]
