"""Packed token masks, in the layout that every backend reads.

Bit ``t % 32`` of word ``t // 32`` (little-endian, ``uint32``) is set if token ``t`` is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BITS = 32


def word_count(size: int) -> int:
    """Return the number of words of a mask over ``size`` tokens."""
    return -(-size // WORD_BITS)


def contains(words: NDArray[np.uint32], token_id: int) -> bool:
    """Return whether a packed mask allows a token; it refuses tokens beyond its end."""
    word, bit = divmod(token_id, WORD_BITS)
    return word < len(words) and bool(int(words[word]) >> bit & 1)


def mask_bits(bits: NDArray[np.signedinteger], octets: NDArray[np.uint8], infinity: NDArray[np.signedinteger]) -> None:
    """Set floats [V], given as integers of their bits, to ``infinity`` where a mask of ``octets`` [V / 8] refuses them.

    x becomes ((x ^ inf) & m) ^ inf, where m is all ones for an allowed token and zero for a refused one. That is
    vectorised, where a masked assignment branches on every element.
    """
    allowed = np.unpackbits(octets, count=len(bits), bitorder="little").astype(bits.dtype)
    np.negative(allowed, out=allowed)
    bits ^= infinity
    bits &= allowed
    bits ^= infinity
