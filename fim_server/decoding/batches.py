"""Batched decoding: the middles of many prompts, one forward pass a token for all of them.

Each middle is a :class:`.loop.Run` and decides by itself, from its own row of the logits, so a batch gives
the texts that :func:`.loop.decode` gives one at a time, up to rounding of the logits. Runs on one prompt
(the same hole with the grammar and without) share a row, and its forward passes, for as long as they choose alike.

The rows' keys and values lie in one buffer a layer, allocated once, and on CUDA a step is a graph:
:mod:`fim_server.models.torch_rows`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from fim_server.decoding.outcomes import Ending, Outcome, Task
from fim_server.decoding.results import StopReason
from fim_server.decoding.run import Interrupted
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.reading import Reading
from fim_server.models.torch_backend import TorchBackend
from fim_server.models.torch_rows import StaticRows

if TYPE_CHECKING:
    from fim_server.decoding.run import Run
    from fim_server.models.model import FimModel


@dataclass(slots=True)
class _Row:
    """Tokens that the model has read, one that it has not, and the runs whose middle they are."""

    token: int
    rewound: int
    """Tokens to be taken back before that one is read."""
    members: list[int]
    """Numbers of the runs."""


class _NoReading(Reading):
    """Stands in for a run's own cache, which is the batch's: how far a run went back shows in its tokens."""

    def rewind(self, n_tokens: int) -> None:
        """Nothing to be done here."""


class _Batch:
    """The runs of a batch, and how they ended."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.endings: dict[int, Ending] = {}
        self.choosing_seconds = [0.0] * len(runs)

    def advance(self, members: Sequence[int], logits: torch.Tensor) -> list[_Row]:
        """Let the runs that share a row choose from its logits [V]; returns the rows that go on."""
        rows: dict[tuple[int, int], _Row] = {}
        for number in members:
            run = self.runs[number]
            read = len(run.tokens)
            with self._ending(number):
                run.watch.check()
                # Landing keeps logits for many steps, and would keep those of all rows with them.
                token = run.take(run.choose(logits if run.landing is None else logits.clone()))
                if isinstance(token, StopReason):
                    self.endings[number] = token
                else:
                    rewound = read - len(run.tokens)
                    run.append(token)
                    rows.setdefault((token, rewound), _Row(token, rewound, [])).members.append(number)
        return list(rows.values())

    @contextmanager
    def _ending(self, number: int) -> Iterator[None]:
        """Time what a run does, and note how it ends if it does by an exception: the others go on."""
        started = time.perf_counter()
        try:
            yield
        except Interrupted as interruption:
            self.endings[number] = interruption.stop_reason
        except Exception as error:  # noqa: BLE001  # whatever a matcher raises
            self.endings[number] = error
        self.choosing_seconds[number] += time.perf_counter() - started


def decode_together(
    model: FimModel, tasks: Sequence[Task], on_step: Callable[[int], None] = lambda rows: None
) -> list[list[Outcome]]:
    """Decode the middles of all tasks; the outcomes in the tasks' and their runs' order.

    ``on_step`` is told how many rows the next forward pass has. The runs' times are filled in: a prefill counts for
    each run on its prompt, a forward pass in equal shares for its rows. ``fast_forward`` is not obeyed, and masks are
    computed where they are asked for instead of ahead: a batch has other rows to spend the time on.

    Raises ValueError for a model that does not run on torch, and whatever the model raises; none of the runs is of use
    then.
    """
    if not isinstance(model.backend, TorchBackend):
        raise ValueError(f"only torch reads many rows at once, and {model.name} was loaded for {model.runtime}")
    batch = _Batch([run for task in tasks for run in task.runs])
    try:
        for run in batch.runs:
            run.reading = _NoReading(model)
        with torch.inference_mode():
            _decode(model, tasks, batch, on_step)
    finally:
        for run in batch.runs:
            run.constraint.close()
    outcomes = iter([Outcome(batch.endings[n], 1000 * seconds) for n, seconds in enumerate(batch.choosing_seconds)])
    return [[next(outcomes) for _ in task.runs] for task in tasks]


def _decode(model: FimModel, tasks: Sequence[Task], batch: _Batch, on_step: Callable[[int], None]) -> None:
    store, rows = _prefill(model, tasks, batch)
    _step_by_step(batch, store, rows, on_step)
    if isinstance(store, Slots):
        store.keep()


def _step_by_step(batch: _Batch, store: Store | None, rows: list[_Row], on_step: Callable[[int], None]) -> None:
    while store is not None and rows:
        on_step(len(rows))
        started = time.perf_counter()
        logits = store.forward([row.token for row in rows])  # [rows, V]
        share = (time.perf_counter() - started) / len(rows)
        places: list[_Row | None] = []
        forked: list[_Row] = []
        for place, row in enumerate(rows):
            for number in row.members:
                batch.runs[number].model_seconds += share
            going = batch.advance(row.members, logits[place])
            places.append(going[0] if going else None)
            for other in going[1:]:
                store.copy(place)
                forked.append(other)
        places += forked
        for place in reversed(range(len(places))):
            going_on = places[place]
            if going_on is None:  # the last row moves to its place
                store.remove(place)
                places[place] = places[-1]
                places.pop()
            elif going_on.rewound:
                store.rewind(place, going_on.rewound)
                going_on.rewound = 0
        rows = [row for row in places if row is not None]


