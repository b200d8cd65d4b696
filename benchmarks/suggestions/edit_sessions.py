"""Edit sessions: a file written from an older release to a newer one, a stretch after the other, with jumps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import TypeVar

from benchmarks.server.played_editor import Editor, common
from benchmarks.suggestions.playing import ACCEPTING, HASTY, TYPING, Effort, Record, Screen, accept, type_out
from benchmarks.suggestions.projects import EditSession, Project, Stretch, Task
from benchmarks.suggestions.suggesting import Suggester
from benchmarks.suggestions.typed_language import typed
from fim_server.errors import BenchError

T = TypeVar("T")

MOST_STRETCHES, STRETCH_LINES = 12, 30
"""Most stretches of a session, and most lines of one; longer ones stay as they were."""

FILE_LINES = 3000
"""Files with more lines are left out: comparing two releases takes the square."""

SWEEPS = (TYPING, ACCEPTING, HASTY)

JUMPS = 0.25
"""Chance that the next stretch is not the next one below."""


def draw_sessions(old: Project, new: Project, lines: int, seed: int) -> list[EditSession]:
    """Return sessions in so many lines of a project's files, or in as many as changed.

    Raises:
        BenchError: No line that is typed differs.
    """
    draw = random.Random(f"sessions {old.name} {seed}")
    both = sorted(
        path for path, source in old.texts.items() if path in new.texts and source.text != new.texts[path].text
    )
    draw.shuffle(both)
    chosen: list[EditSession] = []
    for path in both:
        before, after = old.texts[path], new.texts[path]
        if lines <= 0 or max(len(before.lines), len(after.lines)) > FILE_LINES:
            continue
        taken = []
        for stretch in islice(in_order(list(stretches(before.text, after.text)), draw), MOST_STRETCHES):
            if lines > 0:
                taken.append(stretch)
                lines -= stretch.lines
        if taken:
            chosen.append(EditSession(old.name, path, old.language.name, before.text, tuple(taken)))
    if not chosen:
        raise BenchError(f"{old.name}, {new.name}: no lines of code that were changed or added")
    return chosen


def stretches(before: str, after: str) -> Iterator[Stretch]:
    """Yield the stretches by which two texts differ: lines, without what they have in common at both ends.

    Several lines are written to the end of the last one: a user does not write them left of what will end it.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" or end - begin > STRETCH_LINES:
            continue
        taken, text = "".join(old[first:last]), "".join(new[begin:end])
        head = common(taken, text)
        tail = min(common(taken[::-1], text[::-1]), len(taken) - head, len(text) - head)
        if "\n" in text[head : len(text) - tail]:
            tail = max(0, len(text) - text.find("\n", len(text) - tail)) if "\n" in text[len(text) - tail :] else 0
        if text[head : len(text) - tail].strip():
            yield begun_above(before, Stretch(starts[first] + head, starts[last] - tail, text[head : len(text) - tail]))


def begun_above(before: str, stretch: Stretch) -> Stretch:
    """Return a stretch that inserts lines as one that begins with Enter at the end of the line above.

    A user does not write new lines left of the text that they push down.

    >>> begun_above("if a:\n    b\n", Stretch(10, 10, "c\n    "))
    Stretch(start=5, end=5, text='\n    c')
    """
    at = stretch.text.rfind("\n")
    below = stretch.text[at:] if at >= 0 else ""
    if not below or stretch.start != stretch.end or not before.endswith(below, 0, stretch.start):
        return stretch
    start = stretch.start - len(below)
    return Stretch(start, start, below + stretch.text[:at])


def in_order(found: list[T], draw: random.Random) -> Iterator[T]:
    """Yield stretches, given from top to bottom, in a plausible order: from one to the next below, with jumps."""
    at = draw.randrange(len(found)) if found else 0
    while found:
        if draw.random() < JUMPS:
            at = draw.randrange(len(found))
        at %= len(found)
        yield found.pop(at)


async def play_session(session: EditSession, suggester: Suggester, sweep: str) -> tuple[list[Effort], list[Record]]:
    """Do a session in one way, `TYPING`, `ACCEPTING` or `HASTY`; return what it cost and what was seen.

    Raises:
        BenchError: The server has ended or does not answer.
    """
    editor = Editor(session.text, 0, typed(session.language).keyboard)
    suggester.open(Task(session.project, session.file, 1, session.text, "", "", session.language))
    efforts: list[Effort] = []
    records: list[Record] = []
    done: list[tuple[int, int]] = []
    for stretch in session.stretches:
        moved = sum(grown for start, grown in done if start < stretch.start)
        start, end = stretch.start + moved, stretch.end + moved
        if end > start:
            suggester.edited(editor, editor.replace(start, end, ""))
        editor.move(start)
        task = Task(
            *(session.project, session.file, editor.text.count("\n", 0, start) + 1),
            *(editor.text[:start], stretch.text, editor.text[start:], session.language),
        )
        screen = Screen(task, suggester, sweep, editor)
        await suggester.rest(editor)
        if sweep == TYPING:
            await type_out(screen)
        else:
            efforts.append(await accept(screen, sweep))
        records += screen.records
        done.append((stretch.start, len(stretch.text) - (end - start)))
    suggester.close()
    return efforts, records
