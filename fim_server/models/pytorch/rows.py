"""Keys and values of a batch in buffers at fixed addresses, and decoding steps as CUDA graphs.

Each row has a slot of a buffer that is allocated once, for a number of rows and positions (PagedAttention, Kwon et al.,
arXiv 2309.06180, with one page a row). A row begins at position 0; positions beyond its end are masked. So rows are not
padded, and a step copies nothing. Transformers' ``DynamicCache`` copies everything for every token, which takes 2.5
times as long at 32 rows of 700 tokens with 7M parameters on a CPU. Its ``StaticCache`` has one length for all rows, and
attends over its whole size.

A step of some rows over some positions is a function of tensors at fixed addresses. On CUDA it is captured as a graph
for each pair of sizes, since most of a small model's step is launching its kernels. Sizes are rounded up so that there
are few graphs. Elsewhere, and for a network that cannot be captured, the function is called directly.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from fim_server.errors import first_line
from fim_server.models.backend import PREFILL_CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MASKED_ATTENTIONS = ("sdpa", "eager")
"""Attention implementations of transformers that take a mask for each row."""

GRAPH_SPAN = 128
"""Step of the positions that a graph attends over: reading masked ones is cheaper than many graphs."""

WARM_UP = 3
"""Calls before a capture, in which libraries choose their kernels and take their memory, as torch advises."""

CACHE_SPAN = 512
"""Step of the positions of a single row's cache; there are several caches, each with its own graphs."""

PLAIN_USES = 2
"""Uses of a size before it is captured: a batch meets most sizes once, while its rows end."""

_log = logging.getLogger(__name__)


class Replayed:
    """Function on tensors at fixed addresses, replayed as a CUDA graph or called directly.

    Attributes:
        failure: Reason why it could not be captured; None where it was, or should not be.
    """

    def __init__(self, work: Callable[[], torch.Tensor], place: torch.device, pool: Any = None) -> None:
        """Capture ``work`` if ``place`` is a CUDA device. Repeated calls of ``work`` have to give the same result.

        ``pool``: memory that it shares with other graphs (``torch.cuda.graph_pool_handle()``), so that each replay
        overwrites the result of the one before.
        """
        self._work = work
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: torch.Tensor | None = None
        self.failure: str | None = None
        if place.type == "cuda":
            stream = torch.cuda.current_stream(place)
            try:
                self._capture(place, pool)
            except RuntimeError as error:  # also of memory; it is computed all the same, and slower
                torch.cuda.set_stream(stream)  # a capture that fails at its end leaves its own one current
                self._graph, self._result, self.failure = None, None, first_line(error)
                _log.warning("no CUDA graph: %s", self.failure)

    @property
    def is_captured(self) -> bool:
        return self._graph is not None

    def _capture(self, place: torch.device, pool: Any) -> None:
        stream = torch.cuda.Stream(place)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(place))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._work()
        torch.cuda.current_stream(place).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another thread may pin memory for a mask meanwhile: that is none of this graph's business.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            self._result = self._work()
        self._graph = graph

    def __call__(self) -> torch.Tensor:
        """Return the function's result; a graph's result is in memory that the next replay overwrites."""
        if self._graph is None:
            return self._work()
        self._graph.replay()
        assert self._result is not None
        return self._result


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]  # __init_subclass__ has no annotations
    """Keys and values of one layer, of all slots."""

    def __init__(self, rows: int, positions: int) -> None:
        """Make a layer; its buffers [rows, heads, positions, head size] are allocated at the first update."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._rows, self._positions = rows, positions
        self.all_keys: torch.Tensor | None = None
        self.all_values: torch.Tensor | None = None
        self._at: tuple[torch.Tensor, torch.Tensor] | None = None
        self._read: tuple[int, int] | None = None
        self._span = 0

    def begin_step(self, rows: torch.Tensor, at: torch.Tensor, span: int) -> None:
        """Have the next update write one position a row (``at`` [rows]) and return the first ``span`` positions."""
        self._at, self._read, self._span = (rows, at), None, span

    def begin_read(self, row: int, start: int, span: int) -> None:
        """Have the next update write one row's positions from ``start`` to ``span`` and return all up to there."""
        self._at, self._read, self._span = None, (row, start), span

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write states [rows, heads, 1, head size] or [1, heads, tokens, head size]; return the visible ones."""
        keys, values = self.buffers(key_states, value_states)
        if self._read is not None:
            row, start = self._read
            keys[row, :, start : self._span] = key_states[0]
            values[row, :, start : self._span] = value_states[0]
            return keys[row : row + 1, :, : self._span], values[row : row + 1, :, : self._span]
        assert self._at is not None, "begun before"
        rows, at = self._at
        keys[rows, :, at] = key_states[:, :, 0]
        values[rows, :, at] = value_states[:, :, 0]
        return keys[: len(rows), :, : self._span], values[: len(rows), :, : self._span]

    def buffers(self, key_states: torch.Tensor, value_states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of all slots, allocated for states [any, heads, any, head size] such as these."""
        if self.all_keys is None or self.all_values is None:
            self.lazy_initialization(key_states, value_states)
            # Zeroed: masked positions weigh nothing in a sum, but nothing times what was in the memory could be NaN.
            shape = (self._rows, key_states.shape[1], self._positions)
            self.all_keys = key_states.new_zeros((*shape, key_states.shape[3]))
            self.all_values = value_states.new_zeros((*shape, value_states.shape[3]))
        return self.all_keys, self.all_values

    def get_seq_length(self) -> int:
        """Return the tokens before this step: those of the longest row, or of the row that is read."""
        return max(0, self._span - 1) if self._read is None else self._read[1]

    def grow(self, positions: int) -> None:
        self._positions = positions
        if self.all_keys is not None and self.all_values is not None:
            more = positions - self.all_keys.shape[2]
            self.all_keys, self.all_values = (
                torch.nn.functional.pad(states, (0, 0, 0, more)) for states in (self.all_keys, self.all_values)
            )

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the beginning of a row to another row."""
        assert self.all_keys is not None
        assert self.all_values is not None
        for states in (self.all_keys, self.all_values):
            states[target, :, :length] = states[source, :, :length]


def _states(layer: DynamicLayer) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the keys and values of a layer that has read something."""
    keys, values = layer.keys, layer.values
    assert keys is not None
    assert values is not None
    return keys, values


