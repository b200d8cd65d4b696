"""Sources by the names that users give them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.cutters import PYTHON, suffixes
from fim_server.datasets.sources.corpora import Records, holds_records, is_records
from fim_server.datasets.sources.crates import LANGUAGE as RUST
from fim_server.datasets.sources.crates import Crates
from fim_server.datasets.sources.files import Packages, StandardLibrary, Tree
from fim_server.datasets.sources.go_modules import LANGUAGE as GO
from fim_server.datasets.sources.go_modules import GoModules
from fim_server.datasets.sources.hub import open_hub
from fim_server.datasets.sources.maven import LANGUAGE as JAVA
from fim_server.datasets.sources.maven import MavenSources
from fim_server.datasets.sources.npm import LANGUAGE as JSON
from fim_server.datasets.sources.npm import NpmPackages
from fim_server.datasets.sources.source import Source
from fim_server.errors import DatasetError, LanguageError
from fim_server.language import Language
from fim_server.language.limited_files import read_found

FETCHED: Mapping[str, tuple[str, Callable[[Sequence[str]], Source]]] = {
    "packages": (PYTHON, Packages),
    "go": (GO, GoModules),
    "maven": (JAVA, MavenSources),
    "crates": (RUST, Crates),
    "npm": (JSON, NpmPackages),
}
"""Languages and constructors of sources, by the word before the colon."""

LIST_SUFFIX = ".toml"
"""Suffix of files that list packages."""


def open_source(named: str, pinned: Mapping[str, Any] | None = None, language: str = PYTHON) -> Source:
    """Open the source that a user names.

    A name is PATH, ``stdlib``, ``packages:NAME,...``, ``go:MODULE@VERSION,...``, ``maven:GROUP:ARTIFACT:VERSION,...``,
    ``crates:NAME@VERSION,...``, ``npm:NAME@VERSION,...``, ``hub:OWNER/NAME[@REVISION][=PATH]`` or a file that lists
    packages.

    Args:
        named: The name.
        pinned: The source's `Source.pinned` at the beginning of a build that goes on.
        language: Language of the files.

    Raises:
        DatasetError: There is no such source, or it is one of another language.
    """
    own = language_of_packages(named)
    if own is not None and own != language:
        raise DatasetError(f"{named} is a source of {own}, not of {language}")
    if named == "stdlib":
        return StandardLibrary()
    kind, colon, rest = named.partition(":")
    if colon and kind in FETCHED:
        return FETCHED[kind][1]([name.strip() for name in rest.split(",")])
    if named.startswith("hub:"):
        return open_hub(named, pinned or {}, language)
    path = Path(named)
    if not path.exists():
        others = ", ".join([*(f"{kind}:NAME,..." for kind in FETCHED), "stdlib"])
        raise DatasetError(f"{named}: no such file or folder (nor is it {others} or hub:OWNER/NAME)")
    if is_list(path):
        kind, packages = read_list(path)
        source = FETCHED[kind][1](packages)
        source.name = path.stem
        return source
    name = Path(os.path.abspath(path)).name or "/"  # noqa: PTH100  # as named: links are not followed
    own_file = path.is_file() and path.name.endswith(suffixes(language))
    if not own_file and (is_records(path) or holds_records(path, suffixes(language))):
        return Records([path], name)
    return Tree(path, name, suffixes=suffixes(language))


def language_of(named: str) -> str | None:
    """Return the language of a source's packages or of a file's suffix; None where neither tells.

    Raises DatasetError for a file that should list packages and does not.
    """
    own = language_of_packages(named)
    path = Path(named)
    if own is None and path.is_file() and not is_records(path):
        try:
            return Language.name_for_path(path)
        except LanguageError:
            return None
    return own


def language_of_packages(named: str) -> str | None:
    """Return the language of named or listed packages, and of the standard library; None for other sources.

    Raises DatasetError for a file that should list packages and does not.
    """
    if named == "stdlib":
        return PYTHON
    kind, colon, _ = named.partition(":")
    if colon and kind in FETCHED:
        return FETCHED[kind][0]
    path = Path(named)
    return FETCHED[read_list(path)[0]][0] if is_list(path) else None


def is_list(path: Path) -> bool:
    """Return whether a file lists packages, by its name."""
    return path.suffix == LIST_SUFFIX and path.is_file()


def read_list(path: Path) -> tuple[str, list[str]]:
    """Return the kind of the packages in a list, and their names. Raises DatasetError where it is none."""
    try:
        rows = tomllib.loads(read_found(path).decode())
        ((kind, names),) = rows.items()
        if kind not in FETCHED or not names or not all(isinstance(name, str) for name in names):
            raise ValueError("one list expected: " + " or ".join(FETCHED))
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{path}: does not list packages: {' '.join(str(error).split())}") from None
    return kind, list(names)
