"""Names that are visible at a place in a text, as far as they are bound left of it or right of the cursor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from fim_server.language_support.python.binding import GIVEN, GIVEN_TO_CLASSES
from fim_server.language_support.python.scanning import Frame, Scanner

VISIBLE = GIVEN | GIVEN_TO_CLASSES | {"__class__"}
"""Names that nobody has to bind, some of them in a class alone."""

GIVEN_IN_ORDER = sorted(VISIBLE)


class Scope:
    """The names that a module, class or function has so far. Copied before it is changed by another than its owner."""

    __slots__ = ("column", "is_class", "names", "ordered", "owner", "recorded")

    def __init__(self, is_class: bool, column: int, names: set[str], owner: object, recorded: bool = False) -> None:
        self.is_class = is_class
        self.column = column
        self.names = names
        self.ordered: list[str] | None = None
        self.owner = owner
        self.recorded = recorded

    def begins(self, text: str) -> bool:
        """Whether one of the names begins with a text."""
        if self.ordered is None:
            self.ordered = sorted(self.names)
        return begins(self.ordered, text)


def begins(ordered: list[str], text: str) -> bool:
    """Whether one of some names, in their order, begins with a text."""
    at = bisect_left(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


class Beyond:
    """What is known of names right of the cursor, and of a text whose scopes are not known."""

    def __init__(self, names: dict[str, frozenset[int | None]], words: frozenset[str] | None, takes_all: bool) -> None:
        """What is bound.

        ``names``: each with the least columns of lines down to where it is bound, None in the cursor's own line.
        ``words``: all words of a text that does not parse, known wherever they stand; None where scopes are.
        """
        self.names = names
        self.ordered = sorted(names)
        self.words = words
        self.ordered_words = sorted(words or ())
        self.takes_all = takes_all


NOTHING = Beyond({}, None, False)


class Visible(Scanner):
    """A place in a text, and the scopes around it."""

    def __init__(self) -> None:
        super().__init__()
        self.scopes: list[Scope] = []
        self.beyond = NOTHING
        self.types: frozenset[str] = frozenset()
        """Parameters in brackets of the definition that is being written."""
        self.takes_all = False
        """Whether all names of some module were imported."""

    def has_name(self, beginning: str) -> bool:
        """Whether a name is visible here that begins so."""
        if not beginning.isascii() or begins(GIVEN_IN_ORDER, beginning):
            return True
        if begins(self.beyond.ordered_words, beginning):
            return True
        if any(scope.begins(beginning) for scope in self.visible_scopes()):
            return True
        if any(name.startswith(beginning) for frame in self.visible_frames() for name in frame.bound):
            return True
        if any(name.startswith(beginning) for name in self.types):
            return True
        ordered = self.beyond.ordered
        at = bisect_left(ordered, beginning)
        while at < len(ordered) and ordered[at].startswith(beginning):
            if self.is_beyond(ordered[at]):
                return True
            at += 1
        return False

    def knows(self, name: str) -> bool:
        """Whether a name is visible here."""
        if name in VISIBLE or not name.isascii() or self.takes_all or self.beyond.takes_all:
            return True
        if self.beyond.words is not None and name in self.beyond.words:
            return True
        return (
            any(name in scope.names for scope in self.visible_scopes())
            or any(name in frame.bound for frame in self.visible_frames())
            or name in self.types
            or self.is_beyond(name)
        )

    def visible_scopes(self) -> Iterable[Scope]:
        """The scopes in which a name is looked for."""
        innermost = self.scopes[-1]
        return (scope for scope in self.scopes if scope is innermost or not scope.is_class)

    def visible_frames(self) -> Iterable[Frame]:
        """The brackets whose comprehension's names are looked for, and those of a `lambda` in them."""
        return (frame for frame in self.frames if not frame.is_first_source)

    def is_beyond(self, name: str) -> bool:
        """Whether a name is bound right of the cursor in a scope that is visible here."""
        for lowest in self.beyond.names.get(name, ()):
            if lowest is None:
                return True
            at = len(self.scopes) - 1
            while self.scopes[at].column >= lowest:
                at -= 1
            if not self.scopes[at].is_class or at == len(self.scopes) - 1:
                return True
        return False
