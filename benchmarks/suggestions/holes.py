"""Holes at the ends of lines, with and without the lines below."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.text.document import Split

if TYPE_CHECKING:
    from benchmarks.suggestions.projects import Project as Sources

LEXEME = re.compile(r"\w+|[^\w\s]")
"""Pattern of a word or a sign."""

LINES = 3
"""Most lines that a hole ends, its own among them."""


@dataclass(frozen=True)
class Hole:
    """File without some of its text."""

    split: Split
    middle: str
    single_line: bool


def holes(sources: Sources, seed: int) -> Iterator[Hole]:
    """Yield two holes for each of a folder's lines: the rest of the line, and this rest with the lines below."""
    chance = random.Random(f"searching {sources.name} {seed}")
    for task in sources.tasks:
        starts = [match.start() for match in LEXEME.finditer(task.wanted)]
        at = chance.choice(starts[:-1] or starts)
        yield Hole(Split(task.before + task.wanted[:at], task.after), task.wanted[at:], True)
        below = task.after.split("\n")
        further = "\n".join(below[:LINES])
        yield Hole(Split(task.before + task.wanted[:at], task.after[len(further) :]), task.wanted[at:] + further, False)
