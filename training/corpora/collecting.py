"""Corpora, one a language: packages read, compared with all before them, split and written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from fim_server.errors import TrainingError
from training.corpora.lists import Named
from training.corpora.reading import LANGUAGES, ReadPackage, read_package
from training.data.corpus import SOURCES_FILE, CollectLimits, write_corpus
from training.data.overlap import NearDuplicates, remove_near_duplicates
from training.data.packages import Package, SourceFile

HELD_OUT_SHARE = 0.06
"""Share of a language's projects that is held out for validation."""

FEWEST_PROJECTS = 4
"""Projects of a language from which at least one is held out."""

DUPLICATES = "near-duplicates"
"""Reason for leaving out a file."""

_evaluation: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
"""Evaluation texts of a reading process, which receives them once instead of with each package."""


@dataclass(frozen=True)
class Sources:
    """Packages to learn from, packages that are only compared with, and the folder of their downloads."""

    packages: Sequence[Named]
    barred: Sequence[Named]
    downloads: Path


def collect_corpora(
    sources: Sources,
    evaluation: npt.NDArray[np.uint64],
    limits: CollectLimits,
    folder: Path,
    processes: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Write a corpus for each language below `folder`, and return the manifest of all, which lies beside them.

    A package that cannot be read, or has no permissive licence, is left out and named. The same downloads give the
    same bytes.

    Raises:
        TrainingError: A package that the corpora must not resemble is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    duplicates = NearDuplicates(limits.similarity)
    with TemporaryDirectory(prefix=".reading-", dir=folder) as name:
        read, left_out = _read_all(sources, evaluation, limits, Path(name), duplicates, processes, say)
        held_out = held_out_projects(read)
        summary: dict[str, Any] = {}
        for language in LANGUAGES:
            packages = _packages_of(language, read, Path(name))
            if packages:
                say(f"writing {language}: {len(packages)} packages")
                summary[language] = _write(language, packages, read, held_out, limits, folder / language, duplicates)
    manifest = {
        "languages": summary,
        "left_out": left_out,
        "packages": {
            one.named.key: {
                "version": one.named.version,
                "licences": one.licences,
                "archives": one.archives,
                "held_out": one.named.project in held_out,
            }
            for one in read
        },
    }
    (folder / SOURCES_FILE).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def held_out_projects(read: Iterable[ReadPackage]) -> frozenset[str]:
    """Choose the projects to hold out, by the hashes of their names, until every language has its share of them."""
    of_language: dict[str, set[str]] = defaultdict(set)
    for one in read:
        for language in one.dropped.keys() | one.files.keys():
            if language in one.files:
                of_language[language].add(one.named.project)
    chosen: set[str] = set()
    for language in LANGUAGES:
        projects = sorted(of_language[language], key=lambda name: hashlib.sha256(name.encode()).digest())
        wanted = round(HELD_OUT_SHARE * len(projects))
        if len(projects) >= FEWEST_PROJECTS:
            wanted = max(1, wanted)
        missing = wanted - len(chosen & of_language[language])
        chosen.update([name for name in projects if name not in chosen][: max(0, missing)])
    return frozenset(chosen)


def _read_all(
    sources: Sources,
    evaluation: npt.NDArray[np.uint64],
    limits: CollectLimits,
    folder: Path,
    duplicates: NearDuplicates,
    processes: int,
    say: Callable[[str], None],
) -> tuple[list[ReadPackage], dict[str, str]]:
    """Read the packages, keep their texts in a file for each language, and return the rest of what they say."""
    read: list[ReadPackage] = []
    left_out: dict[str, str] = {}
    with ProcessPoolExecutor(processes, initializer=_remember, initargs=(evaluation,)) as pool:
        for package, found in _in_order(pool, sources.barred, sources.downloads, limits, True):
            if isinstance(found, TrainingError):
                raise TrainingError(f"{found}, so that nothing can be compared with it") from found
            say(f"remembering {package.key}")
            for files in found.files.values():
                for _ in remove_near_duplicates(files, duplicates):
                    pass
        for package, found in _in_order(pool, sources.packages, sources.downloads, limits, False):
            if isinstance(found, TrainingError):
                left_out[package.key] = str(found)
                say(f"left out: {found}")
                continue
            for language, files in found.files.items():
                with (folder / language).open("a", encoding="utf-8") as lines:
                    for file in files:
                        lines.write(json.dumps(file) + "\n")
            # The texts lie on the disk now; which languages there are is still needed.
            read.append(replace(found, files={language: [] for language in found.files}))
    return read, left_out


def _in_order(
    pool: ProcessPoolExecutor, packages: Sequence[Named], downloads: Path, limits: CollectLimits, any_licence: bool
) -> Iterator[tuple[Named, ReadPackage | TrainingError]]:
    """Yield what is read of each package, a few packages ahead."""
    ahead = 8
    waiting = [pool.submit(_read, one, downloads, limits.read_bytes, any_licence) for one in packages[:ahead]]
    for number, package in enumerate(packages):
        if number + ahead < len(packages):
            waiting.append(pool.submit(_read, packages[number + ahead], downloads, limits.read_bytes, any_licence))
        try:
            yield package, waiting.pop(0).result()
        except TrainingError as error:
            yield package, error


def _remember(evaluation: npt.NDArray[np.uint64]) -> None:
    global _evaluation
    _evaluation = evaluation


def _read(package: Named, downloads: Path, most_bytes: int, any_licence: bool) -> ReadPackage:
    return read_package(package, downloads, most_bytes, _evaluation, any_licence)


def _packages_of(language: str, read: Sequence[ReadPackage], folder: Path) -> list[Package]:
    path = folder / language
    if not path.exists():
        return []
    files: dict[str, list[SourceFile]] = defaultdict(list)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            file = SourceFile(*json.loads(line))
            files[file.package].append(file)
    return [
        Package(
            one.named.key, one.named.version, " AND ".join(f"({name})" for name in one.licences), files[one.named.key]
        )
        for one in read
        if one.named.key in files
    ]


def _write(
    language: str,
    packages: Sequence[Package],
    read: Sequence[ReadPackage],
    held_out: frozenset[str],
    limits: CollectLimits,
    folder: Path,
    duplicates: NearDuplicates,
) -> dict[str, Any]:
    kept_out = frozenset(one.named.key for one in read if one.named.project in held_out)
    written = write_corpus(packages, kept_out, np.empty(0, np.uint64), limits, folder, duplicates)
    records: list[dict[str, Any]] = written["packages"]  # type: ignore[assignment]
    dropped: Counter[str] = Counter()
    for one in read:
        dropped.update(one.dropped.get(language, Counter()))
    dropped[DUPLICATES] += sum(record["near_duplicate_bytes"] for record in records)
    dropped["cap"] += sum(record["over_cap_bytes"] for record in records)
    return {
        "packages": sum(1 for record in records if record["files"]),
        "held_out_packages": sum(1 for record in records if record["files"] and record["held_out"]),
        "files": sum(record["files"] for record in records),
        "bytes": sum(record["bytes"] for record in records if not record["held_out"]),
        "held_out_bytes": sum(record["bytes"] for record in records if record["held_out"]),
        "dropped_bytes": dict(sorted(dropped.items())),
    }
