"""Lists of packages: those to learn from, and those that no model may learn from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fim_server.datasets.sources.named import read_list
from fim_server.errors import DatasetError, TrainingError
from training.options import HELD_OUT

KINDS = ("crates", "debian", "go", "maven", "npm", "wheels")
"""Registries, by the word that lists use."""

BARRED_USES = ("reported", "choosing")
"""Uses of the lists in `datasets` that no model may learn from."""

SUGGESTION_USES = ("fit", "develop", "report")
"""Sets of a list in `datasets/suggestions`."""

OLDER = "older"
"""Older releases of packages of these sets."""

_GO_MAJOR = re.compile(r"/v\d+$")


class Named(NamedTuple):
    """Package at an exact version."""

    kind: str
    name: str
    version: str

    @property
    def key(self) -> str:
        """Registry and name, without a version and, for Go, without the major version in the path."""
        return f"{self.kind}:{_GO_MAJOR.sub('', self.name) if self.kind == 'go' else self.name}"

    @property
    def project(self) -> str:
        """Key of the project: packages of one npm scope, Maven group or Go repository belong together."""
        kind, _, name = self.key.partition(":")
        if kind == "npm" and name.startswith("@"):
            return f"{kind}:{name.partition('/')[0]}"
        if kind == "maven":
            return f"{kind}:{name.partition(':')[0]}"
        if kind == "go":
            return f"{kind}:{'/'.join(name.split('/')[:3])}"
        return f"{kind}:{name}"

    @property
    def folder(self) -> str:
        """Path of the package's folder among downloads."""
        return f"{self.kind}/{re.sub('[/:]', '+', f'{self.name}@{self.version}')}"


def parse(kind: str, text: str) -> Named:
    """Read NAME@VERSION, or GROUP:ARTIFACT:VERSION for Maven. Raises TrainingError for another form."""
    name, mark, version = text.rpartition(":" if kind == "maven" else "@")
    if not (mark and name and version) or kind not in KINDS:
        raise TrainingError(f"{kind} {text!r}: a registry of {', '.join(KINDS)} and NAME@VERSION expected")
    return Named(kind, name, version)


def read_packages(folder: Path) -> list[Named]:
    """Read the lists in a folder, one file a registry: distinct packages, sorted."""
    found: list[Named] = []
    for path in sorted(folder.glob("*.toml")):
        for kind, names in _rows(path).items():
            found += [parse(kind, name) for name in names]
    if not found:
        raise TrainingError(f"{folder}: no lists of packages")
    return _distinct(found)


def read_suggestions(folder: Path) -> dict[tuple[str, str], list[Named]]:
    """Read the lists of projects that suggestions are measured on: packages by language and set."""
    found = {}
    for path in sorted(folder.glob("*.toml")):
        rows = _rows(path)
        kind = str(rows.pop("registry", ""))
        for use, names in rows.items():
            found[path.stem, use] = [parse(kind, name) for name in names]
    return found


def read_barred(datasets: Path, wheels: Path) -> list[Named]:
    """Read the packages that no model may learn from: distinct, sorted.

    The lists for reported figures and for choosing name them, the sets for suggestions, and `HELD_OUT` for Python, at
    the versions in a file of NAME==VERSION lines.
    """
    found: list[Named] = []
    try:
        for use in BARRED_USES:
            for path in sorted(datasets.glob(f"*-{use}.toml")):
                listed = read_list(path)
                found += [parse(listed.kind, name) for name in listed.names]
    except DatasetError as error:
        raise TrainingError(str(error)) from error
    for (_, use), packages in read_suggestions(datasets / "suggestions").items():
        found += packages if use != OLDER else []
    return _distinct([*found, *(one for one in _listed_wheels(wheels) if one.name in HELD_OUT)])


def read_wheels(path: Path) -> list[Named]:
    """Read a file of NAME==VERSION lines, without the packages that `collect` holds out."""
    return [one for one in _listed_wheels(path) if one.name not in HELD_OUT]


def _listed_wheels(path: Path) -> Iterator[Named]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TrainingError(f"{path}: {error.strerror}") from error
    for line in lines:
        name, mark, version = line.partition("==")
        if mark and not name.startswith("#"):
            yield Named("wheels", name, version)


def refuse_barred(packages: Iterable[Named], barred: Iterable[Named]) -> None:
    """Raise TrainingError that names the packages that no model may learn from."""
    keys = {one.key for one in barred}
    both = sorted({one.key for one in packages} & keys)
    if both:
        raise TrainingError(f"measured, so not to be trained on: {', '.join(both)}")


def _rows(path: Path) -> dict[str, list[str]]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path}: {error}") from error


def _distinct(packages: Iterable[Named]) -> list[Named]:
    """Sort packages. Raises TrainingError where one is named in two versions."""
    return sorted(set(_one_version(packages)))


def _one_version(packages: Iterable[Named]) -> Iterator[Named]:
    versions: dict[str, str] = {}
    for one in packages:
        if versions.setdefault(f"{one.kind}:{one.name}", one.version) != one.version:
            raise TrainingError(f"{one.kind}:{one.name}: named in two versions")
        yield one
