"""Python programs cut into the cells of a notebook, as people write them: with commands of IPython between."""

from __future__ import annotations

import ast
import random
import warnings
from dataclasses import dataclass, replace

from support.servers.served_places import Place

COMMANDS = ("%matplotlib inline\n", "!ls\n", "%load_ext autoreload\n", "print?\n")
"""Lines that begin a cell; the language's parser reads `pass` for each."""
CELLS = ("%%bash\nls (", "%%html\n<b>", "files = !ls", "%timeit sum([1, 2])", "")
"""Cells that stand between others."""


@dataclass(frozen=True)
class Notebook:
    """The cells of a program.

    Attributes:
        before: The cells above the cursor's.
        place: The cursor's, as a document of its own.
        after: The cells below.
    """

    before: tuple[str, ...]
    place: Place
    after: tuple[str, ...]


def notebook(place: Place, seed: int) -> Notebook:
    """A program as a notebook: each cell holds whole statements."""
    draw = random.Random(f"cells {seed}")
    starts = statements(place.truth)
    line = place.left.count("\n")
    first = max((start for start in starts if start <= line), default=0)
    last_line = line + place.rest.count("\n")
    end = min((start for start in starts if start > last_line), default=None)
    left, right = place.left.split("\n"), place.right.split("\n")
    kept = len(right) if end is None else end - last_line
    command = draw.choice(("", *COMMANDS))
    own = replace(
        place,
        left=command + "\n".join(left[first:]),
        right="\n".join(right[:kept]),
        command=command,
    )
    above = apart(draw, left[:first], [start for start in starts if start < first])
    below = apart(draw, right[kept:], [start - (end or 0) for start in starts if end is not None and start > end])
    return Notebook(tuple(above), own, tuple(below))


def statements(text: str) -> list[int]:
    """The lines, from 0, at which statements of the outermost level begin; none where this Python cannot read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):
            return []
    found = []
    ended = -1
    for statement in body:
        decorators = getattr(statement, "decorator_list", [])
        start = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
        if start > ended:  # not behind a semicolon
            found.append(start)
        ended = (statement.end_lineno or statement.lineno) - 1
    return found


def apart(draw: random.Random, lines: list[str], starts: list[int]) -> list[str]:
    """Some lines as cells."""
    cells = []
    at = 0
    for start in sorted(draw.sample(starts, min(len(starts), draw.randint(0, 2)))):
        cells.append("\n".join(lines[at:start]))
        at = start
        if draw.random() < 0.3:
            cells.append(draw.choice(CELLS))
    return [*cells, "\n".join(lines[at:])] if lines else cells
