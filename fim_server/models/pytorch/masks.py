"""Packed masks on tensors.

They cross to the device as they are, 19 kB for 151k tokens. So do the masks of a batch, one a row. There
:mod:`.kernels` reads the bits, or torch unpacks them.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from fim_server.errors import first_line
from fim_server.models.masking import WORD_BITS, mask_bits, word_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from numpy.typing import NDArray

_log = logging.getLogger(__name__)


def mask_buffer(size: int, rows: int | None = None) -> tuple[torch.Tensor, NDArray[np.uint32]]:
    """Make a zeroed buffer for ``rows`` packed masks over ``size`` tokens, or for a single one.

    Returns two views of the same memory: an int32 tensor [rows, W] or [W] for :func:`apply_mask_`, and a uint32 array
    of the same shape for ``fill_mask``; W is ``word_count(size)``.

    Where CUDA is present the memory is pinned, and applying the mask copies it while the host goes on. The copy has to
    be over before the buffer is filled again; it is once anything computed from the masked logits has been read.
    """
    shape = (word_count(size),) if rows is None else (rows, word_count(size))
    packed = torch.zeros(shape, dtype=torch.int32, pin_memory=torch.cuda.is_available())
    return packed, packed.numpy().view(np.uint32)


def apply_mask(logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Return a copy of logits with refused tokens at minus infinity; see :func:`apply_mask_`."""
    return apply_mask_(logits.clone(), words)


