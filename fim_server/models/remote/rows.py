"""Rows of which an endpoint tells the likeliest tokens alone, and what decoding does with them.

A row [V] has the log probabilities of the tokens that the endpoint has told, and minus infinity at all others. That is
enough as long as one of the told tokens may come next: the likeliest of these that is allowed is the likeliest of all
that are. Where none of them is, the endpoint is asked for the likeliest of the others that are allowed, one exact step.
A row is asked for when something is first done with it: of a prompt that is read in parts, only the last one's is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.models.backend import LostError
from fim_server.models.masking import WORD_BITS
from fim_server.models.numpy_logits import NO_WEIGHT, NumpyArithmetic, NumpySampler

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float32]
    Told = Mapping[int, float]

MOST_LOG_PROBABILITY = 0.01
"""Rounding apart, it is 0."""

MOST_EXACT_STEPS = 8
"""Exact steps at one place: each is a trip, and after as many something else than the model's choice will do."""


class RemoteRow:
    """A row of log probabilities, float32 [V].

    Attributes:
        others: Tokens [V] that may come next and of which nothing is known; None where that was not asked yet.
        refused: Tokens that were ruled out one by one.
        steps: Exact steps that were made for it.
    """

    def __init__(
        self, size: int, tell: Callable[[], Told], likeliest: Callable[[NDArray[np.intp]], tuple[int, float] | None]
    ) -> None:
        """``tell``: asks for the row; ``likeliest``: for the likeliest of some tokens, and its log probability."""
        self._size, self._tell, self.ask = size, tell, likeliest
        self._values: Values | None = None
        self.others: NDArray[np.bool_] | None = None
        self.refused = frozenset[int]()
        self.steps = 0

    def __len__(self) -> int:
        return self._size

    def __setitem__(self, key: slice, other: RemoteRow) -> None:
        assert key == slice(None), "a row takes another one's place as a whole"
        self._values, self.others = other.values.copy(), other.others
        self.refused, self.steps = other.refused, other.steps

    @property
    def values(self) -> Values:
        """Log probabilities [V]."""
        if self._values is None:
            values = np.full(self._size, NO_WEIGHT, dtype=np.float32)
            told = self._tell()
            values[list(told.keys())] = list(told.values())
            if not np.all(values <= MOST_LOG_PROBABILITY):  # nor is what is no number
                raise LostError("the endpoint sent an invalid log probability")
            self._values = values
        return self._values

    def with_values(self, values: Values, others: NDArray[np.bool_] | None) -> RemoteRow:
        """The same place with other values."""
        found = RemoteRow(self._size, self._tell, self.ask)
        found._values, found.others = values, others  # its own kind
        found.refused, found.steps = self.refused, self.steps
        return found


