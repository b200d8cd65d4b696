"""Versions of a language: the lines of its definition that each one has, and the version that a project asks for.

The versions are data of the language, the table `[versions]` of its TOML file. Markers in both files tell since or
until which version a line holds.
"""

import json
import logging
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from fim_server.errors import LanguageError
from fim_server.language.definition import bounds
from fim_server.language.manifests import LONGEST_PATH, REMEMBERED, parse_toml, read_manifest, stamp_of

NEWEST = "newest"

MEANINGS = ("range", "level", "name")
"""Meanings of a version in a project's file."""

logger = logging.getLogger(__name__)

_MARKER = re.compile(r"(?://|#) (?=since|until)(?:since (?P<since>\S+))? ?(?:until (?P<until>\S+))?\s*$")

_MOST_SPECIFIERS = 200
"""Most characters of a version in a manifest; longer ones are ignored."""

_MOST_DIGITS = 10
"""Digits of a number in a version."""


@dataclass(frozen=True)
class ProjectFile:
    """File of a user's project that tells the versions of a language.

    Attributes:
        name: The file's name.
        key: Key of the version in a TOML or JSON file, from the outermost table inwards; empty if patterns find it.
        patterns: Regular expressions with one group, tried in order on the file's text.
        means: `range`: a range of versions; `level`: the one that counts, such as an edition; `name`: its name.
        without: Version of a file that has the key's table, and not the key; None if it tells nothing then.
        inherited: Key in a project further up, for projects that refer to it by a table in the place of a text.
        values: Values that count; empty if all do.
    """

    name: str
    key: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    means: str = "range"
    without: str | None = None
    inherited: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, row: dict[str, Any]) -> Self:
        """Read one row of `versions.project`.

        Raises AttributeError, KeyError, TypeError, re.error: it lacks a field, or a field is wrong.
        """
        patterns = tuple(re.compile(text) for text in row.get("patterns", ()))
        key = () if patterns else tuple(map(str, row["key"]))
        if any(pattern.groups != 1 for pattern in patterns):
            raise TypeError("patterns have one group each")
        if row.get("means", "range") not in MEANINGS:
            raise TypeError(f"means is {' or '.join(MEANINGS)}")
        without = row.get("without")
        return cls(
            str(row["file"]),
            key,
            patterns,
            row.get("means", "range"),
            None if without is None else str(without),
            tuple(map(str, row.get("inherited", ()))),
            tuple(map(str, row.get("values", ()))),
        )

    def read(self, text: str) -> "Named":
        """Return the version that a file's text names.

        Raises ValueError if the text is not TOML or JSON, as its file's name tells, or exceeds a limit.
        """
        if self.patterns:
            return Named(next((found[1] for pattern in self.patterns if (found := pattern.search(text))), None))
        # A text without the key names no version; a parser would only take time, much of it for a hostile file.
        named = {*self.key[-1:], *self.inherited[-1:], *(self.key[-2:-1] if self.without is not None else ())}
        parse = json.loads if self.name.endswith(".json") else parse_toml
        tables = parse(text) if any(word in text for word in named) else {}
        version = _at(self.key, tables)
        has_table = isinstance(_at(self.key[:-1], tables), dict)
        inherits = _at(self.inherited, tables) if self.inherited else None
        return Named(_small(version), self.without if version is None and has_table else None, _small(inherits))

    def version(self, known: tuple[str, ...], value: object) -> str | None:
        """Return the known version that a value in a file names, or None."""
        if not isinstance(value, str) or len(value) > _MOST_SPECIFIERS or (self.values and value not in self.values):
            return None
        if self.means == "name":
            return value if value in known else None
        return _at_most(known, value) if self.means == "level" else bounds.oldest(known, value)


@dataclass(frozen=True)
class Named:
    """Version that a project's file names.

    Attributes:
        version: A text, a table that refers to another project, another value, or None.
        without_key: Version of a file that has the table without the key.
        inherits: Value for projects that refer to this one, or None.
    """

    version: object = None
    without_key: str | None = None
    inherits: object = None


