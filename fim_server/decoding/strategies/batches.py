"""Batched decoding: the middles of many prompts, one forward pass a token for all of them.

Each middle is a :class:`.loop.run.Run` and chooses from its own row of logits, so a batch gives the texts of
:func:`.loop.decode`, up to rounding of the logits. Runs on one prompt (the same hole with the grammar and without)
share a row and its forward passes as long as they choose alike.

The backend keeps the rows' keys and values (:class:`..backend.Store`). Torch has one buffer a layer, and on CUDA a step
is a graph (:mod:`fim_server.models.pytorch.rows`). On llama.cpp each row is a sequence of one context
(:mod:`fim_server.models.gguf.rows`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.decoding.loop.watch import Interrupted
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.outcomes import Ending, Outcome, Task
from fim_server.models.backend import BatchBackend
from fim_server.models.reading import Reading

if TYPE_CHECKING:
    from fim_server.decoding.loop.run import Run
    from fim_server.models.backend import Logits, Store
    from fim_server.models.model import FimModel


@dataclass(slots=True)
class _Row:
    """A row: tokens that the model has read, one that it reads next, and the runs whose middle they are."""

    token: int
    rewound: int
    """Tokens to take back before reading that one."""
    members: list[int]
    """Numbers of the runs."""


class _NoReading(Reading):
    """Empty KV cache of a run, because the batch has one for all: a run's tokens show how far it went back."""

    def rewind(self, n_tokens: int) -> None:
        """Do nothing."""


class _Batch:
    """Runs of a batch, with their endings."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.endings: dict[int, Ending] = {}
        self.choosing_seconds = [0.0] * len(runs)

    def advance(self, members: Sequence[int], logits: Logits) -> list[_Row]:
        """Let the runs that share a row choose from its logits [V]; return the rows that go on."""
        rows: dict[tuple[int, int], _Row] = {}
        for number in members:
            run = self.runs[number]
            read = len(run.tokens)
            with self._ending(number):
                run.passes.watch.check()
                # Landing keeps logits for many steps, and would keep those of all rows with them.
                own = logits if run.landing is None else run.model.backend.arithmetic.copy(logits)
                token = run.take(run.choose(own))
                if isinstance(token, StopReason):
                    self.endings[number] = token
                else:
                    rewound = read - len(run.tokens)
                    run.append(token)
                    rows.setdefault((token, rewound), _Row(token, rewound, [])).members.append(number)
        return list(rows.values())

    @contextmanager
    def _ending(self, number: int) -> Iterator[None]:
        """Time a run's choice, and note an exception as its ending: the others go on."""
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
    """Decode the middles of all tasks; return the outcomes in the order of the tasks and their runs.

    ``on_step`` gets the number of rows of the next forward pass. The runs' times are filled in: a prefill counts for
    each run on its prompt, a forward pass in equal shares for its rows. ``fast_forward`` has no effect, and no mask is
    computed ahead: a batch has other rows to spend the time on.

    Raises ValueError for a model whose runtime reads one row at a time, and the model's own errors; the runs are of no
    use then.
    """
    backend = model.backend
    if not isinstance(backend, BatchBackend):
        raise ValueError(f"{model.name} was loaded for {model.runtime}, which reads one row at a time")
    batch = _Batch([run for task in tasks for run in task.runs])
    try:
        for run in batch.runs:
            run.passes.reading = _NoReading(model)
        with backend.batching():
            _decode(backend, tasks, batch, on_step)
    finally:
        for run in batch.runs:
            run.constraint.close()
    outcomes = iter([Outcome(batch.endings[n], 1000 * seconds) for n, seconds in enumerate(batch.choosing_seconds)])
    return [[next(outcomes) for _ in task.runs] for task in tasks]


def _decode(backend: BatchBackend, tasks: Sequence[Task], batch: _Batch, on_step: Callable[[int], None]) -> None:
    longest = max((len(task.prompt) + run.budget.tokens for task in tasks for run in task.runs), default=0)
    if not longest:
        return
    store = backend.store(len(batch.runs), longest)
    _step_by_step(batch, store, _prefill(store, tasks, batch), on_step)
    store.close()


def _step_by_step(batch: _Batch, store: Store, rows: list[_Row], on_step: Callable[[int], None]) -> None:
    while rows:
        on_step(len(rows))
        started = time.perf_counter()
        logits = store.forward([row.token for row in rows])
        share = (time.perf_counter() - started) / len(rows)
        places: list[_Row | None] = []
        forked: list[_Row] = []
        for place, row in enumerate(rows):
            for number in row.members:
                batch.runs[number].passes.model_seconds += share
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


def _prefill(store: Store, tasks: Sequence[Task], batch: _Batch) -> list[_Row]:
    """Read the prompts and choose the first tokens; return the rows that go on."""
    rows: list[_Row] = []
    first = 0
    for task in tasks:
        members = range(first, first + len(task.runs))
        first += len(task.runs)
        started = time.perf_counter()
        logits = store.read(task.prompt)
        for number in members:
            own = batch.runs[number].passes
            own.prefill_seconds = own.model_seconds = time.perf_counter() - started
        going = batch.advance(members, logits)
        if not going:
            store.remove(len(rows))
        for _ in going[1:]:
            store.copy(len(rows))
        rows += going
    return rows
