"""Sources of Java packages: the jars of sources that Maven brings."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from fim_server.datasets.cutters import suffixes
from fim_server.datasets.licences import spdx_of_all
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.datasets.sources.tools import fetched, parts_of
from fim_server.errors import DatasetError, LimitError
from fim_server.language.limited_files import read_all

LANGUAGE = "java"

_NAME = re.compile(r"(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):(?P<version>[\w.+-]+)")

_ANCESTORS = 8
"""Parents of a package's description that are asked for its licences."""

_PROJECT = """\
<project>
<modelVersion>4.0.0</modelVersion>
<groupId>sources</groupId><artifactId>sources</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin>
<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
<configuration><outputDirectory>{folder}</outputDirectory><artifactItems>
{items}
</artifactItems></configuration>
</plugin></plugins></build>
</project>
"""

_ITEM = """\
<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>\
<type>{type}</type>{classifier}<destFileName>{name}</destFileName></artifactItem>
"""


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of a package of Maven's: group, artifact and version."""

    group: str
    artifact: str
    version: str

    @property
    def package(self) -> str:
        return f"{self.group}:{self.artifact}"

    def item(self, kind: str) -> str:
        """Return the request for a file: the jar of the sources, or the package's description."""
        classifier = "<classifier>sources</classifier>" if kind == "jar" else ""
        return _ITEM.format(
            group=self.group,
            artifact=self.artifact,
            version=self.version,
            type=kind,
            classifier=classifier,
            name=self.file(kind),
        )

    def file(self, kind: str) -> str:
        """Return the name of the file that Maven writes."""
        return f"{self.group}-{self.artifact}-{self.version}.{kind}"


class MavenSources(Source):
    """Packages at exact versions, in the order of their names as given."""

    name = "maven"

    def __init__(self, named: Sequence[str]) -> None:
        matches = parts_of(named, _NAME, "GROUP:ARTIFACT:VERSION")
        self._packages = [Coordinates(match["group"], match["artifact"], match["version"]) for match in matches]
        self._folder = TemporaryDirectory(prefix="fim-server-")
        folder = Path(self._folder.name)
        copy_files(folder, [item for one in self._packages for item in (one.item("jar"), one.item("pom"))])
        self._licences = licences_of(folder, self._packages)

    def __iter__(self) -> Iterator[SourceText]:
        for package in self._packages:
            try:
                with zipfile.ZipFile(self._jar(package)) as jar:
                    names = [name for name in jar.namelist() if name.endswith(suffixes(LANGUAGE))]
                    for name in sorted(names, key=lambda name: name.split("/")):
                        yield SourceText(
                            _read(jar, name), name, package.package, package.version, self._licences[package]
                        )
            except (OSError, zipfile.BadZipFile) as error:
                raise DatasetError(f"{package.package}: its sources cannot be read: {error}") from None

    def _jar(self, package: Coordinates) -> Path:
        return Path(self._folder.name) / package.file("jar")

    def pinned(self) -> dict[str, Any]:
        return {
            f"{one.package}:{one.version}": f"sha256:{hashlib.sha256(self._jar(one).read_bytes()).hexdigest()}"
            for one in self._packages
        }


def copy_files(folder: Path, items: Sequence[str]) -> None:
    """Have Maven copy files, each by its request, into a folder. Raises DatasetError where it fails."""
    (folder / "project.xml").write_text(_PROJECT.format(folder=folder, items="".join(items)), encoding="utf-8")
    fetched(["mvn", "-B", "-q", "-f", str(folder / "project.xml"), "dependency:copy"], "sources of Java", folder)


def _read(jar: zipfile.ZipFile, name: str) -> bytes | None:
    try:
        with jar.open(name) as file:
            return read_all(file)  # type: ignore[arg-type]  # it reads bytes
    except (OSError, LimitError, zipfile.BadZipFile):
        return None


def licences_of(folder: Path, packages: Sequence[Coordinates]) -> dict[Coordinates, str | None]:
    """Return the licences that the packages' descriptions in a folder name, or their parents where they name none."""
    found: dict[Coordinates, str | None] = dict.fromkeys(packages)
    asked = {package: package for package in packages}
    for _ in range(_ANCESTORS):
        parents: dict[Coordinates, Coordinates] = {}
        for package, described in asked.items():
            names, parent = _described(folder / described.file("pom"))
            if names:
                found[package] = spdx_of_all(names)
            elif parent is not None:
                parents[package] = parent
        if not parents:
            break
        copy_files(folder, [parent.item("pom") for parent in dict.fromkeys(parents.values())])
        asked = parents
    return found


def _described(path: Path) -> tuple[list[str], Coordinates | None]:
    """The licences that a description names, and its parent."""
    try:
        root = ElementTree.fromstring(re.sub(r'\sxmlns="[^"]*"', "", path.read_text(encoding="utf-8"), count=1))
    except (OSError, UnicodeDecodeError, ElementTree.ParseError) as error:
        raise DatasetError(f"{path.name}: cannot be read: {error}") from None
    names = [" ".join((name.text or "").split()) for name in root.findall("licenses/license/name")]
    parts = [(root.findtext(f"parent/{part}") or "").strip() for part in ("groupId", "artifactId", "version")]
    return names, Coordinates(*parts) if all(parts) else None
