"""Several runs on one prompt, one after another on any backend, that share what the model has read.

:mod:`.batches` reads many rows at once, which onnxruntime's exports cannot. A model served by onnxruntime is to be
measured with it. Decoding in several modes mostly costs reading: the same prompt for each mode, and the same tokens
until the modes choose differently.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from fim_server.decoding.loop.loop import decode
from fim_server.decoding.strategies.outcomes import Outcome
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.strategies.outcomes import Ending, Task
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel


class _Row(NamedTuple):
    """Logits [V] after some tokens, and the time to read the last of them."""

    logits: Logits
    seconds: float


class SharedReading(Reading):
    """KV cache for runs that come one after another with nearly the same tokens.

    To each run it looks like a cache of its own: tokens that one takes back stay until another text is read.

    Attributes:
        spared_seconds: Time that the present run would have needed to read what it found done.
    """

    def __init__(self, model: FimModel, room: int | None = None) -> None:
        """Make an empty cache; ``room`` as in :class:`.Reading`."""
        super().__init__(model, room)
        self._arithmetic = model.backend.arithmetic
        self._asked: list[int] = []
        """Tokens of the present run; the model may have read on."""
        self._rows: dict[int, _Row] = {}
        """Rows by the number of tokens read."""
        self.spared_seconds = 0.0

    def begin(self) -> None:
        self._asked = []
        self.spared_seconds = 0.0

    def resume(self, tokens: Sequence[int]) -> int:
        """Resume as :meth:`.Reading.resume` does, but keep the tokens after that."""
        kept = self.shared(tokens)
        self._asked = list(tokens[:kept])
        self.spared_seconds += sum(row.seconds for count, row in self._rows.items() if count <= kept)
        return kept

    def forward(self, token_ids: Sequence[int]) -> Logits:
        """Read tokens, or return the row that was read before."""
        wanted = [*self._asked, *token_ids]
        row = self._rows.get(len(wanted))
        if row is not None and self._tokens[: len(wanted)] == wanted:
            self.spared_seconds += row.seconds
        else:
            row = self._read(wanted)
        self._asked = wanted
        return self._arithmetic.copy(row.logits)

    def _read(self, wanted: list[int]) -> _Row:
        started = time.perf_counter()
        kept = super().resume(wanted)
        self._rows = {count: row for count, row in self._rows.items() if count <= kept}
        for begin in range(kept, len(wanted), PREFILL_CHUNK):
            logits = super().forward(wanted[begin : begin + PREFILL_CHUNK])
        row = self._rows[len(wanted)] = _Row(logits, time.perf_counter() - started)
        return row

    def rewind(self, n_tokens: int) -> None:
        """Go back, but take nothing back yet."""
        self._asked = self._asked[: len(self._asked) - n_tokens]

    def forget(self) -> None:
        super().forget()
        self._rows = {}


def decode_in_turn(task: Task, reading: SharedReading) -> list[Outcome]:
    """Decode the middles of a task; return the outcomes in the runs' order.

    The runs' times are filled in as if each had read everything itself. An exception of a run is its outcome.
    """
    outcomes: list[Outcome] = []
    try:
        for run in task.runs:
            run.passes.reading = reading
            run.passes.drafting.end()  # each row is kept by itself
            reading.begin()
            started = time.perf_counter()
            ending: Ending
            try:
                ending = decode(run, task.prompt, lambda count: None)
            except Exception as error:  # noqa: BLE001  # whatever a matcher or a model raises
                ending = error
            choosing = time.perf_counter() - started - run.passes.model_seconds
            run.passes.model_seconds += reading.spared_seconds
            outcomes.append(Outcome(ending, 1000 * choosing))
    finally:
        for run in task.runs:
            with suppress(Exception):  # of a matcher that could not be made: its run has raised that
                run.constraint.close()
    return outcomes
