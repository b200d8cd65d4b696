"""Replay of a release: the older files become the newer ones, an edit after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from benchmarks.suggestions.edit_sessions import FILE_LINES, in_order
from benchmarks.suggestions.projects import Project
from fim_server.next_edit.edit_memory import Edit, EditMemory
from fim_server.next_edit.line_tokens import tokens_of
from fim_server.text.trimming import trimmed

MOST_HUNKS = 200
"""Most edits of a file; one with more was written anew."""

MOST_OTHERS = 8
"""Most other files that are open."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of the older file, and those that take their place."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def growth(self) -> int:
        return len(self.lines) - (self.end - self.start)

    def moved(self, by: int) -> Hunk:
        return Hunk(self.start + by, self.end + by, self.lines)


@dataclass(frozen=True, slots=True)
class Step:
    """Moment after an edit.

    Attributes:
        file: The file.
        text: Its text.
        edits: Latest edits of the project, the latest last.
        rest: Edits of the file that are still to come.
        others: Next files that will be edited, with their texts and all of their edits.
    """

    file: str
    text: str
    edits: Sequence[Edit]
    rest: Sequence[Hunk]
    others: Mapping[str, tuple[str, Sequence[Hunk]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a proposed edit.

    Attributes:
        is_there: It is in lines that are still to be changed.
        is_right: All its tokens are among those that come and go there.
        is_exact: The lines are then as they are to be.
    """

    is_there: bool = False
    is_right: bool = False
    is_exact: bool = False


def hunks(old: str, new: str) -> list[Hunk]:
    """Return the hunks by which two texts differ. Lines that only change, but for their number, are one each."""
    before, after = old.split("\n"), new.split("\n")
    found = []
    for kind, first, last, begin, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "replace" and last - first == end - begin:
            found += [Hunk(first + n, first + n + 1, (after[begin + n],)) for n in range(last - first)]
        elif kind != "equal":
            found.append(Hunk(first, last, tuple(after[begin:end])))
    return found


def replayed(old: Project, new: Project, seed: int) -> Iterator[Step]:
    """Yield the moments after the edits of a release, in a plausible order."""
    draw = random.Random(f"next edits {old.name} {seed}")
    texts: dict[str, str] = {}
    memory = EditMemory(texts.get)
    files = list(changed(old, new))
    for number, (path, before, found) in enumerate(files):
        others = {name: (text, edits) for name, text, edits in files[number + 1 : number + 1 + MOST_OTHERS]}
        texts[path] = before
        order = list(in_order(list(range(len(found))), draw))
        todo = set(order)

        def moved(number: int, found: list[Hunk] = found, todo: set[int] = todo) -> Hunk:
            """Return a hunk, moved by those above it that are done."""
            return found[number].moved(sum(found[n].growth for n in range(number) if n not in todo))

        for number in order:
            change(memory, texts, path, moved(number))
            todo.remove(number)
            yield Step(path, texts[path], memory.latest(), [moved(n) for n in sorted(todo)], others)
        memory.close(path, texts[path])


def changed(old: Project, new: Project) -> Iterator[tuple[str, str, list[Hunk]]]:
    """Yield the files that two releases both have and that differ: path, older text and hunks."""
    for path in sorted(old.texts.keys() & new.texts.keys()):
        before, after = old.texts[path].text, new.texts[path].text
        if before != after and max(before.count("\n"), after.count("\n")) <= FILE_LINES:
            found = hunks(before, after)
            if len(found) <= MOST_HUNKS:
                yield path, before, found


def change(memory: EditMemory, texts: dict[str, str], path: str, hunk: Hunk) -> None:
    """Apply a hunk as one change, without what its old and new text have in common at their ends."""
    text = texts[path]
    start, end, new = trimmed(text, *as_change(text, hunk))
    # Two edits that touch are two edits here.
    memory.close(path, text)
    memory.change(path, text, start, end, new)
    texts[path] = text[:start] + new + text[end:]


def as_change(text: str, hunk: Hunk) -> tuple[int, int, str]:
    """Return the offsets that a hunk replaces, and its text. New lines begin at the end of the line above."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    new = "\n".join(hunk.lines)
    if hunk.start == hunk.end:
        at = max(0, starts[hunk.start] - 1)
        return (at, at, "\n" + new) if hunk.start else (0, 0, new + "\n")
    if hunk.lines:
        return starts[hunk.start], starts[hunk.end] - 1, new
    if hunk.end < len(lines):
        return starts[hunk.start], starts[hunk.end], ""
    return max(0, starts[hunk.start] - 1), len(text), ""


def judged(step: Step, start: int, end: int, text: str) -> Verdict:
    """Judge an edit that replaces a part of the step's text."""
    first, last = step.text.count("\n", 0, start), step.text.count("\n", 0, end)
    hit = next((one for one in step.rest if touches(one, first, last)), None)
    if hit is None:
        return Verdict()
    proposed = step.text[:start] + text + step.text[end:]
    low, high = min(hit.start, first), max(hit.end, last + 1)
    now = step.text.split("\n")[low:high]
    then = proposed.split("\n")[low : high + proposed.count("\n") - step.text.count("\n")]
    target = [*now[: hit.start - low], *hit.lines, *now[hit.end - low :]]
    if then == target:
        return Verdict(True, True, True)
    before, between, after = (words(lines) for lines in (now, then, target))
    is_on_the_way = distance(before, after) == distance(before, between) + distance(between, after)
    return Verdict(True, before != between and is_on_the_way)


def touches(hunk: Hunk, first: int, last: int) -> bool:
    """Return whether lines are among those that a hunk changes, or beside those that it inserts."""
    if hunk.start == hunk.end:
        return first <= hunk.start <= last + 1
    return hunk.start <= last and first < hunk.end


def words(lines: Sequence[str]) -> list[str]:
    return [token.text for token in tokens_of("\n".join(lines))]


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the tokens to remove and to insert between two texts."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return len(one) + len(other) - 2 * sum(block.size for block in matcher.get_matching_blocks())
