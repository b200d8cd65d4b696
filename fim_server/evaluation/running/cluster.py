"""A run on a cluster: workers with a model each, as actors of Ray (extra ``cluster``).

The driver forms the batches, gives each worker one at a time, and writes the results. The files are the same as without
a cluster. The driver replaces a worker that dies and gives its batch out again. After a second death its samples are
measured one by one, and a sample with which a worker died twice is recorded as failed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from types import TracebackType
from typing import Any

from fim_server.datasets.samples import Sample
from fim_server.errors import RunError
from fim_server.evaluation.records import Record
from fim_server.evaluation.running.measures import one_line
from fim_server.evaluation.running.settings import WorkerSettings
from fim_server.evaluation.running.worker import Worker, failed

DEATHS = 2
"""Deaths of a worker on one batch before its samples are measured one by one, and on one sample before it fails."""


@dataclass(frozen=True, slots=True)
class _Parcel:
    """Samples to be measured together, and how many workers have died with them."""

    samples: Sequence[Sample]
    deaths: int = 0


class Cluster:
    """Workers of a Ray cluster; measures as :class:`fim_server.evaluation.running.worker.Worker` does."""

    def __init__(self, settings: WorkerSettings, workers: int) -> None:
        """Connects to the cluster of ``RAY_ADDRESS``, or starts one on this machine, and starts the workers.

        Raises RunError where Ray is not installed, or no cluster or worker can be started.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report its use to its makers
        try:
            self._ray: Any = import_module("ray")
        except ModuleNotFoundError:
            raise RunError("--ray needs Ray: install fim-server[cluster]") from None
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if "RAY_ADDRESS" not in os.environ:
            options |= {"num_cpus": max(workers, os.cpu_count() or 1), "include_dashboard": False}
        try:
            self._ray.init(**options)
        except Exception as error:  # whatever Ray raises for an address that does not answer
            raise RunError(f"no Ray cluster: {one_line(error)}") from error
        self._settings = settings
        self._actor = self._ray.remote(Worker)
        self._gpus = self._gpus_each(workers)
        self._workers = [self._start() for _ in range(workers)]
        try:
            self._about: Mapping[str, Any] = self._ray.get([worker.about.remote() for worker in self._workers])[0]
        except Exception as error:
            self.close()
            raise RunError(f"a worker cannot start: {reason(error)}") from error

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and the cluster if it was started here."""
        for worker in self._workers:
            with suppress(Exception):
                self._ray.kill(worker)
        self._ray.shutdown()

    def about(self) -> Mapping[str, Any]:
        """See :meth:`fim_server.evaluation.running.worker.Measuring.about`."""
        return self._about

    def measure_all(self, batches: Iterable[Sequence[Sample]]) -> Iterator[list[Record]]:
        """See :meth:`fim_server.evaluation.running.worker.Measuring.measure_all`."""
        stream = iter(batches)
        again: deque[_Parcel] = deque()
        idle = list(range(len(self._workers)))
        out: dict[Any, tuple[int, _Parcel]] = {}
        while True:
            while idle and (parcel := again.popleft() if again else next_parcel(stream)) is not None:
                place = idle.pop()
                out[self._workers[place].measure.remote(parcel.samples)] = place, parcel
            if not out:
                return
            (ready,), _ = self._ray.wait(list(out), num_returns=1)
            place, parcel = out.pop(ready)
            idle.append(place)
            try:
                records: list[Record] = self._ray.get(ready)
            except self._ray.exceptions.RayActorError as error:
                self._workers[place] = self._start()
                parcels, records = after_death(parcel, self._settings.modes, error)
                again.extend(parcels)
            except self._ray.exceptions.RayError as error:  # of the worker's own code, or of the way to it
                records = all_failed(parcel, self._settings.modes, error)
            if records:
                yield records

    def _start(self) -> Any:
        """A new worker; it loads its model before it measures anything."""
        return self._actor.options(num_cpus=1, num_gpus=self._gpus).remote(self._settings)

    def _gpus_each(self, workers: int) -> int:
        """One GPU a worker where GPUs were asked for, or nothing was and there are enough."""
        device = self._settings.device
        if device is None:
            return int(self._ray.cluster_resources().get("GPU", 0) >= workers)
        return int(device.startswith("cuda"))


def next_parcel(stream: Iterator[Sequence[Sample]]) -> _Parcel | None:
    """The next batch to give out, or None."""
    samples = next(stream, None)
    return None if samples is None else _Parcel(samples)


def after_death(parcel: _Parcel, modes: Sequence[str], error: Exception) -> tuple[list[_Parcel], list[Record]]:
    """Return the work to give out again after a worker died, and the results that will not come."""
    if parcel.deaths + 1 < DEATHS:
        return [replace(parcel, deaths=parcel.deaths + 1)], []
    if len(parcel.samples) > 1:
        return [_Parcel([sample]) for sample in parcel.samples], []
    return [], all_failed(parcel, modes, error)


def all_failed(parcel: _Parcel, modes: Sequence[str], error: Exception) -> list[Record]:
    """The results of samples that could not be measured."""
    return [replace(failed(sample, mode, error), error=reason(error)) for sample in parcel.samples for mode in modes]


def reason(error: Exception) -> str:
    """Return the last line of an exception of Ray's, after the traces of other processes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300]}" if lines else type(error).__name__
