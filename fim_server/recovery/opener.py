"""Opening of trial sessions within a budget."""

from __future__ import annotations

from collections.abc import Callable

from fim_server.language import Session
from fim_server.language.spelling import Spelling
from fim_server.recovery.texts import insertions

OpenSession = Callable[[str, str], Session]

BUDGET = 24
"""Sessions opened in one search, the last one included. On a file of 10,000 characters a session with an empty right
side takes 1 ms, and all but two are of that kind. An error takes one or two, so this is enough for about ten."""

MOST_READ_ALL = 1_500_000
"""Characters to read in the trials of a whole search, at some 0.1 µs each. A text that needs more is prose, or another
language."""


class BudgetSpent(Exception):
    """Raised where no more sessions may be opened."""


class Opener:
    """Opener of sessions that counts them.

    Attributes:
        insertions: Texts that a repair may write in the language of the opened sessions; none before the first.
    """

    def __init__(self, open_session: OpenSession, budget: int) -> None:
        self._open = open_session
        self._budget = budget
        self._read = 0
        self.count = 0
        self.insertions = insertions(Spelling())

    def spend(self, characters: int) -> None:
        self._read += characters
        if self._read > MOST_READ_ALL:
            self.count = self._budget

    def __call__(self, left: str, right: str) -> Session:
        if self.count >= self._budget:
            raise BudgetSpent
        self.count += 1
        session = self._open(left, right)
        self.insertions = insertions(session.spelling)
        return session
