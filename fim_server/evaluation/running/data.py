"""The samples that a run is on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from fim_server.datasets.samples import Sample, read_samples
from fim_server.errors import DatasetError
from fim_server.evaluation.records import Data


def read_data(paths: Sequence[str]) -> tuple[tuple[Data, ...], list[str], tuple[str, ...]]:
    """Hash and count files of samples; their ids in order, and the languages that they are in.

    Raises DatasetError where one cannot be read, or an id comes twice.
    """
    ids: dict[str, None] = {}
    languages: dict[str, None] = {}
    found: list[Data] = []
    for path in paths:
        before = len(ids)
        number = 0
        for sample in read_samples(path):
            number += 1
            ids[sample.id] = None
            languages[sample.language] = None
            if len(ids) < before + number:
                raise DatasetError(f"{path}: the id {sample.id!r} comes twice in what is to be measured")
        with Path(path).open("rb") as file:
            found.append(Data(path, hashlib.file_digest(file, "sha256").hexdigest(), number))
    if not ids:
        raise DatasetError(f"{', '.join(paths)}: no samples")
    return tuple(found), list(ids), tuple(languages)


def all_samples(paths: Sequence[str], limit: int | None) -> Iterator[Sample]:
    """The samples of all files, in order, up to a limit."""
    return islice((sample for path in paths for sample in read_samples(path)), limit)
