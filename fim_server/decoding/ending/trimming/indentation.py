"""Indentation at the cursor: the deepest column of its line, and suggestions that repeat the indentation.

A model may write the indentation at the cursor again. Most grammars allow it: blanks mean nothing in languages with
braces, and the first line of a block may be indented at will.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fim_server.decoding.ending.right_closer import ClosedSession
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

BLANKS = " \t"

TAB = 4
"""Columns of a tab, to compare lines with tabs and lines with blanks."""

LOOKED_AT = 1 << 14
"""Characters on either side of the cursor that are searched for other lines."""

UNFINISHED = re.compile(r"[^\w\s,;]\Z")
"""A sign at the end of a line that separates nothing."""

BLANK_LINES = re.compile(r"^(?:[ \t]*\n)+", re.MULTILINE)
"""Lines in a row with nothing but blanks, without the last line of a text."""

MOST_BLANK_LINES = 2
"""Most blank lines in a row."""

JOINED = re.compile(r"\.\w")
"""Beginning of a line that continues the one above: a call in a chain."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Suggestion without some of its characters.

    Attributes:
        text: The rest.
        removed: The stretches of the suggestion that were cut, in order.
    """

    text: str
    removed: tuple[range, ...] = ()

    @classmethod
    def of(cls, text: str, removed: Sequence[range]) -> Trimmed:
        """Cut stretches out of a text."""
        kept, at = [], 0
        for stretch in removed:
            kept.append(text[at : stretch.start])
            at = stretch.stop
        return cls("".join(kept) + text[at:], tuple(stretch for stretch in removed if stretch))

    def place_of(self, end: int) -> int:
        """Return the place in the rest that a place in the suggestion has moved to."""
        return end - sum(min(end, stretch.stop) - stretch.start for stretch in self.removed if stretch.start < end)


def step_of(split: Split, spelling: Spelling) -> str:
    """Return the indentation of a document's first block near the cursor, or the language's usual one."""
    found = written_step(split, spelling)
    return " " * spelling.step if found is None else found


def written_step(split: Split, spelling: Spelling) -> str | None:
    """Return the indentation of a document's first block near the cursor; None where no block is near."""
    openers = [spelling.block_opener] if spelling.block_opener else [opening for opening, _ in spelling.brackets]
    opener = "|".join(map(re.escape, openers))  # a line below another one may also be aligned with it
    pattern = re.compile(rf"^\S.*(?:{opener})[ \t]*\n([ \t]+)\S", re.MULTILINE)
    near = (split.left[-LOOKED_AT:], split.right[:LOOKED_AT])
    found = next((match for match in map(pattern.search, near) if match is not None), None)
    return None if found is None else found[1]


def columns_of_step(split: Split, spelling: Spelling) -> int:
    return len(step_of(split, spelling).expandtabs(TAB)) or TAB


def blanks_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def width_of(line: str) -> int:
    """Return the column of a line's first character that is no blank."""
    return len(blanks_of(line).expandtabs(TAB))


def is_indentation(line: str) -> bool:
    """Return whether the cursor's line, up to the cursor, consists of its indentation."""
    return bool(line) and not line.strip(BLANKS)


def deepest_column(split: Split, spelling: Spelling, is_prose: bool = False) -> int:
    """Return the deepest column of the cursor's line.

    That is the cursor's own column, unless the cursor stands in the middle of the indentation. It does if it is less
    deep than the first line of a block, or at a column at which no line above begins a block. In an empty line the
    column is that of the line above, or of the block that this line opens.

    ``is_prose``: whether the cursor is inside a comment or a string.
    """
    *above, line = split.left[-LOOKED_AT:].split("\n")
    own = width_of(line)
    code = (without_comment(one, spelling) for one in reversed(above))
    lines = [one for one in code if one.strip()]
    below = next((one for one in split.right[:LOOKED_AT].split("\n")[1:] if one.strip()), "")
    if not lines:
        return own if line else width_of(below)
    column = width_of(lines[0])
    begins_block = lines[0].endswith((":", *(opening for opening, _ in spelling.brackets)))
    opens = begins_block if is_prose else is_unfinished(lines[0], spelling)
    if not line:  # nothing says how far it is meant to be indented
        return max(column + columns_of_step(split, spelling) * opens, width_of(below))
    if opens:
        if own > column and written_step(split, spelling) is None:
            return own  # the first block of all
        return max(own, column + columns_of_step(split, spelling))
    levels, least = {column}, column
    for one in lines[1:]:
        least = min(least, width_of(one))
        levels.add(least)
    if own in levels:
        return width_of(below) if own < width_of(below) <= column else own
    return min((level for level in levels if level > own), default=own)


