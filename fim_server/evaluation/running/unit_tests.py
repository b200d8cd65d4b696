"""The samples' own tests, several at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from fim_server.datasets.calls import is_same_call
from fim_server.datasets.programs.running import missing_tool, run_program
from fim_server.datasets.python import sandbox
from fim_server.datasets.python.sandbox import Verdict, run_sample
from fim_server.datasets.samples import MatchTest, ProgramTest, Sample
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
    match sample.test:
        case MatchTest():
            passed = is_same_call(text, sample.middle, sample.language)
            return passed, None if passed else str(Verdict.WRONG)
        case ProgramTest():
            if text == sample.middle:  # which the benchmark does not run, either
                return True, None
            outcome = run_program(sample.language, sample.filled(text), sample.test, unsafe=unsafe)
        case _:
            outcome = run_sample(sample, text, unsafe=unsafe)
    return outcome.passed, None if outcome.passed else str(outcome.verdict)


def require_sandbox(samples: Iterable[Sample], unsafe: bool) -> None:
    """Raises RunError where the samples' tests run what the model wrote, and a tool or the sandbox is missing."""
    languages: set[str] = set()
    for sample in samples:
        if sample.test is None or isinstance(sample.test, MatchTest):
            continue
        no_sandbox = None if unsafe else sandbox.unavailable()
        if no_sandbox is not None:
            raise RunError(sandbox.refusal(no_sandbox))
        if isinstance(sample.test, ProgramTest) and sample.language not in languages:
            languages.add(sample.language)
            missing = missing_tool(sample.language)
            if missing is not None:
                raise RunError(f"{sample.language}: tests cannot be run, {missing}")


def isolation() -> str:
    """Describe the place where tests run, for run.json."""
    return "bubblewrap" if sandbox.unavailable() is None else "none"
