"""Lines to type again: lines of projects' files, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchmarks.suggestions.projects import Project, Task
from fim_server.errors import BenchError

LINE_CHARACTERS = range(6, 161)
"""Least and most characters of a line to type again, without its indentation and its comment."""

TAKEN_FILES = 0.25
"""The share of a project's files that lines are drawn from at most, and one at least: those are not on its disk."""


def draw_lines(project: Project, count: int, seed: int) -> None:
    """Give a project so many lines of its files as tasks, or as many as there are; each is alone missing in its file.

    Raises:
        BenchError: There is none.
    """
    found = [
        Task(project.name, path, line + 1, text[:start], text[start:end], text[source.line_end(line) :], language)
        for path, source in sorted(project.texts.items())
        for text, language in ((source.text, project.language.name),)
        for line, (start, end) in project.language.code_of_lines(source).items()
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
