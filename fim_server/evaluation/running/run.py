"""A run: decode samples batch by batch, and write each batch when it is done.

The files on the disk are the only state. A resumed run reads which samples have results, forms the same batches
(:mod:`.shards`), decodes those again that lack a result, and writes the missing ones. A kill costs at most one batch,
and the results equal those of a run without a break.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from fim_server.errors import RunError
from fim_server.evaluation.records import Data, Record
from fim_server.evaluation.running.data import all_samples
from fim_server.evaluation.running.journal import Journal, done_in
from fim_server.evaluation.running.progress import Pace
from fim_server.evaluation.running.resume import run_info, settle
from fim_server.evaluation.running.settings import Asked, WorkerSettings
from fim_server.evaluation.running.shards import form_batches
from fim_server.evaluation.running.time_limit import TimeLimit
from fim_server.evaluation.running.worker import Measuring
from fim_server.text.terminal import Progress, is_terminal

SAID_S = 30.0
"""Seconds between progress lines where there is no terminal."""

FAILURES_IN_A_ROW = 200
"""So many samples failing one after the other end the run: the device is gone, or the disk of the model. What was
recorded for them is taken back, so that the run can go on from there."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Numbers of samples at the end of a run."""

    failed: int
    """Failures among those measured now."""
    left: int
    """Samples without results, for lack of time."""


def run(
    asked: Asked, settings: WorkerSettings, measuring: Measuring, data: tuple[Data, ...], ids: Sequence[str]
) -> Ended:
    """Run, or go on. ``data``, ``ids``: of :func:`.read_data`.

    Raises RunError for a run that cannot be begun or gone on with, and RecordError for results that cannot be read.
    """
    settle(asked.out, run_info(asked, settings, measuring.about(), data))
    with Journal(asked.out, asked.shard) as journal:
        if asked.retry_failed:
            journal.drop_failed()
        done = done_in(asked.out)

        def lacks_results(names: Iterable[str]) -> bool:
            return any((name, mode) not in done for name in names for mode in settings.modes)

        own = list(asked.shard.of(ids[: asked.limit]))
        samples = asked.shard.of(all_samples(asked.data, asked.limit))
        batches = (
            batch
            for batch in form_batches(samples, asked.batch, settings.max_prompt_tokens)
            if lacks_results(sample.id for sample in batch)
        )
        limit = TimeLimit(asked.ends)
        failures = Failures(journal)
        pace = Pace(len(own), sum(not lacks_results([name]) for name in own))
        with Progress(every=SAID_S, ticks=False, keeps=True) as progress:
            say(progress, pace)
            for records in measuring.measure_all(takewhile(lambda _: limit.has_time(), batches)):
                wanted = [record for record in records if record.key not in done]
                failures.watch(wanted)
                journal.write(wanted)
                done.update(record.key for record in wanted)
                pace.add(len({r.sample for r in wanted}), len({r.sample for r in wanted if r.error is not None}))
                say(progress, pace)
    return Ended(failures.count, pace.total - pace.done)


def say(progress: Progress, pace: Pace) -> None:
    """Say how far a run is."""
    progress.update(pace.said(beside_a_bar=is_terminal(sys.stderr)), pace.done, pace.total)


class Failures:
    """Ends a run in which nothing succeeds any more (:data:`FAILURES_IN_A_ROW`)."""

    def __init__(self, journal: Journal) -> None:
        self.count = 0
        """Samples that failed, in all."""
        self._journal = journal
        self._in_a_row: list[str] = []
        self._since = 0

    def watch(self, records: Sequence[Record]) -> None:
        """Look at results before they are written. Raises RunError when there have been too many errors in a row."""
        for record in records:
            if record.error is None:
                self._in_a_row = []
            elif record.sample not in self._in_a_row[-1:]:
                self._since = self._since if self._in_a_row else self._journal.size()
                self._in_a_row.append(record.sample)
                self.count += 1
        if len(self._in_a_row) >= FAILURES_IN_A_ROW:
            self._journal.cut(self._since)
            raise RunError(f"the last {len(self._in_a_row)} samples failed, the last with {records[-1].error}")
