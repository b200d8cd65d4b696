"""Batches: packed windows as tensors, drawn without end, on a GPU by separate processes."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from fim_server.errors import TrainingError
from training.data.packages import SourceFile
from training.fim.examples import Mixture, Source, Window, windows

AHEAD = 4
"""Batches that each process has ready."""


class Batch(NamedTuple):
    """Windows of a step.

    `ids`, `positions`, `owners`: [windows, length]. `origins`, `targets`, `weights`: [n], the predictions that count,
    by the index of the predicting token in all windows laid end to end. `runs`: [k + 1], int32, where examples and the
    rests of windows begin there, and the end. `middle_tokens` and `examples`: their numbers.
    """

    ids: Tensor
    positions: Tensor
    owners: Tensor
    origins: Tensor
    targets: Tensor
    weights: Tensor
    runs: Tensor
    middle_tokens: int
    examples: int

    def on(self, device: torch.device) -> Batch:
        """The batch there; on a GPU it is on its way."""
        ids, positions, owners, origins, targets, weights, runs = (
            one.to(device, non_blocking=True) for one in self if isinstance(one, Tensor)
        )
        return Batch(ids, positions, owners, origins, targets, weights, runs, self.middle_tokens, self.examples)


def batch_of(packed: Sequence[Window]) -> Batch:
    """Lay windows of one length together."""
    owners = np.stack([window.owners for window in packed])
    weights = np.concatenate([window.weights for window in packed])
    length = owners.shape[1]
    begins = np.ones(owners.shape, bool)
    begins[:, 1:] = owners[:, 1:] != owners[:, :-1]
    return Batch(
        torch.from_numpy(np.stack([window.ids for window in packed])),
        torch.from_numpy(np.stack([window.positions for window in packed])),
        torch.from_numpy(owners),
        torch.from_numpy(np.concatenate([window.origins + i * length for i, window in enumerate(packed)])),
        torch.from_numpy(np.concatenate([window.targets for window in packed])),
        torch.from_numpy(weights),
        torch.from_numpy(np.append(np.flatnonzero(begins), begins.size).astype(np.int32)),
        int((weights >= 1).sum()),
        sum(int(window.owners.max()) + 1 for window in packed),
    )


@dataclass(frozen=True)
class Lengths:
    """Lengths of examples and windows, in tokens.

    Examples have up to `longest` tokens, by `shares`, and are packed into windows of `window` tokens. With None,
    windows of each of `longest` take turns. Short ones take less time on a processor, whose attention reads whole
    windows. `tokens`: tokens of a batch.
    """

    longest: tuple[int, ...]
    shares: tuple[float, ...]
    window: int | None
    tokens: int

    def count(self, length: int) -> int:
        """Windows of a length in a batch."""
        return max(1, self.tokens // length)


@dataclass(frozen=True)
class Rest:
    """Share and weight of the text before a middle in the loss."""

    share: float
    weight: float


class Batches(IterableDataset[Batch]):
    """Batches without end, other ones in each process that reads them.

    `turn_seed`: of whose turn it is, which is the same in all processes of a team, `seed`: of what is drawn.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        tokenizer: Tokenizer,
        lengths: Lengths,
        rest: Rest,
        seed: int,
        turn_seed: int,
        weights: Sequence[int] | None = None,
    ) -> None:
        self._files, self._tokenizer, self._lengths, self._rest = files, tokenizer, lengths, rest
        self._seed, self._turn_seed, self._weights = seed, turn_seed, weights

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        seed = self._seed if worker is None else self._seed + 7919 * (worker.id + 1)
        lengths, turns = self._lengths, random.Random(self._turn_seed)
        if lengths.window is not None:
            packed = self._windows(lengths.window, (lengths.longest, lengths.shares), seed)
            while True:
                yield batch_of([next(packed) for _ in range(lengths.count(lengths.window))])
        by_length = {length: self._windows(length, ((length,), (1.0,)), seed + length) for length in lengths.longest}
        while True:
            length = turns.choices(lengths.longest, lengths.shares)[0]
            yield batch_of([next(by_length[length]) for _ in range(lengths.count(length))])

    def _windows(self, length: int, longest: tuple[tuple[int, ...], tuple[float, ...]], seed: int) -> Iterator[Window]:
        source = Source(self._files, self._tokenizer, Mixture(), seed, self._weights)
        return windows(source, length, random.Random(seed), self._rest.share, self._rest.weight, *longest)


def drawn_by(processes: int, batches: Batches) -> Iterator[Batch]:
    """Batches that so many processes draw, in memory that a GPU reads by itself; 0: this one does, one at a time."""
    if not processes:
        return iter(batches)
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=processes,
        prefetch_factor=AHEAD,
        pin_memory=torch.cuda.is_available(),
        worker_init_fn=_follow,
    )
    return _told(iter(loader))


def _follow(number: int) -> None:
    """An interrupt reaches all processes, and the first one says when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _told(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches; raises TrainingError, in one line, where another process has failed."""
    while True:
        try:
            batch = next(batches)
        except (RuntimeError, TrainingError) as error:  # with all of the other's traceback
            last = str(error).strip().rpartition("\n")[2]
            raise TrainingError(f"a process that draws examples failed: {last}") from error
        yield batch
