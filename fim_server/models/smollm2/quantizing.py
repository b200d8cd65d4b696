"""Weights in few bits: by channels, for onnxruntime's MatMulInteger, or in blocks, for MatMulNBits.

By channels, each row of a matrix [N, K] has one scale. That is what the fastest kernels multiply, whose other factor,
the activations, is rounded to 8 bits as well, with one scale for a token.

In blocks, each row is cut along K, and a block has a scale of its own and, where wanted, a zero point: a number is
(level - zero point) * scale. Levels of 4 bits are packed two to a byte, the first in the lower half. Without zero
points of their own all blocks have the middle level, 8 or 128. GatherBlockQuantized reads such tables, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHRINKS = tuple(np.linspace(0.72, 1.0, 8, dtype=np.float32).tolist())
"""Of the scale at which a block's largest number still fits: 4 bits lose less by cutting that off, than by a coarser
step for all others. All are tried, and the one of the least square error is taken."""

ROWS_AT_ONCE = 1 << 20
"""Numbers that are quantised together, so that what is computed between fits into a processor's cache."""


CHANNEL_LEVELS = 64
"""Levels of a channel on either side of zero. Kernels for processors without VNNI add up two neighbouring products, of
a byte of activations and one of weights, in 16 bits, and cut off what is more: 2 * 255 * 64 is not."""


@dataclass(frozen=True)
class Channels:
    """A matrix [N, K] by channels.

    Attributes:
        levels: [K, N], from -64 to 64, as MatMulInteger takes them.
        scales: [N].
    """

    levels: NDArray[np.int8]
    scales: NDArray[np.float32]


def by_channels(matrix: NDArray[np.float32]) -> Channels:
    """A matrix [N, K] by channels, each scaled so that its largest number has the last level."""
    scales = np.abs(matrix).max(1) / np.float32(CHANNEL_LEVELS)
    steps = np.where(scales == 0, np.float32(1), scales)
    levels = np.clip(np.rint(matrix / steps[:, None]), -CHANNEL_LEVELS, CHANNEL_LEVELS).astype(np.int8)
    return Channels(np.ascontiguousarray(levels.T), scales)


@dataclass(frozen=True)
class Precision:
    """How a matrix is stored in blocks.

    Attributes:
        bits: Of a level: 4 or 8.
        block: Numbers that share a scale; a power of two.
        zero_points: Whether blocks have zero points of their own.
    """

    bits: int = 4
    block: int = 32
    zero_points: bool = False


@dataclass(frozen=True)
class Quantized:
    """A matrix [N, K] in blocks.

    Attributes:
        precision: How it is stored.
        packed: Levels [N, K / block, block * bits / 8].
        scales: [N, K / block].
        zero_points: [N, ceil(K / block * bits / 8)], packed as levels are; None for the middle level.
    """

    precision: Precision
    packed: NDArray[np.uint8]
    scales: NDArray[np.float32]
    zero_points: NDArray[np.uint8] | None


def quantize(matrix: NDArray[np.float32], precision: Precision) -> Quantized:
    """A matrix [N, K] in blocks, of the least square error found. Raises ValueError where a block does not divide K."""
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
    """Levels [N, K / block, block], scales and zero points [N, K / block]."""
    top = (1 << precision.bits) - 1
    blocks = matrix.reshape(len(matrix), -1, precision.block)
    low, high = np.minimum(blocks.min(2), 0), np.maximum(blocks.max(2), 0)
    if precision.zero_points:
        widest = (high - low) / np.float32(top)
    elif precision.bits == 8:  # as llama.cpp's Q8_0 has it, so that a table in that form comes out as it is
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
    """Levels [..., n] of some bits, as bytes [..., ceil(n * bits / 8)]."""
    if bits == 8:
        return levels
    if levels.shape[-1] % 2:
        levels = np.concatenate([levels, np.zeros_like(levels[..., :1])], axis=-1)
    packed: NDArray[np.uint8] = levels[..., 0::2] | (levels[..., 1::2] << np.uint8(4))
    return packed
