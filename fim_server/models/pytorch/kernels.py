"""Packed masks on a GPU: Triton kernels that read or write each logit at most once.

Torch has no operation on packed bits, so it unpacks them and passes over the logits twice, to mask and to choose. This
module imports Triton, which comes with torch on Linux; :mod:`.masks` imports it for the first batch on a GPU.
"""

import torch
import triton
import triton.language as tl

from fim_server.models.masking import WORD_BITS

TILE = 1024
"""Logits that a program of a choice reads at once: 8 a thread, one or two loads of 16 bytes each.

Compiled for compute capability 9.0, a logit takes 9 instructions, and a thread 40 to 45 registers.
"""

STORED = 4096
"""Logits of a program that refuses."""

PROGRAMS = 8
"""Programs of a choice for each multiprocessor. All of them fit at once, and their loads hide the memory's delay."""

MOST_PARTS = 256
"""Most parts of a row; a row of 151,669 logits has 149 tiles."""


@triton.jit(do_not_specialize=["size", "words_a_row", "logits_stride", "words_stride"])
def _refuse(logits, words, size, words_a_row, logits_stride, words_stride, stored: tl.constexpr):
    """Write minus infinity where the bit is 0. Allowed logits are neither read nor written."""
    row = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * stored + tl.arange(0, stored)
    # A thread would take neighbours, to store 16 bytes at once, which single refusals prevent. So let a warp take them.
    token = tl.max_contiguous(token, 1)
    word = tl.load(words + row * words_stride + token // 32, mask=token // 32 < words_a_row, other=0)
    refused = ((word >> (token % 32)) & 1) == 0
    infinity = tl.full((stored,), float("-inf"), tl.float32).to(logits.dtype.element_ty)
    tl.store(logits + row * logits_stride + token, infinity, mask=refused & (token < size))


@triton.jit
def _greater(values, allowed, start, best, best_at):
    """Return the greater of each pair and the start of its tile: NaN before all, and the earlier of equal ones."""
    values = tl.where(allowed, values.to(tl.float32), float("-inf"))
    taken = (values > best) | ((values != values) & (best == best))
    return tl.where(taken, values, best), tl.where(taken, start, best_at)


@triton.jit(do_not_specialize=["size", "words_stride", "tiles", "parts"])
def _choose_in_parts(logits, words, keys, size, logits_stride, words_stride, tiles, parts, tile: tl.constexpr):
    """Write a part's best token as a key, which orders by the logit and then by the lower token.

    ``tiles``: of each part. Each thread keeps the best of its own places until the part's end.
    """
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    logits += row * logits_stride
    words += row * words_stride
    group = tl.arange(0, tile // 32)[:, None]
    bit = tl.arange(0, 32)[None, :]
    place = group * 32 + bit
    first = part * tiles * tile
    end = tl.minimum(first + tiles * tile, size)
    whole = first + (end - first) // tile * tile
    best = tl.full((tile // 32, 32), float("-inf"), tl.float32)
    best_at = tl.zeros((tile // 32, 32), tl.int32)  # of minus infinity, of which the first token is the lowest
    for start in range(first, whole, tile):
        word = tl.load(words + start // 32 + group)
        values = tl.load(logits + start + place)
        best, best_at = _greater(values, (word & (1 << bit)) != 0, start, best, best_at)
    if whole < end:  # by itself, since loads with a condition are of single logits
        word = tl.load(words + whole // 32 + group, mask=whole + group * 32 < end, other=0)
        values = tl.load(logits + whole + place, mask=whole + place < end, other=float("-inf"))
        best, best_at = _greater(values, (word & (1 << bit)) != 0, whole, best, best_at)
    best = tl.where(best == 0, 0.0, best)  # of either sign
    bits = best.to(tl.int32, bitcast=True)
    order = tl.where(best != best, 0x7FFFFFFF, bits ^ ((bits >> 31) & 0x7FFFFFFF))
    key = (order.to(tl.int64) << 32) + (0x7FFFFFFF - (best_at + place))
    tl.store(keys + row * parts + part, tl.max(tl.max(key, 1), 0))


@triton.jit(do_not_specialize=["parts", "chosen_stride"])
def _choose_of_parts(keys, chosen, parts, chosen_stride, most_parts: tl.constexpr):
    """Write the token of a row's greatest key."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, most_parts)
    key = tl.load(keys + row * parts + part, mask=part < parts, other=-0x8000000000000000)
    tl.store(chosen + row * chosen_stride, 0x7FFFFFFF - (tl.max(key, 0) & 0xFFFFFFFF))


def refuse_(logits: torch.Tensor, words: torch.Tensor) -> None:
    """Write minus infinity to the refused logits [B, V] of any type; ``words`` as in :func:`choose`."""
    rows, size = logits.shape
    words, words_stride = _by_rows(words)
    with torch.cuda.device_of(logits):
        _refuse[(rows, triton.cdiv(size, STORED))](
            *(logits, words, size, words.shape[-1], logits.stride(0), words_stride),
            stored=STORED,
            enable_fp_fusion=False,
        )
    torch.autograd.graph.increment_version(logits)


def choose(logits: torch.Tensor, words: torch.Tensor, chosen: torch.Tensor) -> None:
    """Write the greatest allowed logit's token of each row into ``chosen``.

    Several programs read each row, since a single row has to keep the whole device busy. Each writes one key, and a
    second launch compares a row's keys. Unlike an atomic maximum, this needs no zeroed memory and no unpacking after
    it, so that a step is two launches, also in a CUDA graph.

    Args:
        logits: [B, V], float16, bfloat16 or float32; neighbours in a row are neighbours in memory.
        words: int32 [B, W], or [W] for all rows, on the same device.
        chosen: int64 [B], on the same device.
    """
    rows = len(logits)
    words, words_stride = _by_rows(words)
    size = min(logits.shape[1], words.shape[-1] * WORD_BITS)
    tiles = triton.cdiv(size, TILE)
    most = min(MOST_PARTS, max(1, _programs(logits.device) // rows))
    tiles_a_part = max(1, triton.cdiv(tiles, most))
    parts = max(1, triton.cdiv(tiles, tiles_a_part))
    keys = torch.empty((rows, parts), dtype=torch.int64, device=logits.device)
    with torch.cuda.device_of(logits):
        _choose_in_parts[(rows, parts)](
            *(logits, words, keys, size, logits.stride(0), words_stride, tiles_a_part, parts),
            tile=TILE,
            enable_fp_fusion=False,
        )
        _choose_of_parts[(rows,)](
            *(keys, chosen, parts, chosen.stride(0)), most_parts=MOST_PARTS, enable_fp_fusion=False
        )


def _programs(place: torch.device) -> int:
    """Return how many programs a choice should have at most."""
    if place.type != "cuda":  # Triton's interpreter, which tests use
        return PROGRAMS
    return PROGRAMS * int(torch.cuda.get_device_properties(place).multi_processor_count)


def _by_rows(words: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return words whose neighbours are neighbours in memory, and the distance of two rows."""
    words = words if words.stride(-1) == 1 else words.contiguous()
    return words, words.stride(0) if words.ndim == 2 else 0
