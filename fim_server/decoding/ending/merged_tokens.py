"""Split tokens that merge the end of the middle with text behind it: `])` where `)` stands right of the cursor.

Tokenizers merge signs, and some merge a sign with the line break after it: `):` with its line break is one token of
Qwen's. A model that wants such a token means its first part and then the end. But the grammar refuses the whole token,
or takes it for the beginning of more. The model has hardly ever read the first part as a token of its own before that
text, so its next choice is seldom what it means.

So the probability of such a token goes to its first part, and after that to the end. Both are then as likely as their
texts, summed over the two ways to spell them (Cao and Rimell, arXiv 2109.02550, section 2: the marginal over
tokenizations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.decoding.constants import DECODING
from fim_server.decoding.ending.rest_of_line import is_on_first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.decoding.ending.ends import Ends
    from fim_server.decoding.ending.rest_of_line import RestOfLine
    from fim_server.decoding.ending.right_closer import RightCloser
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.decoding.loop.middle import Middle
    from fim_server.decoding.loop.rules import Rules
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

BREAKS = (b"\n", b"\r\n")

ALMOST_ONE = 1 - 1e-6
"""Greatest share of the end after a first part that is no choice of the model's by itself."""


class MergingRun(Protocol):
    """Run, as far as merged tokens use it."""

    model: FimModel
    constraint: Constraint
    middle: Middle
    rules: Rules
    ends: Ends

    @property
    def tokens(self) -> list[int]: ...
    @property
    def stop_ids(self) -> frozenset[int]: ...


class MergedTokens:
    """Merged tokens of the runs at one cursor."""

    def __init__(self, single_line: bool, closer: RightCloser | None, rest: RestOfLine | None = None) -> None:
        """``single_line``: whether a line break ends the middle; the others: what else does."""
        self._single_line, self._closer, self._rest = single_line, closer, rest
        self._shares: dict[tuple[int, ...], float] = {}
        """Share of the end after a middle's tokens, besides the model's own."""

    def folded(self, run: MergingRun, logits: Logits) -> Logits:
        """Return the logits [V] of a run's next token, with each merged token's probability at its first part."""
        arithmetic = run.model.backend.arithmetic
        share = self._shares.get(tuple(run.tokens)) if self._shares else None
        if share is not None:
            logits = arithmetic.mixed(logits, {run.ends.token: share})
        if not self._single_line and self._closer is None and self._rest is None:
            return logits
        found: dict[int, float] = {}
        ending: dict[int, float] = {}
        replaced: list[int] = []
        for token, probability in arithmetic.likely(logits, DECODING.merged_share):
            first, ends = self._first_part(run, token, len(logits))
            if first is not None:
                replaced.append(token)
                found[first] = found.get(first, 0.0) + probability
                if ends:
                    ending[first] = ending.get(first, 0.0) + probability
        if not replaced:
            return logits
        for first, probability in ending.items():
            whole = arithmetic.share_of(logits, [first]) + found[first]
            self._shares[(*run.tokens, first)] = min(probability / whole, ALMOST_ONE)
        return arithmetic.moved(logits, found, replaced)

    def _first_part(self, run: MergingRun, token: int, size: int) -> tuple[int | None, bool]:
        """Return the token to write in place of a merged one, and whether the middle may end after it.

        That is the shortest part after which the middle may end; else, where the whole token may not come, the longest
        part that may. None where the token stays as it is. ``size``: number of tokens that the model has.
        """
        parts = [] if token in run.stop_ids else list(self._parts(run, token, size))
        if not parts or (run.ends.means_end(token) and run.constraint.is_complete()):
            return None, False  # in the latter case it is an end as it is
        first = None
        for part in parts:
            if run.rules.fits(part):
                if run.constraint.completes(part):
                    return part, True
                first = part
        return (None if first is None or run.rules.fits(token) else first), False

    def _parts(self, run: MergingRun, token: int, size: int) -> Iterator[int]:
        """Yield the tokens that a token begins with before text that ends a middle, the shortest first."""
        vocabulary = run.model.vocabulary
        text = vocabulary.token_bytes(token)
        for length in range(max(1, len(run.middle.healing)), len(text)):
            if self._ends(run, text, length):
                part = vocabulary.token_at(text[:length])
                if part is not None and part < size and len(vocabulary.token_bytes(part)) == length:
                    yield part

    def _ends(self, run: MergingRun, text: bytes, length: int) -> bool:
        """Return whether a token's text ends a middle after its first bytes.

        :meth:`.ends.Ends.weigh_empty` weighs a closer that directly follows healed text.
        """
        if self._single_line and text.startswith(BREAKS, length):
            return True
        closer = self._closer
        if closer is not None and length > len(run.middle.healing) and text.startswith(closer.text, length):
            return True
        if self._rest is None or not self._rest.is_written_in(text, length):
            return False
        return is_on_first_line(run.model.vocabulary, run.tokens)
