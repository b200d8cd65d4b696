"""SAFIM, from its own files: API calls, control-flow expressions and blocks that were taken out of programs.

Gong et al., Evaluation of LLMs on Syntax-Aware Code Fill-in-the-Middle Tasks (arXiv 2403.04814); CC-BY-4.0. Programs in
languages that the package does not define (C++, C#) are left out. The model reads the code alone, as in an editor: not
the task's description, and no comment in place of the hole. The benchmark's inputs and outputs are not run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fim_server.datasets.published import benchmark_files, read_published, write_published
from fim_server.datasets.samples import Origin, Sample
from fim_server.language import Language
from fim_server.text.document import LINE_BREAK

SET = "safim"
VERSION = 1
LICENCE = "CC-BY-4.0"
HOLE = "{{completion}}"
"""The marker that stands for the middle in ``eval_prompt``."""

KINDS = {"api": "api_completion", "control": "control_completion", "block": "block_completion"}
"""File names by kind, without the suffix (``.jsonl.gz`` or ``.jsonl``)."""


def build_safim(
    source: Path, out: Path, kinds: Sequence[str] = (), limit: int | None = None, language: str | None = None
) -> dict[str, Any]:
    """Build the set from the folder with the benchmark's files, or from one of them; returns the manifest.

    ``kinds``: the wanted ones of `KINDS`, by default all in the folder. ``limit``: the number of samples. ``language``:
    the only wanted one; None for all whose definitions are exact.

    Raises:
        DatasetError: A file is missing or not of the benchmark's form, or ``out`` is another set or cannot be written.
    """
    languages = Language.exact_names() if language is None else (language,)
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
    )