def attention_of(network: Any) -> str | None:
    """Return the name of a network's attention implementation; None if it has no name."""
    return getattr(getattr(network, "config", None), "_attn_implementation", None)


class StaticRows:
    """Keys and values of rows, numbered from 0 without gaps, and the steps that read on in them.

    A row is filled from a prompt's own cache (:meth:`add`) or reads its prompt in place (:meth:`new`, :meth:`read`). In
    place, it may keep the prefix that two prompts share (:meth:`resume`). A step reads one token in each row:
    :meth:`forward` takes the tokens and waits, and :meth:`launch` takes them from :attr:`tokens` on the device and does
    not wait. Use the other methods between two steps. One thread at a time, under ``torch.inference_mode``.

    Attributes:
        tokens: Next token of each row for :meth:`launch`, int64 [most rows], on the device.
        lengths: Number of tokens that each row has read.
    """

    def __init__(
        self,
        network: Any,
        place: torch.device,
        rows: int,
        positions: int,
        *,
        graphs: bool | None = None,
        span_step: int | None = None,
    ) -> None:
        """Make room for ``rows`` rows of ``positions`` tokens; the first read takes the memory.

        ``graphs``: whether steps are captured; by default on CUDA. ``span_step``: steps attend over a multiple of so
        many positions; by default :data:`GRAPH_SPAN` on CUDA, else 1.
        """
        self._network, self._place = network, place
        self._graphs = place.type == "cuda" if graphs is None else graphs and place.type == "cuda"
        self._span_step = span_step or (GRAPH_SPAN if place.type == "cuda" else 1)
        self._rounds_rows = self._graphs or self._span_step > 1
        self.most_rows = rows
        self.positions = -(-positions // self._span_step) * self._span_step
        self._boolean_mask = attention_of(network) == "sdpa"
        self._layers: list[_Layer] = []
        self.lengths: list[int] = []
        # One copy to the device brings both; pinned, so that the host need not wait for it.
        self._host = torch.zeros((2, rows), dtype=torch.int64, pin_memory=place.type == "cuda")
        self._state = torch.zeros((2, rows), dtype=torch.int64, device=place)
        self.tokens, self._at = self._state[0], self._state[1]
        self._numbers = torch.arange(rows, device=place)
        self._at_is_known = False
        self._copied: torch.cuda.Event | None = None
        self._steps: dict[tuple[int, int], Replayed] = {}
        self._uses: dict[tuple[int, int], int] = {}
        """Uses of sizes that are not captured yet."""
        self._pool = torch.cuda.graph_pool_handle() if self._graphs else None

    @staticmethod
    def can_hold(network: Any, cache: Any, positions: int) -> bool:
        """Return whether the network's attention takes a mask, and the cache is keys and values of all positions."""
        return (
            attention_of(network) in MASKED_ATTENTIONS
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

    @property
    def captured(self) -> int:
        """Number of step sizes that are CUDA graphs."""
        return sum(step.is_captured for step in self._steps.values())

    @property
    def failure(self) -> str | None:
        """Reason why a step could not be captured; None where all could, or none should be."""
        return next((step.failure for step in self._steps.values() if step.failure is not None), None)

    # --- rows ---

    def add(self, cache: Any, length: int) -> int:
        """Append a row with a prompt's cache of ``length`` tokens; return its number. A cache may be added twice."""
        row = self.new(len(cache.layers))
        for ours, its in zip(self._layers, cache.layers, strict=True):
            keys, values = _states(its)
            all_keys, all_values = ours.buffers(keys, values)
            all_keys[row, :, :length] = keys[0]
            all_values[row, :, :length] = values[0]
        self.lengths[row] = length
        return row

    def new(self, layers: int | None = None) -> int:
        """Append an empty row and return its number. Raises ValueError where there is no room for one."""
        if len(self.lengths) >= self.most_rows:
            raise ValueError(f"there is room for {self.most_rows} rows")
        if not self._layers:
            count = layers or int(self._network.config.get_text_config(decoder=True).num_hidden_layers)
            self._layers = [_Layer(self.most_rows, self.positions) for _ in range(count)]
        self.lengths.append(0)
        self._at_is_known = False
        return len(self.lengths) - 1

    def clear(self) -> None:
        """Forget all rows; the memory and the captured steps stay."""
        self.lengths = []
        self._at_is_known = False

    def grow(self, positions: int) -> None:
        """Make room for rows of ``positions`` tokens. Captured steps are forgotten, since addresses change."""
        self.positions = -(-positions // self._span_step) * self._span_step
        self._steps.clear()
        self._uses.clear()
        for layer in self._layers:
            layer.grow(self.positions)

    def copy(self, row: int) -> None:
        target = self.new()
        for layer in self._layers:
            layer.move(row, target, self.lengths[row])
        self.lengths[target] = self.lengths[row]

    def remove(self, row: int) -> None:
        """Forget a row; the last one takes its place."""
        length = self.lengths.pop()
        if row < len(self.lengths):
            for layer in self._layers:
                layer.move(len(self.lengths), row, length)
            self.lengths[row] = length
        self._at_is_known = False

    def rewind(self, row: int, n_tokens: int) -> None:
        """Forget the last tokens of a row: positions beyond its end are masked, and overwritten later."""
        self.set_length(row, self.lengths[row] - n_tokens)

    def set_length(self, row: int, length: int) -> None:
        """Set a row's number of tokens. Tokens beyond those read are zeros, which serves to measure.

        Raises ValueError where there is no room for so many.
        """
        if not 0 <= length <= self.positions:
            raise ValueError(f"{length} tokens in rows of {self.positions}")
        self.lengths[row] = length
        self._at_is_known = False

    # --- reading ---

    def resume(self, row: int, read: Sequence[int], tokens: Sequence[int]) -> tuple[int, torch.Tensor]:
        """Have a row read other tokens, keeping the prefix that they share with ``read``.

        Returns the number of tokens kept, never all, and the logits [V] after the last one.
        """
        most = min(len(read), self.lengths[row], len(tokens) - 1)
        kept = next((at for at in range(most) if read[at] != tokens[at]), most)
        self.set_length(row, kept)
        return kept, self.read(row, tokens[kept:])

    def read(self, row: int, tokens: Sequence[int]) -> torch.Tensor:
        """Have one row read tokens, :data:`.backend.PREFILL_CHUNK` at a time; return float32 logits [V] after the last.

        Raises ValueError where there are no tokens, or no room for them.
        """
        if not tokens or self.lengths[row] + len(tokens) > self.positions:
            raise ValueError(f"{len(tokens)} tokens after {self.lengths[row]} in a row of {self.positions}")
        for begin in range(0, len(tokens), PREFILL_CHUNK):
            logits = self._read(row, tokens[begin : begin + PREFILL_CHUNK])
        self._at_is_known = False
        return logits[0]

    def read_at_once(self, row: int, tokens: Sequence[int], keep: int) -> torch.Tensor:
        """Have one row read tokens in one pass; return float32 logits [keep, V] after the last ones."""
        logits = self._read(row, tokens, keep)
        self._at_is_known = False
        return logits

    def _read(self, row: int, tokens: Sequence[int], keep: int = 1) -> torch.Tensor:
        start = self.lengths[row]
        span = start + len(tokens)
        for layer in self._layers:
            layer.begin_read(row, start, span)
        at = torch.arange(start, span, device=self._place)
        logits = self._network(
            input_ids=torch.tensor([tokens], device=self._place),
            attention_mask=self._mask(at, span)[None, None],
            position_ids=at[None],
            past_key_values=Cache(layers=list(self._layers)),
            use_cache=True,
            logits_to_keep=keep,
        ).logits
        self.lengths[row] = span
        kept: torch.Tensor = logits[0, -keep:].float()
        return kept

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        """Read one token a row. Returns float32 logits [rows, V], computed, and valid until the next step."""
        self._copy_state(tokens)
        logits = self.launch()
        if self._place.type == "cuda":
            torch.cuda.current_stream(self._place).synchronize()
        return logits

    def launch(self) -> torch.Tensor:
        """Have each row read its token of :attr:`tokens`.

        Returns float32 logits [rows, V], perhaps still being computed, and valid until the next step. Raises ValueError
        where a row has no room for another token.
        """
        rows = len(self.lengths)
        if not self._at_is_known:
            self._copy_state()
        span = -(-(max(self.lengths) + 1) // self._span_step) * self._span_step
        if span > self.positions:
            raise ValueError(f"a row of {self.positions} tokens is full")
        logits = self._step(self._rounded(rows), span)[:rows]
        self._at[:rows].add_(1)
        self.lengths = [length + 1 for length in self.lengths]
        return logits

    def _copy_state(self, tokens: Sequence[int] | None = None) -> None:
        """Copy the rows' lengths, and tokens if given, to the device; unused rows have length 0."""
        if self._copied is not None:
            self._copied.synchronize()  # an earlier copy may still be under way
        rows = len(self.lengths)
        self._host[1] = 0
        self._host[1, :rows] = torch.tensor(self.lengths)
        if tokens is None:
            self._at.copy_(self._host[1], non_blocking=True)
        else:
            self._host[0, :rows] = torch.tensor(tokens)
            self._state.copy_(self._host, non_blocking=True)
        if self._place.type == "cuda":
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record(torch.cuda.current_stream(self._place))
        self._at_is_known = True

    def _rounded(self, rows: int) -> int:
        """Return the rows of a step, padded to a power of 2 or to all."""
        return min(1 << (rows - 1).bit_length(), self.most_rows) if self._rounds_rows else rows

    def _step(self, rows: int, span: int) -> torch.Tensor:
        """Return the logits [rows, V] of a step that attends over ``span`` positions."""
        if not self._graphs:
            return self._compute(rows, span)
        step = self._steps.get((rows, span))
        if step is None:
            self._uses[rows, span] = uses = self._uses.get((rows, span), 0) + 1
            if uses <= PLAIN_USES:
                return self._compute(rows, span)
            step = self._steps[rows, span] = Replayed(lambda: self._compute(rows, span), self._place, self._pool)
        return step()

    def _compute(self, rows: int, span: int) -> torch.Tensor:
        at = self._at[:rows]
        for layer in self._layers:
            layer.begin_step(self._numbers[:rows], at, span)
        output = self._network(
            input_ids=self.tokens[:rows, None],
            attention_mask=self._mask(at, span)[:, None, None],
            position_ids=at[:, None],
            past_key_values=Cache(layers=list(self._layers)),
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _mask(self, at: torch.Tensor, span: int) -> torch.Tensor:
        """Return a causal mask [T, span] for tokens at positions [T]."""
        seen = torch.arange(span, device=at.device)[None] <= at[:, None]
        if self._boolean_mask:
            return seen
        dtype: torch.dtype = self._network.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=at.device).masked_fill_(~seen, torch.finfo(dtype).min)


class RowCache:
    """Cache of a single row, as :class:`.backend.Cache`; it grows as it is filled."""

    def __init__(self, network: Any, place: torch.device, room: int, span_step: int | None = None) -> None:
        """Make a cache for ``room`` tokens. ``span_step``: as in :class:`StaticRows`."""
        self._rows = StaticRows(
            network, place, 1, room, span_step=span_step or (CACHE_SPAN if place.type == "cuda" else 1)
        )
        self._rows.new()

    @staticmethod
    def can_serve(network: Any) -> bool:
        """Return whether the network's attention takes a mask, and its cache is keys and values of all positions."""
        return attention_of(network) in MASKED_ATTENTIONS and all(
            type(layer) is DynamicLayer for layer in DynamicCache(config=network.config).layers
        )

    @property
    def captured(self) -> int:
        return self._rows.captured

    def crop(self, length: int) -> None:
        if not -self._rows.lengths[0] <= length <= 0:
            raise ValueError(f"{-length} of {self._rows.lengths[0]} tokens cannot be taken back")
        self._rows.rewind(0, -length)

    def read(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        """Read on in one pass; return float32 logits [rows, V] after the last tokens, computed."""
        needed = self._rows.lengths[0] + len(tokens)
        if needed > self._rows.positions:
            self._rows.grow(max(needed, 2 * self._rows.positions))
        if len(tokens) == 1:
            return self._rows.forward(tokens).clone()  # the next replay overwrites them
        return self._rows.read_at_once(0, tokens, rows)
