"""Versions of a language: which lines of its definition each one has, and which one a project asks for.

The versions are data of the language, the table `[versions]` of its TOML file; so are the markers that say since or
until which version a line of either file holds.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from fim_server.errors import LanguageError
from fim_server.language.limited_files import read_found

NEWEST = "newest"

_MARKER = re.compile(r"(?://|#) (?=since|until)(?:since (?P<since>\S+))? ?(?:until (?P<until>\S+))?\s*$")

_MOST_PROJECT_BYTES, _MOST_SPECIFIERS = 1 << 20, 1000
"""Bytes of a project's file, and characters of what it says of versions, up to which they are looked at."""

_PATCHES = 100
"""Patch releases tried of each version: no known language has had so many of one."""


@dataclass(frozen=True)
class Versions:
    """The versions of one language.

    Attributes:
        language: Its name.
        known: Oldest first, the last one is the newest; empty if the language has no versions.
        project_file: The name of a project's file that says which versions the project supports; None if there is none.
        project_key: Where in that file, from the outermost table inwards.
    """

    language: str
    known: tuple[str, ...] = ()
    project_file: str | None = None
    project_key: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Reads the table `[versions]`, which a language need not have.

        Raises:
            LanguageError: The table lacks a field, or a field has the wrong type.
        """
        language, table = str(spec.get("name")), spec.get("versions")
        if table is None:
            return cls(language)
        try:
            known, project = tuple(map(str, table["known"])), table.get("project")
            if project is None:
                return cls(language, known)
            return cls(language, known, str(project["file"]), tuple(map(str, project["key"])))
        except (AttributeError, KeyError, TypeError) as error:
            raise LanguageError(f"language {language}: [versions] is incomplete: {error}") from error

    def narrowed(self, version: str | None) -> str | None:
        """The version that a definition is to be narrowed to; None where the newest is meant, which needs no narrowing.

        Raises:
            LanguageError: There is no such version.
        """
        if version is None or version == NEWEST or version in self.known[-1:]:
            return None
        if not self.known:
            raise LanguageError(f"{self.language} has no versions to choose from ({version!r} was asked for)")
        if version not in self.known:
            raise LanguageError(f"{self.language} has no version {version!r}; known: {', '.join(self.known)}")
        return version

    def select(self, text: str, version: str | None) -> str:
        """Empties the lines that the version (None: the newest) does not have; all others keep their numbers.

        Raises:
            LanguageError: A marker names an unknown version.
        """
        if not self.known:
            return text
        index = self.known.index(version or self.known[-1])
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
        """The version that the project of a file asks for: the oldest one it supports, because it has to run there.

        None where there is no such project, or its file cannot be read or does not say: then nothing is known against
        the newest.
        """
        if self.project_file is None:
            return None
        for folder in path.absolute().parents:
            file = folder / self.project_file
            if file.is_file():
                break
        else:
            return None
        try:
            text = read_found(file, _MOST_PROJECT_BYTES).decode("utf-8")
            # What does not name the key says nothing, and is not worth the time that a parser takes for hostile files.
            value: object = tomllib.loads(text) if self.project_key[-1] in text else {}
        except (OSError, ValueError, RecursionError):
            return None
        for key in self.project_key:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        return _oldest(self.known, value) if isinstance(value, str) and len(value) <= _MOST_SPECIFIERS else None


@cache
def _oldest(known: tuple[str, ...], specifiers: str) -> str | None:
    """The oldest known version that specifiers such as `>=3.11.4,<4` admit; None if there is none, or they are broken.

    A version is admitted if one of its patch releases is: to the grammar they are all alike.
    """
    # Only needed where a project says something.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        admitted = SpecifierSet(specifiers)
    except InvalidSpecifier:
        return None
    for version in known:
        if any(admitted.contains(f"{version}.{patch}", prereleases=True) for patch in range(_PATCHES)):
            return version
    return None
