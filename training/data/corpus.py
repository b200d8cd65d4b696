"""Corpus: packages without near-duplicates and without text of evaluation sets, capped, split and written.

The unit of splitting is the package, never the file. A held-out loss is therefore about code that the model has
never seen.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fim_server.errors import TrainingError
from training.data.overlap import NearDuplicates, overlaps, remove_near_duplicates
from training.data.packages import Package, SourceFile

TRAIN_FILE = "train.jsonl"

HELD_OUT_FILE = "held_out.jsonl"

SOURCES_FILE = "sources.json"


@dataclass(frozen=True)
class CollectLimits:
    """Limits of collection.

    `package_bytes`: cap per trained package. `held_out_bytes`: cap per held-out package.
    `similarity`: estimated Jaccard similarity of word shingles from which a file is a
    near-duplicate.
    """

    package_bytes: int = 3_000_000
    held_out_bytes: int = 600_000
    similarity: float = 0.7

    @property
    def read_bytes(self) -> int:
        """Most bytes that are read of a package.

        Files are parsed and compared before the cap chooses among them, and the largest packages would take most of
        that time.
        """
        return 2 * max(self.package_bytes, self.held_out_bytes)


def cap_bytes(files: Sequence[SourceFile], limit: int, seed: str) -> list[SourceFile]:
    """Choose files at random, reproducibly, until the next would pass `limit` bytes of UTF-8."""
    order = sorted(files)
    random.Random(seed).shuffle(order)
    chosen: list[SourceFile] = []
    total = 0
    for file in order:
        size = len(file.text.encode())
        if total + size <= limit:
            chosen.append(file)
            total += size
    return chosen


def write_corpus(
    packages: Sequence[Package],
    held_out: frozenset[str],
    evaluation: npt.NDArray[np.uint64],
    limits: CollectLimits,
    folder: Path,
    duplicates: NearDuplicates | None = None,
) -> dict[str, object]:
    """Filter, cap and write the packages; return the record that `sources.json` holds.

    Trained packages come first, so that a held-out file that resembles a trained one is
    dropped from the held-out side. `duplicates` remembers texts that the corpus must not resemble.
    """
    folder.mkdir(parents=True, exist_ok=True)
    duplicates = duplicates or NearDuplicates(limits.similarity)
    records: list[dict[str, object]] = []
    outputs = {
        False: (folder / TRAIN_FILE).open("w", encoding="utf-8"),
        True: (folder / HELD_OUT_FILE).open("w", encoding="utf-8"),
    }
    try:
        for package in sorted(packages, key=lambda one: (one.name in held_out, one.name)):
            is_held_out = package.name in held_out
            limit = limits.held_out_bytes if is_held_out else limits.package_bytes
            clean = [file for file in package.files if not overlaps(file.text, evaluation)]
            unique = list(remove_near_duplicates(clean, duplicates))
            # Sorted, because neighbours in a folder are shown beside each other (`training.fim.examples`).
            chosen = sorted(cap_bytes(unique, limit, package.name))
            for file in chosen:
                json.dump(file._asdict(), outputs[is_held_out])
                outputs[is_held_out].write("\n")
            records.append(
                {
                    "package": package.name,
                    "version": package.version,
                    "licence": package.licence,
                    "held_out": is_held_out,
                    "files": len(chosen),
                    "bytes": _size(chosen),
                    "overlapping_evaluation": len(package.files) - len(clean),
                    "near_duplicates": len(clean) - len(unique),
                    "near_duplicate_bytes": _size(clean) - _size(unique),
                    "over_cap": len(unique) - len(chosen),
                    "over_cap_bytes": _size(unique) - _size(chosen),
                    "sha256": _digest(chosen),
                }
            )
    finally:
        for output in outputs.values():
            output.close()
    summary: dict[str, object] = {
        "limits": {
            "package_bytes": limits.package_bytes,
            "held_out_bytes": limits.held_out_bytes,
            "similarity": limits.similarity,
        },
        "packages": records,
    }
    (folder / SOURCES_FILE).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return summary


def _size(files: Sequence[SourceFile]) -> int:
    return sum(len(file.text.encode()) for file in files)


def _digest(files: Sequence[SourceFile]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.path.encode() + b"\0" + file.text.encode() + b"\0")
    return digest.hexdigest()


def read_corpus(path: Path, step: str = "collect") -> list[SourceFile]:
    """Read what `write_corpus` wrote, or the same packed by `xz`.

    Raises TrainingError if neither is there; it names the step that writes it.
    """
    packed = path.with_name(f"{path.name}.xz")
    try:
        with lzma.open(packed, "rt", encoding="utf-8") if packed.exists() else path.open(encoding="utf-8") as lines:
            return [SourceFile(**json.loads(line)) for line in lines]
    except OSError as error:
        raise TrainingError(f"{path}: not found; run `{step}` first") from error
