"""Trailing commas of lists with a line for each entry, if the document has that habit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.suggest.constants import POSTPROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

COMMA = ","

LOOKED_AT = 1 << 16
"""Characters on each side of the cursor whose lists are counted."""


def with_last_comma(text: str, split: Split, spelling: Spelling, is_complete: Callable[[str], bool]) -> str:
    """Return a text for the last line of a list, with a trailing comma if that is the document's habit.

    ``is_complete``: returns whether the program is complete with a text.
    """
    rest, _, below = split.right[:LOOKED_AT].partition("\n")
    if not spelling.brackets or "\n" in text or rest.strip():
        return text
    opening, closing = zip(*spelling.brackets, strict=True)
    after = below.split("\n")
    last = text[-1:]
    if not after[0].lstrip().startswith(closing):
        return text
    if not (is_word(last) or last in closing or last in spelling.closers):
        return text
    before = split.left[-LOOKED_AT:].split("\n")
    if not is_list([*before, after[0]], len(before), opening, closing):
        return text
    ends = [*ends_of_lists(before[:-1], opening, closing), *ends_of_lists(after[1:], opening, closing)]
    if ends.count(COMMA) < max(POSTPROCESS.comma_lists, POSTPROCESS.comma_share * len(ends)) or not is_complete(
        text + COMMA
    ):
        return text
    return text + COMMA


def ends_of_lists(lines: Sequence[str], opening: Sequence[str], closing: Sequence[str]) -> list[str]:
    """Return the last characters of the lists with lines of their own between their brackets."""
    return [
        lines[number - 1].rstrip()[-1:]
        for number, line in enumerate(lines)
        if number and line.lstrip().startswith(tuple(closing)) and is_list(lines, number, opening, closing)
    ]


def is_list(lines: Sequence[str], end: int, opening: Sequence[str], closing: Sequence[str]) -> bool:
    """Return whether a line that begins with a closing bracket ends a list that may have a trailing comma.

    Such a list has several entries, and the brackets of a call, of a definition or of a list display. In brackets
    around a value, of an index or of a block, a comma has another meaning, or none.
    """
    has_several = False
    column = len(lines[end]) - len(lines[end].lstrip())
    for number in range(end - 1, -1, -1):
        line = lines[number].rstrip()
        if not line or len(line) - len(line.lstrip()) > column:
            has_several |= number < end - 1 and line.endswith(COMMA)
            continue
        if not has_several or not line.endswith(tuple(opening)):
            return False
        before = line[:-1]
        is_behind_value = is_word(before[-1:]) or before.endswith(tuple(closing))
        return is_behind_value == line.endswith(opening[0])  # languages name that of calls first
    return False
