"""Sources by the names that users give them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from fim_server.datasets.sources.npm import LANGUAGES as OF_NPM
from fim_server.datasets.sources.npm import NpmPackages
from fim_server.datasets.sources.source import Source
from fim_server.errors import DatasetError, LanguageError
from fim_server.language import Language
from fim_server.language.limited_files import read_found


class Fetched(NamedTuple):
    """Kind of named packages."""

    languages: tuple[str, ...]
    """Languages that they may be of; the first one is meant if nothing tells which."""
    open: Callable[[Sequence[str], str], Source]
    """Constructor, from the packages' names and a language."""


FETCHED: Mapping[str, Fetched] = {
    "packages": Fetched((PYTHON,), lambda names, language: Packages(names)),
    "go": Fetched((GO,), lambda names, language: GoModules(names)),
    "maven": Fetched((JAVA,), lambda names, language: MavenSources(names)),
    "crates": Fetched((RUST,), lambda names, language: Crates(names)),
    "npm": Fetched(OF_NPM, NpmPackages),
}
"""Kinds of packages, by the word before the colon."""

LIST_SUFFIX = ".toml"
"""Suffix of files that list packages."""


class Listed(NamedTuple):
    """Packages that a file lists, and the languages that they may be of."""

    kind: str
    names: list[str]
    languages: tuple[str, ...]


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
    languages = languages_of_packages(named)
    if languages and language not in languages:
        raise DatasetError(f"{named} is a source of {' or '.join(languages)}, not of {language}")
    if named == "stdlib":
        return StandardLibrary()
    kind, colon, rest = named.partition(":")
    if colon and kind in FETCHED:
        return FETCHED[kind].open([name.strip() for name in rest.split(",")], language)
    if named.startswith("hub:"):
        return open_hub(named, pinned or {}, language)
    path = Path(named)
    if not path.exists():
        others = ", ".join([*(f"{kind}:NAME,..." for kind in FETCHED), "stdlib"])
        raise DatasetError(f"{named}: no such file or folder (nor is it {others} or hub:OWNER/NAME)")
    if is_list(path):
        listed = read_list(path)
        source = FETCHED[listed.kind].open(listed.names, language)
        source.name = path.stem
        return source
    name = Path(os.path.abspath(path)).name or "/"  # noqa: PTH100  # as named: links are not followed
    own = suffixes(language)
    own_file = path.is_file() and path.name.endswith(own)
    if not own_file and (is_records(path) or (own and holds_records(path, own))):
        return Records([path], name)
    return Tree(path, name, suffixes=own or ("",))


def language_of(named: str) -> str | None:
    """Return the language of a source's packages or of a file's suffix; None where neither tells.

    Raises DatasetError for a file that should list packages and does not.
    """
    own = next(iter(languages_of_packages(named)), None)
    path = Path(named)
    if own is None and path.is_file() and not is_records(path):
        try:
            return Language.name_for_path(path)
        except LanguageError:
            return None
    return own


def languages_of_packages(named: str) -> tuple[str, ...]:
    """Return the languages that named or listed packages may be of, the likeliest first; empty for other sources.

    Raises DatasetError for a file that should list packages and does not.
    """
    if named == "stdlib":
        return (PYTHON,)
    kind, colon, _ = named.partition(":")
    if colon and kind in FETCHED:
        return FETCHED[kind].languages
    path = Path(named)
    return read_list(path).languages if is_list(path) else ()


def is_list(path: Path) -> bool:
    """Return whether a file lists packages, by its name."""
    return path.suffix == LIST_SUFFIX and path.is_file()


def read_list(path: Path) -> Listed:
    """Return the packages that a file lists. Raises DatasetError where it lists none."""
    try:
        rows = tomllib.loads(read_found(path).decode())
        language = rows.pop("language", None)
        ((kind, names),) = rows.items()
        if kind not in FETCHED or not names or not all(isinstance(name, str) for name in names):
            raise ValueError("one list expected: " + " or ".join(FETCHED))
        if language not in (None, *FETCHED[kind].languages):
            raise ValueError(f"{kind} has packages of {' or '.join(FETCHED[kind].languages)}")
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{path}: does not list packages: {' '.join(str(error).split())}") from None
    return Listed(kind, list(names), FETCHED[kind].languages if language is None else (language,))
