"""Drafts: tokens read before they are chosen, several in one forward pass.

Speculative decoding (Leviathan et al., arXiv 2211.17192) with a draft that costs next to nothing. A caller proposes how
the text goes on, and the model reads the proposal together with the token before it. Each next token is chosen from the
logits at its place, as without a draft. Proposed tokens count as long as the run chooses them; the rest is taken back.
So a draft decides how many passes a text takes, and nothing else.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fim_server.decoding.constants import DECODING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import Drafts
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel


class Drafting:
    """Tokens that one run has read ahead.

    Attributes:
        drafted: Tokens read ahead so far.
        accepted: Those of them that were chosen.
    """

    def __init__(self, model: FimModel, drafts: Drafts | None) -> None:
        """Draft with ``drafts``, or not at all: without them, or where the model gives no logits for each token."""
        self._model = model
        self._drafts = drafts if model.gives_rows else None
        self._ahead: deque[tuple[int, Logits]] = deque()
        """Tokens read and not chosen yet, each with the logits after it."""
        self.drafted = self.accepted = 0

    @property
    def is_on(self) -> bool:
        return self._drafts is not None

    def end(self) -> None:
        self._drafts = None

    def propose(self, text: bytes, most: int, single_line: bool) -> list[int]:
        """Return up to ``most`` tokens that may follow a text; ``single_line``: none of a next line."""
        if self._drafts is None or most <= 0:
            return []
        try:
            proposed = self._drafts(text.decode())
        except UnicodeDecodeError:  # within a character
            return []
        if single_line:
            proposed = proposed.partition("\n")[0]
        tokens = self._model.vocabulary.encode(proposed.encode()) if proposed else []
        return [token for token in tokens[: min(most, DECODING.draft_tokens)] if token < self._model.size]

    def note(self, tokens: Sequence[int], rows: Sequence[Logits]) -> None:
        """Take tokens that were read ahead, and the logits after each."""
        self.drafted += len(tokens)
        self._ahead.extend(zip(tokens, rows, strict=True))

    def take(self, token: int) -> Logits | None:
        """Return the logits after a chosen token if it was read ahead next."""
        if not self._ahead or self._ahead[0][0] != token:
            return None
        self.accepted += 1
        return self._ahead.popleft()[1]

    def drop(self) -> int:
        """Forget the tokens read ahead; return their number."""
        count = len(self._ahead)
        self._ahead.clear()
        return count