@dataclass(frozen=True)
class Versions:
    """Versions of one language.

    Attributes:
        language: Its name.
        known: Oldest first, the last one is the newest; empty if the language has no versions.
        default: The version of a file whose project tells none; None if it is the newest.
        suffixes: By suffix of a file, the version that it has in every project.
        project: Files in which a user's project tells the versions it supports; the first that exists counts. Of rows
            for one file, the first whose key is there counts.
    """

    language: str
    known: tuple[str, ...] = ()
    project: tuple[ProjectFile, ...] = ()
    default: str | None = None
    suffixes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Read the optional table `[versions]` of a language.

        Raises LanguageError if the table lacks a field, or a field has the wrong type.
        """
        language, table = str(spec.get("name")), spec.get("versions")
        if table is None:
            return cls(language)
        try:
            known, project = tuple(map(str, table["known"])), table.get("project", [])
            rows = [project] if isinstance(project, dict) else project
            default, suffixes = table.get("default"), tuple(dict(table.get("suffixes", {})).items())
            found = cls(language, known, tuple(map(ProjectFile.from_spec, rows)), default, suffixes)
            for version in (*([] if default is None else [default]), *(version for _, version in suffixes)):
                if version not in known:
                    raise TypeError(f"{version!r} is not among the known")
            return found
        except (AttributeError, KeyError, TypeError, re.error) as error:
            raise LanguageError(f"language {language}: [versions] is incomplete: {error}") from error

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the versions to choose from, with the default one as the last."""
        if self.default is None:
            return self.known
        return (*(version for version in self.known if version != self.default), self.default)

    def narrowed(self, version: str | None) -> str | None:
        """Return the version to which a definition is to be narrowed; None for the default one, which needs none.

        Raises LanguageError if there is no such version.
        """
        if version is None or version == NEWEST or version in self.choices[-1:]:
            return None
        if not self.known:
            raise LanguageError(f"{self.language} has no versions to choose from ({version!r} was asked for)")
        if version not in self.known:
            raise LanguageError(f"{self.language} has no version {version!r}; known: {', '.join(self.known)}")
        return version

    def select(self, text: str, version: str | None) -> str:
        """Return a text with the lines emptied that the version (None: the default) does not have; line numbers stay.

        Raises LanguageError if a marker names an unknown version.
        """
        if not self.known:
            return text
        index = self.known.index(version or self.choices[-1])
        return "\n".join(line if self._has(index, line) else "" for line in text.split("\n"))

    def _has(self, index: int, line: str) -> bool:
        marker = _MARKER.search(line)
        if marker is None:
            return True
        since, until = marker["since"], marker["until"]
        for version in (since, until):
            if version is not None and version not in self.known:
                raise LanguageError(f"language {self.language}: no version {version!r}, as in {line.strip()!r}")
        return (since is None or self.known.index(since) <= index) and (
            until is None or index <= self.known.index(until)
        )

    def of_project(self, path: Path) -> str | None:
        """Return the version that a file's project asks for: the oldest it supports, because the code has to run there.

        The file's suffix may tell it. None if there is no such project, or its file cannot be read or names none: then
        the default is as good as any. Files that are searched by patterns and name none leave it to those in folders
        further up.
        """
        for suffix, version in self.suffixes:
            if path.name.endswith(suffix):
                return version
        waiting: ProjectFile | None = None  # one that refers to a project further up
        absolute = path.absolute()
        if len(os.fspath(absolute)) > LONGEST_PATH:  # its folders are as many
            return None
        for folder in absolute.parents:
            for number, row in enumerate(self.project):
                if waiting is not None and row is not waiting:
                    continue
                file = folder / row.name
                stamp = stamp_of(file)
                if stamp is None:
                    continue
                found = _read(row, os.fspath(file), stamp)
                if found is None:
                    return None
                named = found.version if waiting is None else found.inherits
                if waiting is not None and named is None:
                    continue
                if isinstance(named, dict) and row.inherited and waiting is None:
                    waiting = row
                    continue
                if named is None and (row.patterns or self._reads_again(row, number)):
                    continue
                return found.without_key if named is None else row.version(self.known, named)
        return None

    def _reads_again(self, row: ProjectFile, number: int) -> bool:
        """Return whether a row behind a numbered one looks for another key in its file."""
        return row.without is None and any(other.name == row.name for other in self.project[number + 1 :])


@lru_cache(REMEMBERED)
def _read(row: ProjectFile, path: str, stamp: tuple[int, ...]) -> Named | None:
    """Return the version in a project's file, read once for each stamp; log an unfit file in a line, return None."""
    try:
        return row.read(read_manifest(path))
    except OSError as error:
        reason = error.strerror
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
    logger.warning("%r: %.200s; the default version of the language is used", path, reason)
    return None


def _at(key: tuple[str, ...], tables: object) -> object:
    for part in key:
        tables = tables.get(part) if isinstance(tables, dict) else None
    return tables


def _small(value: object) -> object:
    """Return a value for remembering: a text up to a length, a table without its contents, or False for others.

    A list of texts becomes one of alternatives.
    """
    if isinstance(value, dict):
        return {}
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = "||".join(value)
    return value if value is None or (isinstance(value, str) and len(value) <= _MOST_SPECIFIERS) else False


@lru_cache(REMEMBERED)
def _at_most(known: tuple[str, ...], level: str) -> str | None:
    """Return the newest known version up to a level such as `17`, or the oldest; None if it is no number."""
    parts = level.strip().split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < _MOST_DIGITS for part in parts):
        return None
    wanted = tuple(map(int, parts))
    older = [version for version in known if tuple(map(int, version.split("."))) <= wanted]
    return older[-1] if older else known[0]