class RemoteArithmetic:
    """:class:`..backend.Arithmetic` on such rows; what was not told has no share."""

    def __init__(self) -> None:
        self._numpy = NumpyArithmetic()

    def sampler(self, temperature: float, seed: int) -> RemoteSampler:
        """A sampler of such rows; above temperature 0 it draws among the told tokens."""
        return RemoteSampler(self, self._numpy.sampler(temperature, seed))

    def copy(self, row: RemoteRow) -> RemoteRow:
        """The row in memory of its own."""
        return row.with_values(row.values.copy(), row.others)

    def likeliest(self, row: RemoteRow) -> int:
        """The token of the greatest log probability."""
        return int(row.values.argmax())

    def masked(self, row: RemoteRow, words: NDArray[np.uint32]) -> RemoteRow:
        """A copy with what a packed mask refuses at minus infinity."""
        values = self._numpy.masked(row.values, words)
        bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
        allowed = np.zeros(len(row), dtype=np.bool_)
        size = min(len(row), len(words) * WORD_BITS)
        allowed[:size] = bits[:size]
        return row.with_values(values, self._unknown(row, allowed))

    def only(self, row: RemoteRow, tokens: Sequence[int] | NDArray[np.intp]) -> RemoteRow:
        """A copy with all other tokens at minus infinity."""
        allowed = np.zeros(len(row), dtype=np.bool_)
        allowed[np.asarray(tokens, dtype=np.intp)] = True
        return row.with_values(self._numpy.only(row.values, tokens), self._unknown(row, allowed))

    def refuse(self, row: RemoteRow, token: int) -> None:
        """Set one token to minus infinity, in place."""
        row.values[token] = NO_WEIGHT
        row.refused |= {token}
        if row.others is not None:
            row.others = row.others.copy()
            row.others[token] = False

    def mixed(self, row: RemoteRow, shares: Mapping[int, float]) -> RemoteRow:
        """A copy with shares of the probability given to some tokens."""
        if row.others is not None:
            return row.with_values(self._numpy.mixed(row.values, shares), row.others)
        # These are probabilities as they are, although some of all of them was not told.
        values = row.values + np.float32(np.log1p(-sum(shares.values())))
        for token, share in shares.items():
            values[token] = np.logaddexp(values[token], np.log(share))
        return row.with_values(values, None)

    def shifted(self, row: RemoteRow, changes: Mapping[int, float]) -> RemoteRow:
        """A copy with something added to some tokens' log probabilities."""
        return row.with_values(self._numpy.shifted(row.values, changes), row.others)

    def tempered(self, row: RemoteRow, temperature: float) -> RemoteRow:
        """A copy, divided by the temperature; its shares are of the told tokens alone."""
        others = np.zeros(len(row), dtype=np.bool_) if row.others is None else row.others
        return row.with_values(row.values / np.float32(temperature), others)

    def is_spent(self, row: RemoteRow) -> bool:
        """Whether there is nothing to choose, also of what the endpoint has not told by itself."""
        while np.isinf(row.values.max()):
            if row.others is None or not row.others.any() or row.steps >= MOST_EXACT_STEPS:
                return True
            row.steps += 1
            asked = np.flatnonzero(row.others)
            found = row.ask(asked)
            if found is None:
                return True
            token, share = found
            if not share <= MOST_LOG_PROBABILITY:  # refuses NaN, too
                raise LostError("the endpoint sent an invalid log probability")
            row.values[token] = share
            row.others = row.others.copy()
            row.others[token] = False
        return False

    def shares(self, row: RemoteRow) -> Values:
        """The probabilities of the told tokens; of those that are left, which come to 1 together, after a mask."""
        values = row.values
        if row.others is None:
            return np.exp(values)
        return self._numpy.shares(values) if np.isfinite(values.max()) else np.zeros_like(values)

    def top(self, shares: Values, count: int) -> list[tuple[int, float]]:
        """The tokens of the greatest shares, greatest first."""
        return [found for found in self._numpy.top(shares, count) if found[1] > 0]

    def likely(self, row: RemoteRow, least: float) -> list[tuple[int, float]]:
        """The told tokens that have a probability of at least ``least``."""
        shares = self.shares(row)
        near = np.flatnonzero(shares >= least)
        return list(zip(near.tolist(), shares[near].tolist(), strict=True))

    def moved(self, row: RemoteRow, given: Mapping[int, float], taken: Collection[int]) -> RemoteRow:
        """A copy with probability moved from some tokens to others."""
        if row.others is None:
            values = row.values.copy()
            for token, probability in given.items():
                values[token] = np.logaddexp(values[token], np.log(probability))
        else:
            values = self._numpy.moved(row.values, given, ())
        found = row.with_values(values, row.others)
        for token in taken:
            self.refuse(found, token)
        return found

    def share_of(self, row: RemoteRow, tokens: Collection[int]) -> float:
        """The probability of some tokens together; of what is left, after a mask."""
        if row.others is None:
            return min(1.0, float(np.exp(row.values[list(tokens)]).sum()))
        return self._numpy.share_of(row.values, tokens) if np.isfinite(row.values.max()) else 0.0

    def _unknown(self, row: RemoteRow, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of some tokens of which nothing is known; of what was ruled out before nothing is asked."""
        if row.others is not None:
            return allowed & row.others
        unknown = allowed & np.isneginf(row.values)
        unknown[list(row.refused)] = False
        return unknown


class RemoteSampler:
    """Draws from such rows."""

    def __init__(self, arithmetic: RemoteArithmetic, sampler: NumpySampler) -> None:
        self._arithmetic, self._sampler = arithmetic, sampler

    def draw(self, row: RemoteRow) -> int:
        """One token id; where none of the told ones is left, of those that the endpoint is asked for."""
        self._arithmetic.is_spent(row)
        return self._sampler.draw(row.values)