def apply_mask_(logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Set the logits of refused tokens to minus infinity, in place, and return the same tensor.

    V and W need not match: words beyond the logits are ignored, and logits beyond the words are refused. The words are
    copied to the logits' device as they are. A GPU with Triton writes the refused logits of [B, V], and reads none.

    Args:
        logits: [V] or [B, V], float16, bfloat16, float32 or float64, on any device.
        words: Packed masks [W] or [B, W], as a numpy array of uint32 or a torch tensor of int32 with the same bits, on
            any device. [W] holds for every row of logits [B, V].

    Raises:
        ValueError: Another shape or type.
    """
    packed = _checked(logits, words)
    if not KERNELS.run(logits, lambda kernels: kernels.refuse_(logits, packed)):
        apply_by_torch_(logits, packed)
    return logits


def masked_argmax(
    logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the token of each row's greatest allowed logit, int64 [B], or [] for logits [V]. Change no logits.

    Equal to ``torch.argmax(apply_mask(logits, words), dim=-1)``. An allowed NaN is greater than all, and zeros of both
    signs are equal. The lowest of equal tokens is taken, which is 0 where all are refused. A GPU with Triton reads the
    logits once, and writes none.

    Args:
        logits: As in :func:`apply_mask_`; V is at least 1.
        words: As in :func:`apply_mask_`.
        out: Tensor to write to and return, int64 of the result's shape on the logits' device.

    Raises:
        ValueError: Another shape or type.
    """
    packed = _checked(logits, words)
    shape = logits.shape[:-1]
    if logits.shape[-1] == 0:
        raise ValueError("no logits to choose from")
    if out is None:
        out = torch.empty(shape, dtype=torch.int64, device=logits.device)
    elif out.dtype != torch.int64 or out.shape != shape or out.device != logits.device:
        raise ValueError(f"{out.dtype} {tuple(out.shape)} on {out.device} cannot hold tokens {tuple(shape)}")
    chosen = out
    if logits.dtype == torch.float64 or not KERNELS.run(logits, lambda kernels: kernels.choose(logits, packed, chosen)):
        masked = apply_by_torch_(logits.detach().clone(), packed)
        with torch.inference_mode(chosen.is_inference()):
            torch.argmax(masked, dim=-1, out=chosen)
    return chosen


# --- kernels --------------------------------------------------------------------------------------------------------

MOST_LOGITS = 1 << 27
"""Most logits of a row for the kernels: their launches have at most 65,535 programs a row."""


class Kernels:
    """Triton's kernels for batches on a GPU, where Triton is installed and compiles; the first failure ends their use.

    A single row [V], as the server masks it, takes torch's operations. Compiling would delay its first token by
    seconds, and a single row's mask takes 0.3 % of a step (docs/results/gpu.md).

    Attributes:
        devices: Types of devices that have them.
        failure: Reason why they are not used; None while they are.
    """

    def __init__(self) -> None:
        self.devices = {"cuda"}  # ROCm's too, as torch calls them
        self.failure: str | None = None

    def take(self, logits: torch.Tensor) -> bool:
        """Return whether the kernels take such logits, if they are there."""
        return (
            logits.device.type in self.devices
            and type(logits) is torch.Tensor  # not one of torch's tracers, nor a parameter
            and not logits.requires_grad
            and logits.ndim == 2
            and logits.numel() > 0
            and logits.shape[1] <= MOST_LOGITS
            and logits.stride(1) == 1
            and logits.stride(0) >= logits.shape[1]
        )

    def run(self, logits: torch.Tensor, work: Callable[[ModuleType], None]) -> bool:
        """Have ``work`` call a kernel for these logits; False where torch has to do it."""
        if self.failure is not None or not self.take(logits):
            return False
        try:
            from fim_server.models.pytorch import kernels

            work(kernels)
        except torch.OutOfMemoryError:
            raise
        except ImportError as error:  # Triton has no wheel for this system
            self.failure = first_line(error)
            _log.info("masks without Triton: %s", self.failure)
        except Exception as error:  # noqa: BLE001  # of Triton, which may lack a C compiler, and of the driver
            self.failure = first_line(error) or type(error).__name__
            _log.warning("masks are applied by torch, which takes longer: Triton: %s", self.failure)
        return self.failure is None


KERNELS = Kernels()
"""The kernels of this process."""


# --- torch ----------------------------------------------------------------------------------------------------------


def apply_by_torch_(logits: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    """Apply masks int32 [W] or [B, W], on the logits' device, as :func:`apply_mask_` without a kernel."""
    size = min(logits.shape[-1], packed.shape[-1] * WORD_BITS)
    # A model's logits are made in inference mode, where alone they may be changed.
    with torch.inference_mode(logits.is_inference()):
        logits[..., size:].fill_(float("-inf"))
        known = logits[..., :size]
        if logits.device.type != "cpu" or logits.requires_grad:
            known.masked_fill_(_refused(packed, size), float("-inf"))
        elif known.ndim == 1:
            _mask_row(known, packed)
        else:  # row by row: what one row needs stays in the cache
            for row, mask in zip(known, packed.expand(len(known), -1), strict=True):
                _mask_row(row, mask)
    return logits


def _checked(logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Return the words that count, int32 on the logits' device; raise ValueError for another shape or type."""
    packed = _as_tensor(words)
    if logits.ndim not in (1, 2) or not logits.dtype.is_floating_point or logits.dtype not in _AS_INTEGERS:
        raise ValueError(f"logits of shape {tuple(logits.shape)} and type {logits.dtype} take no mask")
    if packed.ndim not in (1, 2) or packed.shape[:-1] not in ((), logits.shape[:-1]):
        raise ValueError(f"masks of shape {tuple(packed.shape)} for logits of shape {tuple(logits.shape)}")
    size = min(logits.shape[-1], packed.shape[-1] * WORD_BITS)
    return packed[..., : word_count(size)].to(logits.device, non_blocking=True)


_AS_INTEGERS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def _as_tensor(words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Return packed masks as int32, without a copy where the array allows that."""
    if isinstance(words, torch.Tensor):
        if words.dtype != torch.int32:
            raise ValueError(f"masks of type {words.dtype} instead of torch.int32")
        return words
    if words.dtype != np.uint32:
        raise ValueError(f"masks of type {words.dtype} instead of uint32")
    return torch.from_numpy(np.require(words, requirements=["C", "W"]).view(np.int32))


@cache
def _bits(place: torch.device) -> torch.Tensor:
    """Return the bits of a byte, kept on the device: copying them there for each mask would make the host wait."""
    with torch.inference_mode(False):
        return torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=place)


def _refused(packed: torch.Tensor, size: int) -> torch.Tensor:
    """Unpack masks [..., W] into booleans [..., size], true where refused. Temporaries take one byte a token."""
    octets = packed.contiguous().view(torch.uint8)  # [..., 4 W]; every device that torch knows is little-endian
    return (octets[..., None] & _bits(packed.device)).eq_(0).view(torch.bool).flatten(-2)[..., :size]


def _mask_row(logits: torch.Tensor, packed: torch.Tensor) -> None:
    """Mask logits [V] by words [W] on the CPU, in numpy: sharing so little work among torch's threads delays it."""
    octets = packed.contiguous().numpy().view(np.uint8)
    bits = logits.view(_AS_INTEGERS[logits.dtype]).numpy()
    infinity = torch.tensor(float("-inf"), dtype=logits.dtype).view(_AS_INTEGERS[logits.dtype]).numpy()
    mask_bits(bits, octets, infinity)
