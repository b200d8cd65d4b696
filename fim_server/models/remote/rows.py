"""Rows with the log probabilities of an endpoint's likeliest tokens, and decoding's arithmetic on them.

A row [V] has minus infinity at tokens that the endpoint has not reported. That suffices while a reported token may come
next: the likeliest allowed one of these is the likeliest of all allowed ones. Otherwise the endpoint is asked for the
likeliest of the other allowed tokens, in one exact step.

A row is requested at its first use, so a prompt that is read in parts requests only the last one's.
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
    Reported = Mapping[int, float]

MOST_LOG_PROBABILITY = 0.01
"""Greatest log probability: 0, apart from rounding."""

MOST_EXACT_STEPS = 8
"""Most exact steps at one place, since each is a trip; afterwards the choice need not be the model's."""


class RemoteRow:
    """Row of log probabilities, float32 [V].

    Attributes:
        others: Allowed tokens [V] with unknown log probabilities; None before a mask is applied.
        refused: Tokens that were ruled out one by one.
        steps: Number of exact steps made for it.
    """

    def __init__(
        self,
        size: int,
        request: Callable[[], Reported],
        likeliest: Callable[[NDArray[np.intp]], tuple[int, float] | None],
    ) -> None:
        """Make a row.

        ``request`` asks for it; ``likeliest`` requests the likeliest of some tokens, with its log probability.
        """
        self._size, self._request, self.ask = size, request, likeliest
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
            reported = self._request()
            values[list(reported.keys())] = list(reported.values())
            if not np.all(values <= MOST_LOG_PROBABILITY):  # NaN is invalid too
                raise LostError("the endpoint sent an invalid log probability")
            self._values = values
        return self._values

    def with_values(self, values: Values, others: NDArray[np.bool_] | None) -> RemoteRow:
        """Return a row of the same place with other values."""
        found = RemoteRow(self._size, self._request, self.ask)
        found._values, found.others = values, others  # its own kind
        found.refused, found.steps = self.refused, self.steps
        return found


class RemoteArithmetic:
    """Implementation of :class:`..backend.Arithmetic` on such rows; tokens that were not reported have no share."""

    def __init__(self) -> None:
        self._numpy = NumpyArithmetic()

    def sampler(self, temperature: float, seed: int) -> RemoteSampler:
        """Return a sampler that draws among the reported tokens above temperature 0."""
        return RemoteSampler(self, self._numpy.sampler(temperature, seed))

    def copy(self, row: RemoteRow) -> RemoteRow:
        return row.with_values(row.values.copy(), row.others)

    def likeliest(self, row: RemoteRow) -> int:
        return int(row.values.argmax())

    def masked(self, row: RemoteRow, words: NDArray[np.uint32]) -> RemoteRow:
        values = self._numpy.masked(row.values, words)
        bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
        allowed = np.zeros(len(row), dtype=np.bool_)
        size = min(len(row), len(words) * WORD_BITS)
        allowed[:size] = bits[:size]
        return row.with_values(values, self._unknown(row, allowed))

    def only(self, row: RemoteRow, tokens: Sequence[int] | NDArray[np.intp]) -> RemoteRow:
        allowed = np.zeros(len(row), dtype=np.bool_)
        allowed[np.asarray(tokens, dtype=np.intp)] = True
        return row.with_values(self._numpy.only(row.values, tokens), self._unknown(row, allowed))

    def refuse(self, row: RemoteRow, token: int) -> None:
        row.values[token] = NO_WEIGHT
        row.refused |= {token}
        if row.others is not None:
            row.others = row.others.copy()
            row.others[token] = False

    def mixed(self, row: RemoteRow, shares: Mapping[int, float]) -> RemoteRow:
        if row.others is not None:
            return row.with_values(self._numpy.mixed(row.values, shares), row.others)
        # These are probabilities as they are, although the endpoint has not reported all of them.
        values = row.values + np.float32(np.log1p(-sum(shares.values())))
        for token, share in shares.items():
            values[token] = np.logaddexp(values[token], np.log(share))
        return row.with_values(values, None)

    def shifted(self, row: RemoteRow, changes: Mapping[int, float]) -> RemoteRow:
        return row.with_values(self._numpy.shifted(row.values, changes), row.others)

    def tempered(self, row: RemoteRow, temperature: float) -> RemoteRow:
        """Divide by the temperature; the shares are those of the reported tokens alone."""
        others = np.zeros(len(row), dtype=np.bool_) if row.others is None else row.others
        return row.with_values(row.values / np.float32(temperature), others)

    def is_spent(self, row: RemoteRow) -> bool:
        """Return whether no token is left, also after asking the endpoint for others."""
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
        """Return the probabilities of the reported tokens. After a mask, those of the allowed ones, which sum to 1."""
        values = row.values
        if row.others is None:
            return np.exp(values)
        return self._numpy.shares(values) if np.isfinite(values.max()) else np.zeros_like(values)

    def top(self, shares: Values, count: int) -> list[tuple[int, float]]:
        return [found for found in self._numpy.top(shares, count) if found[1] > 0]

    def likely(self, row: RemoteRow, least: float) -> list[tuple[int, float]]:
        shares = self.shares(row)
        near = np.flatnonzero(shares >= least)
        return list(zip(near.tolist(), shares[near].tolist(), strict=True))

    def moved(self, row: RemoteRow, given: Mapping[int, float], taken: Collection[int]) -> RemoteRow:
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
        """Return the joint probability of some tokens; after a mask, among the allowed ones."""
        if row.others is None:
            return min(1.0, float(np.exp(row.values[list(tokens)]).sum()))
        return self._numpy.share_of(row.values, tokens) if np.isfinite(row.values.max()) else 0.0

    def _unknown(self, row: RemoteRow, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the allowed tokens with unknown log probabilities, without those ruled out before."""
        if row.others is not None:
            return allowed & row.others
        unknown = allowed & np.isneginf(row.values)
        unknown[list(row.refused)] = False
        return unknown


class RemoteSampler:
    """Sampler on such rows."""

    def __init__(self, arithmetic: RemoteArithmetic, sampler: NumpySampler) -> None:
        self._arithmetic, self._sampler = arithmetic, sampler

    def draw(self, row: RemoteRow) -> int:
        """Return a token, which the endpoint is asked for where no reported one is left."""
        self._arithmetic.is_spent(row)
        return self._sampler.draw(row.values)
