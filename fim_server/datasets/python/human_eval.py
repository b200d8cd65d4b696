"""HumanEval-Infilling, from its own files: holes in the solutions of HumanEval, with the tests of their tasks.

Bavarian et al., Efficient Training of Language Models to Fill in the Middle (arXiv 2207.14255); MIT. Its files are four
gzipped JSON Lines files; nothing is drawn and nothing left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fim_server.datasets.published import benchmark_files, read_published, write_published
from fim_server.datasets.python.text import LANGUAGE
from fim_server.datasets.samples import Origin, Sample, UnitTest

SET = "human-eval-infilling"
VERSION = 1
LICENCE = "MIT"

KINDS = {
    "single-line": "SingleLineInfilling",
    "multi-line": "MultiLineInfilling",
    "random-span": "RandomSpanInfilling",
    "random-span-light": "RandomSpanInfillingLight",
}
"""Task-name prefixes by kind; the file of a kind is ``HumanEval-NAME.jsonl.gz`` (or ``.jsonl``)."""


def build_human_eval(source: Path, out: Path, kinds: Sequence[str] = (), limit: int | None = None) -> dict[str, Any]:
    """Build the set from the folder with the benchmark's files, or from one of them, and return the manifest.

    ``kinds``: the wanted ones of `KINDS`, by default all in the folder. ``limit``: most samples.

    Raises:
        DatasetError: A file is missing or not of the benchmark's form, or ``out`` is another set or cannot be written.
    """
    arguments = {"set": SET, "source": str(source), "kinds": sorted(kinds), "limit": limit}
    files = benchmark_files(source, {kind: f"HumanEval-{name}" for kind, name in KINDS.items()}, kinds)
    wanted = read_published(files, "HumanEval-Infilling", _sample, lambda sample: not kinds or sample.kind in kinds)
    return write_published(out, islice(wanted, limit), files, arguments, {"name": SET, "version": VERSION})


def _sample(file: Path, record: dict[str, Any]) -> Sample:
    left, middle, right = record["prompt"], record["canonical_solution"], record["suffix"]
    task, test, entry_point = record["task_id"], record["test"], record["entry_point"]
    sha256 = hashlib.sha256((left + middle + right).encode()).hexdigest()
    return Sample(
        id=f"{SET}.{VERSION}/{task}",
        set=SET,
        kind={name: kind for kind, name in KINDS.items()}[task.split("/")[0]],
        left=left,
        middle=middle,
        right=right,
        language=LANGUAGE,
        origin=Origin(SET, SET, None, file.name, LICENCE, sha256),
        test=UnitTest(task_id=task, prompt=left, test=test, entry_point=entry_point),
    )
