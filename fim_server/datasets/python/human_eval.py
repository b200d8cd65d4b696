"""HumanEval-Infilling, from its own files: holes in the solutions of HumanEval, with the tests of their tasks.

Bavarian et al., Efficient Training of Language Models to Fill in the Middle (arXiv 2207.14255); MIT. Its files are four
gzipped JSON Lines files; nothing is drawn and nothing left out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.manifest import beside, finished, interpreter, write_manifest
from fim_server.datasets.python.text import LANGUAGE, parse_or_none
from fim_server.datasets.samples import Origin, Sample, UnitTest, encode_sample, read_json_lines
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
"""What a task's name begins with; its file is ``HumanEval-NAME.jsonl.gz`` (or ``.jsonl``)."""


def build_human_eval(source: Path, out: Path, kinds: Sequence[str] = (), limit: int | None = None) -> dict[str, Any]:
    """Build the set from the folder with the benchmark's files, or from one of them; returns the manifest.

    ``kinds``: those of `KINDS` that are wanted, all that are there by default. ``limit``: of samples.

    Raises:
        DatasetError: a file is missing or not of the benchmark's form, or ``out`` is another set or cannot be written.
    """
    arguments = {"set": SET, "source": str(source), "kinds": sorted(kinds), "limit": limit}
    construction = {"name": SET, "version": VERSION}
    done = finished(out, arguments, construction)
    if done is not None:
        return done
    counts: Counter[str] = Counter()
    files = _files(source, kinds)
    part = beside(out, ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as output:
            for sample in _samples(files, kinds, limit):
                output.write(encode_sample(sample))
                counts[sample.kind] += 1
                counts["refused by ast.parse"] += parse_or_none(sample.text) is None
        fields = {
            "arguments": arguments,
            "construction": construction,
            "interpreter": interpreter(),
            "pinned": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
            "counts": {
                "samples": sum(counts[kind] for kind in KINDS),
                **{name: counts[name] for name in sorted(counts)},
            },
        }
        return write_manifest(out, part, fields)
    except OSError as error:
        raise DatasetError(f"{error.filename or out}: {error.strerror or error}") from None


def _files(source: Path, kinds: Sequence[str]) -> list[Path]:
    """The benchmark's files in the order of `KINDS`. Raises DatasetError if one that was asked for is missing."""
    if source.is_file():
        return [source]
    found = []
    for kind, name in KINDS.items():
        if kind in kinds or not kinds:
            paths = [source / f"HumanEval-{name}{suffix}" for suffix in (".jsonl.gz", ".jsonl")]
            there = [path for path in paths if path.is_file()][:1]
            if not there and kinds:
                raise DatasetError(f"{paths[0]}: no such file")
            found += there
    if not found:
        raise DatasetError(f"{source}: no files of HumanEval-Infilling (HumanEval-SingleLineInfilling.jsonl.gz, ...)")
    return found


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
