"""Weights in few bits: by channels for onnxruntime's MatMulInteger, or in blocks for MatMulNBits.

By channels, each row of a matrix [N, K] has one scale. The fastest kernels multiply such matrices with activations that
are rounded to 8 bits as well, with one scale for a token.

In blocks, each row is cut along K. Each block has a scale of its own and, optionally, a zero point: a number is (level
- zero point) * scale. Levels of 4 bits are packed two to a byte, the first in the lower half. Without zero points, all
blocks have the middle level, 8 or 128. GatherBlockQuantized reads such tables, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHRINKS = tuple(np.linspace(0.72, 1.0, 8, dtype=np.float32).tolist())
"""Candidate factors of the scale at which a block's largest number still fits; the least square error decides. With 4
bits, clipping that number loses less than a coarser step for all others.
"""

ROWS_AT_ONCE = 1 << 20
"""Numbers that are quantised together, so that intermediate results fit into a processor's cache."""


CHANNEL_LEVELS = 64
"""Levels of a channel on either side of zero. Kernels for processors without VNNI add two products, of a byte of
activations and one of weights each, in 16 bits. They clip a larger sum, and 2 * 255 * 64 is none.
"""


@dataclass(frozen=True)
class Channels:
    """Matrix [N, K] by channels.

    Attributes:
        levels: [K, N], from -64 to 64, as MatMulInteger takes them.
        scales: [N].
    """

    levels: NDArray[np.int8]
    scales: NDArray[np.float32]


def by_channels(matrix: NDArray[np.float32]) -> Channels:
    """Quantise a matrix [N, K] by channels, each scaled so that its largest number has the last level."""
    scales = np.abs(matrix).max(1) / np.float32(CHANNEL_LEVELS)
    steps = np.where(scales == 0, np.float32(1), scales)
    levels = np.clip(np.rint(matrix / steps[:, None]), -CHANNEL_LEVELS, CHANNEL_LEVELS).astype(np.int8)
    return Channels(np.ascontiguousarray(levels.T), scales)


@dataclass(frozen=True)
class Precision:
    """Precision of a matrix in blocks.

    Attributes:
        bits: Bits of a level: 4 or 8.
        block: Numbers that share a scale; a power of two.
        zero_points: Whether blocks have zero points of their own.
    """

    bits: int = 4
    block: int = 32
    zero_points: bool = False


@dataclass(frozen=True)
class Quantized:
    """Matrix [N, K] in blocks.

    Attributes:
        precision: Its precision.
        packed: Levels [N, K / block, block * bits / 8].
        scales: [N, K / block].
        zero_points: [N, ceil(K / block * bits / 8)], packed as levels are; None for the middle level.
    """

    precision: Precision
    packed: NDArray[np.uint8]
    scales: NDArray[np.float32]
    zero_points: NDArray[np.uint8] | None


def quantize(matrix: NDArray[np.float32], precision: Precision) -> Quantized:
    """Quantise a matrix [N, K] in blocks with the least square error.

    Raises ValueError if a block does not divide K.
    """
    count, width = matrix.shape
    if width % precision.block:
        raise ValueError(f"{width} columns are no multiple of {precision.block}")
    rows = max(1, ROWS_AT_ONCE // width)
    parts = [blocks_of(matrix[start : start + rows], precision) for start in range(0, count, rows)]
    levels, scales, zeros = (np.concatenate(each) for each in zip(*parts, strict=True))
    points = pack(zeros, precision.bits) if precision.zero_points else None
    return Quantized(precision, pack(levels, precision.bits), scales, points)


def blocks_of(
    matrix: NDArray[np.float32], precision: Precision
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.uint8]]:
    """Return levels [N, K / block, block], scales and zero points [N, K / block]."""
    top = (1 << precision.bits) - 1
    blocks = matrix.reshape(len(matrix), -1, precision.block)
    low, high = np.minimum(blocks.min(2), 0), np.maximum(blocks.max(2), 0)
    if precision.zero_points:
        widest = (high - low) / np.float32(top)
    elif precision.bits == 8:  # llama.cpp's Q8_0, so that such a table stays unchanged
        widest = np.maximum(-low, high) / np.float32(top // 2)
    else:  # the side of the larger number has the level more
        widest = np.where(-low > high, low, high) / np.float32(-(top + 1) // 2)
    best = [np.zeros(blocks.shape, np.uint8), np.zeros_like(low), np.zeros(low.shape, np.uint8)]
    least = np.full(low.shape, np.inf, dtype=np.float32)
    for shrink in SHRINKS if precision.bits < 8 else (1.0,):
        scales = widest * np.float32(shrink)
        steps = np.where(scales == 0, np.float32(1), scales)
        zeros = np.clip(np.rint(-low / steps), 0, top) if precision.zero_points else np.full_like(low, (top + 1) // 2)
        levels = np.clip(np.rint(blocks / steps[:, :, None]) + zeros[:, :, None], 0, top)
        errors = np.square((levels - zeros[:, :, None]) * scales[:, :, None] - blocks).sum(2)
        better = errors < least
        least = np.where(better, errors, least)
        for kept, found in zip(best, (levels.astype(np.uint8), scales, zeros.astype(np.uint8)), strict=True):
            np.copyto(kept, found, where=better[:, :, None] if kept.ndim == 3 else better)
    levels, scales, zeros = best
    return levels, scales, zeros


def pack(levels: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pack levels [..., n] of some bits into bytes [..., ceil(n * bits / 8)]."""
    if bits == 8:
        return levels
    if levels.shape[-1] % 2:
        levels = np.concatenate([levels, np.zeros_like(levels[..., :1])], axis=-1)
    packed: NDArray[np.uint8] = levels[..., 0::2] | (levels[..., 1::2] << np.uint8(4))
    return packed
