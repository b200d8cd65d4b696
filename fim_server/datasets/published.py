"""Published sets, written from their own files without drawing or leaving out samples."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.manifest import beside, finished, interpreter, write_manifest
from fim_server.datasets.python.text import LANGUAGE, parse_or_none
from fim_server.datasets.samples import Sample, encode_sample, read_json_lines
from fim_server.errors import DatasetError


def benchmark_files(source: Path, names: Mapping[str, str], kinds: Sequence[str]) -> list[Path]:
    """Return the files of a benchmark in a folder, in the order of their kinds; a path to a file is that file alone.

    ``names``: by kind the file's name without the suffix. ``kinds``: the wanted ones, by default all that are there.

    Raises:
        DatasetError: A file of a wanted kind is missing, or there is none at all.
    """
    if source.is_file():
        return [source]
    found = []
    for kind, name in names.items():
        if kind in kinds or not kinds:
            paths = [source / f"{name}{suffix}" for suffix in (".jsonl.gz", ".jsonl")]
            there = [path for path in paths if path.is_file()][:1]
            if not there and kinds:
                raise DatasetError(f"{paths[0]}: no such file")
            found += there
    if not found:
        raise DatasetError(f"{source}: no files such as {next(iter(names.values()))}.jsonl.gz")
    return found


def read_published(
    files: Sequence[Path],
    benchmark: str,
    sample_of: Callable[[Path, dict[str, Any]], Sample],
    is_wanted: Callable[[Sample], bool],
) -> Iterator[Sample]:
    """Yield the wanted samples of a benchmark's files.

    Raises:
        DatasetError: A file cannot be read, or ``sample_of`` refuses a record.
    """
    for file in files:
        for number, record in read_json_lines(file):
            try:
                sample = sample_of(file, record)
            except (KeyError, AttributeError, TypeError, ValueError) as error:
                raise DatasetError(f"{file}:{number}: not a task of {benchmark} ({error})") from None
            if is_wanted(sample):
                yield sample


def write_published(
    out: Path,
    samples: Iterable[Sample],
    files: Sequence[Path],
    arguments: dict[str, Any],
    construction: dict[str, Any],
) -> dict[str, Any]:
    """Write a published set and its manifest, unless it is there already; return the manifest.

    Raises:
        DatasetError: ``out`` is another set, or a file cannot be read or written.
    """
    done = finished(out, arguments, construction)
    if done is not None:
        return done
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    part = beside(out, ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as output:
            for sample in samples:
                output.write(encode_sample(sample))
                kinds[sample.kind] += 1
                if sample.language == LANGUAGE:
                    counts["refused by ast.parse"] += parse_or_none(sample.text) is None
        counts.update(kinds)
        fields = {
            "arguments": arguments,
            "construction": construction,
            "interpreter": interpreter(),
            "pinned": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
            "counts": {"samples": kinds.total(), **{name: counts[name] for name in sorted(counts)}},
        }
        return write_manifest(out, part, fields)
    except OSError as error:
        raise DatasetError(f"{error.filename or out}: {error.strerror or error}") from None
