"""Lines to type again: lines of projects' files, drawn by a seed, and lines that a newer release of a package adds."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from importlib import metadata, resources
from pathlib import Path

from fim_server.datasets.holes import Refused
from fim_server.datasets.python.text import PythonText, decode
from fim_server.datasets.sources.files import Packages, Tree
from fim_server.datasets.sources.source import Source
from fim_server.errors import BenchError

LINE_CHARACTERS = range(6, 161)
"""Least and most characters of a line to type again, without its indentation and its comment."""

FILE_CHARACTERS = 150_000
"""Longer files are tables more than code; they stay in the workspace."""

TAKEN_FILES = 0.25
"""The share of a project's files that lines are drawn from at most, and one at least: those are not on its disk."""

RUN_LINES = 12
"""Lines of an edit that are typed in a row at most."""


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

    @property
    def lines(self) -> int:
        """Return the number of lines to type."""
        return self.wanted.count("\n") + 1


@dataclass
class Project:
    """A folder or package, and what is typed in its files."""

    name: str
    files: dict[str, bytes] = field(repr=False)
    """Contents by path."""
    tasks: list[Task] = field(default_factory=list, repr=False)
    """In random order, so that any beginning is a fair draw."""

    @cached_property
    def texts(self) -> dict[str, PythonText]:
        """The files that Python parses, and that lines are drawn from."""
        found = {}
        for path, content in self.files.items():
            text = decode(content)
            if text is None or len(text) > FILE_CHARACTERS:
                continue
            try:
                found[path] = PythonText(text)
                _ = found[path].symbols
            except Refused:
                found.pop(path, None)
        return found

    @property
    def workspace(self) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of the files that are on the disk: those in which nothing is typed."""
        taken = {task.file for task in self.tasks}
        return ((path, content) for path, content in self.files.items() if path not in taken)


def open_folder(path: str) -> Project:
    """A folder, or a file.

    Raises:
        BenchError: There is none, or it has no Python files.
        DatasetError: It cannot be read.
    """
    folder = Path(path)
    if not folder.exists():
        raise BenchError(f"{path}: no such file or folder")
    name = folder.resolve().name
    return _project(name, Tree(folder, name))


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
    return _project(name, source)


def _project(name: str, source: Source) -> Project:
    contents = {text.path: text.content for text in source if isinstance(text.content, bytes)}
    if not contents:
        raise BenchError(f"{name}: no Python files to type in")
    return Project(name, contents)


# --- lines of files -----------------------------------------------------------------------------------------------


def code_of_lines(source: PythonText) -> dict[int, tuple[int, int]]:
    """Return the start and the end of each line's code, by the line's number (from 0).

    Without blank lines and comments, lines of strings that others share (docstrings among them), and those that are
    nothing but a string.
    """
    found: dict[int, tuple[int, int]] = {}
    strings: dict[int, bool] = {}
    for symbol in source.symbols:
        if source.text[symbol.start : symbol.end].isspace():
            continue  # the line's end is a symbol as well
        line = source.line_at(symbol.start)
        start, _ = found.get(line, (symbol.start, 0))
        found[line] = start, symbol.end
        strings[line] = strings.get(line, True) and symbol.is_string
    return {line: span for line, span in found.items() if line not in source.lines_in_strings and not strings[line]}


def draw_lines(project: Project, count: int, seed: int) -> None:
    """Give a project so many lines of its files as tasks, or as many as there are; each is alone missing in its file.

    Raises:
        BenchError: There is none.
    """
    found = [
        Task(project.name, path, line + 1, text[:start], text[start:end], text[source.line_end(line) :])
        for path, source in sorted(project.texts.items())
        for text in (source.text,)
        for line, (start, end) in code_of_lines(source).items()
        if end - start in LINE_CHARACTERS
    ]
    if not found:
        raise BenchError(f"{project.name}: no lines of code to type")
    random.Random(f"lines {project.name} {seed}").shuffle(found)
    project.tasks = _of_few_files(project, found, count)


def _of_few_files(project: Project, tasks: Sequence[Task], lines: int) -> list[Task]:
    """The first tasks that have so many lines together, of a part of the project's files."""
    most = max(1, int(TAKEN_FILES * len(project.files)))
    taken: set[str] = set()
    chosen: list[Task] = []
    for task in tasks:
        if lines <= 0:
            break
        if task.file in taken or len(taken) < most:
            taken.add(task.file)
            chosen.append(task)
            lines -= task.lines
    return chosen


# --- lines of edits -----------------------------------------------------------------------------------------------


def draw_edits(old: Project, new: Project, count: int, seed: int) -> None:
    """Give a project the lines that a newer release changed or added, typed in the middle of its old files.

    What the edit takes out is gone when its lines are typed; the edits above it are done, those below are not. Lines of
    an edit that stand together are typed one after the other.

    Raises:
        BenchError: No such lines.
    """
    found = [
        task
        for path, source in sorted(new.texts.items())
        if path in old.texts
        for task in _edits(old.name, path, old.texts[path].lines, source)
    ]
    if not found:
        raise BenchError(f"{old.name}, {new.name}: no lines of code that were changed or added")
    random.Random(f"edits {old.name} {seed}").shuffle(found)
    old.tasks = _of_few_files(old, found, count)


def _edits(project: str, path: str, old: list[str], new: PythonText) -> Iterator[Task]:
    code = code_of_lines(new)
    for kind, _, old_end, start, end in SequenceMatcher(None, old, new.lines, autojunk=False).get_opcodes():
        if kind not in ("replace", "insert"):
            continue
        after = "".join("\n" + line for line in old[old_end:])
        for run in _runs(range(start, end), code):
            first, _ = code[run[0]]
            # A comment at a line's end is left out; between the lines their indentation is typed.
            wanted = [new.text[new.line_starts[line] : code[line][1]] for line in run]
            wanted[0] = wanted[0][first - new.line_starts[run[0]] :]
            if all(len(line.strip()) in LINE_CHARACTERS for line in wanted[:1]):
                yield Task(project, path, run[0] + 1, new.text[:first], "\n".join(wanted), after)


def _runs(lines: range, code: dict[int, tuple[int, int]]) -> Iterator[list[int]]:
    """Lines of code that stand together."""
    run: list[int] = []
    for line in lines:
        if line in code and len(run) < RUN_LINES:
            run.append(line)
            continue
        if run:
            yield run
        run = [line] if line in code else []
    if run:
        yield run


# --- the halves ---------------------------------------------------------------------------------------------------


def half_of(name: str) -> str | None:
    """The half of the held-out packages that one belongs to: ``tuning`` or ``reported``; None of others.

    Args:
        name: The package's, or that of a folder with one of its releases: the name, a dash and the version.
    """
    name = re.sub(r"-\d.*", "", name)
    text = resources.files(__package__).joinpath("held_out.toml").read_text(encoding="utf-8")
    return next((half for half, packages in tomllib.loads(text).items() if name in packages), None)
