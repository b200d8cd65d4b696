"""Batched decoding: the middles of many prompts, one forward pass a token for all of them.

Each middle is a :class:`.loop.Run` and decides by itself, from its own row of the logits, so a batch gives
the texts that :func:`.loop.decode` gives one at a time, up to rounding of the logits. Runs on one prompt
(the same hole with the grammar and without) share a row, and its forward passes, for as long as they choose alike.

The rows' keys and values lie in one buffer a layer, allocated once (slots; PagedAttention, Kwon et al., arXiv
2309.06180, with one page a row): a row begins at position 0 whatever its length, what lies beyond its end is masked,
and a row that ends is overwritten by the last one. So nothing is padded, and nothing copied at a step: transformers'
own ``DynamicCache`` copies all of it for every token, which takes 2.5 times as long at 32 rows of 700 tokens with 7M
parameters on a CPU (measured).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from transformers.cache_utils import Cache, DynamicLayer

from fim_server.decoding.outcomes import Ending, Outcome, Task
from fim_server.decoding.results import StopReason
from fim_server.decoding.run import Interrupted
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.reading import Reading
from fim_server.models.torch_backend import TorchBackend

if TYPE_CHECKING:
    from fim_server.decoding.run import Run
    from fim_server.models.model import FimModel

MASKED_ATTENTIONS = ("sdpa", "eager")
"""Attention implementations of transformers that take a mask for each row."""


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
        """Read one token a row. Float32 logits [rows, V]."""


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


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]  # __init_subclass__ has no annotations
    """One layer's keys and values of all slots; each step writes one position a row."""

    def __init__(self, rows: int, positions: int, like: DynamicLayer) -> None:
        """Buffers [rows, heads, positions, head size], like the layer of one prompt's cache."""
        super().__init__()  # type: ignore[no-untyped-call]
        keys, values = _states(like)
        self.lazy_initialization(keys, values)
        # Zeroed: masked positions weigh nothing in a sum, but nothing times what was in the memory could be NaN.
        self.all_keys = keys.new_zeros((rows, keys.shape[1], positions, keys.shape[3]))
        self.all_values = values.new_zeros((rows, values.shape[1], positions, values.shape[3]))
        self._at: tuple[torch.Tensor, torch.Tensor] | None = None
        self._span = 0

    def step(self, rows: torch.Tensor, at: torch.Tensor, span: int) -> None:
        """What the next update writes to (positions ``at`` [rows]) and returns (the first ``span`` positions)."""
        self._at, self._span = (rows, at), span

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one position a row, [rows, heads, 1, head size]; return all up to the longest row's end."""
        assert self._at is not None
        rows, at = self._at
        self.all_keys[rows, :, at] = key_states[:, :, 0]
        self.all_values[rows, :, at] = value_states[:, :, 0]
        return self.all_keys[: len(rows), :, : self._span], self.all_values[: len(rows), :, : self._span]

    def get_seq_length(self) -> int:
        """Tokens of the longest row before this step's."""
        return max(0, self._span - 1)

    def fill(self, row: int, length: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put keys and values [heads, length, head size] into a row."""
        self.all_keys[row, :, :length] = keys
        self.all_values[row, :, :length] = values

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row of a length to another."""
        self.fill(target, length, self.all_keys[source, :, :length], self.all_values[source, :, :length])


def _states(layer: DynamicLayer) -> tuple[torch.Tensor, torch.Tensor]:
    """The keys and values of a layer that has read something."""
    keys, values = layer.keys, layer.values
    assert keys is not None
    assert values is not None
    return keys, values


def _backend(model: FimModel) -> TorchBackend:
    """What computes the model: batches are torch's alone."""
    backend = model.backend
    assert isinstance(backend, TorchBackend), "refused before"
    return backend


def _attention(model: FimModel) -> str | None:
    """The name of the model's attention implementation; None where there are no such names."""
    return getattr(getattr(_backend(model).network, "config", None), "_attn_implementation", None)


class Slots:
    """All rows in one buffer a layer: see the module."""

    def __init__(self, model: FimModel, rows: int, positions: int) -> None:
        """Room for so many rows of so many tokens; the memory is taken when the first is added."""
        self._backend = _backend(model)
        self._most, self._positions = rows, positions
        self._boolean_mask = _attention(model) == "sdpa"
        self._layers: list[_Layer] = []
        self._lengths: list[int] = []

    @staticmethod
    def can_hold(model: FimModel, cache: Any, positions: int) -> bool:
        """Whether the model's attention takes a mask, and a prompt's cache is keys and values of all positions."""
        return (
            _attention(model) in MASKED_ATTENTIONS
            and isinstance(cache, Cache)
            and bool(cache.layers)
            and all(
                isinstance(layer, DynamicLayer)
                and layer.keys is not None
                and layer.keys.ndim == 4
                and layer.keys.shape[2] == cache.get_seq_length()
                and getattr(layer, "sliding_window", positions) >= positions
                for layer in cache.layers
            )
        )

    def add(self, cache: Any, prompt: Sequence[int]) -> None:
        """As :meth:`Store.add`."""
        if not self._layers:
            self._layers = [_Layer(self._most, self._positions, layer) for layer in cache.layers]
        for ours, its in zip(self._layers, cache.layers, strict=True):
            keys, values = _states(its)
            ours.fill(len(self._lengths), len(prompt), keys[0], values[0])
        self._lengths.append(len(prompt))

    def copy(self, row: int) -> None:
        """As :meth:`Store.copy`."""
        for layer in self._layers:
            layer.move(row, len(self._lengths), self._lengths[row])
        self._lengths.append(self._lengths[row])

    def remove(self, row: int) -> None:
        """As :meth:`Store.remove`."""
        length = self._lengths.pop()
        if row < len(self._lengths):
            for layer in self._layers:
                layer.move(len(self._lengths), row, length)
            self._lengths[row] = length

    def rewind(self, row: int, n_tokens: int) -> None:
        """As :meth:`Store.rewind`: what lies beyond the end is masked, and written over."""
        self._lengths[row] -= n_tokens

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        """As :meth:`Store.forward`."""
        device = self._backend.place
        at = torch.tensor(self._lengths, device=device)  # [rows]
        span = max(self._lengths) + 1
        rows = torch.arange(len(tokens), device=device)
        for layer in self._layers:
            layer.step(rows, at, span)
        output = self._backend.network(
            input_ids=torch.tensor(tokens, device=device)[:, None],  # [rows, 1]
            attention_mask=self._mask(at, span),
            position_ids=at[:, None],  # [rows, 1]
            past_key_values=Cache(layers=list(self._layers)),
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        if device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def _mask(self, at: torch.Tensor, span: int) -> torch.Tensor:
        """What each row may look at, [rows, 1, 1, span]: itself and what is before it."""
        seen = (torch.arange(span, device=at.device)[None] <= at[:, None])[:, None, None, :]
        if self._boolean_mask:
            return seen
        dtype: torch.dtype = self._backend.network.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=at.device).masked_fill_(~seen, torch.finfo(dtype).min)
