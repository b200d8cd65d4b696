"""Imports whose last use an edit removed, where brackets list paths in quotes (Go): the name stands nowhere else.

In the other languages without name analysis such imports are not proposed. In replayed releases of Rust, 14 of 34 were
right: a trait is used where its name is not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import lines_of
from fim_server.next_edit.propose import LONGEST_DOCUMENT, Proposal
from fim_server.next_edit.signs import SIGNS

MOST_NAMES = 16
"""Most removed names that are looked for."""

MOST_LINES = 100
"""Most lines of one import."""

NEEDLESS = 0.85
"""Confidence: 17 of 20 were right in the releases to which the others are fitted."""

WORD = re.compile(r"[^\W\d]\w*")
IMPORTED = re.compile(SIGNS.imported)
"""Line with a path in quotes, with or without a name before it."""


def needless_imports(edits: Sequence[Edit], text: str) -> Iterator[Proposal]:
    """Yield the removals of imports whose last use the latest edit removed.

    Args:
        edits: Edits of the document, the latest last.
        text: Its text.
    """
    if len(text) > LONGEST_DOCUMENT:
        return
    for name in removed_names(edits):
        first = text.find(name)
        places = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text[first:]) if first >= 0 else iter(())
        place, other = next(places, None), next(places, None)
        if place is not None and other is None:
            yield from removal(text, first + place.start(), name)


def removed_names(edits: Sequence[Edit]) -> list[str]:
    """Return the names that the latest edit removed."""
    if not edits:
        return []
    kept = SIGNS.keywords.union(WORD.findall(edits[-1].new))
    return list(dict.fromkeys(word for word in WORD.findall(edits[-1].old) if word not in kept))[:MOST_NAMES]


def removal(text: str, at: int, name: str) -> Iterator[Proposal]:
    """Yield the removal of the line that imports the name at an offset, if it is one."""
    lines = lines_of(text)
    number = lines.line_at(at)
    line = IMPORTED.fullmatch(lines.lines[number])
    if line is None or not is_listed(lines.lines, number):
        return
    if name == (line["name"] or WORD.findall(line["path"])[-1]):
        yield Proposal(
            lines.line_starts[number], min(lines.line_end(number) + 1, len(text)), "", NEEDLESS, needs_whole=True
        )


def is_listed(lines: Sequence[str], number: int) -> bool:
    """Return whether a line is in the brackets of an import of several lines."""
    for above in range(number - 1, max(-1, number - MOST_LINES), -1):
        words = WORD.findall(lines[above])
        if words and words[0] in SIGNS.imports and lines[above].rstrip().endswith(SIGNS.parameters_open):
            return True
        if lines[above].strip() and IMPORTED.fullmatch(lines[above]) is None:
            return False
    return False
