"""HumanEval-Infilling, from its own files: holes in the solutions of HumanEval, with the tests of their tasks.

Bavarian et al., Efficient Training of Language Models to Fill in the Middle (arXiv 2207.14255); MIT. Its files are four
gzipped JSON Lines files; nothing is drawn and nothing left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.published import benchmark_files, write_published
from fim_server.datasets.python.text import LANGUAGE
from fim_server.datasets.samples import Origin, Sample, UnitTest, read_json_lines
from fim_server.errors import DatasetError

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

    ``kinds``: the wanted ones of `KINDS`, by default all in the folder. ``limit``: the number of samples.

    Raises:
        DatasetError: A file is missing or not of the benchmark's form, or ``out`` is another set or cannot be written.
    """
    arguments = {"set": SET, "source": str(source), "kinds": sorted(kinds), "limit": limit}
    files = benchmark_files(source, {kind: f"HumanEval-{name}" for kind, name in KINDS.items()}, kinds)
    return write_published(out, _samples(files, kinds, limit), files, arguments, {"name": SET, "version": VERSION})


def _samples(files: Sequence[Path], kinds: Sequence[str], limit: int | None) -> Iterator[Sample]:
    kind_of = {name: kind for kind, name in KINDS.items()}
    given = 0
    for file in files:
        for number, record in read_json_lines(file):
            try:
                left, middle, right = record["prompt"], record["canonical_solution"], record["suffix"]
                task, test, entry_point = record["task_id"], record["test"], record["entry_point"]
                kind = kind_of[task.split("/")[0]]
                sha256 = hashlib.sha256((left + middle + right).encode()).hexdigest()
            except (KeyError, AttributeError, TypeError, ValueError) as error:
                raise DatasetError(f"{file}:{number}: not a task of HumanEval-Infilling ({error})") from None
            if kinds and kind not in kinds:
                continue
            if limit is not None and given == limit:
                return
            given += 1
            yield Sample(
                id=f"{SET}.{VERSION}/{task}",
                set=SET,
                kind=kind,
                left=left,
                middle=middle,
                right=right,
                language=LANGUAGE,
                origin=Origin(SET, SET, None, file.name, LICENCE, sha256),
                test=UnitTest(task_id=task, prompt=left, test=test, entry_point=entry_point),
            )
