"""Draw of samples in an order whose every beginning is a fair draw."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.manifest import beside, finished, write_manifest
from fim_server.datasets.samples import encode_sample, read_samples
from fim_server.errors import DatasetError

VERSION = 1
"""Version of the draw; raise it when other samples are drawn."""


def draw(files: Sequence[Path], count: int, seed: int, out: Path) -> dict[str, Any]:
    """Write ``count`` samples of some files, or all where there are fewer, and return the manifest.

    The samples are ordered by the SHA-256 of the seed and their ids, independently of files and packages. The first n
    are those of a draw of n, so that ``fim-server eval run --limit n`` measures a fair part.

    Raises:
        DatasetError: A file cannot be read, an id comes twice, or ``out`` is another set or cannot be written.
    """
    sources = [{"name": file.name, "sha256": _sha256(file)} for file in files]
    arguments = {"files": sources, "count": count, "seed": seed}
    construction = {"name": "draw", "version": VERSION}
    done = finished(out, arguments, construction)
    if done is not None:
        return done
    seen: set[str] = set()
    chosen = heapq.nsmallest(count, _keyed(files, seed, seen))
    part = beside(out, ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as output:
            output.writelines(line for _, line in chosen)
        counts = {"samples": len(chosen), "drawn_from": len(seen)}
        return write_manifest(out, part, {"arguments": arguments, "construction": construction, "counts": counts})
    except OSError as error:
        raise DatasetError(f"{error.filename or out}: {error.strerror or error}") from None


def _keyed(files: Sequence[Path], seed: int, seen: set[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the sort key of each sample, and its line."""
    for file in files:
        for sample in read_samples(file):
            if sample.id in seen:
                raise DatasetError(f"{file}: the id {sample.id!r} comes twice in what is drawn from")
            seen.add(sample.id)
            yield hashlib.sha256(f"{seed}/{sample.id}".encode(errors="replace")).digest(), encode_sample(sample)


def _sha256(file: Path) -> str:
    if file.exists() and not file.is_file():  # it is read twice, and a device or a pipe may never end
        raise DatasetError(f"{file}: not a regular file")
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{file}: {error.strerror or error}") from None
