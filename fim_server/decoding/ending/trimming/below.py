"""Removal of the lines below the cursor from a text: models like to repeat them, and no grammar forbids that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fim_server.decoding.constants import TRIMMING
from fim_server.decoding.ending.trimming.indentation import LOOKED_AT, blanks_of, width_of
from fim_server.decoding.ending.trimming.loops import is_telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.text.document import Split

WORD = re.compile(r"\w")
WORDS = re.compile(r"\w+")

SIGN = re.compile(r"[^\w\s,;]")
"""Sign that separates nothing."""

MOST_NEAR = 3
"""Lines below the next one that no text repeats."""

SEPARATORS = " \t,;"
"""End of a line that tells no two entries of a list apart."""


def without_repetition(text: str, right: str, is_complete: Callable[[str], bool], left: str = "") -> str:
    """Return a text without last lines that stand right of the cursor, if it may end before them.

    ``left``: text before the cursor, whose indentation is that of the first line.
    """
    indentation = left[left.rfind("\n") + 1 :]
    lines = text.split("\n")
    whole = [indentation + lines[0] if not indentation.strip() else lines[0], *lines[1:]]
    lines_below = [line for line in right.split("\n", len(lines) + 2)[1:] if line.strip()]
    for kept in range(len(lines)):
        repeated = [line for line in whole[kept:] if line.strip()]
        if repeated and same_lines(repeated, lines_below[: len(repeated)]):
            shortened = "\n".join(lines[:kept])
            if is_complete(shortened):
                return without_repetition(shortened, right, is_complete, left)  # it may be there twice
    return text


def without_line_below(
    text: str,
    split: Split,
    is_complete: Callable[[str], bool],
    marks: Callable[[str], bool] = bool,
    ended: Callable[[str], str | None] = lambda text: None,
) -> str | None:
    """Return a text without the lines below the cursor; None if no complete text is left.

    The text's first line also equals the line below it if the latter is indented less and the former follows closing
    brackets. A mark above a definition counts only where the text has no more.

    Args:
        text: Complete at the cursor.
        split: The document at the cursor.
        is_complete: Whether a shorter text is complete.
        marks: Whether a first line that begins with a sign may be such a mark.
        ended: Completes a beginning, if it can.
    """
    before = split.left[split.left.rfind("\n") + 1 :]
    lines = text.split("\n")
    rest, *below = split.right[:LOOKED_AT].split("\n")
    lines_below = [line.rstrip() for line in below if line.strip()]
    first = before + lines[0] + rest * (len(lines) == 1)
    specific = next((line for line in lines_below if WORD.search(line)), "")
    begins_so = lines[0].strip() and is_telling(specific, TRIMMING.below_characters) and said(first) == said(specific)
    if begins_so and width_of(first) >= width_of(specific):
        same = max(1, common([before + lines[0], *lines[1:]], lines_below))
        if same > 1 or len(lines) == 1 or not (is_mark(first) and marks(lines[0])):
            return behind(lines[same:], before, split, is_complete)
    near = nearest(lines_below, width_of(first))
    for at in range(1, len(lines)):
        if at < len(lines) - 1 and not lines[at].strip():
            continue
        same = common(lines, lines_below, at)
        is_beginning = at == len(lines) - 1 and begins(lines[at].rstrip(), lines_below)
        if says_much(lines[at : at + same]) or is_among(lines[at], near) or is_beginning:
            shorter = "\n".join(lines[:at]).rstrip()
            if not shorter:
                return behind(lines[at + same :], before, split, is_complete)
            return shorter if is_complete(shorter) else ended(shorter)
    return text


def is_mark(line: str) -> bool:
    """Return whether a line may annotate the definition below it: it begins with a sign and is no entry of a list."""
    written = line.strip()
    return WORD.match(written) is None and said(line) == written


def behind(lines: Sequence[str], before: str, split: Split, is_complete: Callable[[str], bool]) -> str | None:
    """Return the lines of a text after those below the cursor; None if they cannot stand alone at the cursor."""
    others = "\n".join(lines)
    if before.strip() or not others.startswith(before) or others[len(before) :][:1].isspace():
        return None
    others = others[len(before) :]
    return without_line_below(others, split, is_complete) if others and is_complete(others) else None


def common(some: Sequence[str], lines_below: Sequence[str], start: int = 0) -> int:
    """Count the lines from ``start`` on that equal those below the cursor, up to the last that is not blank."""
    count = at = 0
    for number in range(start, len(some)):
        line = some[number]
        if not line.strip():
            continue
        if at == len(lines_below) or not says_same(line, lines_below[at]):
            break
        at, count = at + 1, number - start + 1
    return count


def says_much(lines: Sequence[str]) -> bool:
    """Return whether lines are too specific to repeat by chance; a short one then has a sign within."""
    return any(is_telling(line, TRIMMING.below_characters) or has_inner_sign(line) for line in lines)


def has_inner_sign(line: str) -> bool:
    """Return whether a sign stands between two words or numbers of a line."""
    ends = [found.end() for found in WORD.finditer(line)]
    return bool(ends) and SIGN.search(line, ends[0], ends[-1]) is not None


def nearest(lines_below: Sequence[str], width: int) -> list[str]:
    """Return the lines near the cursor, below the next one, that are indented as the cursor's line."""
    near: list[str] = []
    for number, line in enumerate(lines_below[: MOST_NEAR + 1]):
        if width_of(line) < width:
            break
        if number and width_of(line) == width:
            near.append(line)
    return near


def is_among(line: str, near: Sequence[str]) -> bool:
    """Return whether a specific line is one of those near the cursor."""
    return is_telling(line) and line.rstrip() in near


def begins(line: str, lines_below: Sequence[str]) -> bool:
    """Return whether a line is the beginning of the line below the cursor, up to the end of a word."""
    below = lines_below[0] if lines_below else ""
    if not is_telling(line, TRIMMING.below_characters) or not below.startswith(line):
        return False
    return WORD.match(below[len(line) :]) is None or WORD.match(line[-1]) is None


def says_same(line: str, other: str) -> bool:
    """Return whether two lines are indented alike and have the same words, several of them, or the same text."""
    if blanks_of(line) != blanks_of(other):
        return False
    words = WORDS.findall(line)
    return said(line) == said(other) or (len(words) > 1 and words == WORDS.findall(other) and is_telling(line))


def said(line: str) -> str:
    """Return a line without its indentation and separators."""
    return line.strip().rstrip(SEPARATORS)


def same_lines(some: Sequence[str], others: Sequence[str]) -> bool:
    return [line.rstrip() for line in some] == [line.rstrip() for line in others]
