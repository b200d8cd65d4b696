"""Reading a downloaded package: its files that are worth learning from, by language."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from fim_server.datasets.sources.written import is_written
from fim_server.errors import TrainingError
from fim_server.language.definition.paths import by_suffix
from training.corpora.archives import Member, members
from training.corpora.downloads import LEFT_OUT_FILE, LICENCE_FILE
from training.corpora.licensing import DESCRIPTIONS, denies, licence_of_package
from training.corpora.lists import Named
from training.data.corpus import cap_bytes
from training.data.filters import (
    GENERATED,
    MAX_FILE_BYTES,
    SIZE,
    Unwanted,
    is_wanted_source,
    learnable_text,
    parse_python,
)
from training.data.overlap import overlaps
from training.data.packages import SourceFile

LANGUAGES = (
    *("python", "javascript", "jsx", "typescript", "tsx", "go", "java", "kotlin", "rust", "c", "cpp", "csharp", "php"),
    *("ruby", "shellscript", "sql", "html", "css", "scss", "yaml", "lua", "swift", "dart", "scala", "zig", "r"),
)
"""Languages with a corpus of their own."""

HEADERS = ".h"
"""Suffix of files of C or C++."""

TESTS, LICENCE, OVERLAP, CAP = "tests, vendored or compiled", "licence", "evaluation text", "cap"
"""Reasons for leaving out a file, beside those of the filters."""

_NO_ARCHIVES = frozenset({".asc", ".dsc", ".txt"})

_ORIG = re.compile(r"\.orig-([\w-]+)\.tar\.")


@dataclass
class ReadPackage:
    """Files of a package by language, and what was left out: bytes by language and reason.

    `licences`: of its files, together. `archives`: their SHA-256.
    """

    named: Named
    files: dict[str, list[SourceFile]] = field(default_factory=lambda: defaultdict(list))
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    licences: list[str] = field(default_factory=list)
    archives: dict[str, str] = field(default_factory=dict)


def read_package(
    named: Named, downloads: Path, most_bytes: int, evaluation: npt.NDArray[np.uint64], any_licence: bool = False
) -> ReadPackage:
    """Read a package: per language all its wanted files, or some of `most_bytes` chosen at random, reproducibly.

    `any_licence`: the files are only to be compared with, so that neither licence nor evaluation texts matter.

    Raises TrainingError where it is not there or damaged, or states no permissive licence.
    """
    folder = downloads / named.folder
    if not folder.is_dir() or (folder / LEFT_OUT_FILE).exists():
        raise TrainingError(f"{named.key}: not there")
    found = ReadPackage(named)
    texts: dict[str, tuple[str, str]] = {}
    described: dict[str, bytes] = {}
    for path, member in _all_members(named, folder, found.archives):
        if DESCRIPTIONS[named.kind].fullmatch(path) and member.content is not None:
            described[path] = member.content
        language = HEADERS if path.endswith(HEADERS) else language_of(path)
        if language is None:
            continue
        try:
            texts[path] = language, _learnable(path, member, language)
        except Unwanted as reason:
            found.dropped[language][str(reason)] += member.size
    beside = folder / LICENCE_FILE
    licence_of = licence_of_package(
        named.kind, described, beside.read_text(encoding="utf-8") if beside.is_file() else None
    )
    permitted: dict[str, list[SourceFile]] = defaultdict(list)
    licences: dict[str, str] = {}
    headers = _language_of_headers(language for language, _ in texts.values())
    found.dropped[headers].update(found.dropped.pop(HEADERS, Counter()))
    for path, (stated, text) in texts.items():
        language = headers if stated == HEADERS else stated
        licence = "any" if any_licence else licence_of(path)
        if licence is None or (not any_licence and denies(text)):
            found.dropped[language][LICENCE] += len(text)
        else:
            permitted[language].append(SourceFile(named.key, path, text))
            licences[path] = licence
    if texts and not permitted:
        raise TrainingError(f"{named.key}: no permissive licence")
    for language, files in permitted.items():
        chosen = cap_bytes(files, most_bytes, named.key)
        clean = sorted(file for file in chosen if any_licence or not overlaps(file.text, evaluation))
        if clean:
            found.files[language] = clean
        found.dropped[language].update({CAP: _size(files) - _size(chosen), OVERLAP: _size(chosen) - _size(clean)})
    found.licences = sorted({licences[file.path] for files in found.files.values() for file in files})
    return found


def _size(files: Iterable[SourceFile]) -> int:
    return sum(len(file.text) for file in files)


def language_of(path: str) -> str | None:
    """Return the language of a file by its name, if there is a corpus of it."""
    language = by_suffix(PurePosixPath(path).name)
    return language if language in LANGUAGES else None


def _learnable(path: str, member: Member, language: str) -> str:
    if not is_wanted_source(path):
        raise Unwanted(TESTS)
    if member.content is None:
        raise Unwanted(SIZE)
    if not is_written(path, member.content):
        raise Unwanted(GENERATED)
    text = learnable_text(member.content)
    if language == "python":
        parse_python(text)
    return text


def _language_of_headers(languages: Iterable[str]) -> str:
    """Return C for a package with more files of C than of C++, else C++."""
    count = Counter(languages)
    return "c" if count["c"] > count["cpp"] else "cpp"


def _all_members(named: Named, folder: Path, digests: dict[str, str]) -> Iterator[tuple[str, Member]]:
    """Yield the files of all archives of a package by their paths in it, and note the archives' digests."""
    archives = [
        path for path in sorted(folder.iterdir()) if path.suffix not in _NO_ARCHIVES and ".diff." not in path.name
    ]
    for archive in archives:
        with archive.open("rb") as file:
            digests[archive.name] = hashlib.file_digest(file, "sha256").hexdigest()
        is_debian = named.kind == "debian"
        inside = _ORIG.search(archive.name) if is_debian else None
        is_packaging = is_debian and ".debian.tar." in archive.name
        strip = 0 if named.kind in ("maven", "wheels") or is_packaging else 1
        prefix = f"{named.name}@{named.version}/" if named.kind == "go" else ""
        for member in members(archive, MAX_FILE_BYTES):
            path = member.path.removeprefix("./")
            path = path.removeprefix(prefix) if prefix else "/".join(path.split("/")[strip:])
            if is_packaging and path != "debian/copyright":
                continue
            yield (f"{inside[1]}/{path}" if inside else path), member
