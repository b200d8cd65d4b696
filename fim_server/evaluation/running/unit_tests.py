"""The samples' own tests, several at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from fim_server.datasets.samples import Sample
from fim_server.errors import RunError

if TYPE_CHECKING:
    from fim_server.evaluation.running.modes import Offers


Test = tuple[bool, str | None]
"""Verdict of a test, and the reason of a failure."""


def start_tests(
    pool: ThreadPoolExecutor, samples: Mapping[int, Sample], found: Mapping[int, Offers], unsafe: bool
) -> dict[int, dict[str, Future[Test]]]:
    """Start the tests of those samples that have one, for each different text; by the samples' numbers."""
    started: dict[int, dict[str, Future[Test]]] = {}
    for number, sample in samples.items():
        offers = found[number]
        texts = set() if isinstance(offers, Exception) or sample.test is None else {o.text for o in offers.values()}
        started[number] = {text: pool.submit(run_test, sample, text, unsafe) for text in texts if text is not None}
    return started


def run_test(sample: Sample, text: str, unsafe: bool) -> Test:
    """Run the sample's own test with a text; return its verdict. Raises DatasetError if it cannot be run."""
    from fim_server.datasets.python.sandbox import run_sample

    outcome = run_sample(sample, text, unsafe=unsafe)
    return outcome.passed, None if outcome.passed else str(outcome.verdict)


def require_sandbox(samples: Iterable[Sample]) -> None:
    """Raises RunError where samples have tests, which run what the model wrote, and there is no sandbox."""
    from fim_server.datasets.python.sandbox import refusal, unavailable

    missing = unavailable()
    if missing is not None and any(sample.test is not None for sample in samples):
        raise RunError(refusal(missing))


def isolation() -> str:
    """Describe the place where tests run, for run.json."""
    from fim_server.datasets.python.sandbox import unavailable

    return "bubblewrap" if unavailable() is None else "none"
