"""Lines to type again: lines of projects' files, drawn by a seed, and lines that a newer release of a package adds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from benchmarks.suggestions.projects import Project, Task
from fim_server.datasets.lined_text import LinedText
from fim_server.errors import BenchError

LINE_CHARACTERS = range(6, 161)
"""Least and most characters of a line to type again, without its indentation and its comment."""

TAKEN_FILES = 0.25
"""The share of a project's files that lines are drawn from at most, and one at least: those are not on its disk."""

RUN_LINES = 12
"""Lines of an edit that are typed in a row at most."""


# --- lines of files -----------------------------------------------------------------------------------------------


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


# --- lines of edits -----------------------------------------------------------------------------------------------


def draw_edits(old: Project, new: Project, count: int, seed: int) -> None:
    """Give a project the lines that a newer release changed or added, typed in the middle of its old files.

    What the edit takes out is gone when its lines are typed; the edits above it are done, those below are not. Lines of
    an edit that stand together are typed one after the other.

    Raises:
        BenchError: No such lines.
    """
    found = [
        task for path, source in sorted(new.texts.items()) if path in old.texts for task in _edits(old, path, source)
    ]
    if not found:
        raise BenchError(f"{old.name}, {new.name}: no lines of code that were changed or added")
    random.Random(f"edits {old.name} {seed}").shuffle(found)
    old.tasks = _of_few_files(old, found, count)


def _edits(project: Project, path: str, new: LinedText) -> Iterator[Task]:
    code, old = project.language.code_of_lines(new), project.texts[path].lines
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
                yield Task(
                    project.name, path, run[0] + 1, new.text[:first], "\n".join(wanted), after, project.language.name
                )


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
