"""Greedy decoding of many rows whose masks are computed while the model runs, so that the device never waits.

The device chooses a step's tokens, and the next step, launched at once, reads them there. Meanwhile another thread
learns the tokens, commits each to its row's matcher and fills the masks of the running step into pinned memory. The
engine fills them on its own threads, without the interpreter's lock. A stream of its own copies the masks. The device
thus waits only for masks that take longer than the model, and for the kernel that chooses by them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import torch

from fim_server.models.pytorch.masks import mask_buffer, masked_argmax

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.pytorch.rows import StaticRows

    Work = Callable[[NDArray[np.int64] | None, NDArray[np.uint32]], bool]
    """Takes the tokens chosen at the step before, [rows] (None: none yet), and fills this step's masks, [rows, W].

    Returns whether to apply the masks. Called on a thread of its own."""


class MaskedSteps:
    """Steps of rows, each with the likeliest token that its mask allows. Close it, or use it in ``with``."""

    def __init__(self, rows: StaticRows, size: int, *, overlapped: bool = True) -> None:
        """Make buffers for masks of ``size`` tokens. ``overlapped``: False computes masks after the model."""
        self.rows = rows
        self._place = rows.tokens.device
        self._overlapped = overlapped
        self._packed, self._words = mask_buffer(size, rows.most_rows)
        self._device_words = torch.zeros_like(self._packed, device=self._place)
        cuda = self._place.type == "cuda"
        self._chosen = torch.zeros(rows.most_rows, dtype=torch.int64, pin_memory=cuda)
        self._chosen_rows: int | None = None
        self._copied = torch.cuda.Event() if cuda else None  # type: ignore[no-untyped-call]
        self._copying = torch.cuda.Stream(self._place) if cuda else None  # type: ignore[no-untyped-call]
        if self._copying is not None:
            self._copying.wait_stream(torch.cuda.current_stream(self._place))  # which zeroes the masks there
        self._worker = ThreadPoolExecutor(1, "fim-masks")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the worker and the device."""
        self._worker.shutdown()
        if self._copied is not None:
            torch.cuda.synchronize(self._place)

    def begin(self) -> None:
        """Forget the last choice: the next step reads ``rows.tokens``, and its work gets None."""
        self._chosen_rows = None

    def step(self, work: Work) -> None:
        """Have each row read its token, and choose the next into ``rows.tokens``; run ``work`` meanwhile.

        Raises the errors of ``work``; the rows have read on then, and no token is chosen.
        """
        count = len(self.rows.lengths)
        if self._overlapped:
            working = self._worker.submit(self._work, work, count)
            try:
                logits = self.rows.launch()
            finally:
                wait((working,))
            masked = working.result()
        else:
            logits = self.rows.launch()
            if self._copied is not None:
                torch.cuda.current_stream(self._place).synchronize()
            masked = self._work(work, count)
        tokens = self.rows.tokens[:count]
        if masked:
            masked_argmax(logits, self._upload(count), out=tokens)
        else:
            torch.argmax(logits, dim=-1, out=tokens)
        self._chosen[:count].copy_(self.rows.tokens[:count], non_blocking=True)
        self._chosen_rows = count
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(self._place))

    def chosen(self) -> NDArray[np.int64] | None:
        """Wait for the last step's choice, [rows]; None before the first step. Valid until the next step."""
        if self._chosen_rows is None:
            return None
        if self._copied is not None:
            self._copied.synchronize()
        found: NDArray[np.int64] = self._chosen.numpy()[: self._chosen_rows]
        return found

    def _work(self, work: Work, count: int) -> bool:
        return work(self.chosen(), self._words[:count])

    def _upload(self, count: int) -> torch.Tensor:
        """Copy the masks to the device. The host has read the last choice, so no kernel uses the old masks."""
        if self._copying is None:
            return self._packed[:count]
        with torch.cuda.stream(self._copying):
            self._device_words[:count].copy_(self._packed[:count], non_blocking=True)
        torch.cuda.current_stream(self._place).wait_stream(self._copying)
        return self._device_words[:count]
