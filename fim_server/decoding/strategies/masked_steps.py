"""Greedy decoding of many rows where the device never waits for the host: masks are computed while the model runs.

A step's tokens are chosen on the device and read there by the next step, which is launched at once. While it runs,
another thread learns what was chosen, has each row's matcher take its token in, and fills the masks of the step that is
running (on the engine's threads, without the interpreter's lock) into pinned memory; they are copied on a stream of
their own. So of the grammar's work only what takes longer than the model is waited for, and what applies the masks.

Rows may be of different holes, languages and shapes, or of none. A row that has ended is seen one step later, and its
place is then given to the next request, or to the last row.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from fim_server.models.pytorch.backend import apply_mask_, mask_buffer
from fim_server.tokens.masks import fill_masks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from fim_server.language import Matcher
    from fim_server.models.pytorch.rows import StaticRows

    Work = Callable[[NDArray[np.int64] | None, NDArray[np.uint32]], bool]
    """Takes in what was chosen at the step before, [rows] (None: nothing yet), fills the masks of this step, [rows, W],
    and tells whether they are to be applied. Called on a thread of its own."""

ALL = np.uint32(0xFFFFFFFF)


class MaskedSteps:
    """Steps of rows, each with the likeliest token that its mask allows. To be closed, or used in ``with``."""

    def __init__(self, rows: StaticRows, size: int, *, overlapped: bool = True) -> None:
        """``size``: tokens that a mask has. ``overlapped``: False computes masks after the model, to compare with."""
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
        """Wait for what is being computed."""
        self._worker.shutdown()
        if self._copied is not None:
            torch.cuda.synchronize(self._place)

    def begin(self) -> None:
        """Forget what was chosen last: the next step reads ``rows.tokens``, and its work is told of no choice."""
        self._chosen_rows = None

    def step(self, work: Work) -> None:
        """Have each row read its token, and choose the next into ``rows.tokens``; ``work`` is done meanwhile.

        Raises what ``work`` raises; the rows have read on then, and nothing is chosen.
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
        if masked:
            apply_mask_(logits, self._upload(count))
        torch.argmax(logits, dim=-1, out=self.rows.tokens[:count])
        self._chosen[:count].copy_(self.rows.tokens[:count], non_blocking=True)
        self._chosen_rows = count
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(self._place))

    def chosen(self) -> NDArray[np.int64] | None:
        """What the last step chose, [rows], waiting for it; None before the first. Valid until the next step."""
        if self._chosen_rows is None:
            return None
        if self._copied is not None:
            self._copied.synchronize()
        found: NDArray[np.int64] = self._chosen.numpy()[: self._chosen_rows]
        return found

    def _work(self, work: Work, count: int) -> bool:
        return work(self.chosen(), self._words[:count])

    def _upload(self, count: int) -> torch.Tensor:
        """The masks on the device. What applied the last ones has ended: its choice has been read."""
        if self._copying is None:
            return self._packed[:count]
        with torch.cuda.stream(self._copying):
            self._device_words[:count].copy_(self._packed[:count], non_blocking=True)
        torch.cuda.current_stream(self._place).wait_stream(self._copying)
        return self._device_words[:count]


@dataclass(frozen=True)
class RowRequest:
    """A middle that is wanted.

    Attributes:
        prompt: Its tokens.
        matcher: What constrains it, at its beginning; None: nothing does.
        budget: Tokens that it may have.
    """

    prompt: Sequence[int]
    matcher: Matcher | None
    budget: int


@dataclass(eq=False)
class _Row:
    """A request that has a row."""

    number: int
    request: RowRequest
    tokens: list[int] = field(default_factory=list)
    is_over: bool = False

    def take(self, token: int, stop_ids: Collection[int]) -> None:
        """What follows from a choice: one more token, or the end."""
        if self.is_over:
            return
        if token in stop_ids:
            self.is_over = True
            return
        if self.request.matcher is not None:
            try:
                self.request.matcher.commit(token)
            except ValueError:  # nothing at all was allowed
                self.is_over = True
                return
        self.tokens.append(token)
        self.is_over = len(self.tokens) >= self.request.budget


def decode_rows(
    rows: StaticRows,
    requests: Iterable[RowRequest],
    stop_ids: Collection[int],
    size: int,
    *,
    overlapped: bool = True,
) -> list[list[int]]:
    """The middles' tokens, in the order of the requests, without the tokens that ended them.

    As many at a time as ``rows``, which are to be empty, have room for; each is what it would be alone, up to rounding
    of the logits. ``size``: the vocabulary's. Raises ValueError for a prompt whose row has too little room.
    """
    waiting = deque(enumerate(requests))
    done: dict[int, _Row] = {}
    running: list[_Row] = []
    before: list[_Row] = []
    """Those that the last step chose for, in the order of then."""

    def work(chosen: NDArray[np.int64] | None, words: NDArray[np.uint32]) -> bool:
        for row, token in zip(before, () if chosen is None else chosen.tolist(), strict=False):
            row.take(token, stop_ids)
        return fill([row.request.matcher for row in running], words)

    with torch.inference_mode(), MaskedSteps(rows, size, overlapped=overlapped) as steps:
        while True:
            for place in reversed(range(len(running))):
                if running[place].is_over:
                    rows.remove(place)
                    last = running.pop()
                    if place < len(running):
                        running[place] = last
                        rows.tokens[place] = rows.tokens[len(running)]
            while waiting and len(running) < rows.most_rows:
                number, request = waiting.popleft()
                row = done[number] = _Row(number, request)
                if _first(rows, row, stop_ids, size):
                    running.append(row)
            if not running:
                break
            steps.step(work)
            before = list(running)
    return [done[number].tokens for number in sorted(done)]


def _first(rows: StaticRows, row: _Row, stop_ids: Collection[int], size: int) -> bool:
    """Read a prompt into a new row at the end, and choose its first token; whether it goes on, or the row is gone."""
    if len(row.request.prompt) + row.request.budget > rows.positions:
        raise ValueError(f"{len(row.request.prompt)} tokens and {row.request.budget} more in {rows.positions}")
    place = rows.new()
    logits = rows.read(place, row.request.prompt)
    if row.request.matcher is not None:
        packed, words = mask_buffer(size)
        row.request.matcher.fill_mask(words)
        apply_mask_(logits, packed)
    token = int(logits.argmax())
    row.take(token, stop_ids)
    if row.is_over:
        rows.remove(place)
        return False
    rows.tokens[place] = token
    return True


def fill(matchers: Sequence[Matcher | None], words: NDArray[np.uint32]) -> bool:
    """Fill the rows' masks [rows, W]; those without a matcher allow everything. Whether there is any to apply."""
    constrained = [number for number, matcher in enumerate(matchers) if matcher is not None]
    if not constrained:
        return False
    found = [matcher for matcher in matchers if matcher is not None]
    if len(found) == len(matchers):
        fill_masks(found, words)
    else:
        own = np.zeros((len(found), words.shape[1]), dtype=np.uint32)
        fill_masks(found, own)
        words[:] = ALL
        words[constrained] = own
    return True
