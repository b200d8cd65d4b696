"""Time that the device takes to choose the likeliest allowed tokens of a batch, without a network."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from benchmarks.gpu.report import ChoiceRow
from benchmarks.report import percentile
from fim_server.errors import first_line
from fim_server.models.masking import word_count
from fim_server.models.pytorch.backend import free_memory
from fim_server.models.pytorch.masks import KERNELS, apply_by_torch_, apply_mask_, masked_argmax
from fim_server.models.pytorch.rows import Replayed

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 10
"""Calls of one measurement, which on CUDA are one graph: launching them would take the host longer."""

SAMPLES = 50
"""Most measurements of each way."""

SECONDS = 1.0
"""No measurement of a way begins after this."""

PADDED = 128
"""Logits of a row are a multiple of this, as those of the shapes."""


def measure_choices(place: torch.device, size: int, batch: int, seed: int) -> list[ChoiceRow]:
    """Measure each way on random float32 logits and masks of ``size`` tokens.

    Nothing raises: a way that fails, or differs from torch's, is a row that says so.
    """
    try:
        generator = torch.Generator(place).manual_seed(seed)
        logits = torch.randn(batch, -(-size // PADDED) * PADDED, device=place, generator=generator)
        shape = (batch, word_count(size))
        packed = torch.randint(-(1 << 31), 1 << 31, shape, device=place, generator=generator).to(torch.int32)
        expected = apply_by_torch_(logits.clone(), packed).argmax(dim=-1)
        chosen = torch.zeros_like(expected)
        scratch = logits.clone()
    except Exception as error:  # noqa: BLE001  # above all of memory
        return [ChoiceRow(batch, "", None, first_line(error) or type(error).__name__)]

    def plain() -> torch.Tensor:
        return torch.argmax(logits, dim=-1, out=chosen)

    def by_torch() -> torch.Tensor:
        return torch.argmax(apply_by_torch_(scratch, packed), dim=-1, out=chosen)

    def by_kernel() -> torch.Tensor:
        return torch.argmax(apply_mask_(scratch, packed), dim=-1, out=chosen)

    def fused() -> torch.Tensor:
        return masked_argmax(logits, packed, out=chosen)

    rows = []
    for name, way in {
        "argmax without a mask": plain,
        "mask by torch, argmax": by_torch,
        "mask by kernel, argmax": by_kernel,
        "fused kernel": fused,
    }.items():
        note, seconds = "", None
        try:
            scratch.copy_(logits)
            chosen.fill_(-1)
            way()  # compiles
            if way in (by_kernel, fused) and (KERNELS.failure is not None or not KERNELS.take(logits)):
                note = KERNELS.failure or "no kernel for this device"
            elif way is not plain and not torch.equal(chosen, expected):
                note = "differs from torch"
            else:
                seconds = seconds_of(way, place)
        except Exception as error:  # noqa: BLE001  # as above
            note = first_line(error) or type(error).__name__
        rows.append(ChoiceRow(batch, name, None if seconds is None else 1e6 * seconds, note))
    free_memory()
    return rows


def seconds_of(way: Callable[[], torch.Tensor], place: torch.device) -> float | None:
    """Return the median of a call: by the device's clock on CUDA, else by the host's."""
    count = CALLS if place.type == "cuda" else 1

    def calls() -> torch.Tensor:
        for _ in range(count):
            found = way()
        return found

    repeated = Replayed(calls, place)
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < SAMPLES and (not times or time.perf_counter() < until):
        if place.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            repeated()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        else:
            started = time.perf_counter()
            repeated()
            times.append(time.perf_counter() - started)
    median = percentile(times, 0.5)
    return None if median is None else median / count
