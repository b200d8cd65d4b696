"""Windows of a file that is broken elsewhere: blocks around the cursor, by indentation, that are judged alone.

In a language of token trees almost every text parses with some brackets more, so a bracket that is missing elsewhere is
wanted at the cursor. A window is the largest part of the file without such a demand: what it wants of the middle agrees
with the indentation (:mod:`.agreement`). The lines above and below it are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fim_server.recovery.agreement import agrees, column_of, leading, left_open
from fim_server.recovery.documents import Document
from fim_server.recovery.texts import indentation

if TYPE_CHECKING:
    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.recovery.opener import OpenSession

MOST_WINDOWS = 8
"""Most windows to try, the smallest ones of a file: each costs one opening for each of the language's surroundings."""

MOST_REACHED = 2_000
"""Most lines of a window above, and below, the cursor's."""

Changes = dict[int, str | None]
"""Lines left out, some of them with a stand-in, as in :meth:`.Document.reduced`."""


def window(open_session: OpenSession, document: Document, spelling: Spelling) -> tuple[Session, Changes] | None:
    """Return a session on the largest window that agrees with the indentation, and the lines left out; None if none.

    Args:
        open_session: Opens a session on two contexts.
        document: The whole file.
        spelling: Texts of its language.
    """
    for changes in windows(document, spelling):
        left, right = document.reduced(changes)
        session = open_session(left, right)
        if session.guarantee != "none" and agrees(open_session, session, Document(left, right)):
            return session, changes
    return None


def windows(document: Document, spelling: Spelling) -> Iterator[Changes]:
    """Yield the lines that each window leaves out, for the largest window first."""
    everything = document.cursor_line + 1 + len(document.below)
    for first, end in reaches(document, spelling):
        above, below = range(first), range(document.cursor_line + 1 + end, everything)
        for before, after in spelling.surroundings:
            if (before and not above) or (after and not below):
                continue
            changes: Changes = {**dict.fromkeys(above), **dict.fromkeys(below)}
            if before:
                changes[0] = before
            if after:
                changes[below.start] = after
            if changes:
                yield changes


def reaches(document: Document, spelling: Spelling) -> list[tuple[int, int]]:
    """Return the windows as their first line above and the number of lines below, the largest first.

    For each indentation less than the cursor's, a window reaches from the nearest line above that is indented no more
    to the nearest one below. If the upper one begins with a closing bracket, or the lower one opens another, it is the
    middle of a statement (`} else {`), and the next one counts. A lower one without a closing bracket at its beginning
    is no part of the block. The last but one holds the lines around the cursor that are indented like its line or more,
    the last those of them without a blank line between.
    """
    column = column_of(document)
    first = max(0, document.cursor_line - MOST_REACHED)
    above, below = document.above[first:], document.below[:MOST_REACHED]
    indented_above = [indentation(line) if line.strip() else None for line in above]
    indented_below = [indentation(line) if line.strip() else None for line in below]
    columns = {at for at in (*indented_above, *indented_below) if at is not None and at < column}
    found = [
        (beginning(above, indented_above, at, spelling), ending(below, indented_below, at, spelling))
        for at in sorted(columns)[2 - MOST_WINDOWS :]
    ]
    for stops in (is_less, is_less_or_blank):
        last = next((number for number in reversed(range(len(above))) if stops(indented_above[number], column)), None)
        end = next((number for number in range(len(below)) if stops(indented_below[number], column)), None)
        found.append((None if last is None else last + 1, end))
    # Without a line to begin or to end it, a window begins or ends with the file, unless that is too far.
    upper, lower = None if first else 0, None if len(document.below) > MOST_REACHED else len(below)
    filled = ((upper if begin is None else first + begin, lower if end is None else end) for begin, end in found)
    return list(dict.fromkeys((begin, end) for begin, end in filled if begin is not None and end is not None))


def is_less(indented: int | None, column: int) -> bool:
    return indented is not None and indented < column


def is_less_or_blank(indented: int | None, column: int) -> bool:
    return indented is None or indented < column


def beginning(lines: Sequence[str], indented: Sequence[int | None], column: int, spelling: Spelling) -> int | None:
    """Return the last line that is indented no more than a column and does not begin with a closing bracket."""
    for number in reversed(range(len(lines))):
        if is_less(indented[number], column + 1) and not leading(lines[number], spelling):
            return number
    return None


def ending(lines: Sequence[str], indented: Sequence[int | None], column: int, spelling: Spelling) -> int | None:
    """Return the number of lines up to the end of the block that the first one indented no more than a column ends."""
    for number, line in enumerate(lines):
        if is_less(indented[number], column + 1):
            if not leading(line, spelling):
                return number
            if left_open(line, spelling) <= 0:
                return number + 1
    return None
