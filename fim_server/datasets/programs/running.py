"""Run of a whole program on the inputs of its test, in the sandbox of `fim_server.datasets.python.sandbox`.

The tools compile in the sandbox, too. The outputs that are right stay outside of it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from fim_server.datasets.programs.outputs import is_right
from fim_server.datasets.programs.toolchains import toolchains
from fim_server.datasets.python import bubblewrap, sandbox
from fim_server.datasets.python.bubblewrap import Harness
from fim_server.datasets.python.sandbox import Limits, Outcome, Verdict
from fim_server.datasets.samples import ProgramTest
from fim_server.errors import DatasetError

_CHILD = Path(__file__).with_name("child.py")
_BESIDE = Path(sandbox.__file__).with_name("sandbox_child.py")
_SPARE_S = 10.0
"""Seconds of a test beside those of its programs."""

COMPILING = Limits(seconds=90.0, cpu_seconds=60, memory_bytes=6 << 30, file_bytes=64 << 20, processes=64)
RUNNING = Limits(seconds=30.0, cpu_seconds=10, file_bytes=64 << 20, processes=64)
"""Limits of a run on one input; the memory is the toolchain's."""


def missing_tool(language: str) -> str | None:
    """Return the reason why programs of a language cannot be run here, or None."""
    toolchain = toolchains().get(language)
    if toolchain is None:
        return "no tools are known"
    missing = toolchain.missing()
    return None if missing is None else f"{missing} is not installed"


def run_program(
    language: str, program: str, test: ProgramTest, running: Limits = RUNNING, *, unsafe: bool = False
) -> Outcome:
    """Compile a program where its language wants it, and run it on every input up to the first that fails.

    Args:
        language: Language of the program.
        program: Untrusted code, of a model for instance.
        test: The inputs and outputs.
        running: Limits of each run, but for the memory.
        unsafe: Run without a sandbox where there is none.

    Raises:
        DatasetError: A tool of the language is missing, there is no sandbox and ``unsafe`` is false, or the processes
            do not start.
    """
    missing = missing_tool(language)
    if missing is not None:
        raise DatasetError(f"{language}: programs cannot be run, {missing}")
    no_sandbox = sandbox.unavailable()
    if no_sandbox is not None and not unsafe:
        raise DatasetError(sandbox.refusal(no_sandbox))
    sandboxed = no_sandbox is None
    toolchain = toolchains()[language]
    running = replace(running, memory_bytes=toolchain.memory_mb << 20)
    seconds = _SPARE_S + COMPILING.seconds * bool(toolchain.compile) + running.seconds * len(test.cases)
    most = replace(COMPILING, seconds=seconds, memory_bytes=max(COMPILING.memory_bytes, running.memory_bytes))
    request = {
        "program": program,
        "file": toolchain.words([toolchain.file], program)[0],
        "compile": toolchain.words(toolchain.compile, program),
        "run": toolchain.words(toolchain.run, program),
        "classes": toolchain.classes,
        "inputs": [case.input for case in test.cases],
        "compiling": {**asdict(COMPILING), "filtered": False},
        "running": {**asdict(running), "filtered": True},
        "sandboxed": sandboxed,
        "root": bubblewrap.is_root(),
        "file_bytes": running.file_bytes,
    }
    harness = Harness(_CHILD, _BESIDE, toolchain.readable(), toolchain.environment())
    report, outcome = sandbox.launch(harness, (request,), most, sandboxed=sandboxed)
    if report is None:
        return outcome
    for found, case in zip(report, test.cases, strict=False):
        if found["verdict"] != Verdict.PASSED:
            return replace(outcome, verdict=Verdict(found["verdict"]), detail=found["detail"])
        if not any(is_right(found["output"], expected) for expected in case.outputs):
            return replace(outcome, verdict=Verdict.WRONG, detail="another output")
    return outcome