def _prefill(model: FimModel, tasks: Sequence[Task], batch: _Batch) -> tuple[Store | None, list[_Row]]:
    """Read the prompts, and choose the first tokens: the rows that go on, and where they are kept."""
    store: Store | None = None
    rows: list[_Row] = []
    longest = max((len(task.prompt) + run.budget for task in tasks for run in task.runs), default=0)
    first = 0
    for task in tasks:
        members = range(first, first + len(task.runs))
        first += len(task.runs)
        started = time.perf_counter()
        cache = model.new_cache()
        logits = _read(model, cache, task.prompt)
        for number in members:
            run = batch.runs[number]
            run.prefill_seconds = run.model_seconds = time.perf_counter() - started
        if store is None:
            store = Slots(model, len(batch.runs), longest) if Slots.can_hold(model, cache, longest) else Apart(model)
        for row in batch.advance(members, logits):
            store.add(cache, task.prompt)
            rows.append(row)
    return store, rows


def _read(model: FimModel, cache: Any, tokens: Sequence[int]) -> torch.Tensor:
    """Append tokens to a cache, in pieces. Logits [V] after the last of them."""
    for begin in range(0, len(tokens), PREFILL_CHUNK):
        logits: torch.Tensor = model.forward(tokens[begin : begin + PREFILL_CHUNK], cache)
    return logits


class Store(Protocol):
    """The model's caches of the rows, which are numbered from 0 without gaps."""

    def add(self, cache: Any, prompt: Sequence[int], /) -> None:
        """A row at the end, with the cache of a prompt. The same cache may be added twice."""

    def copy(self, row: int, /) -> None:
        """A row at the end that is like another one."""

    def remove(self, row: int, /) -> None:
        """Forget a row; the last one takes its place."""

    def rewind(self, row: int, n_tokens: int, /) -> None:
        """Forget the last tokens of a row."""

    def forward(self, tokens: Sequence[int], /) -> torch.Tensor:
        """Read one token a row. Float32 logits [rows, V], valid until the next ones."""


class Apart:
    """A cache for each row, read one after the other: for caches that are more than keys and values by position."""

    def __init__(self, model: FimModel) -> None:
        self._model = model
        self._rows: list[tuple[Any, list[int]]] = []
        """The caches, and the tokens in them."""

    def add(self, cache: Any, prompt: Sequence[int]) -> None:
        """As :meth:`Store.add`."""
        self._rows.append((copy.deepcopy(cache), list(prompt)))

    def copy(self, row: int) -> None:
        """As :meth:`Store.copy`."""
        self.add(*self._rows[row])

    def remove(self, row: int) -> None:
        """As :meth:`Store.remove`."""
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def rewind(self, row: int, n_tokens: int) -> None:
        """As :meth:`Store.rewind`. What such caches have left behind, they do not know any more: all is read again."""
        cache, kept = self._model.new_cache(), self._rows[row][1][:-n_tokens]
        _read(self._model, cache, kept)
        self._rows[row] = cache, kept

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        """As :meth:`Store.forward`."""
        logits: list[torch.Tensor] = []
        for token, (cache, read) in zip(tokens, self._rows, strict=True):
            logits.append(self._model.forward([token], cache))
            read.append(token)
        return torch.stack(logits)


def _backend(model: FimModel) -> TorchBackend:
    """What computes the model: batches are torch's alone."""
    backend = model.backend
    assert isinstance(backend, TorchBackend), "refused before"
    return backend


class Slots:
    """All rows in one buffer a layer (:class:`.torch_rows.StaticRows`)."""

    def __init__(self, model: FimModel, rows: int, positions: int, span_step: int | None = None) -> None:
        """Room for so many rows of so many tokens; the memory is taken when the first is added.

        Where an earlier batch left rows that are as many and as long, they are taken.
        """
        self._backend = backend = _backend(model)
        kept, backend.kept_rows = backend.kept_rows, None
        if kept is not None and kept.most_rows >= rows and kept.positions >= positions:
            kept.clear()
            self._rows = kept
        else:
            self._rows = StaticRows(backend.network, backend.place, rows, positions, span_step=span_step)

    @staticmethod
    def can_hold(model: FimModel, cache: Any, positions: int) -> bool:
        """As :meth:`.torch_rows.StaticRows.can_hold`."""
        return StaticRows.can_hold(_backend(model).network, cache, positions)

    def keep(self) -> None:
        """Leave the rows to the next batch, where something of it was captured: that takes longer than a few steps."""
        if self._rows.captured:
            self._backend.kept_rows = self._rows

    def add(self, cache: Any, prompt: Sequence[int]) -> None:
        """As :meth:`Store.add`."""
        self._rows.add(cache, len(prompt))

    def copy(self, row: int) -> None:
        """As :meth:`Store.copy`."""
        self._rows.copy(row)

    def remove(self, row: int) -> None:
        """As :meth:`Store.remove`."""
        self._rows.remove(row)

    def rewind(self, row: int, n_tokens: int) -> None:
        """As :meth:`Store.rewind`."""
        self._rows.rewind(row, n_tokens)

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        """As :meth:`Store.forward`."""
        return self._rows.forward(tokens)
