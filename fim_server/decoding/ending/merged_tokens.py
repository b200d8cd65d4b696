"""Tokens that hold the end of the middle and what stands behind it: `])` where `)` stands right of the cursor.

Tokenizers join signs, and some of them a sign and the line break after it (`):` with its line break is one token to
Qwen's). A model that would write such a token means its first part and the end. But the grammar refuses the whole, or
takes it for the beginning of more, and the first part alone is a token that the model has hardly ever read before what
follows: what it would choose instead is seldom what it means.

So the probability of such a token goes to its first part, and after that to the end. Both are then as likely as their
texts, summed over the two ways to spell them (Cao and Rimell, arXiv 2109.02550, section 2: the marginal over
tokenizations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.decoding.ending.rest_of_line import is_on_first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.decoding.ending.rest_of_line import RestOfLine
    from fim_server.decoding.ending.right_closer import RightCloser
    from fim_server.decoding.loop.constraint import Constraint
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

LEAST = 0.01
"""Probability from which on such a token is looked at."""

BREAKS = (b"\n", b"\r\n")

ALMOST_ONE = 1 - 1e-6
"""Greatest share of the end after a first part that is no choice of the model's by itself."""


class MergingRun(Protocol):
    """The run that such tokens are looked for in."""

    model: FimModel
    constraint: Constraint
    stop_ids: frozenset[int]
    tokens: list[int]
    healing: bytes

    def fits(self, token: int, /) -> bool:
        """Whether a token may come next, and may be wanted."""

    def means_end(self, token: int, /) -> bool:
        """Whether a token is an end where the middle may end."""


class MergedTokens:
    """What the runs of one cut know about such tokens."""

    def __init__(self, single_line: bool, closing: RightCloser | None, following: RestOfLine | None = None) -> None:
        """``single_line``: whether a line break ends the middle; the others: what else does."""
        self._single_line, self._closing, self._following = single_line, closing, following
        self._shares: dict[tuple[int, ...], float] = {}
        """By a middle's tokens: of the end after them, besides what the model gives it."""

    def folded(self, run: MergingRun, logits: Logits) -> Logits:
        """The logits [V] of a run's next token, with the probability of such tokens where it belongs."""
        arithmetic = run.model.backend.arithmetic
        share = self._shares.get(tuple(run.tokens)) if self._shares else None
        if share is not None:
            logits = arithmetic.mixed(logits, {min(run.stop_ids): share})
        if not self._single_line and self._closing is None and self._following is None:
            return logits
        found: dict[int, float] = {}
        ending: dict[int, float] = {}
        replaced: list[int] = []
        for token, probability in arithmetic.likely(logits, LEAST):
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
        """The token that is written in place of one, and whether the middle may end after that.

        The shortest with which it may; else, where the whole may not come, the longest that may. None where the token
        stays what it is. ``size``: tokens that the model has.
        """
        parts = [] if token in run.stop_ids else list(self._parts(run, token, size))
        if not parts or (run.means_end(token) and run.constraint.is_complete()):
            return None, False  # in the latter case it is an end as it is
        first = None
        for part in parts:
            if run.fits(part):
                if run.constraint.completes(part):
                    return part, True
                first = part
        return (None if first is None or run.fits(token) else first), False

    def _parts(self, run: MergingRun, token: int, size: int) -> Iterator[int]:
        """The tokens that a token begins with, before what ends a middle in it; the shortest first."""
        vocabulary = run.model.vocabulary
        text = vocabulary.token_bytes(token)
        for length in range(max(1, len(run.healing)), len(text)):
            if self._ends(run, text, length):
                part = vocabulary.token_at(text[:length])
                if part is not None and part < size and len(vocabulary.token_bytes(part)) == length:
                    yield part

    def _ends(self, run: MergingRun, text: bytes, length: int) -> bool:
        """Whether what a token's text has behind some bytes ends a middle.

        Whether nothing stands between what is written again and a closer is weighed elsewhere (`Run._weigh_empty`).
        """
        if self._single_line and text.startswith(BREAKS, length):
            return True
        closing = self._closing
        if closing is not None and length > len(run.healing) and text.startswith(closing.text, length):
            return True
        if self._following is None or not self._following.is_written_in(text, length):
            return False
        return is_on_first_line(run.model.vocabulary, run.tokens)
