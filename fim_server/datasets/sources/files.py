"""Files on this machine: folders, the standard library, installed packages."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

from fim_server.datasets.licences import licence_of
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.errors import DatasetError
from fim_server.language.limited_files import read_found

STANDARD_LIBRARY = "python-standard-library"

STANDARD_LIBRARY_LICENCE = "PSF-2.0"

LEFT_OUT_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})

_TEST_FOLDERS = frozenset({"test", "tests", "idle_test"})


@dataclass
class Tree(Source):
    """File, or all files of a language below a folder.

    Hidden folders, installed packages and links to folders are left out.
    """

    path: Path
    name: str
    without_tests: bool = False
    package: str | None = None
    version: str | None = None
    licence: str | None = None
    suffixes: tuple[str, ...] = (".py",)
    left_out: frozenset[str] = LEFT_OUT_FOLDERS

    def __iter__(self) -> Iterator[SourceText]:
        left_out = self.left_out | (_TEST_FOLDERS if self.without_tests else frozenset())
        found = [(self.path, self.name)] if self.path.is_file() else walk(self.path, self.suffixes, left_out)
        for path, relative in found:
            yield SourceText(read(path), relative, self.package, self.version, self.licence)


class StandardLibrary(Tree):
    """Standard library of the running interpreter, without its tests and installed packages."""

    def __init__(self) -> None:
        super().__init__(
            Path(sysconfig.get_paths()["stdlib"]),
            "stdlib",
            without_tests=True,
            package=STANDARD_LIBRARY,
            version=python_version(),
            licence=STANDARD_LIBRARY_LICENCE,
        )

    def pinned(self) -> dict[str, Any]:
        return {STANDARD_LIBRARY: self.version}


class Packages(Source):
    """Installed distributions, in the order of their names as given."""

    name = "packages"

    def __init__(self, names: Iterable[str]) -> None:
        self._distributions = []
        for name in names:
            try:
                self._distributions.append(metadata.distribution(name))
            except (metadata.PackageNotFoundError, ValueError):
                raise DatasetError(f"{name or 'packages:'}: not installed") from None
            if not any(file.suffix == ".py" for file in self._distributions[-1].files or []):
                raise DatasetError(f"{name}: its metadata list no Python files (an editable install is named as PATH)")

    def __iter__(self) -> Iterator[SourceText]:
        for distribution in self._distributions:
            licence = licence_of(distribution.metadata)
            for file in sorted(distribution.files or []):
                if file.suffix == ".py" and ".." not in file.parts:
                    content = read(Path(str(distribution.locate_file(file))))
                    yield SourceText(content, file.as_posix(), distribution.name, distribution.version, licence)

    def pinned(self) -> dict[str, Any]:
        return {distribution.name: distribution.version for distribution in self._distributions}


def read(path: Path) -> bytes | None:
    try:
        return read_found(path)
    except OSError:
        return None


def walk(folder: Path, suffix: str | tuple[str, ...], left_out: frozenset[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder and their names relative to it, sorted.

    It holds one folder's entries at a time.
    """

    def below(here: Path, prefix: str) -> Iterator[tuple[Path, str]]:
        try:
            with os.scandir(here) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            raise DatasetError(f"{here}: {error.strerror}") from None
        for name, is_folder in found:
            if is_folder:
                if not name.startswith(".") and name not in left_out:
                    yield from below(here / name, f"{prefix}{name}/")
            elif name.endswith(suffix):
                yield here / name, prefix + name

    return below(folder, "")
