"""Projects to type in: folders, installed packages, and the sets of `datasets/suggestions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np

from benchmarks.suggestions.typed_language import TypedLanguage, typed
from fim_server.datasets.holes import Refused
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.datasets.python.text import decode
from fim_server.datasets.sources.files import Packages, Tree
from fim_server.datasets.sources.source import Source
from fim_server.errors import BenchError, TrainingError
from fim_server.language.definition.paths import suffixes_of
from fim_server.text.lined_text import LinedText
from training.corpora.downloads import download
from training.corpora.lists import OLDER, Named, read_suggestions
from training.corpora.reading import read_package

CHECKOUT = Path(__file__).parents[2]
SETS = CHECKOUT / "datasets" / "suggestions"
DOWNLOADS = CHECKOUT / ".work" / "suggestions"
"""Folder of downloaded packages."""

LARGEST_PACKAGE = 300_000_000
"""Most bytes of a package."""

FILE_CHARACTERS = 150_000
"""Longer files are tables more than code; they stay in the workspace."""


@dataclass(frozen=True)
class Task:
    """Something to type: ``before + wanted + after`` is the document when it is done."""

    project: str
    file: str
    """Its path in the project, with slashes."""
    line: int
    """The number of its first line, from 1, in the document when it is done."""
    before: str = field(repr=False)
    """Up to the cursor; the line's indentation stands there."""
    wanted: str
    after: str = field(repr=False)
    language: str = PYTHON

    @property
    def lines(self) -> int:
        """Return the number of lines to type."""
        return self.wanted.count("\n") + 1


@dataclass(frozen=True)
class Stretch:
    """Stretch of the older text, and the text in its place."""

    start: int
    end: int
    text: str

    @property
    def lines(self) -> int:
        """Return the number of lines that are typed, in whole or in part."""
        return self.text.count("\n") + 1


@dataclass(frozen=True)
class EditSession:
    """Edits of a file: its older text, and the stretches in their order."""

    project: str
    file: str
    language: str
    text: str = field(repr=False)
    stretches: tuple[Stretch, ...] = field(repr=False)

    @property
    def lines(self) -> int:
        """Return the number of lines that are typed, in whole or in part."""
        return sum(stretch.lines for stretch in self.stretches)


@dataclass
class Project:
    """A folder or package, and what is typed in its files."""

    name: str
    files: dict[str, bytes] = field(repr=False)
    """Contents by path."""
    language: TypedLanguage
    tasks: list[Task] = field(default_factory=list, repr=False)
    """In random order, so that any beginning is a fair draw."""
    sessions: list[EditSession] = field(default_factory=list, repr=False)
    """Sessions to play instead of the tasks, if there are any."""

    @cached_property
    def texts(self) -> dict[str, LinedText]:
        """The files that lines are drawn from; of Python those that it parses."""
        found: dict[str, LinedText] = {}
        for path, content in self.files.items():
            text = decode(content)
            if text is None or len(text) > FILE_CHARACTERS:
                continue
            try:
                found[path] = self.language.read(text)
            except Refused:
                continue
        return found

    @property
    def workspace(self) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of the files that are on the disk: those in which nothing is typed."""
        taken = self.typed_files
        return ((path, content) for path, content in self.files.items() if path not in taken)

    @property
    def to_do(self) -> Sequence[Task | EditSession]:
        """Return the sessions, or without any the tasks."""
        return self.sessions or self.tasks

    @property
    def typed_files(self) -> set[str]:
        """Return the paths of the files in which something is typed."""
        return {one.file for one in self.to_do}


def open_folder(path: str, language: str = PYTHON) -> Project:
    """A folder, or a file.

    Raises:
        BenchError: There is none, or it has no files of the language.
        DatasetError: It cannot be read.
    """
    folder = Path(path)
    if not folder.exists():
        raise BenchError(f"{path}: no such file or folder")
    name = folder.resolve().name
    return _project(name, Tree(folder, name, suffixes=suffixes_of(language)), language)


def open_package(named: str) -> Project:
    """An installed distribution: ``NAME`` or ``NAME==VERSION``.

    Raises:
        BenchError: Another version is installed.
        DatasetError: It is not installed.
    """
    name, _, version = named.partition("==")
    source = Packages([name])
    if version and metadata.version(name) != version:
        raise BenchError(f"{named}: {metadata.version(name)} is installed")
    return _project(name, source, PYTHON)


def _project(name: str, source: Source, language: str) -> Project:
    contents = {text.path: text.content for text in source if isinstance(text.content, bytes)}
    if not contents:
        raise BenchError(f"{name}: no files of {language} to type in")
    return Project(name, contents, typed(language))


def open_set(language: str, use: str, say: Callable[[str], None]) -> Iterator[Project]:
    """The projects of a set of `datasets/suggestions`, fetched from their registry where they are not there yet.

    Tests, vendored and generated files are left out.

    Raises:
        BenchError: There is no such set, or a project of it cannot be fetched.
    """
    yield from _opened(language, _listed(language, use), say)


def open_releases(language: str, use: str, say: Callable[[str], None]) -> Iterator[tuple[Project, Project]]:
    """The projects of a set whose list has an older release of them: that one, and the set's.

    Raises:
        BenchError: There is no such set or no such release, or one cannot be fetched.
    """
    newer = {one.key: one for one in _listed(language, use)}
    older = [one for one in _listed(language, OLDER) if one.key in newer]
    if not older:
        raise BenchError(f"{language}: no older releases of {use} in {SETS.name}")
    yield from zip(
        _opened(language, older, say), _opened(language, [newer[one.key] for one in older], say), strict=True
    )


def _listed(language: str, use: str) -> list[Named]:
    try:
        packages = read_suggestions(SETS).get((language, use))
    except TrainingError as error:
        raise BenchError(str(error)) from error
    if packages is None:
        raise BenchError(f"{language}: no set {use} in {SETS.name}")
    return packages


def _opened(language: str, packages: Sequence[Named], say: Callable[[str], None]) -> Iterator[Project]:
    failed = download(packages, DOWNLOADS, LARGEST_PACKAGE, say)
    for one in packages:
        if one in failed:
            raise BenchError(f"{one.key}: {failed[one]}")
        try:
            read = read_package(one, DOWNLOADS, LARGEST_PACKAGE, np.empty(0, np.uint64), any_licence=True)
        except TrainingError as error:
            raise BenchError(str(error)) from error
        files = {file.path: file.text.encode() for file in read.files.get(language, ())}
        if not files:
            raise BenchError(f"{one.key}: no files of {language} to type in")
        yield Project(re.sub(r"\W+", "-", one.name).strip("-"), files, typed(language))
