"""Reading packages: wheels, installed ones, folders, the standard library."""

from __future__ import annotations

import importlib.metadata
import itertools
import random
import sys
import sysconfig
import zipfile
from dataclasses import dataclass, field
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from fim_server.datasets.sources.files import STANDARD_LIBRARY, STANDARD_LIBRARY_LICENCE
from fim_server.errors import TrainingError
from training.data.filters import is_wanted_path, wanted_text
from training.data.licences import is_permissive_expression, permissive_licence


class SourceFile(NamedTuple):
    """One Python file: `path` is relative to its package's root, `text` is decoded UTF-8."""

    package: str
    path: str
    text: str


@dataclass
class Package:
    """A source of files under one licence."""

    name: str
    version: str
    licence: str
    files: list[SourceFile] = field(default_factory=list)


def read_wheel(path: Path, most_bytes: int | None = None) -> Package:
    """Read one wheel: all of it, or files chosen at random, reproducibly, of `most_bytes` bytes together.

    Raises TrainingError if it is no wheel or states no permissive licence.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            described = [name for name in names if name.endswith(".dist-info/METADATA")]
            if not described:
                raise TrainingError(f"{path.name}: no METADATA, so not a wheel")
            metadata = Parser().parsestr(archive.read(described[0]).decode("utf-8", "replace"))
            package = _described_package(metadata, path.name)
            wanted = sorted((entry for entry in archive.infolist() if is_wanted_path(entry.filename)), key=_file_name)
            if most_bytes is not None:
                random.Random(package.name).shuffle(wanted)
                sizes = itertools.accumulate(entry.file_size for entry in wanted)
                wanted = [entry for entry, size in zip(wanted, sizes, strict=True) if size <= most_bytes]
            for entry in wanted:
                _add_file(package, entry.filename, archive.read(entry))
    except zipfile.BadZipFile as error:
        raise TrainingError(f"{path.name}: not a zip archive") from error
    return package


def _file_name(entry: zipfile.ZipInfo) -> str:
    return entry.filename


def read_installed(name: str) -> Package:
    """Read a package that this interpreter can import.

    Raises TrainingError if it is not installed or states no permissive licence.
    """
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise TrainingError(f"{name}: not installed") from error
    metadata = Parser().parsestr(distribution.read_text("METADATA") or "")
    package = _described_package(metadata, name)
    for entry in distribution.files or []:
        if is_wanted_path(entry.as_posix()):
            located = Path(str(distribution.locate_file(entry)))
            if located.is_file():
                _add_file(package, entry.as_posix(), located.read_bytes())
    return package


def read_folder(folder: Path, name: str, version: str, licence: str) -> Package:
    """Read every Python file below a folder; the caller vouches for the SPDX licence.

    Raises TrainingError if the folder is missing or the licence is not permissive.
    """
    if not folder.is_dir():
        raise TrainingError(f"{folder}: no such folder")
    if not is_permissive_expression(licence):
        raise TrainingError(f"{name}: licence {licence!r} is not permissive")
    package = Package(name, version, licence)
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder).as_posix()
        if is_wanted_path(relative):
            _add_file(package, relative, path.read_bytes())
    return package


def read_standard_library() -> Package:
    """Read the running interpreter's standard library."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    version = ".".join(str(part) for part in sys.version_info[:3])
    return read_folder(folder, STANDARD_LIBRARY, version, STANDARD_LIBRARY_LICENCE)


def _described_package(metadata: Message, fallback: str) -> Package:
    name = metadata.get("Name", fallback).lower()
    licence = permissive_licence(metadata)
    if licence is None:
        stated = metadata.get("License-Expression") or metadata.get("License") or "not stated"
        first_line = stated.strip().split("\n")[0][:60]
        raise TrainingError(f"{name}: no permissive licence ({first_line})")
    return Package(name, metadata.get("Version", "unknown"), licence)


def _add_file(package: Package, path: str, content: bytes) -> None:
    text = wanted_text(content)
    if text is not None:
        package.files.append(SourceFile(package.name, path, text))
