"""Arithmetic on rows of logits as numpy arrays, for backends without torch.

It chooses the same tokens as :mod:`.pytorch.backend` does with tensors; probabilities agree up to rounding. Draws at a
temperature above 0 have the same distribution, and come from numpy's generator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.models.masking import WORD_BITS, mask_bits, word_count

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    Row = NDArray[np.float32]

NO_WEIGHT = np.float32("-inf")
LOOKS = tuple(np.float32(10.0**-power) for power in range(2, 8))
"""Fractions of the greatest share: smaller shares matter only if too few tokens exceed a fraction."""

_NO_WEIGHT_BITS = np.array(NO_WEIGHT).view(np.int32)


class NumpySampler:
    """Sampler on logits [V]: the likeliest token at temperature 0, else draws by a seeded generator of its own."""

    def __init__(self, temperature: float, seed: int) -> None:
        self._temperature = temperature
        # A generator takes no negative seed; torch takes all of 64 bits.
        self._generator = np.random.default_rng(seed % (1 << 64)) if temperature > 0 else None

    def draw(self, logits: Row) -> int:
        if self._generator is None:
            return int(logits.argmax())
        # The greatest of logits with Gumbel noise is a draw from their softmax (Maddison et al., arXiv 1411.0030): what
        # has no weight stays at minus infinity, which rounding in a cumulative sum would not promise.
        noise = self._generator.gumbel(size=len(logits))
        return int((logits.astype(np.float64) / self._temperature + noise).argmax())


class NumpyArithmetic:
    """Implementation of :class:`.backend.Arithmetic` on float32 arrays [V]."""

    def sampler(self, temperature: float, seed: int) -> NumpySampler:
        return NumpySampler(temperature, seed)

    def copy(self, logits: Row) -> Row:
        return logits.copy()

    def likeliest(self, logits: Row) -> int:
        return int(logits.argmax())

    def masked(self, logits: Row, words: NDArray[np.uint32]) -> Row:
        found = logits.copy()
        size = min(len(found), len(words) * WORD_BITS)
        found[size:] = NO_WEIGHT
        known = words[: word_count(size)]
        mask_bits(found[:size].view(np.int32), np.ascontiguousarray(known).view(np.uint8), _NO_WEIGHT_BITS)
        return found

    def only(self, logits: Row, tokens: Sequence[int] | NDArray[np.intp]) -> Row:
        found = np.full_like(logits, NO_WEIGHT)
        ids = np.asarray(tokens, dtype=np.intp)
        found[ids] = logits[ids]
        return found

    def refuse(self, logits: Row, token: int) -> None:
        logits[token] = NO_WEIGHT

    def mixed(self, logits: Row, shares: Mapping[int, float]) -> Row:
        found = logits.copy()
        ids = np.fromiter(shares, dtype=np.intp, count=len(shares))
        given = np.fromiter(shares.values(), dtype=np.float64, count=len(shares))
        highest = logits.max()
        total = highest + np.log(np.exp(logits - highest, dtype=np.float64).sum())
        found[ids] = np.logaddexp(logits[ids], total + np.log(given / (1 - given.sum())))
        return found

    def shifted(self, logits: Row, changes: Mapping[int, float]) -> Row:
        found = logits.copy()
        found[np.fromiter(changes, dtype=np.intp, count=len(changes))] += np.fromiter(
            changes.values(), dtype=found.dtype, count=len(changes)
        )
        return found

    def tempered(self, logits: Row, temperature: float) -> Row:
        found: Row = logits / np.float32(temperature)
        return found

    def is_spent(self, logits: Row) -> bool:
        return bool(np.isinf(logits.max()))

    def shares(self, logits: Row) -> Row:
        weights: Row = np.exp(logits - logits.max())
        weights /= weights.sum()
        return weights

    def top(self, shares: Row, count: int) -> list[tuple[int, float]]:
        # Of a vocabulary some dozens of tokens are left by a look, which is much faster than finding an order of all.
        highest = shares.max()
        looks = (np.flatnonzero(shares > highest * least) for least in LOOKS)
        ids = next((found for found in looks if len(found) >= count), None)
        if ids is None:
            ids = np.arange(len(shares))
        count = min(count, len(ids))
        ids = ids[np.argpartition(shares[ids], len(ids) - count)[len(ids) - count :]]
        ids = ids[np.argsort(-shares[ids], kind="stable")]
        return list(zip(ids.tolist(), shares[ids].tolist(), strict=True))

    def likely(self, logits: Row, least: float) -> list[tuple[int, float]]:
        highest = logits.max()
        if np.isinf(highest):
            return []
        weights = np.exp(logits - highest)
        near = np.flatnonzero(weights >= least)  # none has more than its weight beside the likeliest's
        shares = weights[near] / weights.sum()
        return [(token, share) for token, share in zip(near.tolist(), shares.tolist(), strict=True) if share >= least]

    def moved(self, logits: Row, given: Mapping[int, float], taken: Collection[int]) -> Row:
        found = logits.copy()
        highest = logits.max()
        total = highest + np.log(np.exp(logits - highest, dtype=np.float64).sum())
        for token, probability in given.items():
            found[token] = np.logaddexp(logits[token], total + np.log(probability))
        found[list(taken)] = NO_WEIGHT
        return found

    def share_of(self, logits: Row, tokens: Collection[int]) -> float:
        highest = logits.max()
        wanted = np.exp(logits[np.array(sorted(tokens), dtype=np.intp)] - highest).sum()
        return float(wanted / np.exp(logits - highest).sum())
