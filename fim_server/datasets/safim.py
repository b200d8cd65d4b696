"""SAFIM, from its own files: API calls, control-flow expressions and blocks that were taken out of programs.

Gong et al., Evaluation of LLMs on Syntax-Aware Code Fill-in-the-Middle Tasks (arXiv 2403.04814); CC-BY-4.0. Programs in
C# are left out. The model reads the code alone, as in an editor: not the task's description, and no comment in place of
the hole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fim_server.datasets.published import benchmark_files, read_published, write_published
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.datasets.samples import Case, MatchTest, Origin, ProgramTest, Sample, Test
from fim_server.text.document import LINE_BREAK

SET = "safim"
VERSION = 2
LICENCE = "CC-BY-4.0"
HOLE = "{{completion}}"
"""The marker that stands for the middle in ``eval_prompt``."""

LANGUAGES = (PYTHON, "java", "cpp")

API, CONTROL, BLOCK = "api", "control", "block"

KINDS = {API: "api_completion", CONTROL: "control_completion", BLOCK: "block_completion"}
"""File names by kind, without the suffix (``.jsonl.gz`` or ``.jsonl``)."""


def build_safim(
    source: Path, out: Path, kinds: Sequence[str] = (), limit: int | None = None, language: str | None = None
) -> dict[str, Any]:
    """Build the set from the folder with the benchmark's files, or from one of them; returns the manifest.

    ``kinds``: the wanted ones of `KINDS`, by default all in the folder. ``limit``: the number of samples. ``language``:
    the only wanted one; None for all of `LANGUAGES`.

    Raises:
        DatasetError: A file is missing or not of the benchmark's form, or ``out`` is another set or cannot be written.
    """
    languages = LANGUAGES if language is None else (language,)
    arguments = {"set": SET, "source": str(source), "kinds": sorted(kinds), "limit": limit, "languages": [*languages]}
    files = benchmark_files(source, KINDS, kinds)
    wanted = read_published(files, "SAFIM", _sample, lambda sample: sample.language in languages)
    return write_published(out, islice(wanted, limit), files, arguments, {"name": SET, "version": VERSION})


def _sample(file: Path, record: dict[str, Any]) -> Sample:
    kind = {name: kind for kind, name in KINDS.items()}.get(file.name.split(".")[0])
    if kind is None:
        raise KeyError(f"the file's name is none of {', '.join(KINDS.values())}")
    language, task = record["lang"], record["task_id"]
    left, right = LINE_BREAK.sub("\n", record["eval_prompt"]).split(HOLE)
    middle = LINE_BREAK.sub("\n", record["ground_truth"])
    sha256 = hashlib.sha256((left + middle + right).encode()).hexdigest()
    return Sample(
        id=f"{SET}.{VERSION}/{kind}/{task}",
        set=SET,
        kind=kind,
        left=left,
        middle=middle,
        right=right,
        language=language,
        origin=Origin(SET, SET, None, file.name, LICENCE, sha256),
        test=_test(kind, record),
    )


def _test(kind: str, record: dict[str, Any]) -> Test | None:
    if kind == API:
        return MatchTest("call")
    cases = record.get("unit_tests")
    return ProgramTest(tuple(Case(one["input"], tuple(one["output"])) for one in cases)) if cases else None


def truncated(sample: Sample, text: str, is_complete: Callable[[str], bool]) -> str:
    """Cut a text that the model did not end in time, as the benchmark does (its section on truncation).

    A control-flow expression ends with its line in Python, else before a bracket that it did not open. A call ends with
    its last bracket. Of a block as many lines stay as parse with the rest, which ``is_complete`` tells.
    """
    if sample.kind == BLOCK:
        lines = text.splitlines(keepends=True)
        prefixes = ("".join(lines[:count]) for count in range(len(lines), 0, -1))
        return next(filter(is_complete, prefixes), "")
    if sample.kind == CONTROL and sample.language == PYTHON:
        return next(filter(str.strip, text.splitlines()), "")
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if sample.kind == CONTROL and depth < 0:
            return text[:at]
        if sample.kind == API and character == ")" and depth <= 0:
            return text[: at + 1]
    return text
