"""Metrics of a plug-in, counted in every process of an engine and reported by the one that answers Prometheus.

An engine answers requests in one process and fills masks in another. Each process writes its sums into a file of its
own, mapped into memory. The first process makes their folder, names it in the environment of the others, and adds the
sums up on request. (prometheus_client's own way for several processes has to be chosen before the engine imports it,
and changes the look of the engine's own metrics.)
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FOLDER = "FIM_SERVER_METRICS_FOLDER"
"""Environment variable that names the folder."""

BOUNDS = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0)
"""Upper bounds of the histogram of masks. Unit: seconds."""

SUMS = {
    "requests": "Requests with a hole that were taken.",
    "refusals": "Requests with a hole that were refused.",
    "sessions": "Holes that were opened to be filled.",
    "session_seconds": "Time that opening them took.",
    "refused_tokens": "Tokens that the engine took although they are not allowed; such requests are ended.",
}
"""Counters with their help texts."""

PLACES = {name: place for place, name in enumerate(SUMS)}
MASK_SECONDS = len(SUMS)
LENGTH = MASK_SECONDS + 1 + len(BOUNDS) + 1


class Meter:
    """Sums of one process. Adding is not locked: if two threads add at once, one amount may be lost."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._values = values

    def add(self, name: str, amount: float = 1.0) -> None:
        self._values[PLACES[name]] += amount

    def mask(self, seconds: float) -> None:
        """Count a mask and its seconds."""
        self._values[MASK_SECONDS] += seconds
        self._values[MASK_SECONDS + 1 + bisect_left(BOUNDS, seconds)] += 1


def meter() -> Meter:
    return _meter(os.getpid())


@cache
def _meter(process: int) -> Meter:
    folder = os.environ.get(FOLDER)
    if not folder:
        return Meter(np.zeros(LENGTH))
    file = Path(folder) / f"{process}.sums"
    if not file.exists():
        file.write_bytes(bytes(8 * LENGTH))
    return Meter(np.memmap(file, dtype=np.float64, mode="r+", shape=(LENGTH,)))


def totals(folder: Path) -> NDArray[np.float64]:
    """Return the sums of all processes. Shape: [LENGTH]."""
    found = np.zeros(LENGTH)
    for file in sorted(folder.glob("*.sums")):
        held = file.read_bytes()
        if len(held) == 8 * LENGTH:
            found += np.frombuffer(held, dtype=np.float64)
    return found


class Collector:
    """Collector of prometheus_client for the metrics `fim_server_*`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Any]:
        """Yield the metrics in prometheus_client's form."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        values = totals(self._folder)
        for name, said in SUMS.items():
            yield CounterMetricFamily(f"fim_server_{name}", said, value=float(values[PLACES[name]]))
        counts = np.cumsum(values[MASK_SECONDS + 1 :])
        buckets = [(str(bound), float(count)) for bound, count in zip([*BOUNDS, "+Inf"], counts, strict=True)]
        histogram = HistogramMetricFamily("fim_server_mask_seconds", "Time that filling one row's mask took.")
        histogram.add_metric([], buckets, sum_value=float(values[MASK_SECONDS]))
        yield histogram


def start_collector() -> bool:
    """Make this process the reporting one if it is the first of its engine; return whether it is.

    Raises ImportError if prometheus_client is missing.
    """
    if os.environ.get(FOLDER):
        return False
    from prometheus_client import REGISTRY

    folder = Path(tempfile.mkdtemp(prefix="fim-server-metrics-"))
    os.environ[FOLDER] = str(folder)
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    REGISTRY.register(Collector(folder))
    return True
