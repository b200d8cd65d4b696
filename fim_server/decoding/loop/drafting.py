"""Drafts: tokens that are read before they are chosen, several in one forward pass.

Speculative decoding (Leviathan et al., arXiv 2211.17192) whose draft costs next to nothing: something proposes how the
text goes on, the model reads that together with the token before it, and each next token is chosen from the logits at
its place just as without a draft. What was proposed counts as long as it is what is then chosen; from there on it is
taken back. So a draft decides how many passes a text takes, and nothing else.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import Drafts
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

MOST_DRAFTED = 6
"""Tokens of a draft at most. One more takes a twelfth of what a pass of its own does (docs/results/drafts.md), but of
those far away few are right."""


class Drafting:
    """What one run has had read ahead.

    Attributes:
        drafted: Tokens read ahead so far.
        accepted: Those of them that were chosen.
    """

    def __init__(self, model: FimModel, drafts: Drafts | None) -> None:
        """``drafts``: what proposes; None where nothing does. Nothing is asked where the model cannot check it."""
        self._model = model
        self._drafts = drafts if model.gives_rows else None
        self._ahead: deque[tuple[int, Logits]] = deque()
        """The tokens that were read and not chosen yet, each with the logits after it."""
        self.drafted = self.accepted = 0

    @property
    def is_on(self) -> bool:
        """Whether anything may be proposed."""
        return self._drafts is not None

    def end(self) -> None:
        """Propose nothing any more."""
        self._drafts = None

    def propose(self, text: bytes, most: int, single_line: bool) -> list[int]:
        """At most so many tokens that may come after a middle's text. ``single_line``: none of a next line."""
        if self._drafts is None or most <= 0:
            return []
        try:
            proposed = self._drafts(text.decode())
        except UnicodeDecodeError:  # within a character
            return []
        if single_line:
            proposed = proposed.partition("\n")[0]
        tokens = self._model.vocabulary.encode(proposed.encode()) if proposed else []
        return [token for token in tokens[: min(most, MOST_DRAFTED)] if token < self._model.size]

    def note(self, tokens: Sequence[int], rows: Sequence[Logits]) -> None:
        """Take what was read ahead: the tokens, and the logits after each of them."""
        self.drafted += len(tokens)
        self._ahead.extend(zip(tokens, rows, strict=True))

    def take(self, token: int) -> Logits | None:
        """The logits after a token that was chosen, if it is the next of what was read ahead."""
        if not self._ahead or self._ahead[0][0] != token:
            return None
        self.accepted += 1
        return self._ahead.popleft()[1]

    def drop(self) -> int:
        """Forget what is left of what was read ahead; returns how many tokens that is."""
        count = len(self._ahead)
        self._ahead.clear()
        return count
