"""Rules besides the grammar: tokens that a run refuses although its matcher allows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.bias.hidden_characters import Visible
from fim_server.decoding.bias.undefined_names import TrackedNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.ending.ends import Ends
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.decoding.loop.middle import Middle
    from fim_server.decoding.options import ConstraintOptions
    from fim_server.models.model import FimModel


class Rules:
    """Rules of one run: comments, words and lines before the cursor, names, hidden characters, blank middles.

    Attributes:
        names: Tracker of names; None where names do not matter.
    """

    def __init__(
        self,
        model: FimModel,
        constraint: Constraint,
        middle: Middle,
        ends: Ends,
        options: ConstraintOptions,
        healing: str,
    ) -> None:
        self._vocabulary = model.vocabulary
        self._constraint = constraint
        self._middle = middle
        self._ends = ends
        self._options = options
        names = options.undefined_names if options.constrained else None
        self.names = None if names is None else TrackedNames(names, model.vocabulary, healing)
        self._visible = Visible(model.vocabulary, options.invisible)

    def fits(self, token: int) -> bool:
        """Return whether a token may come next by the grammar and by these rules."""
        return self._constraint.allows(token) and not self.refuses(token)

    def refuses(self, token: int) -> bool:
        """Return whether the rules refuse a token that the grammar allows."""
        is_end = token in self._ends.stop_ids
        if self.owes_text() and (is_end or self._ends.means_end(token)):
            return True
        if is_end:
            return self.names is not None and not self.may_end(len(self._middle.tokens))
        return (
            self._visible.refuses(self._middle.tokens, token, self._middle.healing)
            or (self._options.no_comments and self._constraint.begins_comment(token))
            or self._lengthens(token)
            or (self.names is not None and self.names.refuses(self._middle.tokens, token))
        )

    def allowed_of(self, forced: Sequence[int]) -> list[int]:
        """Return the forced tokens up to the first that a rule on characters or names refuses."""
        allowed = self._visible.allowed_of(self._middle.tokens, forced)
        return allowed if self.names is None else self.names.allowed_of(self._middle.tokens, allowed)

    def owes_text(self) -> bool:
        """Return whether the middle has to say something and still consists of blanks."""
        return self._options.says_something and not self._middle.text().strip()

    def unbound(self, length: int) -> tuple[str, ...]:
        """Return the undefined names that the first ``length`` tokens load, where names matter."""
        return () if self.names is None else self.names.unbound(self._middle.tokens[:length])

    def may_end(self, length: int) -> bool:
        """Return whether the names of the first ``length`` tokens let the middle end there."""
        return not self.unbound(length)

    @property
    def refuse_words(self) -> bool:
        """Return whether a rule on names or on the word before the cursor is on."""
        return self.names is not None or self._options.word_ends

    def _lengthens(self, token: int) -> bool:
        """Return whether a token lengthens the word or the indentation before the middle where that is whole."""
        if not (self._options.word_ends or self._options.line_begun) or not self._middle.is_empty:
            return False
        first = self._vocabulary.token_bytes(token)[len(self._middle.healing) :][:1]
        if first in (b" ", b"\t"):
            return self._options.line_begun
        return self._options.word_ends and (first.isalnum() or first == b"_" or first >= b"\x80")