def without_comment(line: str, spelling: Spelling) -> str:
    """Return a line without a comment at its end, as far as that shows without parsing."""
    ends = (line.find(prefix) for prefix in spelling.comments)
    return line[: min((end for end in ends if end >= 0), default=len(line))].rstrip()


def is_unfinished(line: str, spelling: Spelling) -> bool:
    """Return whether a line opens a block, a bracket or a case, so that the next line is indented further.

    The next line may also be indented after an operator, but there the cursor's indentation decides.
    """
    if spelling.block_opener and line.endswith(spelling.block_opener):
        return True
    return UNFINISHED.search(line) is not None and line[-1] not in spelling.closers | spelling.operators


def aligned_columns(line: str, spelling: Spelling) -> set[int]:
    """Return the columns behind the brackets that a line leaves open: the next line may be aligned with them."""
    closed_by = dict(spelling.brackets)
    written = line.expandtabs(TAB)
    opened: list[tuple[str, int]] = []
    for end, character in enumerate(written, 1):
        if character in closed_by:
            opened.append((closed_by[character], end))
        elif opened and character == opened[-1][0]:
            opened.pop()
    return {end for _, end in opened if written[end : end + 1].strip()}


def starts_line(session: ClosedSession, split: Split) -> bool:
    """Return whether the cursor stands at the whole indentation of a new line of code, which no blank may follow."""
    line = split.left[split.left.rfind("\n") + 1 :]
    if not is_indentation(line) or session.guarantee == "none" or session.inside is not None:
        return False
    spelling = session.spelling
    previous = split.left[: len(split.left) - len(line)].rstrip().rpartition("\n")[2]
    if width_of(line) < deepest_column(split, spelling) or aligned_columns(previous, spelling):
        return False
    placeholder = spelling.placeholder
    return bool(placeholder) and session.check(placeholder).viable  # else only blanks may lead on


def without_trailing_blanks(text: str) -> Trimmed:
    """Return a suggestion without the blanks of blank lines, and with few such lines in a row."""
    removed = []
    for found in BLANK_LINES.finditer(text):
        start, kept = found.start(), MOST_BLANK_LINES + (found.start() == 0)  # the first one ends the cursor's line
        for number, line in enumerate(found[0].split("\n")[:-1]):
            removed.append(range(start, start + len(line) + (number >= kept)))
            start += len(line) + 1
    return Trimmed.of(text, removed)


def without_indentation(text: str, split: Split, spelling: Spelling, is_prose: bool = False) -> Iterator[Trimmed]:
    """Yield candidates for a suggestion without the indentation that the cursor's line has already.

    There are none if the first line is not indented too far. Lines below move along where possible. ``is_prose``: as in
    :func:`deepest_column`.
    """
    line = split.left[split.left.rfind("\n") + 1 :]
    lines = text.split("\n")
    first = next((number for number, one in enumerate(lines) if one.strip()), None)
    if line.strip(BLANKS) or first is None:
        return
    starts = [0]
    for one in lines:
        starts.append(starts[-1] + len(one) + 1)
    before = line if first == 0 else ""
    blanks = blanks_of(lines[first])
    if first and line and before + blanks == line:  # the line again, below the one that the cursor is in
        yield Trimmed.of(text, [range(starts[first] + len(blanks))])
        return
    ending = [range(len(lines[0]))] if first and lines[0] else []  # blanks that end the cursor's line
    column, most = width_of(before + lines[first]), deepest_column(split, spelling, is_prose)
    above = split.left[: len(split.left) - len(line)].rstrip().rpartition("\n")[2]
    if is_prose and column == width_of(line) + 1:
        most = width_of(line)  # one blank is no indentation
    if JOINED.match(lines[first].lstrip(BLANKS)):
        most += columns_of_step(split, spelling)
    if column <= most or (not is_prose and column in aligned_columns(above, spelling)):
        if ending:
            yield Trimmed.of(text, ending)
        return
    kept = blanks
    while kept and width_of(before + kept) > most:
        kept = kept[:-1]
    surplus = blanks[len(kept) :]
    removed = [*ending, range(starts[first] + len(kept), starts[first] + len(blanks))]
    moved = list(removed)
    for number in range(first + 1, len(lines)):
        if lines[number].strip():
            if not lines[number].startswith(before + blanks):
                break
            at = starts[number] + len(before + kept)
            moved.append(range(at, at + len(surplus)))
    yield Trimmed.of(text, moved)
    if len(moved) > len(removed):
        yield Trimmed.of(text, removed)
