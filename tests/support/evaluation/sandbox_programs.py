"""Programs for the sandbox, and where there is one."""

from __future__ import annotations

import pytest

from fim_server.datasets import UnitTest
from fim_server.datasets.python.sandbox import Limits, Outcome, run_test, unavailable

SQUARE = UnitTest("square", "", "def check(f):\n    assert f(2) == 4\n    assert f(-3) == 9\n", "square")
GOOD = "def square(x):\n    return x * x\n"
LIMITS = Limits(seconds=20.0, cpu_seconds=10, memory_bytes=256 << 20)
SHORT = Limits(seconds=1.0, cpu_seconds=1, memory_bytes=256 << 20)
"""For programs that do not end."""

MISSING = unavailable()
needs_sandbox = pytest.mark.skipif(MISSING is not None, reason=f"there is no sandbox here: {MISSING}")


def run(body: str, before: str = "", limits: Limits = LIMITS) -> Outcome:
    """The outcome of a function with this body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return run_test(SQUARE, f"{before}\ndef square(x):\n{lines}", limits, unsafe=True)


def said(body: str, limits: Limits = LIMITS) -> str:
    """Return ``str`` of an expression's value in the sandbox, or of ``found`` after a body."""
    if "\n" not in body:
        body = f"found = {body}"
    outcome = run(f"import os\n{body}\nraise ValueError(found)", limits=limits)
    assert outcome.detail.startswith("ValueError"), outcome
    return outcome.detail.removeprefix("ValueError").removeprefix(": ")
