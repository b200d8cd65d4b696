"""Tokens that mean the end of a middle, where the grammar lets it end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.ending.rest_of_line import is_on_first_line
from fim_server.decoding.ending.right_closer import EVEN

if TYPE_CHECKING:
    from fim_server.decoding.loop.middle import Middle
    from fim_server.decoding.options import DecodeOptions
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

LEAST_OF_MARK = 2
"""Fewest bytes of a mark that a token must have: its first one may begin code as well."""


class Ends:
    """End tokens of one run, and the tokens that count as one.

    Attributes:
        stop_ids: The end tokens.
        token: The end token that a run chooses for all of them.
        closer: The closer right of the cursor.
        rest: The rest of the cursor's line.
        empty: Probability of the empty middle, once the run has decided for it.
    """

    def __init__(
        self, model: FimModel, middle: Middle, stop_ids: frozenset[int], options: DecodeOptions, constrained: bool
    ) -> None:
        self.stop_ids = stop_ids
        self.token = min(stop_ids)
        self.closer = options.right_closer if constrained else None
        self.rest = options.rest_of_line if constrained else None
        self.empty: float | None = None
        self._vocabulary = model.vocabulary
        self._arithmetic = model.backend.arithmetic
        self._middle = middle
        self._single_line = options.single_line
        self._mark = options.end_mark

    def means_end(self, token: int) -> bool:
        """Return whether a token, no end token, means the end: a line break, a mark, or text right of the cursor."""
        text = self._vocabulary.token_bytes(token)
        if self._mark and is_towards(text, self._mark) and self._middle.begins_line:
            return True
        # Only blanks may stand before the line break, or the line would lose them.
        if self._single_line and text.lstrip(b" \t\r").startswith(b"\n"):
            return True
        if self.rest is not None and self.rest.is_written_by(text):
            return is_on_first_line(self._vocabulary, self._middle.tokens)
        return self.closer is not None and text.startswith(self.closer.text)

    def weigh_empty(self, logits: Logits) -> Logits:
        """Decide between the empty middle and another, as far as this step does; return logits [V] that lead there.

        While healed text is written, a token that adds the closer to it leaves the middle empty. The run never chooses
        such a token itself, because the right context has the closer.
        """
        closer = self.closer
        if closer is None or not closer.at_once:
            return logits
        healing = self._middle.healing
        if self.empty is not None:
            return self._healing_alone(logits) if healing else logits
        if not self._middle.is_empty:
            return logits
        known = len(logits)
        if healing:
            logits = self._arithmetic.only(logits, self._vocabulary.towards(healing, known))
            ends = self._tokens_that_begin((healing + closer.text,), known)
        else:
            logits = self._arithmetic.copy(logits)
            starts = (closer.text, b"\n") if self._single_line else (closer.text,)
            ends = self._tokens_that_begin(starts, known) | self.stop_ids
        if not ends or self._arithmetic.is_spent(logits):
            return logits
        share = self._arithmetic.share_of(logits, ends)
        wanted = self._arithmetic.likeliest(logits) in ends
        if share >= EVEN if closer.fresh else wanted:
            self.empty = share
            return self._healing_alone(logits) if healing else logits
        if healing or (closer.fresh and wanted):
            for token in ends:
                self._arithmetic.refuse(logits, token)
        return logits

    def _tokens_that_begin(self, starts: tuple[bytes, ...], known: int) -> set[int]:
        """Return the model's tokens, of ``known``, that begin with one of some texts."""
        found = {token for start in starts for token in self._vocabulary.tokens_towards(start) if token < known}
        return {token for token in found if self._vocabulary.token_bytes(token).startswith(starts)}

    def _healing_alone(self, logits: Logits) -> Logits:
        """Return the logits of the tokens that write healed text and nothing else."""
        healing, text = self._middle.healing, self._vocabulary.token_bytes
        towards = (token for token in self._vocabulary.tokens_towards(healing) if token < len(logits))
        return self._arithmetic.only(logits, [token for token in towards if len(text(token)) <= len(healing)])


def is_towards(text: bytes, mark: bytes) -> bool:
    """Return whether a token begins a mark of an end, with more than its first byte."""
    return text.startswith(mark) or (len(text) >= LEAST_OF_MARK and mark.startswith(text))
