"""Files in packages of npm's registry: JSON, such as manifests, schemas and themes, and source code."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fim_server.datasets.cutters import suffixes
from fim_server.datasets.licences import spdx
from fim_server.datasets.sources.files import LEFT_OUT_FOLDERS
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.datasets.sources.tools import fetched, parts_of
from fim_server.datasets.sources.written import is_written
from fim_server.errors import DatasetError, LimitError
from fim_server.language.limited_files import read_all

JSON = "json"
LANGUAGES = (JSON, "javascript", "jsx", "typescript", "tsx")
"""Languages of the packages' files, the one that nothing else tells first."""

_JSX = "jsx"
_ELEMENT = re.compile(rb"</[\w.-]*>|/>")
"""End of an element of JSX, by which files of JavaScript with elements are known; most have that suffix."""

_NAME = re.compile(r"(?P<name>(@\w[\w.-]*/)?\w[\w.-]*)@(?P<version>\d+\.\d+\.\d+[\w.+-]*)")


class NpmPackages(Source):
    """Packages at exact versions, in the order of their names as given."""

    name = "npm"

    def __init__(self, named: Sequence[str], language: str = JSON) -> None:
        """Fetch the packages, whose files of a language are read. Raises DatasetError where npm fails."""
        self._language = language
        self._suffixes = suffixes(language) + ((".js",) if language == _JSX else ())
        wanted = {(match["name"], match["version"]): match for match in parts_of(named, _NAME, "NAME@VERSION")}
        self._folder = TemporaryDirectory(prefix="fim-server-")
        folder = Path(self._folder.name)
        command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(folder), "--"]
        told = fetched([*command, *(match[0] for match in wanted.values())], "packages of npm", folder)
        try:
            packed = {(one["name"], one["version"]): one for one in json.loads(told)}
        except (ValueError, TypeError, KeyError):
            raise DatasetError(
                "packages of npm cannot be fetched: npm says something else than what it packed"
            ) from None
        self._packages = []
        for key, match in wanted.items():
            if key not in packed:
                raise DatasetError(f"{match[0]}: no package of this name and version came")
            self._packages.append(packed[key])

    def __iter__(self) -> Iterator[SourceText]:
        for package in self._packages:
            try:
                with tarfile.open(self._unpacked(package["filename"]), "r:") as archive:
                    # Whatever the folder that holds everything is called; npm leaves it away as well.
                    files = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
                    licence = _licence(_read(archive, files.get("package.json")))
                    names = [name for name in files if name.endswith(self._suffixes) and not _left_out(name)]
                    for name in sorted(names, key=lambda name: name.split("/")):
                        content = _read(archive, files[name])
                        if content is None or self._is_own(name, content):
                            yield SourceText(content, name, package["name"], package["version"], licence)
            except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
                raise DatasetError(f"{package['name']}: its files cannot be read: {error}") from None

    def _is_own(self, name: str, content: bytes) -> bool:
        """Return whether a file is of the language, and in no other form than its authors gave it."""
        if self._language == JSON:
            return True
        of_language = self._language != _JSX or name.endswith(".jsx") or _ELEMENT.search(content) is not None
        return of_language and is_written(name, content)

    def _unpacked(self, filename: str) -> Path:
        """Return a package's archive without compression, in which a file is found without reading all before it."""
        packed = Path(self._folder.name) / filename
        unpacked = packed.with_suffix(".tar")
        if not unpacked.exists():
            with gzip.open(packed) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target)
        return unpacked

    def pinned(self) -> dict[str, Any]:
        return {f"{one['name']}@{one['version']}": one["integrity"] for one in self._packages}


def _left_out(name: str) -> bool:
    return not LEFT_OUT_FOLDERS.isdisjoint(name.split("/")[:-1])


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo | None) -> bytes | None:
    file = archive.extractfile(member) if member is not None else None
    if file is None:
        return None
    try:
        with file:
            return read_all(file)  # type: ignore[arg-type]  # it reads bytes
    except (OSError, LimitError):
        return None


def _licence(manifest: bytes | None) -> str | None:
    """Return the licence in a package's manifest, if it is an expression."""
    try:
        stated = json.loads(manifest or b"").get("license")
    except (ValueError, AttributeError):
        return None
    return spdx(stated) if isinstance(stated, str) else None
