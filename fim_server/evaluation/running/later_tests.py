"""Tests of a run's texts after it: on a machine with a sandbox and compilers, for a run on one without them.

The tested run is a folder of its own, which grows by batches. So the same command continues it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

from fim_server.datasets.samples import Sample
from fim_server.errors import RunError
from fim_server.evaluation.records import RUN_FILE, Record, RunInfo, read_run
from fim_server.evaluation.running.data import all_samples, read_data
from fim_server.evaluation.running.journal import Journal, done_in
from fim_server.evaluation.running.shards import Shard
from fim_server.evaluation.running.time_limit import TimeLimit
from fim_server.evaluation.running.unit_tests import Test, require_sandbox, run_test
from fim_server.text.terminal import Progress

BATCH_SAMPLES = 32
SAID_S = 30.0
"""Seconds between progress lines where there is no terminal."""


def test_later(run: Path, data: Sequence[str], out: Path, unsafe: bool, ends: float | None) -> int:
    """Write a run's results to ``out`` with the verdicts of its samples' tests; return the number of samples left.

    Raises:
        RunError: ``data`` is not the run's, ``out`` has another run, or there is no sandbox.
        DatasetError: The data cannot be read.
        RecordError: The run cannot be read, or ``out`` cannot be written.
    """
    from fim_server.evaluation.running.modes import as_line

    info = RunInfo.read(run)
    known, _, _ = read_data(data)
    if [one.sha256 for one in known] != [one.sha256 for one in info.data]:
        raise RunError(f"{run} is on other --data: {', '.join(one.path for one in info.data)}")
    samples = {sample.id: as_line(sample) if info.single_line else sample for sample in all_samples(data, None)}
    require_sandbox(samples.values(), unsafe)
    _begin(out, replace(info, tested=True))
    limit = TimeLimit(ends)
    with Journal(out, Shard()) as journal, Progress(every=SAID_S, ticks=False, keeps=True) as progress:
        done = done_in(out)
        records = [record for record in read_run(run) if record.key not in done]
        total = left = len({record.sample for record in records})
        for batch in _batches(records):
            if not limit.has_time():
                break
            journal.write(_tested(batch, samples, unsafe))
            left -= len({record.sample for record in batch})
            progress.update(f"{total - left} of {total} samples tested", total - left, total)
    return left


def _begin(out: Path, info: RunInfo) -> None:
    """Write ``run.json``, or see that the one that is there equals it. Raises RunError and RecordError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{out}: {error.strerror or error}") from None
    if not (out / RUN_FILE).exists():
        info.write(out)
    elif RunInfo.read(out).to_json() != info.to_json():
        raise RunError(f"{out} has another run: name another --out")


def _batches(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the results of some samples at a time; the results of one sample stand together in a run."""
    of_samples = (list(some) for _, some in groupby(records, key=lambda record: record.sample))
    while batch := list(islice(of_samples, BATCH_SAMPLES)):
        yield [record for some in batch for record in some]


def _tested(records: Sequence[Record], samples: Mapping[str, Sample], unsafe: bool) -> list[Record]:
    asked = {
        (record.sample, record.text)
        for record in records
        if record.text is not None and record.error is None and samples[record.sample].test is not None
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {one: pool.submit(run_test, samples[one[0]], one[1], unsafe) for one in asked}
        verdicts = {one: future.result() for one, future in started.items()}
    return [_with_verdict(record, samples[record.sample], verdicts) for record in records]


def _with_verdict(record: Record, sample: Sample, verdicts: Mapping[tuple[str, str], Test]) -> Record:
    if sample.test is None or record.error is not None:
        return record
    passed, failure = (False, None) if record.text is None else verdicts[record.sample, record.text]
    return replace(record, passed=passed, failure=failure)
