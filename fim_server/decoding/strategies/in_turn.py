"""Several runs on one prompt, one after another, on any backend: what one has had read is not read again for the next.

:mod:`.batches` reads many rows at once, which onnxruntime's exports do not. Where a model is served by that, its
figures are to be that runtime's, and what makes decoding in several modes dear is reading: the same prompt for each of
them, and the same tokens until they choose differently.
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
    """The logits after some tokens, and the time it took to read the last of them."""

    logits: Logits
    seconds: float


class SharedReading(Reading):
    """What a model has read, for runs that come one after another and ask for much the same.

    To each it looks like a reading of its own: going back takes nothing back until something else is read.
    """

    def __init__(self, model: FimModel, room: int | None = None) -> None:
        """``room``: as of :class:`.Reading`."""
        super().__init__(model, room)
        self._arithmetic = model.backend.arithmetic
        self._asked: list[int] = []
        """What the present run has had read; the model may have read on."""
        self._rows: dict[int, _Row] = {}
        """By the number of tokens read."""
        self.spared_seconds = 0.0
        """What reading would have taken that the present run found done."""

    def begin(self) -> None:
        """Another run begins."""
        self._asked = []
        self.spared_seconds = 0.0

    def resume(self, tokens: Sequence[int]) -> int:
        """As :meth:`.Reading.resume`, but what follows is kept."""
        kept = self.shared(tokens)
        self._asked = list(tokens[:kept])
        self.spared_seconds += sum(row.seconds for count, row in self._rows.items() if count <= kept)
        return kept

    def forward(self, token_ids: Sequence[int]) -> Logits:
        """As :meth:`.Reading.forward`, from memory where it has been read."""
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
        """As :meth:`.Reading.rewind`, but nothing is taken back yet."""
        self._asked = self._asked[: len(self._asked) - n_tokens]

    def forget(self) -> None:
        """As :meth:`.Reading.forget`."""
        super().forget()
        self._rows = {}


def decode_in_turn(task: Task, reading: SharedReading) -> list[Outcome]:
    """Decode the middles of a task; the outcomes in the runs' order.

    The runs' times are filled in as if each had read everything itself. Raises whatever the model raises; none of the
    runs is of use then, but for what a run raises otherwise, which is its own outcome.
    """
    outcomes: list[Outcome] = []
    try:
        for run in task.runs:
            run.reading = reading
            run.drafting.end()  # each row is kept by itself
            reading.begin()
            started = time.perf_counter()
            ending: Ending
            try:
                ending = decode(run, task.prompt, lambda count: None)
            except Exception as error:  # noqa: BLE001  # whatever a matcher or a model raises
                ending = error
            choosing = time.perf_counter() - started - run.model_seconds
            run.model_seconds += reading.spared_seconds
            outcomes.append(Outcome(ending, 1000 * choosing))
    finally:
        for run in task.runs:
            with suppress(Exception):  # of a matcher that could not be made: its run has said so
                run.constraint.close()
    return outcomes
