"""Change of tokens that an edit made, between two contexts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import Token, tokens_of

CONTEXT = 2
"""Tokens on each side of a change that tell its place, where it replaces no word."""

EDITS_KEPT = 512
"""Edits whose changes are kept."""

NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Change:
    """Change of tokens.

    Attributes:
        edit: The edit.
        tokens: Tokens of the old lines.
        head: Number of tokens before the change.
        tail: Number of tokens after it.
        old_gap: Old text between the contexts, with the blanks at its ends.
        new_gap: New text between them.
        old: The old text without what both have in common at their ends.
        new: The new text, the same way.
    """

    edit: Edit
    tokens: tuple[Token, ...]
    head: int
    tail: int
    old_gap: str
    new_gap: str
    old: str
    new: str

    @property
    def names(self) -> tuple[str, str] | None:
        """Return the old and the new name, if the change is of one name."""
        is_rename = NAME.fullmatch(self.old) and NAME.fullmatch(self.new)
        return (self.old, self.new) if is_rename else None

    @property
    def anchor(self) -> tuple[str, int] | None:
        """Return a text that tells the places of the change, and the offset of :attr:`old` in it.

        It is the old text if that has a word, else with the tokens around it on its line. None if there is no word.
        """
        first, last = self.head, len(self.tokens) - self.tail
        if not any(token.is_word for token in self.tokens[first:last]):
            for _ in range(CONTEXT):
                first -= first > 0 and self.tokens[first - 1].text != "\n"
                last += last < len(self.tokens) and self.tokens[last].text != "\n"
            if not any(token.is_word for token in self.tokens[first:last]):
                return None
        start = min(self.start, self.tokens[first].start) if first < last else self.start
        end = max(self.start + len(self.old), self.tokens[last - 1].end) if first < last else start
        return self.edit.old[start:end], self.start - start

    @property
    def start(self) -> int:
        """Offset of :attr:`old` in the old lines."""
        before = self.tokens[self.head - 1].end if self.head else indentation(self.edit.old)
        return before + common_blanks(self.old_gap, self.new_gap)[0]


@lru_cache(EDITS_KEPT)
def change_of(edit: Edit) -> Change | None:
    """Return the change of an edit; None if its tokens are the same, or the blanks between the others change too."""
    before, after = tokens_of(edit.old), tokens_of(edit.new)
    most = min(len(before), len(after))
    head = 0
    while head < most and before[head].text == after[head].text:
        head += 1
    tail = 0
    while tail < most - head and before[-1 - tail].text == after[-1 - tail].text:
        tail += 1
    if head == len(before) == len(after):
        return None
    old_gap, new_gap = gap(edit.old, before, head, tail), gap(edit.new, after, head, tail)
    left, right = common_blanks(old_gap, new_gap)
    found = Change(
        *(edit, before, head, tail, old_gap, new_gap),
        *(old_gap[left : len(old_gap) - right], new_gap[left : len(new_gap) - right]),
    )
    start = found.start
    again = edit.old[:start] + found.new + edit.old[start + len(found.old) :]
    return found if again == edit.new else None


def gap(text: str, tokens: tuple[Token, ...], head: int, tail: int) -> str:
    """Return the text between two contexts; the indentation of the first line is none of it."""
    start = tokens[head - 1].end if head else indentation(text)
    end = tokens[len(tokens) - tail].start if tail else len(text)
    return text[start:end]


def indentation(text: str) -> int:
    """Return the number of blanks at the beginning of a text."""
    return len(text) - len(text.lstrip(" \t"))


def common_blanks(one: str, other: str) -> tuple[int, int]:
    """Return how many blanks two texts have in common at their beginnings and at their ends."""
    most = min(len(one), len(other))
    left = 0
    while left < most and one[left] == other[left] and one[left].isspace():
        left += 1
    right = 0
    while right < most - left and one[-1 - right] == other[-1 - right] and one[-1 - right].isspace():
        right += 1
    return left, right
