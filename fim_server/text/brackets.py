"""Brackets of a text without a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence


def unmatched(text: str, brackets: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Return how many brackets a text closes without having opened them, and how many it leaves open.

    >>> unmatched("a) + (b", [("(", ")")])
    (1, 1)
    """
    closed, expected = 0, list[str]()
    closed_by = dict(brackets)
    for found in brackets_in(text, brackets):
        if found[0] in closed_by:
            expected.append(closed_by[found[0]])
        elif expected and expected[-1] == found[0]:
            expected.pop()
        else:
            closed += 1
    return closed, len(expected)


def before_unopened(text: str, brackets: Sequence[tuple[str, str]]) -> str:
    """Return a text up to the first bracket that closes none of its own.

    Without a grammar, such a bracket mostly stands right of the cursor already. ``brackets``: pairs of opening and
    closing ones.
    """
    closed_by = dict(brackets)
    expected: list[str] = []
    for found in brackets_in(text, brackets):
        if found[0] in closed_by:
            expected.append(closed_by[found[0]])
        elif not expected or expected.pop() != found[0]:
            return text[: found.start()]
    return text


def brackets_in(text: str, brackets: Sequence[tuple[str, str]]) -> Iterator[re.Match[str]]:
    texts = sorted({one for pair in brackets for one in pair}, key=len, reverse=True)
    return re.finditer("|".join(map(re.escape, texts)), text) if texts else iter(())
